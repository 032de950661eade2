"""The logarithm of the share of positives that a random forest finds, where boosted trees would have too few rows.

Reference: L. Breiman. Random Forests. Machine Learning 45, 2001.
"""

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from tenfold.features.trees import Trees, TreeScores
from tenfold.plan import VISITS_OF_ONE
from tenfold.readers.base import no_warnings

TREES, FEWEST_TREES, MOST_TREES = (50, 40, 800)  # with an effort of 1, at least, and at most
FEWEST_ROWS, MOST_ROWS = 500, 3_000  # to grow it on
CELLS = 10_000  # that a tree looks at, with an effort of 1: of each row, as many as the root of the columns
LEAF_ROWS = 3  # at least
RAREST = 1e-3  # probability that a forest can tell from none


class Forest(TreeScores):
    """The logarithm of the share of positives that a random forest finds.

    Each training row is described by those trees of the one forest that have been grown without it.
    """

    name, words, visits = "forest", "random forest", VISITS_OF_ONE

    def __init__(self, n_trees=0, n_rows=0):
        self.n_trees = n_trees
        self.n_rows = n_rows

    @classmethod
    def sized(cls, shape, plan):
        n_trees = min(int(TREES * plan.effort), MOST_TREES)
        if plan.plain or plan.wide or shape.sparse or plan.tree_columns or n_trees < FEWEST_TREES:
            return None
        n_rows = np.clip(CELLS * plan.root / shape.n_columns**0.5, FEWEST_ROWS, MOST_ROWS)
        return cls(n_trees, int(min(plan.rows, n_rows)))

    def fit_transform(self, rows, y, fold):
        rows, numbers = rows.thinned(y, self.n_rows)
        y = y[numbers]
        forest = RandomForestClassifier(self.n_trees, min_samples_leaf=LEAF_ROWS, oob_score=True, random_state=0)
        with no_warnings():  # few trees may leave a row out of none
            forest.fit(rows.scaled, y)
        share = forest.oob_decision_function_[:, 1]
        scores = self.say(np.where(np.isnan(share), np.mean(y > 0), share))
        self.trees_ = Trees.joined([_trees_of_forest(tree.tree_) for tree in forest.estimators_])
        return self.feature(scores), numbers

    @staticmethod
    def say(scores):
        """The logarithm of the share, which is never that of nothing."""
        return np.log(scores + RAREST)

    @classmethod
    def from_file(cls, settings, arrays):
        feature_set = super().from_file(settings, arrays)
        if (feature_set.trees_.value < 0).any():
            raise ValueError("its forest has shares below 0")
        return feature_set


def _trees_of_forest(tree):
    """A tree of a forest as `Trees`, whose value is the share of positives."""
    is_leaf, itself = tree.children_left < 0, np.arange(tree.node_count)
    left, right = (np.where(is_leaf, itself, side) for side in (tree.children_left, tree.children_right))
    of_class = tree.value[:, 0, :]
    share = of_class[:, 1] / of_class.sum(axis=1)
    return Trees(np.array([0]), np.where(is_leaf, 0, tree.feature), tree.threshold, left, right, share)
