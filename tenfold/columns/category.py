"""Categories: of few values each is a column of 0 and 1, of many values the share of positives is the column."""

import numpy as np

from tenfold.columns.base import ColumnKind

FEW = 60  # values, up to which each has a column
SMOOTHING = 10.0  # rows of the mean share that are added to those of a value


class FewValues(ColumnKind):
    """A column of 0 and 1 for each value."""

    name, words = "few", "a column of 0 and 1 for each value"

    @classmethod
    def accepts(cls, values, counts):
        return np.count_nonzero(counts) <= FEW

    def fit_transform(self, values, codes, y, fold):
        found = np.unique(codes[~np.isnan(codes)]).astype(np.intp)
        self.table_ = np.zeros((len(values) + 1, len(found)), np.float32)
        self.table_[found, np.arange(len(found))] = 1
        return self.transform(codes)

    def rows_of_new(self, new_values):
        return np.zeros((len(new_values), self.table_.shape[1]), np.float32)

    def arrays(self):
        return {"table": self.table_}

    @classmethod
    def from_arrays(cls, arrays):
        kind = cls()
        kind.table_ = arrays["table"]
        return kind


class ManyValues(FewValues):
    """The share of positives among the rows of a value, drawn towards that of all rows, and how frequent the value is.

    Reference: D. Micci-Barreca. A Preprocessing Scheme for High-Cardinality Categorical Attributes. SIGKDD Explorations
    3, 2001.
    """

    name, words = "many", "the share of positives of each value, and how frequent it is"

    @classmethod
    def accepts(cls, values, counts):
        return True

    def fit_transform(self, values, codes, y, fold):
        n, places = len(values) + 1, np.where(np.isnan(codes), len(values), codes).astype(np.intp)
        of_all = _counts(places, y, n)
        self.table_ = _table(*of_all)
        self.mean_ = _shrunk(0.0, 0.0, np.mean(y > 0))
        out = self.table_[places]
        for k in np.unique(fold[fold >= 0]):
            rows = fold == k
            without = [a - b for a, b in zip(of_all, _counts(places[rows], y[rows], n))]
            out[rows] = _table(*without)[places[rows]]
        return out

    def rows_of_new(self, new_values):
        return np.tile([self.mean_, 0.0], (len(new_values), 1))

    def arrays(self):
        return {"table": self.table_, "mean": np.array(self.mean_)}

    @classmethod
    def from_arrays(cls, arrays):
        kind = super().from_arrays(arrays)
        kind.mean_ = float(arrays["mean"])
        return kind


def _counts(places, y, n):
    """How many rows there are of each value, and how many of them are positive."""
    return np.bincount(places, minlength=n).astype(float), np.bincount(places, y > 0, minlength=n)


def _table(n_rows, n_pos):
    """For each value the shrunk share of positives, and the logarithm of the number of its rows."""
    mean = n_pos.sum() / max(n_rows.sum(), 1)
    return np.column_stack([_shrunk(n_rows, n_pos, mean), np.log1p(n_rows)])


def _shrunk(n_rows, n_pos, mean):
    """The share of positives, drawn towards the mean; a new value gets, to the last digit, what one of no rows gets."""
    return (n_pos + SMOOTHING * mean) / (n_rows + SMOOTHING)
