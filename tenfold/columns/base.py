"""What a kind of column has to offer. One kind is one module of this folder, and one line in ``__init__.py``.

A column of text comes as numbers, which are places in a list of its values, NaN where there is none. A kind says which
columns are its own, and turns them into columns of numbers. What it learns, it learns from training rows only; and what
it says of a training row does not rest on labels of the inner fold in which that row is.
"""

import numpy as np


class ColumnKind:
    """Some kind of columns of text, under a ``name``; what becomes of them is in ``words``.

    Once it is fitted, ``table_`` has a row for each value, and a last one for cells that are missing.
    """

    name, words = "", ""

    @classmethod
    def accepts(cls, values, counts):
        """Whether a column is of this kind, by its values and by how many training rows have each."""
        raise NotImplementedError

    def fit_transform(self, values, codes, y, fold):
        """The columns of numbers (rows x columns) that the training rows with these codes become.

        ``y`` are their signs, and ``fold`` their inner folds, -1 for rows that are in none.
        """
        raise NotImplementedError

    def transform(self, codes, new_values=()):
        """The same columns of other rows; places beyond the values seen in training are those of ``new_values``."""
        table = self.table_
        if len(new_values):
            table = np.concatenate([table[:-1], self.rows_of_new(new_values), table[-1:]])
        return take(table, codes)

    def rows_of_new(self, new_values):
        """What ``table_`` would have for values that were not seen in training."""
        raise NotImplementedError

    def arrays(self):
        """What `from_arrays` needs, by name."""
        raise NotImplementedError

    @classmethod
    def from_arrays(cls, arrays):
        """The fitted kind of which `arrays` gave these."""
        raise NotImplementedError


def take(table, codes):
    """The rows of a table of which the last is for values that are missing or new."""
    places = np.where(np.isnan(codes) | (codes >= len(table) - 1), len(table) - 1, codes).astype(np.intp)
    return table[places]
