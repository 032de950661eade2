"""Versions of scaled rows, each made once: standardised, as ranks, as curves, and as distances from landmarks."""

from functools import cached_property

import numpy as np
from scipy.spatial.distance import cdist

from preprocess import take
from tenfold.plan import thin

STEPS = 16  # at most, for each column
MOST_STEPS = 1_000  # of all columns
POSITIVES_PER_STEP = 10  # at least, so that single positives are not told apart
RANKED_ROWS = 3_000  # training rows, in random order, that ranks and steps are found by
MOST_CURVES = 500  # columns of more than two values that may have ranks or steps
RANK_KNOTS = 201  # quantiles by which ranks are found
CHUNK = 512  # rows whose distances are computed at a time
CACHED_CELLS = 50_000  # of landmarks, in float64, that stay in the cache


class Rows:
    """Scaled rows and versions of them. ``columns`` and ``landmarks`` are those of the training rows, or None."""

    def __init__(self, scaled, columns=None, landmarks=None):
        self.scaled = scaled
        self.columns = columns
        self._landmarks = landmarks
        self._parts, self._distances = {}, {}

    def __len__(self):
        return self.scaled.shape[0]

    @property
    def landmarks(self):
        """The landmarks, as rows; without others, these rows are the landmarks."""
        return self if self._landmarks is None else self._landmarks

    @cached_property
    def standard(self):
        return self.columns.standard(self.scaled)

    @cached_property
    def rank(self):
        return self.columns.rank(self.scaled)

    @cached_property
    def curves(self):
        return self.columns.curves(self.scaled)

    def thinned(self, y, n):
        """At most n of these rows, as of `thin`, and their numbers; asked for again, they are the same `Rows`."""
        if n >= len(y):
            return self, np.arange(len(y))
        if n not in self._parts:
            numbers = thin(y, n)
            self._parts[n] = (Rows(self.scaled[numbers], self.columns, self._landmarks), numbers)
        return self._parts[n]

    def distances(self, version, metric):
        """The distances, "euclidean" or "city_block", of a version of the rows from that of the landmarks."""
        key = version, metric
        if key not in self._distances:
            versions = getattr(self, version), getattr(self.landmarks, version)
            self._distances[key] = METRICS[metric](*versions, self.columns)
        return self._distances[key]


class Columns:
    """How scaled columns become standardised ones, ranks, and curves, with steps where quantiles are passed.

    Columns of two values are -1 and +1 in the first two, and have no curves: standardising would let the rarest count
    the most. There are no ranks without others, nor with more than ``most_ranked`` of them, where they take long.
    """

    def __init__(self, most_ranked=np.inf):
        self.most_ranked = most_ranked

    def fit(self, Z, n_pos):
        """Learn from the rows of Z; of these, ``n_pos`` are positive."""
        low, high = Z.min(axis=0), Z.max(axis=0)
        self.varying_ = np.flatnonzero(low < high)
        Z, self.low_ = take(Z, self.varying_), low[self.varying_]
        self.many_ = np.flatnonzero(((Z != self.low_) & (Z != high[self.varying_])).any(axis=0))
        many = take(Z, self.many_)
        self.mean_, self.sd_ = many.mean(axis=0), many.std(axis=0)
        ascending = np.sort(many[:RANKED_ROWS].T) if many.shape[1] <= MOST_CURVES else many[:1, :0].T
        self.ranked_ = 0 < len(self.many_) <= min(self.most_ranked, MOST_CURVES)
        self.knots_ = [self._fit_ranks(column) for column in ascending] if self.ranked_ else None
        self._fit_steps(ascending, n_pos)
        return self

    def arrays(self):
        """All that was learned, as arrays by name."""
        names = ("varying_", "low_", "many_", "mean_", "sd_", "cuts_", "cut_columns_", "step_")
        arrays = {name: getattr(self, name) for name in names}
        if self.ranked_:
            arrays["knots"] = np.concatenate([np.empty((2, 0)), *map(np.stack, self.knots_)], axis=1)
            arrays["ends"] = np.cumsum([len(knots) for knots, _ in self.knots_], dtype=int)
        return arrays

    @classmethod
    def from_arrays(cls, arrays):
        columns = cls()
        columns.ranked_ = "knots" in arrays
        if columns.ranked_:
            columns.knots_ = np.split(arrays.pop("knots"), arrays.pop("ends")[:-1], axis=1)
        vars(columns).update(arrays)
        return columns

    @staticmethod
    def _fit_ranks(column):
        """Quantiles of a sorted column and the middle rank of each, so scaled that ranks have mean 0 and variance 1."""
        at = np.linspace(0, len(column) - 1, RANK_KNOTS).round().astype(int)
        knots = np.unique(column[at])
        rank = (column.searchsorted(knots, "left") + column.searchsorted(knots, "right")) / (2 * len(column))
        return knots, (rank - 0.5) * np.sqrt(12)

    def _fit_steps(self, ascending, n_pos):
        """Quantiles of each sorted column, and how high a step is where a row passes one of them."""
        n_steps = max(min(STEPS, n_pos // POSITIVES_PER_STEP, MOST_STEPS // max(len(ascending), 1)), 1)
        at = np.arange(1, n_steps + 1) * (ascending.shape[1] - 1) // (n_steps + 1)
        cuts = [np.setdiff1d(column[at], column[-1]) for column in ascending]
        self.cuts_ = np.concatenate([self.low_[:0], *cuts])
        self.cut_columns_ = np.repeat(self.varying_[self.many_][: len(cuts)], [len(c) for c in cuts])
        self.step_ = np.float32(2 / np.sqrt(n_steps))

    def standard(self, Z):
        return self._transform(Z, self._standardise)

    def rank(self, Z):
        return self._transform(Z, self._rank)

    def curves(self, Z):
        """What a curve over each column of many values can be made of: its ranks, if there are any, and steps."""
        steps = (Z[:, self.cut_columns_] > self.cuts_) * Z.dtype.type(self.step_)
        return np.hstack([self._rank(Z[:, self.varying_[self.many_]]), steps]) if self.ranked_ else steps

    def _transform(self, Z, transform_many):
        Z = take(Z, self.varying_)
        if len(self.many_) == Z.shape[1]:
            return transform_many(Z)
        out = np.where(Z > self.low_, Z.dtype.type(1), Z.dtype.type(-1))
        if len(self.many_):
            out[:, self.many_] = transform_many(Z[:, self.many_])
        return out

    def _standardise(self, Z):
        Z = Z - self.mean_
        Z /= self.sd_
        return np.clip(Z, -6, 6, out=Z)

    def _rank(self, Z):
        return np.column_stack([np.interp(z, *knots) for z, knots in zip(Z.T, self.knots_)]).astype(np.float32)


def euclidean(X, C, columns=None):
    """Euclidean distances of the rows of X from those of C."""
    D = _squared_distances(X, C)
    return np.sqrt(D, out=D)


def city_block(X, C, columns):
    """City-block distances of the rows of X from those of C.

    In a column of the two values -v and v that is ``(x - c) ** 2 / (2 * v)``, so that a matrix product does for these.
    """
    two = np.delete(np.arange(X.shape[1]), columns.many_)
    root = np.sqrt(2 * np.abs(C[0, two]))
    D = _squared_distances(X[:, two] / root, C[:, two] / root)
    X, C = X[:, columns.many_], C[:, columns.many_]
    n = max(CACHED_CELLS // max(X.shape[1], 1), 1)
    for i in range(0, len(X), CHUNK):  # a whole matrix of them, in float64, would take longer to get than to fill
        for j in range(0, len(C), n):
            D[i : i + CHUNK, j : j + n] += cdist(X[i : i + CHUNK], C[j : j + n], "cityblock")
    return D


def _squared_distances(X, C):
    D = X @ (-2 * C.T)
    D += np.einsum("ij,ij->i", X, X)[:, None]
    D += np.einsum("ij,ij->i", C, C)
    return np.maximum(D, 0, out=D)


METRICS = {metric.__name__: metric for metric in (euclidean, city_block)}
