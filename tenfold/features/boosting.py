"""The score of boosted trees: thresholds and interactions of columns, which neither these nor similarities show well.

Trees are grown by scikit-learn; how much they count is learned like everything else.

Reference: D. Wolpert. Stacked Generalization. Neural Networks 5, 1992.
"""

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from preprocess import row_chunks
from tenfold.features.trees import Trees, TreeScores
from tenfold.plan import TREE_CELLS, VISITS_OF_ONE, thin

TREES, FEWEST_TREES, MOST_GROWTH = (20, 6, 4)  # for each inner fold: with an effort of 1, at least, and times that
LEAVES = 40  # of a tree, at most; fewer would find less
WIDE_TREES, WIDE_LEAVES = 10, 16  # the same of wide data,
WIDE_ROWS = 3_000  # the rows to grow them on, for each inner fold,
WIDE_CHOSEN_BY = 2_000  # and the rows to choose columns by
BINS = 63  # in which the values of a column are put
PACE, MOST_PACE = (5.0, 0.5)  # learning rate times the number of trees; learning rate, at most


class Boosting(TreeScores):
    """The score of boosted trees, where both classes have many rows.

    The training rows of each inner fold are described by trees that have been grown without them, because trees flatter
    the rows they have seen. Other rows are described by the mean over the folds.
    """

    name, words, visits = "trees", "boosted trees", VISITS_OF_ONE

    def __init__(self, n_trees=0, n_leaves=0, n_columns=0, n_rows=0, wide=False):
        self.n_trees = n_trees
        self.n_leaves = n_leaves
        self.n_columns = n_columns
        self.n_rows = n_rows
        self.wide = wide

    @classmethod
    def sized(cls, shape, plan):
        if not plan.tree_columns:
            return None
        root, wide = plan.root, plan.wide
        n_rows = int(min(plan.rows, WIDE_ROWS * root if wide else TREE_CELLS * root / plan.tree_columns))
        n_trees = max(int((WIDE_TREES if wide else TREES) * min(root, MOST_GROWTH)), FEWEST_TREES)
        return cls(n_trees, int((WIDE_LEAVES if wide else LEAVES) * max(root, 1)), plan.tree_columns, n_rows, wide)

    def fit_transform(self, rows, y, fold):
        if self.wide:  # all rows are described
            numbers = np.arange(len(rows))
        else:
            rows, numbers = rows.thinned(y, self.n_rows)
        Z, y, fold = rows.scaled, y[numbers], fold[numbers]
        scores, groups, every = np.empty(len(y)), [], np.arange(Z.shape[1])
        chosen = [every] * len(np.unique(fold))
        if self.n_columns < len(every):
            some = slice(WIDE_CHOSEN_BY if self.wide else None)
            chosen = choose_columns(Z[some], y[some], fold[some], self.n_columns)
        for k, columns in zip(np.unique(fold), chosen):
            seen = np.flatnonzero(fold != k if k >= 0 else fold == k)
            seen = seen[thin(y[seen], self.n_rows)] if self.wide else seen
            groups.append(grow(self._booster(), _part(Z, seen, columns), y[seen], columns))
            scores[fold == k] = groups[-1].narrowed(columns).score(_part(Z, fold == k, columns))
        self.trees_ = Trees.joined(groups)
        return self.feature(scores), numbers

    def _booster(self):
        return HistGradientBoostingClassifier(
            learning_rate=min(PACE / self.n_trees, MOST_PACE),
            max_iter=self.n_trees,
            max_leaf_nodes=self.n_leaves,
            max_bins=BINS,
            early_stopping=False,
            random_state=0,
        )


def _part(Z, rows, columns):
    """``Z[rows][:, columns]``, without a copy of other columns."""
    return Z[rows] if len(columns) == Z.shape[1] else Z[np.ix_(rows, columns)]


def grow(booster, Z, y, columns):
    """The trees that this `HistGradientBoostingClassifier` grows on the rows of Z, as `Trees`.

    They are for rows of which Z has these columns.
    """
    trees = [predictor.nodes for (predictor,) in booster.fit(Z, y)._predictors]
    root = np.cumsum([0, *map(len, trees)])
    first, nodes = np.repeat(root[:-1], np.diff(root)), np.concatenate(trees)
    is_leaf, itself = nodes["is_leaf"].astype(bool), np.arange(len(nodes))
    left, right = (np.where(is_leaf, itself, first + nodes[side]) for side in ("left", "right"))
    column = np.where(is_leaf, 0, columns[nodes["feature_idx"]])
    return Trees(root[:-1], column, nodes["num_threshold"], left, right, nodes["value"])


def choose_columns(Z, y, fold, n_columns):
    """For each fold, the numbers of so many columns, in order: those in which the classes differ most outside of it.

    That is by F, as of scikit-learn's `f_classif`, but the sums that it takes are found for all folds at once. If there
    is one fold only, the rows are its own.
    """
    of_fold = np.unique(fold)[:, None] == fold
    of_group = np.concatenate([of_fold & (y > 0), of_fold & (y < 0)]).astype(np.float64)
    sums, squares = (np.zeros((len(of_group), Z.shape[1])), np.zeros((len(of_fold), Z.shape[1])))
    for rows in row_chunks(Z):
        cells = Z[rows].astype(np.float64)
        sums += of_group[:, rows] @ cells
        squares += of_fold[:, rows].astype(np.float64) @ np.square(cells, out=cells)
    n, sums = (A.reshape(2, len(of_fold), -1) for A in (of_group.sum(axis=1), sums))
    if len(of_fold) > 1:
        n, sums, squares = (A.sum(axis=-2, keepdims=True) - A for A in (n, sums, squares))
    total = squares - sums.sum(axis=0) ** 2 / n.sum(axis=0)
    difference = np.subtract(*(sums / n)) ** 2 * n.prod(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        F = np.where(total > 1e-9 * squares, difference / total, 0)  # of columns that are not constant
    return np.sort(np.argsort(-F, axis=1, kind="stable")[:, :n_columns], axis=1)
