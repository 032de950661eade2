"""From tables with columns of text to numbers. A new kind of column is a module of this folder, and a name in the list.

The first kind that accepts a column takes it.
"""

import numpy as np

from tenfold.columns.category import FewValues, ManyValues
from tenfold.columns.text import Text

KINDS = [FewValues, Text, ManyValues]


class TableEncoder:
    """Columns of text become columns of numbers, behind the others.

    ``categories`` has for each column of text, by its number, the list of values that its numbers are places in.
    """

    def __init__(self, categories):
        self.categories = categories

    def fit_transform(self, X, y, fold):
        """Learn from the rows of X and return them, all columns being numbers."""
        self.kinds_ = {}
        parts = [self._others(X)]
        for j, values in self.categories.items():
            codes = np.where(X[:, j] < len(values), X[:, j], np.nan)  # values of no list are missing
            counts = np.bincount(codes[~np.isnan(codes)].astype(np.intp), minlength=len(values))
            self.kinds_[j] = next(kind for kind in KINDS if kind.accepts(values, counts))()
            parts.append(self.kinds_[j].fit_transform(values, codes, y, fold))
        return np.column_stack(parts)

    def transform(self, X, new_values=None):
        """The same columns of other rows; ``new_values`` are those of each column that were not seen in training."""
        new = new_values or {}
        parts = (kind.transform(X[:, j], new.get(j, ())) for j, kind in self.kinds_.items())
        return np.column_stack([self._others(X), *parts])

    def _others(self, X):
        return np.delete(X, list(self.categories), axis=1)

    def to_file(self):
        """Settings that JSON can hold, and arrays by name."""
        settings = {str(j): kind.name for j, kind in self.kinds_.items()}
        arrays = {f"{j}.{name}": A for j, kind in self.kinds_.items() for name, A in kind.arrays().items()}
        return settings, arrays

    @classmethod
    def from_file(cls, settings, arrays):
        """The fitted encoder of which `to_file` gave these."""
        kinds = {kind.name: kind for kind in KINDS}
        encoder = cls({int(j): None for j in settings})
        encoder.kinds_ = {}
        for j, name in settings.items():
            own = {key.partition(".")[2]: A for key, A in arrays.items() if key.partition(".")[0] == j}
            encoder.kinds_[int(j)] = kinds[name].from_arrays(own)
        return encoder
