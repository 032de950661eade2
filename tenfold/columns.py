"""Versions of scaled columns: standardised, as ranks and as curves."""

import numpy as np

from preprocess import take
from tenfold.plan import MOST_CURVES, MOST_STEPS, POSITIVES_PER_STEP, RANKED_ROWS, STEPS

RANK_KNOTS = 201  # quantiles by which ranks are found


class Columns:
    """More versions of scaled columns: standardised, as ranks, and as curves, with steps where quantiles are passed.

    Columns of two values are -1 and +1 in the first two, and have no curves: standardising would let the rarest speak
    the loudest. There are no ranks without others, nor with more than ``most_ranked`` of them, where they are dear.
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
