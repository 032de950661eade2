"""What trees say of a row, as a feature: boosted ones where rows are many, a random forest where they are few.

Trees find thresholds and interactions of a few columns, which neither the columns nor similarities of rows show well.
They are grown by scikit-learn; how much they count is learned like everything else.

References: D. Wolpert. Stacked Generalization. Neural Networks 5, 1992.
L. Breiman. Random Forests. Machine Learning 45, 2001.
"""

from itertools import repeat

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from preprocess import row_chunks
from tenfold.plan import LEAVES, thin
from tenfold.readers.base import no_warnings

BINS = 63  # in which the values of a column are put
PACE = 5.0  # learning rate times the number of trees
MOST_PACE = 0.5  # learning rate
LEAF_ROWS = 3  # at least, in a tree of a forest
RAREST = 1e-3  # probability that a forest can tell from none


class TreeFeatures:
    """The score of boosted trees.

    The training rows of each inner fold are described by trees that have been grown without them, for trees flatter the
    rows they have seen. Other rows are described by the mean over the folds.
    """

    kind = "trees"
    takes_raw = True

    def __init__(self, n_trees, n_leaves=LEAVES, n_columns=None, n_rows=None, n_chosen_by=None):
        self.n_trees = n_trees
        self.n_leaves = n_leaves
        self.n_columns = n_columns  # None: all
        self.n_rows = n_rows  # None: all that are not of the inner fold
        self.n_chosen_by = n_chosen_by  # rows to choose columns by; None: all

    def fit_transform(self, versions, y, fold):
        Z, scores, groups = versions["scaled"], np.empty(len(y)), []
        every = np.arange(Z.shape[1])
        few, some = self.n_columns is not None and self.n_columns < len(every), slice(self.n_chosen_by)
        chosen = choose_columns(Z[some], y[some], fold[some], self.n_columns) if few else repeat(every)
        for k, columns in zip(np.unique(fold), chosen):
            seen = np.flatnonzero(fold != k if k >= 0 else fold == k)
            seen = seen[thin(y[seen], self.n_rows or len(seen))]
            groups.append(grow(self._booster(), _part(Z, seen, columns), y[seen], columns))
            scores[fold == k] = groups[-1].narrowed(columns).score(_part(Z, fold == k, columns))
        self.trees_ = Trees.joined(groups)
        return self._scaled(scores)

    def _scaled(self, scores):
        """The scores as a feature of deviation 1."""
        self.scale_ = np.float32(1 / max(scores.std(), 1e-6))
        return (scores[:, None] * self.scale_).astype(np.float32)

    def _booster(self):
        return HistGradientBoostingClassifier(
            learning_rate=min(PACE / self.n_trees, MOST_PACE),
            max_iter=self.n_trees,
            max_leaf_nodes=self.n_leaves,
            max_bins=BINS,
            early_stopping=False,
            random_state=0,
        )

    def description(self):
        return self.kind, [self.n_trees, self.n_leaves, self.n_columns, self.n_rows]

    def arrays(self):
        """All that was learned and is needed to score, as arrays by name."""
        return vars(self.trees_)

    def with_trees(self, trees):
        """The same, with trees that were grown before."""
        self.trees_ = trees
        return self

    def coefficients(self, w):
        """By how much the score counts."""
        return w * self.scale_

    def score(self, versions, coefficients):
        return self._say(self.trees_, versions["scaled"]) * coefficients[0]

    def score_raw(self, preprocessor, X, coefficients):
        """The same for rows that are not scaled yet: only the columns that the trees look at have to be."""
        columns = np.union1d(self.trees_.column, 0)
        Z = preprocessor.transform_columns(X, columns)
        return self._say(self.trees_.narrowed(columns), Z.toarray() if sp.issparse(Z) else Z) * coefficients[0]

    @staticmethod
    def _say(trees, Z):
        return trees.score(Z)


class ForestFeatures(TreeFeatures):
    """The logarithm of the share of positives that a random forest finds.

    Each training row is described by those trees of the one forest that have been grown without it.
    """

    kind = "forest"

    def __init__(self, n_trees):
        self.n_trees = n_trees

    def fit_transform(self, versions, y, fold):
        forest = RandomForestClassifier(self.n_trees, min_samples_leaf=LEAF_ROWS, oob_score=True, random_state=0)
        with no_warnings():  # few trees may leave a row out of none
            forest.fit(versions["scaled"], y)
        share = forest.oob_decision_function_[:, 1]
        scores = _log(np.where(np.isnan(share), np.mean(y > 0), share))
        self.trees_ = Trees.joined([_trees_of_forest(tree.tree_) for tree in forest.estimators_])
        return self._scaled(scores)

    def description(self):
        return self.kind, [self.n_trees]

    def with_trees(self, trees):
        if (trees.value < 0).any():
            raise ValueError("its forest has shares below 0")
        return super().with_trees(trees)

    @staticmethod
    def _say(trees, Z):
        return _log(trees.score(Z))


def _log(share):
    return np.log(share + RAREST)


def _trees_of_forest(tree):
    """A tree of a forest as `Trees`, whose value is the share of positives."""
    is_leaf, itself = tree.children_left < 0, np.arange(tree.node_count)
    left, right = (np.where(is_leaf, itself, side) for side in (tree.children_left, tree.children_right))
    of_class = tree.value[:, 0, :]
    share = of_class[:, 1] / of_class.sum(axis=1)
    return Trees(np.array([0]), np.where(is_leaf, 0, tree.feature), tree.threshold, left, right, share)


def _part(Z, rows, columns):
    """``Z[rows][:, columns]``, without a copy of other columns."""
    return Z[rows] if len(columns) == Z.shape[1] else Z[np.ix_(rows, columns)]


def grow(booster, Z, y, columns=None):
    """The trees that this `HistGradientBoostingClassifier` grows on the rows of Z, as `Trees`.

    They are for rows of which Z has these columns, or all.
    """
    columns = np.arange(Z.shape[1]) if columns is None else columns
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
    sums, squares = np.zeros((len(of_group), Z.shape[1])), np.zeros((len(of_fold), Z.shape[1]))
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

        column, threshold, value = join("column"), join("threshold"), join("value") / len(groups)
        return cls(join("root", 1), column, threshold, join("left", 1), join("right", 1), value)

    def narrowed(self, columns):
        """The same trees for rows that have only these columns, in ascending order."""
        return Trees(**vars(self) | {"column": np.searchsorted(columns, self.column)})

    def score(self, Z):
        """The score of each row of Z."""
        if self.column.max() >= Z.shape[1]:
            raise ValueError(f"its trees look at column {self.column.max() + 1} of {Z.shape[1]}")
        cells, first, total = np.ravel(Z), np.arange(len(Z)) * Z.shape[1], np.zeros(len(Z))
        child = np.stack([self.right, self.left], axis=1).ravel()
        for root in self.root:
            before, at = None, np.full(len(Z), root)
            while not np.array_equal(at, before):
                before, at = at, child[2 * at + (cells[first + self.column[at]] <= self.threshold[at])]
            total += self.value[at]
        return total
