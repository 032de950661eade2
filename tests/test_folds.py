"""Folds: which rows are used, the splits, and what a fold gives, also where the clock cuts it."""

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import make_rows, one_split
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

import oam
import preprocess
from preprocess import InputError
from tenfold import folds, models, ranker
from tenfold.features import SETS, landmarks
from tenfold.folds import Experiment, count_folds, rows_to_use
from tenfold.plan import Shape, make_plan
from tenfold.ranker import AUCRanker, PublishedRanker, shape_of

pytestmark = pytest.mark.filterwarnings("error")

# --- the rows that are used ------------------------------------------------------------------------------------------


@pytest.fixture
def few(monkeypatch):
    """Files of more than 100 rows, or 1,000 dense cells, are sampled."""
    monkeypatch.setattr(folds, "MOST_ROWS", 100)
    monkeypatch.setattr(folds, "MOST_CELLS", 1e3)


def labels(n_pos, n_neg, seed=0):
    return np.random.RandomState(seed).permutation(np.array([1] * n_pos + [-1] * n_neg))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_all_rows_are_used_unless_they_are_very_many(make, few):
    for n_rows, n_columns in ((100, 5), (100, 10), (2, 500), (3, 7)):
        assert_array_equal(rows_to_use(make(np.ones((n_rows, n_columns))), labels(1, n_rows - 1)), np.arange(n_rows))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("n_rare, n_kept", [(3, 3), (49, 49), (50, 50), (51, 50), (200, 50)])
def test_of_very_many_rows_the_rarer_class_stays_whole_up_to_a_half(few, sign, n_rare, n_kept):
    y = sign * labels(n_rare, 300)
    used = rows_to_use(np.ones((len(y), 4)), y)
    assert len(used) == 100 and np.count_nonzero(y[used] == sign) == n_kept
    assert (np.diff(used) > 0).all() and used[0] >= 0 and used[-1] < len(y)  # in order, none twice
    assert n_kept != n_rare or set(np.flatnonzero(y == sign)) <= set(used)


def test_dense_rows_of_many_columns_are_fewer_and_sparse_ones_are_not(few):
    X, y = np.ones((300, 40)), labels(100, 200)
    assert len(rows_to_use(X, y)) == 25  # of a thousand cells
    assert len(rows_to_use(sp.csr_array(X), y)) == 100


def test_the_sample_is_the_same_every_time_and_random(few):
    """Each part of the file as much as any other: by the deviations of as many throws."""
    y = labels(20, 1000)
    used = rows_to_use(np.ones((1020, 2)), y)
    assert_array_equal(used, rows_to_use(np.zeros((1020, 2)), y))
    common = used[y[used] < 0]
    thirds = np.bincount(common * 3 // 1020, minlength=3)
    assert np.abs(thirds - 80 / 3).max() < 4.5 * np.sqrt(80 * (1 / 3) * (2 / 3))


def test_the_auc_of_the_rows_that_are_used_is_known_to_a_thousandth():
    """By the standard error that random scores have, which is the largest."""
    y = np.where(np.arange(600_000) % 2, -1, 1)
    used = rows_to_use(np.ones((600_000, 1), np.int8), y)
    n_pos, n_neg = (np.count_nonzero(y[used] == sign) for sign in (1, -1))
    assert len(used) < 600_000 and np.sqrt((n_pos + n_neg + 1) / (12 * n_pos * n_neg)) < 0.001


# --- the clock -------------------------------------------------------------------------------------------------------


class Endless(BaseEstimator):
    """It learns until it is told to stop, a hundredth of a second at a time, or until it has had enough."""

    def __init__(self, clock, enough):
        self.clock, self.enough = clock, enough

    def __sklearn_clone__(self):
        return self  # with the same clock

    def fit(self, X, y, *, rows, stop):
        begun = self.clock[0]
        while not stop() and self.clock[0] - begun < self.enough:
            self.clock[0] += 0.01
        self.changes_, self.done_, self.shares_, self.preparing_, self.rows_ = {}, 0.5, {}, 0.0, 7
        return self

    def decision_function(self, X):
        return X[:, 0]


@pytest.fixture
def now(monkeypatch):
    """The time, as folds see it: a list of one number."""
    now = [0.0]
    monkeypatch.setattr(folds, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def run_clocked(now, jobs, end, enough):
    """When each fold begins and ends, on the first core that is free, if it has had enough after so many seconds."""
    n_folds = len(enough)
    X, y = make_rows(40 * n_folds, 2, 10 * n_folds)
    experiment = Experiment.cross_validation(X, y, n_folds, 0)
    free, times = [0.0] * jobs, []
    for fold in range(n_folds):
        core = int(np.argmin(free))
        now[0] = free[core]
        found = folds.run_fold(fold, experiment, Endless(now, enough[fold]), end=end, jobs=jobs)
        assert found.seconds == pytest.approx(now[0] - free[core])
        times.append((free[core], now[0]))
        free[core] = now[0]
    return np.array(times)


NEVER = float("inf")


def test_folds_one_after_the_other_have_equal_shares(now):
    assert_allclose(run_clocked(now, 1, 100, [NEVER] * 5)[:, 1], [20, 40, 60, 80, 100], atol=0.06)


def test_what_a_fold_leaves_goes_to_those_after_it(now):
    assert_allclose(run_clocked(now, 1, 100, [4, NEVER, 12, NEVER, NEVER])[:, 1], [4, 28, 40, 70, 100], atol=0.06)


@pytest.mark.parametrize("jobs", [1, 2, 3, 10])
def test_no_fold_goes_beyond_the_end_and_none_goes_without(now, jobs):
    begun, ended = run_clocked(now, jobs, 100, [NEVER] * 10).T
    assert (ended - begun).min() > 100 / 10 / 3
    assert ended.max() == pytest.approx(100, abs=0.2)


def test_folds_that_begin_too_late_learn_as_little_as_they_can(now):
    begun, ended = run_clocked(now, 1, -5.0, [NEVER] * 4).T
    assert_allclose(ended, begun)


# --- learning --------------------------------------------------------------------------------------------------------

AT_ONCE = -float("inf")


def split(X, y):
    """One fold: two thirds of the rows, and the others."""
    third = np.arange(len(y)) % 3 == 0
    return one_split(X, y, np.flatnonzero(~third), np.flatnonzero(third))


def run_fold(X, y, end=None, learner=AUCRanker, **settings):
    """Learn from two thirds of the rows and test on the others; the clock runs out at ``end``."""
    settings = {"effort": 1 / 16, **settings} if learner is AUCRanker else settings
    return folds.run_fold(0, split(X, y), learner(random_state=0, **settings), end=end)


@pytest.fixture
def ring():
    """Positives within a circle, negatives around it: no linear score of the columns ranks them."""
    rng = np.random.RandomState(0)
    X = rng.randn(600, 2)
    return X, np.where((X**2).sum(axis=1) < 1, 1, -1)


def test_similarities_see_what_columns_cannot(ring):
    linear, auto = (run_fold(*ring, features=features, effort=1.0) for features in ("linear", "auto"))
    assert linear.auc < 0.65
    assert auto.auc > 0.95
    assert list(linear.shares) == ["linear"] and linear.shares["linear"] == pytest.approx(1)
    assert len(auto.shares) > 1 and sum(auto.shares.values()) == pytest.approx(1)
    assert auto.shares["linear"] < 0.1
    assert set(auto.shares) <= set(SETS)
    assert linear.done == auto.done == 1


@pytest.mark.parametrize("settings", [{}, {"features": "linear"}, {"learner": PublishedRanker, "passes": 2}])
def test_a_fold_depends_on_its_rows_and_the_seed_only(rows, settings):
    first = run_fold(*rows, **settings)
    assert run_fold(*rows, **settings) == first
    assert 0 <= first.auc <= 1


@pytest.mark.parametrize("settings", [{}, {"features": "linear"}, {"learner": PublishedRanker, "passes": 2}])
def test_a_fold_that_is_stopped_at_once_still_has_an_auc(settings):
    X, y = make_rows(9000, 3, 2250)
    effort = {} if "learner" in settings else {"effort": 1.0}
    fold = run_fold(X + y[:, None], y, AT_ONCE, **effort, **settings)
    assert fold.auc > 0.9
    assert 0 < fold.done < 1
    assert len(fold.shares) <= 1


def test_a_fold_knows_how_long_it_took_and_what_of_it_more_effort_does_not_change(rows):
    begun = time.monotonic()
    fold = run_fold(*rows)
    assert 0 < fold.fixed < fold.seconds <= time.monotonic() - begun
    assert fold.rows == 40


def test_the_score_function_is_kept_where_it_is_asked_for(rows):
    experiment, estimator = split(*rows), PublishedRanker(random_state=0)
    assert folds.run_fold(0, experiment, estimator).model is None
    fold = folds.run_fold(0, experiment, estimator, with_model=True)
    assert_array_equal(fold.model(experiment.test_rows(0)[0]), fold.scores)


def test_scoring_in_chunks_changes_nothing(rows, monkeypatch):
    whole = run_fold(*rows)
    monkeypatch.setattr(models, "SCORED", 7)
    assert run_fold(*rows).auc == pytest.approx(whole.auc, abs=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
def test_test_rows_are_scored_some_at_a_time_unless_they_are_sparse(rows, monkeypatch, sparse):
    X, y = rows
    X = sp.csr_array(X) if sparse else X
    whole, seen, score = run_fold(X, y), [], AUCRanker.decision_function
    monkeypatch.setattr(folds, "CELLS_AT_A_TIME", 7 * X.shape[1] + 1)
    monkeypatch.setattr(AUCRanker, "decision_function", lambda self, X: seen.append(X.shape[0]) or score(self, X))
    assert_allclose(run_fold(X, y).scores, whole.scores, atol=1e-9)
    assert sum(seen) == len(whole.scores) and max(seen) == (len(whole.scores) if sparse else 7)


def test_a_fold_keeps_to_its_plan(monkeypatch):
    """It cleans and scales by as many rows as are planned, and learns from as many, by as many landmarks."""
    X, y = make_rows(300, 3, 60)
    cleaned, similar = [], []
    fit, fit_set = preprocess.Preprocessor.fit, landmarks.Landmarks.fit

    def spy(self, X, y=None):
        cleaned.append(X.shape[0])
        return fit(self, X)

    def spy_set(self, rows):
        similar.append((len(rows), len(rows.landmarks)))
        return fit_set(self, rows)

    monkeypatch.setattr(preprocess.Preprocessor, "fit", spy)
    monkeypatch.setattr(landmarks.Landmarks, "fit", spy_set)
    monkeypatch.setattr(landmarks, "sizes", lambda shape, plan: (40, 20))
    monkeypatch.setattr(ranker, "make_plan", lambda *how: replace(make_plan(*how), rows=90, looked_at=70))
    fold = run_fold(X, y)
    assert 0 <= fold.auc <= 1 and fold.rows == 90
    assert cleaned == [70] and set(similar) == {(40, 20)} and len(similar) == 3


def test_the_plan_follows_from_the_training_rows(monkeypatch):
    """Their number, that of their positives, and their columns; and from the effort and the features wanted."""
    X, y = make_rows(300, 3, 60)
    X[:, 2] = X[:, 2] > 0
    X[np.arange(300) % 3 == 0] = 7 * np.arange(3)  # test rows, of which nothing follows
    n_pos, seen = np.count_nonzero(y[np.arange(300) % 3 > 0] > 0), []
    monkeypatch.setattr(ranker, "make_plan", lambda *how: seen.append(how) or make_plan(*how))
    run_fold(X, y, effort=0.5)
    run_fold(X, y, features="linear", effort=2)
    assert seen == [(Shape(200, n_pos, 3, 2, 3.0), 0.5, False), (Shape(200, n_pos, 3, 2, 3.0), 2, True)]


@pytest.mark.parametrize("many", [False, True])
def test_sparse_rows_of_few_columns_learn_like_dense_ones_and_of_many_stay_sparse(many, monkeypatch):
    X, y = make_rows(*((1_200, oam.FEW_COLUMNS + 1, 600) if many else (200, 5, 50)))
    X = sp.csr_array(np.where(X > 1.5, X, 0))
    made_dense, toarray = [0], sp.csr_array.toarray

    def spy(X):
        if X.shape[1] > 2:  # calibration has labels of one or two columns
            made_dense.append(X.shape[0])
        return toarray(X)

    monkeypatch.setattr(sp.csr_array, "toarray", spy)
    fold = run_fold(X, y)
    assert (list(fold.shares) == ["even", "linear"]) == many
    assert (max(made_dense) < 100) == many  # of many columns, a block at most
    assert fold.auc > 0.5


def test_the_shape_is_that_of_the_rows_named():
    X, y = make_rows(300, 6, 60)
    X[:, 1], X[:, 2] = X[:, 1] > 0, np.where(X[:, 2] > 0, 5, -3)
    X[:, 3] = np.nan  # a column that nothing is known of counts as one of many values
    X[:, 4] = 7
    rows = np.arange(1, 300, 2)
    X[::2, 1] = np.arange(150)
    expected = Shape(150, np.count_nonzero(y[rows] > 0), 6, 3, 6.0)
    assert shape_of(X, y[rows], rows) == expected
    assert shape_of(sp.csr_array(X), y[rows], rows) == expected


def test_the_shape_of_sparse_rows_of_many_columns_has_their_cells():
    X = sp.random_array((100, oam.FEW_COLUMNS + 1), density=0.002, format="csr", random_state=0)
    y, rows = np.where(np.arange(50) < 9, 1, -1), np.arange(50, 100)
    assert shape_of(X, y, rows) == Shape(50, 9, oam.FEW_COLUMNS + 1, 0, X[50:].nnz / 50, True)
    assert shape_of(sp.csr_array(X.shape), y, rows).cells_per_row == 1


class Rounded(BaseEstimator):
    """Scores with many ties; there is nothing to learn."""

    changes_, done_, shares_, preparing_, rows_ = {"missing": 3}, 0.5, {"linear": 1.0}, 0.0, 40

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y, rows=None, stop=None):
        self.seen_ = X, y
        return self

    def decision_function(self, X):
        return np.round(X @ [1.0, -2, 0.5, 3])


def test_the_auc_is_that_of_the_scores(rows):
    X, y = rows
    train, test = np.arange(40), np.arange(40, 60)
    fold = folds.run_fold(0, one_split(X, y, train, test), Rounded(0))
    expected = np.round(X[test] @ [1.0, -2, 0.5, 3])
    assert_array_equal(fold.scores, expected)
    assert fold.auc == pytest.approx(roc_auc_score(y[test], expected), abs=1e-12)
    assert (fold.changes, fold.done, fold.shares, fold.rows) == ({"missing": 3}, 0.5, {"linear": 1.0}, 40)


def test_a_fold_learns_with_a_copy_and_from_its_training_rows_only(rows, monkeypatch):
    X, y = rows
    train, test, seen = np.arange(40), np.arange(40, 60), []
    monkeypatch.setattr(Rounded, "fit", lambda self, X, y, rows, stop: seen.append((self, X[rows], y[rows], stop())))
    estimator = Rounded(0)
    folds.run_fold(0, one_split(X, y, train, test), estimator)
    ((fitted, X_seen, y_seen, stop),) = seen
    assert fitted is not estimator and not stop
    assert_array_equal(X_seen, X[train])
    assert_array_equal(y_seen, y[train])


# --- the splits ------------------------------------------------------------------------------------------------------


def test_splits_are_stratified_folds_in_the_order_of_the_file(rows):
    X, y = rows
    experiment = Experiment.cross_validation(X, y, 5, seed=3)
    expected = StratifiedKFold(5, shuffle=True, random_state=3).split(X, y)
    for fold, ((train, test), (train_expected, test_expected)) in enumerate(
        zip(experiment.splits, expected, strict=True)
    ):
        assert_array_equal(train, train_expected)
        assert_array_equal(test, test_expected)
        for found, wanted in zip(experiment.test_rows(fold), (X[test], y[test]), strict=True):
            assert_array_equal(found, wanted)
    numbers = np.arange(60.0)
    assert_array_equal(experiment.in_file_order([numbers[test] for _, test in experiment.splits]), numbers)


@pytest.mark.parametrize("sign", [1, -1])
def test_rows_of_a_sample_stand_for_all_those_of_their_class(few, sign):
    """So what is counted with their weights is as in the whole file."""
    y = sign * labels(30, 970)
    used = rows_to_use(np.ones((1000, 3)), y)
    X = np.arange(1000.0)[used, None]
    counts = {s: np.count_nonzero(y == s) for s in (1, -1)}
    experiment = Experiment.cross_validation(X, y[used], 5, 0, used, counts)
    assert_array_equal(experiment.rows, used)
    assert_array_equal(experiment.y, y[used])
    assert experiment.y_test is experiment.y and len(experiment.splits) == 5
    for s in (1, -1):
        weight = experiment.weight[experiment.y == s]
        assert weight.sum() == pytest.approx(np.count_nonzero(y == s)) and np.ptp(weight) == 0
    assert set(experiment.weight[experiment.y == sign]) == {1}
    whole = Experiment.cross_validation(np.ones((1000, 3)), y, 5, 0)
    assert set(whole.weight) == {1}
    assert_array_equal(whole.rows, np.arange(1000))


def test_two_files_are_one_split(rows):
    X, y = rows
    experiment = Experiment.train_and_test(X[:40], y[:40], X[40:], y[40:], "test.mat")
    assert len(experiment.splits) == 1
    for found, wanted in zip(experiment.test_rows(0), (X[40:], y[40:]), strict=True):
        assert_array_equal(found, wanted)
    assert_array_equal(experiment.rows, np.arange(20))
    assert_array_equal(experiment.weight, np.ones(20))
    with pytest.raises(InputError, match=r"test\.mat: all labels are of the positive class, expected both"):
        Experiment.train_and_test(X, y, X, np.ones(60, int), "test.mat")


def test_there_are_no_more_folds_than_rows_of_the_rarer_class():
    y = np.where(np.arange(60) < 7, 1, -1)
    assert [count_folds(sign * y, asked, "f") for sign in (1, -1) for asked in (5, 7, 10)] == [5, 7, 7] * 2
    with pytest.raises(InputError, match="f: one class has a single row, expected at least 2 to cross-validate"):
        count_folds(np.where(np.arange(60) < 1, 1, -1), 10, "f")
