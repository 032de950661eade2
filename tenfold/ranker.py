"""The whole recipe as a scikit-learn estimator, `AUCRanker`, and the published algorithm as it stands."""

import time
from dataclasses import replace
from numbers import Real

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names, check_consistent_length, column_or_1d

from oam import FEW_COLUMNS, OnlineAUC, two_classes
from preprocess import CHUNK_CELLS, Preprocessor
from tenfold.calibration import log_odds
from tenfold.columns import TableEncoder
from tenfold.features import FEATURE_SETS, landmarks
from tenfold.features.linear import Linear
from tenfold.features.rows import Columns, Rows
from tenfold.lanes import choose, inner_folds, learn
from tenfold.models import RankerMixin, ScoreFunction, one_thread, read_model
from tenfold.plan import Shape, draw_rows, make_plan, thin
from tenfold.readers.base import Data
from tenfold.readers.frames import from_frame, is_table

FEATURES = ("auto", "linear")
LOOKED_AT = 200  # rows by which a plan tells columns of two values from others,
LOOKED_AT_CELLS = 4_000_000  # unless they have more cells than these
CELLS_AT_A_TIME = 2**20  # of raw rows, to scale
ENCODING_FOLDS = 5  # by which columns of text become numbers for the published algorithm
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
        categories = getattr(self, "categories", None)
        data = None
        if is_table(X):
            data = from_frame(X)
            _check_feature_names(self, X, reset=True)
            self.n_features_in_, categories = X.shape[1], data.categories
            X, y = data.X, column_or_1d(y)
            check_consistent_length(X, y)
        else:
            X, y = self._validate(X, y=y, ensure_min_samples=2)
        rows = np.arange(len(y)) if rows is None else rows
        y = y[rows]
        labels = np.unique(y)
        check_classification_targets(labels)
        self.classes_ = two_classes(labels)
        y = np.where(y == self.classes_[1], 1, -1)
        X = sp.csr_array(X) if sp.issparse(X) else X
        self.data_ = Data(X[:0], self.classes_) if data is None else data.without_rows(self.classes_)
        with one_thread(), np.errstate(invalid="ignore"):  # products may read, and not use, what lies beyond their rows
            self._fit(X, y, rows, check_random_state(self.random_state), stop, begun, categories)
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
    categories : dict or None, default=None
        For columns of X whose numbers are places in a list of values of text, by their number, that list.
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

    def __init__(self, features="auto", *, effort=1.0, categories=None, random_state=None):
        self.features = features
        self.effort = effort
        self.categories = categories
        self.random_state = random_state

    def _check_parameters(self):
        if self.features not in FEATURES:
            raise ValueError(f"features is {self.features!r}, expected one of {FEATURES}")
        if not isinstance(self.effort, Real) or not 0 < self.effort < np.inf:
            raise ValueError(f"effort is {self.effort!r}, expected a finite number above 0")

    def _fit(self, X, y, rows, rng, stop, begun, categories):
        shape = shape_of(X, y, rows)
        plan = make_plan(shape, self.effort, self.features == "linear")
        y_all, order, encoder = y, draw_rows(y, plan.rows, rng), None
        y, fold = y[order], inner_folds(y[order], plan.folds, rng)
        if categories:
            encoder = TableEncoder(categories)
            X, rows = encoder.fit_transform(X[rows], y_all, of_all(fold, order, len(y_all)))[order], np.arange(len(y))
            shape = replace(shape_of(X, y, rows), n_rows=shape.n_rows, n_pos=shape.n_pos)
            plan = replace(make_plan(shape, self.effort, plan.plain), rows=len(y), folds=plan.folds)
        else:
            rows = rows[order]
        preprocessor = Preprocessor().fit(X[rows[: plan.looked_at]])
        Z = scaled(preprocessor, X, rows, shape.sparse)
        train = training_rows(Z, y, shape, plan, rng)
        self.rows_, self.preparing_ = len(y), time.monotonic() - begun
        sets, results = [], []
        for kind in FEATURE_SETS:
            feature_set = kind.sized(shape, plan)
            if feature_set is None or (results and stop()):
                continue
            F, numbers = feature_set.fit_transform(train, y, fold)
            results.append(learn(F, numbers, y, fold, feature_set.visits, plan, rng, stop))
            sets.append(feature_set)
        choice = choose(results, y)
        slope, offset = log_odds(choice.scores, y[choice.rows], _weight(y_all, y[choice.rows]))
        of_sets = [(one, one.coefficients(w)) for one, w in zip(sets, choice.weights)]
        function = ScoreFunction(preprocessor, shape.sparse, train, of_sets, choice.intercept, encoder)
        self.score_function_ = function.calibrate(slope, offset)
        self.shares_ = {one.name: float(shares.sum()) for one, shares in zip(sets, choice.shares)}
        n_planned = sum(kind.sized(shape, plan) is not None for kind in FEATURE_SETS)
        self.done_ = sum(result.done for result in results) / n_planned


def of_all(fold, order, n_rows):
    """The inner folds of all training rows, -1 for those that are not drawn."""
    folds = np.full(n_rows, -1)
    folds[order] = fold
    return folds


def scaled(preprocessor, X, rows, sparse):
    """These rows of X, clean and scaled; dense ones some at a time, so that no large copy of raw rows is made."""
    if sp.issparse(X):
        Z = preprocessor.transform(X[rows])
        return Z if sparse else Z.toarray()
    Z, n = (np.empty((len(rows), preprocessor.n_features_out_), np.float32), max(CELLS_AT_A_TIME // X.shape[1], 1))
    for i in range(0, len(rows), n):
        Z[i : i + n] = preprocessor.transform(X[rows[i : i + n]])
    return Z


def training_rows(Z, y, shape, plan, rng):
    """The scaled rows Z as `Rows`, with columns and landmarks where there are sets of features that need them."""
    if shape.sparse or plan.wide or plan.plain:
        return Rows(Z)
    columns = Columns(landmarks.most_ranked(shape, plan)).fit(Z, np.count_nonzero(y > 0))
    n_rows, n_landmarks = landmarks.sizes(shape, plan)
    sample = thin(y, n_rows)
    which = sample[rng.choice(len(sample), n_landmarks, replace=False)]
    return Rows(Z, columns, Rows(Z[which], columns))


def _weight(y_all, y):
    """For how many rows each of these stands, since those of the commoner class are left out first."""
    weight = np.empty(len(y))
    for sign in (1, -1):
        weight[y == sign] = np.count_nonzero(y_all == sign) / np.count_nonzero(y == sign)
    return weight


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


class PublishedRanker(_Ranker):
    """The published algorithm as it stands, `oam.OnlineAUC`, on the scaled columns and the bias.

    Parameters
    ----------
    C, buffer, update : as of `OnlineAUC`
    passes : int, default=1
        How often to go over the rows, each time in another order.
    categories : as of `AUCRanker`
    random_state : int, RandomState instance or None, default=None
        Decides the order of the rows and what the reservoirs keep.

    There is no ``predict_proba`` until `ScoreFunction.calibrate` has been told how to make probabilities of scores.
    """

    def __init__(self, C=1e-3, *, buffer=500, update="gradient", passes=1, categories=None, random_state=None):
        self.C = C
        self.buffer = buffer
        self.update = update
        self.passes = passes
        self.categories = categories
        self.random_state = random_state

    def _check_parameters(self):
        """The learner checks its own."""

    def _fit(self, X, y, rows, rng, stop, begun, categories):
        X, encoder = X[rows], None
        if categories:
            encoder = TableEncoder(categories)
            X = encoder.fit_transform(X, y, inner_folds(y, ENCODING_FOLDS, np.random.RandomState(0)))
        preprocessor = Preprocessor().fit(X)
        learner = OnlineAUC(self.C, buffer=self.buffer, update=self.update, passes=self.passes, random_state=rng)
        self.preparing_ = time.monotonic() - begun
        planned, learned = self.passes * len(y), 0
        while learned < planned:
            start = learned % len(y)
            if start == 0:
                order = rng.permutation(len(y))
            some = order[start : start + CHUNK]
            learner.partial_fit(preprocessor.transform(X[some]), y[some], classes=[-1, 1])
            learned += len(some)
            if stop():
                break
        self.score_function_ = ScoreFunction(
            preprocessor, sp.issparse(X), None, [(Linear(), learner.coef_[0])], learner.intercept_[0], encoder
        )
        self.shares_, self.done_, self.rows_ = ({}, learned / planned, min(learned, len(y)))

    def _has_probabilities(self):
        return hasattr(self, "score_function_") and self.score_function_.is_calibrated


def load_model(path):
    """The fitted ranker that ``save``, or the command's ``--save``, has written into this file."""
    return read_model(path, (AUCRanker, PublishedRanker))
