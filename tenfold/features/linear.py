"""The columns themselves, and curves over them."""

import numpy as np
import scipy.sparse as sp

from preprocess import row_chunks
from tenfold.features.base import FeatureSet

LEAST_DEVIATION = 0.05  # of a column's range
EVEN_COLUMNS = 200  # of two values, at least, for a set of its own in which each is divided by its deviation
SPARSE_COLUMNS = 30_000  # of sparse rows, at most, to learn from: those that are filled most often


class Linear(FeatureSet):
    """The columns themselves, so scaled that the mean squared distance of a row from the mean row is 1.

    With curves they are standardised before; of wide data, each is divided by its deviation instead. Of very many
    sparse columns the most often filled are used.
    """

    name, words = "linear", "columns"

    def __init__(self, versions=("scaled",), each=False, in_place=False, most_columns=None, visits=0):
        self.versions = versions
        self.each = each
        self.in_place = in_place
        self.most_columns = most_columns
        self.visits = visits

    @classmethod
    def sized(cls, shape, plan):
        if plan.wide or plan.plain or shape.sparse:
            most_columns = SPARSE_COLUMNS if shape.sparse else None
            return cls(each=plan.wide, in_place=plan.wide, most_columns=most_columns, visits=plan.visits)
        return cls(("standard", "curves"), visits=plan.visits)

    def fit_transform(self, rows, y, fold):
        F = self._columns(rows)
        self.n_columns_, self.columns_ = F.shape[1], None
        if self.most_columns is not None and self.most_columns < F.shape[1]:
            filled = np.bincount(F.indices, minlength=F.shape[1])
            drawn = np.random.RandomState(0).permutation(F.shape[1])  # among columns that are filled equally often
            self.columns_ = np.sort(np.lexsort([drawn, -filled])[: self.most_columns])
            F = F[:, self.columns_]
        self.fit_scale(F)
        if self.in_place:  # too large for a copy; this set comes last
            F *= self.scale_
            return F, np.arange(len(rows))
        return self.times_scale(F), np.arange(len(rows))

    def fit_scale(self, F):
        """Learn by what to multiply the columns."""
        variance, scale = _variance(F), np.float32(1)
        if self.each:
            scale = np.where(variance > 0, 1 / np.sqrt(np.maximum(variance, LEAST_DEVIATION**2)), 0)
        self.scale_ = (scale / np.sqrt(max((scale**2 * variance).sum(), 1e-12))).astype(np.float32)

    def times_scale(self, F):
        """The columns, each times what was learned."""
        return F @ sp.diags_array(self.scale_) if sp.issparse(F) and self.scale_.ndim else F * self.scale_

    def _columns(self, rows):
        parts = [getattr(rows, version) for version in self.versions]
        return np.hstack(parts) if len(parts) > 1 else parts[0]

    def coefficients(self, w):
        """By how much each column counts."""
        if self.columns_ is None:
            return w * self.scale_
        of_all = np.zeros(self.n_columns_, w.dtype)
        of_all[self.columns_] = w * self.scale_
        return of_all

    def score(self, rows, coefficients):
        return self._columns(rows) @ coefficients

    def to_file(self):
        return {"versions": self.versions}, {}

    @classmethod
    def from_file(cls, settings, arrays):
        return cls(tuple(settings["versions"]))


class Even(Linear):
    """The scaled columns, each divided by its deviation: then rare words, or other columns that are hardly ever filled,
    count as much as common ones.
    """

    name = "even"

    @classmethod
    def sized(cls, shape, plan):
        many_rare = shape.sparse or shape.n_columns - shape.n_many >= EVEN_COLUMNS
        if plan.wide or plan.plain or not (shape.has_many and many_rare):
            return None
        return cls(each=True, most_columns=SPARSE_COLUMNS if shape.sparse else None, visits=plan.visits)


def _variance(F):
    """The variance of each column."""
    total, squares = np.zeros(F.shape[1]), np.zeros(F.shape[1])
    for rows in [slice(None)] if sp.issparse(F) else row_chunks(F):
        cells = F[rows].astype(np.float64)
        total += cells.sum(axis=0)
        squares += (cells.multiply(cells) if sp.issparse(F) else np.square(cells, out=cells)).sum(axis=0)
    return np.maximum(squares / F.shape[0] - (total / F.shape[0]) ** 2, 0)
