"""Trees as arrays, whoever has grown them, and what sets of features share whose one feature is what trees say."""

import numpy as np

from tenfold.features.base import FeatureSet, unit_deviation


class Trees:
    """Trees whose values add up to a score, as arrays with an item for each node.

    ``root`` has the numbers of the first nodes. From a node a row goes to ``left`` where its ``column`` is at most the
    ``threshold``, else to ``right``; a leaf leads to itself, and has a ``value``.
    """

    def __init__(self, root, column, threshold, left, right, value):
        self.root, self.column, self.threshold = root, column, threshold
        self.left, self.right, self.value = left, right, value
        self._check()

    def _check(self):
        """Every row must come to an end: scikit-learn numbers the nodes below a node after it."""
        for name, A in vars(self).items():
            kinds = "f" if name in ("threshold", "value") else "iu"
            if A.ndim != 1 or A.dtype.kind not in kinds or (name != "root" and len(A) != len(self.column)):
                raise ValueError(f"its trees have no sound {name} of each node")
        if not len(self.root) or self.root.min() < 0 or self.root.max() >= len(self.column) or self.column.min() < 0:
            raise ValueError("its trees have nodes that are not there")
        itself = np.arange(len(self.column))
        if any((A < itself).any() or A.max() > itself[-1] for A in (self.left, self.right)):
            raise ValueError("its trees have nodes that lead back, or nowhere")
        if not np.isfinite(self.value).all():
            raise ValueError("its trees have values that are not finite")

    @classmethod
    def joined(cls, groups):
        """The trees of all groups, whose score is the mean of theirs."""
        first = np.cumsum([0, *(len(trees.column) for trees in groups)])

        def join(name, shift=0):
            return np.concatenate([getattr(trees, name) + shift * start for trees, start in zip(groups, first)])

        column, threshold, value = (join("column"), join("threshold"), join("value") / len(groups))
        return cls(join("root", 1), column, threshold, join("left", 1), join("right", 1), value)

    def narrowed(self, columns):
        """The same trees for rows that have only these columns, in ascending order."""
        return Trees(**vars(self) | {"column": np.searchsorted(columns, self.column)})

    def score(self, Z):
        """The score of each row of Z."""
        if self.column.max() >= Z.shape[1]:
            raise ValueError(f"its trees look at column {self.column.max() + 1} of {Z.shape[1]}")
        cells, first, total = (np.ravel(Z), np.arange(len(Z)) * Z.shape[1], np.zeros(len(Z)))
        child = np.stack([self.right, self.left], axis=1).ravel()
        for root in self.root:
            before, at = None, np.full(len(Z), root)
            while not np.array_equal(at, before):
                before, at = (at, child[2 * at + (cells[first + self.column[at]] <= self.threshold[at])])
            total += self.value[at]
        return total


class TreeScores(FeatureSet):
    """One feature: what ``trees_`` say of a row, times ``scale_``."""

    def feature(self, scores):
        """The scores as a feature of deviation 1."""
        self.scale_ = unit_deviation(scores)
        return (scores[:, None] * self.scale_).astype(np.float32)

    def coefficients(self, w):
        """By how much the score counts."""
        return w * self.scale_

    def score(self, rows, coefficients):
        return self.say(self.trees_.score(rows.scaled)) * coefficients[0]

    @staticmethod
    def say(scores):
        """What to make of the score of the trees."""
        return scores

    def to_file(self):
        return {}, vars(self.trees_)

    @classmethod
    def from_file(cls, settings, arrays):
        feature_set = cls()
        feature_set.trees_ = Trees(**arrays)
        return feature_set
