"""The whole recipe as a scikit-learn estimator, `AUCRanker`, and the published algorithm as it stands."""

import time
from numbers import Real

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from oam import FEW_COLUMNS, OnlineAUC, two_classes
from preprocess import CHUNK_CELLS, Preprocessor
from tenfold.calibration import log_odds
from tenfold.columns import Columns
from tenfold.features import plain_feature_sets, rich_feature_sets, sparse_feature_sets, wide_feature_sets
from tenfold.lanes import LaneEnsemble, inner_folds
from tenfold.models import RankerMixin, ScoreFunction, one_thread, read_model
from tenfold.plan import WIDE_CHOSEN_BY, Shape, draw_rows, make_plan, thin
from tenfold.readers.base import Data

FEATURES = ("auto", "linear")
LOOKED_AT = 200  # rows by which a plan tells columns of two values from others,
LOOKED_AT_CELLS = 4_000_000  # unless they have more cells than these
CHUNK = 2048  # rows that the published algorithm learns from at a time


class _Ranker(RankerMixin, BaseEstimator):
    """What `fit` of both rankers shares."""

    def fit(self, X, y, *, rows=None, stop=lambda: False):
        """Learn to rank the rows of X.

        Parameters
        ----------
        X : array, sparse array or data frame of shape (n_rows, n_features)
            The rows; NaN and infinities are missing values.
        y : array of shape (n_rows,)
            Their labels, of two kinds.
        rows : array of int or None, default=None
            The numbers of the rows to learn from, as if these were all, but without a copy of them; None is all.
        stop : callable, default=never
            Called now and then without arguments; learning ends where it is as soon as it returns True.

        Returns
        -------
        self
        """
        self._check_parameters()
        begun = time.monotonic()
        X, y = self._validate(X, y=y, ensure_min_samples=2)
        rows = np.arange(len(y)) if rows is None else rows
        y = y[rows]
        labels = np.unique(y)
        check_classification_targets(labels)
        self.classes_ = two_classes(labels)
        y = np.where(y == self.classes_[1], 1, -1)
        X = sp.csr_array(X) if sp.issparse(X) else X
        self.data_ = Data(X[:0], self.classes_)
        with one_thread(), np.errstate(invalid="ignore"):  # products may read, and not use, what lies beyond their rows
            self._fit(X, y, rows, check_random_state(self.random_state), stop, begun)
        self.changes_ = self.score_function_.preprocessor.changes_
        return self


class AUCRanker(_Ranker):
    """Scores that rank the positives of two classes above the negatives, by online AUC maximization on rich features.

    A fit cleans and scales the rows, makes sets of features of them (the columns, curves over them, similarities to
    some of the rows, what trees say), learns from each set by `oam.PairLearner` in lanes (step sizes times inner
    folds), and takes the mean of the lanes, by shares that follow from how well they rank the rows they held out. The
    same rows give probabilities.

    Parameters
    ----------
    features : {"auto", "linear"}, default="auto"
        What to learn from: the columns, similarities to training rows and scores of trees, or the scaled columns only.
    effort : float, default=1.0
        The size of every part of a fit: 4 is twice as many rows, visits, landmarks and trees, about four times the
        work. The scores follow from this and the data, not from the machine.
    random_state : int, RandomState instance or None, default=None
        Decides the order of the rows, the landmarks, the inner folds and what the reservoirs keep.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels; the second is the positive class.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X was a data frame.
    shares_ : dict
        The share of each set of features in the score.
    done_ : float
        The share of the planned work that was done, below 1 if ``stop`` made an end.
    rows_ : int
        How many rows it has learned from.
    preparing_ : float
        Seconds that it took to clean and scale these rows, which hardly grow with the effort.
    changes_ : dict
        How many columns were constant or copies of others, and how many cells were missing.

    References
    ----------
    P. Zhao, S. C. H. Hoi, R. Jin, T. Yang. Online AUC Maximization. ICML 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from tenfold import AUCRanker
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> float(cross_val_score(AUCRanker(random_state=0), X, y, cv=3, scoring="roc_auc").mean().round(2))
    0.99
    """

    def __init__(self, features="auto", *, effort=1.0, random_state=None):
        self.features = features
        self.effort = effort
        self.random_state = random_state

    def _check_parameters(self):
        if self.features not in FEATURES:
            raise ValueError(f"features is {self.features!r}, expected one of {FEATURES}")
        if not isinstance(self.effort, Real) or not 0 < self.effort < np.inf:
            raise ValueError(f"effort is {self.effort!r}, expected a finite number above 0")

    def _fit(self, X, y, rows, rng, stop, begun):
        shape = shape_of(X, y, rows)
        plan, sparse = make_plan(shape, self.effort), shape.sparse
        order = draw_rows(y, plan.rows, rng)
        X = X[rows[order]] if sp.issparse(X) else SomeRows(X, rows[order])
        some = X[: plan.looked_at] if sp.issparse(X) else X.first(plan.looked_at)
        y_all, y = y, y[order]
        self.score_function_ = ScoreFunction(Preprocessor().fit_rows(some), plain_feature_sets(), keep_sparse=sparse)
        Z = self.score_function_.scale(X)
        if sparse:
            self.score_function_.feature_sets = sparse_feature_sets(plan.even and self.features == "auto")
        elif self.features == "auto":
            self.score_function_.feature_sets = _make_feature_sets(plan, Z, y)
        feature_sets = self.score_function_.feature_sets
        ensemble = LaneEnsemble(plan.visits, rng, block=plan.block, draw=plan.draw, buffer=plan.buffer)
        fold = inner_folds(y, plan.folds, rng)
        self.rows_, self.preparing_ = len(y), time.monotonic() - begun
        n_rows = (
            {"landmarks": plan.sample, "trees": plan.tree_rows, "forest": plan.forest_rows} if not plan.wide else {}
        )
        of_kinds = {kind: thin(y, n) for kind, n in n_rows.items()}
        features = feature_sets.fit_transform(Z, y, fold, of_kinds, rng)
        ensemble.fit(features, y, fold, stop)
        self.score_function_.set_weights(feature_sets.coefficients(ensemble.weights_), ensemble.intercept_)
        self._calibrate(y_all, y[ensemble.held_out_rows_], ensemble.held_out_scores_)
        self.shares_ = dict(zip(feature_sets.sets, np.sum(ensemble.shares_, axis=1).tolist()))
        self.done_ = ensemble.done_ * len(self.shares_) / len(feature_sets.sets)

    def _calibrate(self, y, y_held_out, scores):
        """Of the rows that are left out first, those of the commoner class, each that stays stands for several."""
        weight = np.empty(len(scores))
        for sign in (1, -1):
            weight[y_held_out == sign] = np.count_nonzero(y == sign) / np.count_nonzero(y_held_out == sign)
        self.score_function_.calibrate(*log_odds(scores, y_held_out, weight))


class SomeRows:
    """The rows of a dense array that have these numbers, copied some at a time instead of all at once."""

    def __init__(self, X, numbers):
        self.X, self.numbers = X, numbers
        self.shape, self.dtype = (len(numbers), X.shape[1]), X.dtype

    def __getitem__(self, rows):
        return self.X[self.numbers[rows]]

    def first(self, n):
        """The first n of them."""
        return SomeRows(self.X, self.numbers[:n])


def shape_of(X, y, rows):
    """The `Shape` of the rows of X with these numbers and the signs ``y``.

    Sparse rows of few columns are quicker to learn from when dense.
    """
    sparse = sp.issparse(X) and X.shape[1] > FEW_COLUMNS
    rows = rows[: LOOKED_AT if sparse else min(LOOKED_AT, 3 + LOOKED_AT_CELLS // X.shape[1])]
    if sparse:
        n_many, cells_per_row = 0, max(X[rows].nnz / len(rows), 1)
    else:
        n_many, cells_per_row = _count_many(X, rows), X.shape[1]
    return Shape(len(y), int(np.count_nonzero(y > 0)), X.shape[1], int(n_many), float(cells_per_row), sparse)


def _count_many(X, rows):
    """How many columns have more than two values in these rows, found for some columns at a time."""
    n_many, width = 0, max(CHUNK_CELLS // len(rows), 1)
    for i in range(0, X.shape[1], width):
        some = X[rows, i : i + width]
        some = some.toarray() if sp.issparse(some) else some
        n_many += np.count_nonzero(((some != some.min(axis=0)) & (some != some.max(axis=0))).any(axis=0))
    return n_many


def _make_feature_sets(plan, Z, y):
    """The sets of features, not yet fitted, that there is time for."""
    if plan.wide:
        return wide_feature_sets(plan.trees, plan.leaves, plan.tree_columns, plan.tree_rows, WIDE_CHOSEN_BY)
    columns = Columns(plan.most_ranked).fit(Z, np.count_nonzero(y > 0))
    trees = plan.trees, plan.leaves, plan.tree_columns, plan.forest
    return rich_feature_sets(columns, plan.landmarks, plan.small, *trees, plan.even)


class PublishedRanker(_Ranker):
    """The published algorithm as it stands, `oam.OnlineAUC`, on the scaled columns and the bias.

    Parameters
    ----------
    C, buffer, update : as of `OnlineAUC`
    passes : int, default=1
        How often to go over the rows, each time in another order.
    random_state : int, RandomState instance or None, default=None
        Decides the order of the rows and what the reservoirs keep.

    There is no ``predict_proba`` until `ScoreFunction.calibrate` has been told how to make probabilities of scores.
    """

    def __init__(self, C=1e-3, *, buffer=500, update="gradient", passes=1, random_state=None):
        self.C = C
        self.buffer = buffer
        self.update = update
        self.passes = passes
        self.random_state = random_state

    def _check_parameters(self):
        """The learner checks its own."""

    def _fit(self, X, y, rows, rng, stop, begun):
        X = X[rows]
        self.score_function_ = ScoreFunction(Preprocessor().fit(X), plain_feature_sets(), keep_sparse=True)
        learner = OnlineAUC(self.C, buffer=self.buffer, update=self.update, passes=self.passes, random_state=rng)
        self.preparing_ = time.monotonic() - begun
        planned, learned = self.passes * len(y), 0
        while learned < planned:
            start = learned % len(y)
            if start == 0:
                order = rng.permutation(len(y))
            rows = order[start : start + CHUNK]
            learner.partial_fit(self.score_function_.scale(X[rows]), y[rows], classes=[-1, 1])
            learned += len(rows)
            if stop():
                break
        self.take_over(learner)
        self.shares_, self.done_, self.rows_ = {}, learned / planned, min(learned, len(y))

    def _has_probabilities(self):
        return hasattr(self, "score_function_") and self.score_function_.is_calibrated

    def take_over(self, learner):
        """Score as this `OnlineAUC`, which has learned from scaled rows, does."""
        self.score_function_.set_weights([learner.coef_[0]], learner.intercept_[0])


def load_model(path):
    """The fitted ranker that ``save``, or the command's ``--save``, has written into this file."""
    return read_model(path, (AUCRanker, PublishedRanker))
