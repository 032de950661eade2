"""Folds: the splits, the clock, what a fold gives, and curves of it."""

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import make_rows
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

import oam
import preprocess
from preprocess import InputError
from tenfold import folds, models, plan, ranker
from tenfold.efforts import Change
from tenfold.features import LandmarkFeatures
from tenfold.folds import Clock, Curve, Experiment, Fold
from tenfold.plan import Shape, make_plan
from tenfold.ranker import AUCRanker, PublishedRanker, shape_of
from tenfold.words import FEATURE_SETS

pytestmark = pytest.mark.filterwarnings("error")

# --- the clock -------------------------------------------------------------------------------------------------------


@pytest.fixture
def now(monkeypatch):
    """The time, as the clock sees it: a list of one number."""
    now = [0.0]
    monkeypatch.setattr(folds, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def deadline(stop, now, most=1000.0):
    """When ``stop`` begins to say so, found by halving."""
    before, low, high = now[0], now[0], most
    while high - low > 1e-9 * most:
        now[0] = (low + high) / 2
        low, high = (low, now[0]) if stop() else (now[0], high)
    now[0] = before
    return high


def test_folds_one_after_the_other_have_equal_shares(now):
    clock = Clock(100, list(range(5)), 1)
    for fold in range(5):
        assert deadline(clock.start(fold), now) == pytest.approx(20 * (fold + 1), abs=1e-3)
        now[0] = 20.0 * (fold + 1)


@pytest.mark.parametrize("used", [0.0, 4.0])
def test_what_a_fold_leaves_goes_to_those_after_it(now, used):
    clock = Clock(100, list(range(5)), 1)
    clock.start(0)
    now[0] = used
    assert deadline(clock.start(1), now) - used == pytest.approx((100 - used) / 4, abs=1e-3)


def test_a_clock_that_has_run_out_stops_at_once(now):
    clock = Clock(100, list(range(5)), 2)
    for now[0] in (100.1, 500.0):
        assert clock.start(1)() and clock.start(4)()


@pytest.mark.parametrize("jobs", [1, 2, 3, 10])
@pytest.mark.parametrize("used", [0.3, 1.0])
def test_no_fold_goes_beyond_the_end_and_none_goes_without(now, jobs, used):
    """Ten folds, each on the first free of so many cores, each of which uses that much of its share."""
    clock, free = Clock(100, list(range(10)), jobs), [0.0] * jobs
    for fold in range(10):
        core = int(np.argmin(free))
        now[0] = free[core]
        share = deadline(clock.start(fold), now) - now[0]
        assert share > 100 / 10 / 3
        free[core] += used * share
    assert max(free) <= 100.001
    assert used < 1 or max(free) == pytest.approx(100, abs=0.01)


def test_a_paused_clock_takes_nothing_from_this_fold_nor_from_those_behind_it(now):
    clock = Clock(100, list(range(5)), 1)
    stop = clock.start(0)
    with clock.pause():
        now[0] += 1000
    assert clock.now() == 0 and not stop()
    assert deadline(stop, now, 2000) == pytest.approx(1020, abs=1e-3)
    now[0] += 20
    assert deadline(clock.start(1), now, 2000) == pytest.approx(1040, abs=1e-3)


# --- learning --------------------------------------------------------------------------------------------------------

NEVER, AT_ONCE = float("inf"), -float("inf")


def run_fold(X, y, end=NEVER, with_curve=False, learner=AUCRanker, **settings):
    """Learn from two thirds of the rows and test on the others; the clock runs out at ``end``."""
    third = np.arange(len(y)) % 3 == 0
    experiment = Experiment(X, y, X, y, [(np.flatnonzero(~third), np.flatnonzero(third))])
    return folds.run_fold(0, experiment, learner(random_state=0, **settings), Clock(end, list(range(1)), 1), with_curve)


@pytest.fixture
def ring():
    """Positives within a circle, negatives around it: no linear score of the columns ranks them."""
    rng = np.random.RandomState(0)
    X = rng.randn(600, 2)
    return X, np.where((X**2).sum(axis=1) < 1, 1, -1)


def test_similarities_see_what_columns_cannot(ring):
    linear, auto = run_fold(*ring, features="linear"), run_fold(*ring)
    assert linear.auc < 0.65
    assert auto.auc > 0.95
    assert list(linear.shares) == ["linear"] and linear.shares["linear"] == pytest.approx(1)
    assert len(auto.shares) > 1 and sum(auto.shares.values()) == pytest.approx(1)
    assert auto.shares["linear"] < 0.1
    assert set(auto.shares) <= set(FEATURE_SETS)
    assert linear.done == auto.done == 1


@pytest.mark.parametrize("settings", [{}, {"features": "linear"}, {"learner": PublishedRanker, "passes": 2}])
def test_a_fold_depends_on_its_rows_and_the_seed_only(rows, settings):
    first = run_fold(*rows, **settings)
    assert run_fold(*rows, **settings) == first
    assert 0 <= first.auc <= 1


@pytest.mark.parametrize("settings", [{}, {"features": "linear"}, {"learner": PublishedRanker, "passes": 2}])
def test_a_fold_that_is_stopped_at_once_still_has_an_auc(settings):
    X, y = make_rows(9000, 3, 2250)
    fold = run_fold(X + y[:, None], y, AT_ONCE, **settings)
    assert fold.auc > 0.9
    assert 0 < fold.done < 1
    assert len(fold.shares) <= 1


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


def test_what_a_process_takes_to_warm_up_is_that_of_its_first_fold(rows, monkeypatch):
    """Two processes: folds 3 and 5 come first. Seconds of the system are counted up by one at each look."""
    looks = iter(range(100))
    monkeypatch.setattr(folds.os, "times", lambda: SimpleNamespace(system=float(next(looks))))
    experiment, clock = Experiment.cross_validation(*rows, 10, seed=0), Clock(NEVER, [3, 5, 4, 6], 2)
    found = [folds.run_fold(fold, experiment, PublishedRanker(random_state=0), clock) for fold in clock.folds]
    assert [fold.warm_up for fold in found] == [1, 1, 0, 0]


def test_a_fold_keeps_to_its_plan(monkeypatch):
    X, y = make_rows(300, 3, 60)
    seen = []
    fit, fit_set = preprocess.Preprocessor.fit_rows, LandmarkFeatures.fit

    def spy(self, X):
        seen.append(X.shape[0])
        return fit(self, X)

    def spy_set(self, versions):
        seen.append((len(versions["scaled"]), len(versions.landmarks["scaled"])))
        return fit_set(self, versions)

    monkeypatch.setattr(preprocess.Preprocessor, "fit_rows", spy)
    monkeypatch.setattr(LandmarkFeatures, "fit", spy_set)
    less = replace(make_plan(Shape(200, 40, 3, 3, 3.0)), rows=90, sample=40, landmarks=20)
    monkeypatch.setattr(ranker, "make_plan", lambda shape, budget: less)
    assert 0 <= run_fold(X, y).auc <= 1
    assert seen[0] == 90 and len(seen) > 1 and set(seen[1:]) == {(40, 20)}


def test_the_plan_follows_from_the_training_rows(monkeypatch):
    """Their number, that of their positives, and their columns; and from the budget."""
    X, y = make_rows(300, 3, 60)
    X[:, 2] = X[:, 2] > 0
    X[np.arange(300) % 3 == 0] = 7 * np.arange(3)  # test rows, of which nothing follows
    n_pos, seen = np.count_nonzero(y[np.arange(300) % 3 > 0] > 0), []
    monkeypatch.setattr(
        ranker, "make_plan", lambda shape, budget: seen.append((shape, budget)) or make_plan(shape, budget)
    )
    run_fold(X, y, budget=0.5)
    assert seen == [(Shape(200, n_pos, 3, 2, 3.0), 0.5)]


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
    assert (list(fold.shares) == ["linear", "even"]) == many
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

    changes_, done_, shares_ = {"missing": 3}, 0.5, {"linear": 1.0}

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y, monitor=None, rows=None):
        self.seen_ = X, y
        return self

    def decision_function(self, X):
        return np.round(X @ [1.0, -2, 0.5, 3])


def test_the_auc_is_that_of_the_scores(rows):
    X, y = rows
    train, test = np.arange(40), np.arange(40, 60)
    fold = folds.run_fold(0, Experiment(X, y, X, y, [(train, test)]), Rounded(0), Clock(NEVER, [0], 1))
    expected = np.round(X[test] @ [1.0, -2, 0.5, 3])
    assert_array_equal(fold.scores, expected)
    assert fold.auc == pytest.approx(roc_auc_score(y[test], expected), abs=1e-12)
    assert (fold.changes, fold.done, fold.shares, fold.curve) == ({"missing": 3}, 0.5, {"linear": 1.0}, [])


def test_a_fold_learns_with_a_copy_and_from_its_training_rows_only(rows, monkeypatch):
    X, y = rows
    train, test, seen = np.arange(40), np.arange(40, 60), []
    monkeypatch.setattr(Rounded, "fit", lambda self, X, y, monitor, rows: seen.append((self, X[rows], y[rows])))
    estimator = Rounded(0)
    folds.run_fold(0, Experiment(X, y, X, y, [(train, test)]), estimator, Clock(NEVER, [0], 1))
    ((fitted, X_seen, y_seen),) = seen
    assert fitted is not estimator
    assert_array_equal(X_seen, X[train])
    assert_array_equal(y_seen, y[train])


# --- curves ----------------------------------------------------------------------------------------------------------

LEARNERS = [{}, {"features": "linear"}, {"learner": PublishedRanker, "passes": 3}]


@pytest.mark.parametrize("settings", LEARNERS)
def test_curves_change_nothing_and_end_where_the_fold_ends(settings, monkeypatch):
    monkeypatch.setattr(ranker, "CHUNK", 100)
    X, y = make_rows(900, 3, 225)
    plain, noted = run_fold(X, y, **settings), run_fold(X, y, with_curve=True, **settings)
    assert noted == plain
    assert_array_equal(noted.scores, plain.scores)
    assert plain.curve == []
    seconds, rows, aucs = np.array(noted.curve).T
    assert len(rows) > 3 and (np.diff(rows) > 0).all() and (np.diff(seconds) >= 0).all() and seconds[0] >= 0
    assert aucs[-1] == noted.auc
    assert ((aucs >= 0) & (aucs <= 1)).all()


def test_a_point_of_a_curve_is_what_an_end_at_that_moment_gives(monkeypatch):
    """Against folds that the clock stops at the first point of the curve, at the second, and so on."""
    X, y = make_rows(2000, 3, 400)
    curve = run_fold(X, y, with_curve=True).curve
    for _, rows, auc in curve[:: len(curve) // 2]:
        learned = [0]

        def learn(self, X, y, *args, learned=learned, learn=oam.PairLearner.learn, **settings):
            learned[0] += len(y)
            learn(self, X, y, *args, **settings)

        with monkeypatch.context() as patch:
            patch.setattr(oam.PairLearner, "learn", learn)
            patch.setattr(Clock, "start", lambda *args, learned=learned, rows=rows: lambda: learned[0] >= rows)
            assert run_fold(X, y).auc == auc


def test_points_lie_ever_further_apart():
    ended = []
    estimator = SimpleNamespace(score_function_=lambda X: X[:, 0])
    curve = Curve(Clock(NEVER, [0], 1), estimator, np.arange(4.0)[:, None], np.array([-1, 1, -1, 1]))
    for rows in range(1, 2001):
        curve.note(rows, lambda rows=rows: ended.append(rows))
    _, rows, aucs = np.array(curve.points).T
    assert len(rows) < 50 and rows.tolist() == ended
    assert (rows[1:] >= folds.SPACING * rows[:-1]).all() and (rows[1:] < folds.SPACING * rows[:-1] + 1).all()
    assert set(aucs) == {0.75}


def test_the_clock_stands_still_while_a_point_is_noted(now):
    clock = Clock(100, list(range(5)), 1)
    stop = clock.start(0)

    def score(X):
        now[0] += 1000
        return X[:, 0]

    curve = Curve(clock, SimpleNamespace(score_function_=score), np.arange(2.0)[:, None], np.array([-1, 1]))
    now[0] = 2.0
    curve.note(1, lambda: None)
    assert curve.points == [(2.0, 1, 1.0)] and clock.now() == 2 and not stop()


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


def test_two_files_are_one_split(rows):
    X, y = rows
    experiment = Experiment.train_and_test(X[:40], y[:40], X[40:], y[40:], "test.mat")
    assert len(experiment.splits) == 1
    for found, wanted in zip(experiment.test_rows(0), (X[40:], y[40:]), strict=True):
        assert_array_equal(found, wanted)
    with pytest.raises(InputError, match=r"test\.mat: all labels are of the positive class, expected both"):
        Experiment.train_and_test(X, y, X, np.ones(60, int), "test.mat")


def test_there_are_no_more_folds_than_rows_of_the_rarer_class():
    y = np.where(np.arange(60) < 7, 1, -1)
    assert [folds.count_folds(sign * y, asked, "f") for sign in (1, -1) for asked in (5, 7, 10)] == [5, 7, 7] * 2
    with pytest.raises(InputError, match="f: one class has a single row, expected at least 2 to cross-validate"):
        folds.count_folds(np.where(np.arange(60) < 1, 1, -1), 10, "f")


# --- all folds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 2, 9])
def test_folds_come_in_order_and_are_reported_as_they_end(rows, jobs):
    experiment = Experiment.cross_validation(*rows, 4, seed=0)
    estimator, reports = PublishedRanker(passes=2, random_state=0), []
    found = folds.run_folds(experiment, estimator, 0, NEVER, jobs=jobs, report=reports.append)
    expected = [folds.run_fold(fold, experiment, estimator, Clock(NEVER, list(range(4)), 1)) for fold in range(4)]
    assert found == expected
    for one, other in zip(found, expected):
        assert_array_equal(one.scores, other.scores)
    assert [len(done) for done in reports] == [0, 1, 2, 3, 4]
    assert sorted(fold.auc for fold in reports[-1]) == sorted(fold.auc for fold in expected)


@pytest.mark.parametrize("jobs", [1, 2])
def test_curves_are_noted_where_they_are_asked_for(rows, jobs):
    experiment = Experiment.cross_validation(*rows, 2, seed=0)
    for with_curves in (False, True):
        estimator = PublishedRanker(random_state=0)
        found = folds.run_folds(experiment, estimator, 0, NEVER, jobs=jobs, with_curves=with_curves)
        assert [bool(fold.curve) for fold in found] == [with_curves] * 2


def test_folds_that_begin_too_late_learn_as_little_as_they_can():
    X, y = make_rows(12_000, 3, 3000)
    experiment = Experiment.cross_validation(X, y, 2, seed=0)
    for fold in folds.run_folds(experiment, PublishedRanker(passes=5, random_state=0), 0, AT_ONCE):
        assert fold.done == pytest.approx(ranker.CHUNK / (5 * 6000)) and fold.auc > 0.8


@pytest.mark.parametrize("expected, effort", [(1.0, 1), (30.0, 1 / 4), (1e9, 1 / 32)])
def test_folds_begin_with_the_effort_that_there_is_time_for_and_curves_with_all(rows, monkeypatch, expected, effort):
    """Ten folds in 100 seconds, on a core that is not slow, which take ``expected`` seconds each with all effort."""
    monkeypatch.setattr(folds, "measure_slowness", lambda started, jobs: 1.0)
    monkeypatch.setattr(AUCRanker, "expected_seconds", lambda self, X, y, rows: expected * self.budget)
    monkeypatch.setattr(
        folds,
        "run_fold",
        lambda fold, experiment, estimator, clock, *keep: Fold(
            0.9, None, 0.1, [], {}, 1.0, {"budget": estimator.budget}
        ),
    )
    experiment, end = Experiment.cross_validation(*rows, 10, seed=0), time.monotonic() + 100
    found = folds.run_folds(experiment, AUCRanker(), 0, end)
    assert [(fold.effort, fold.shares["budget"]) for fold in found] == [(effort, effort)] * 10
    found = folds.run_folds(experiment, AUCRanker(), 0, end, with_curves=True)
    assert [fold.effort for fold in found] == [1] * 10


@pytest.mark.parametrize("start_again", [True, False])
def test_folds_that_take_less_effort_start_again_or_go_on(rows, monkeypatch, start_again):
    """The second fold takes too long."""
    begun = []

    def run_fold(fold, experiment, estimator, clock, *keep):
        begun.append((fold, estimator.budget))
        return Fold(0.9, None, 0.1, [], {}, 1.0, {})

    def less_effort(done, expected, n_to_do, n_folds, jobs, seconds):
        return Change(1 / 4, start_again) if done[0].effort == 1 and len(done) == 2 else None

    monkeypatch.setattr(folds, "run_fold", run_fold)
    monkeypatch.setattr(folds, "first_effort", lambda *_: 1)
    monkeypatch.setattr(folds, "less_effort", less_effort)
    experiment = Experiment.cross_validation(*rows, 4, seed=0)
    found = folds.run_folds(experiment, AUCRanker(), time.monotonic(), time.monotonic() + 100)
    first = 0 if start_again else 2
    assert begun == [(0, 1.0), (1, 1.0), *((fold, 1 / 4) for fold in range(first, 4))]
    assert [fold.effort for fold in found] == [1] * first + [1 / 4] * (4 - first)


def test_what_a_fit_is_expected_to_take_grows_with_the_budget(monkeypatch):
    """Of a price list on which visits are all that costs."""
    monkeypatch.setattr(plan, "PRICES", {**dict.fromkeys(plan.PRICES, 0), "steps": 1e-9})
    X, y = make_rows(400, 3, 100)
    train = np.arange(1, 400, 2)
    seconds = [AUCRanker(budget=b).expected_seconds(X, y[train], train) for b in (0.25, 1, 4)]
    assert seconds[0] < seconds[1] < seconds[2]
    shape = shape_of(X, y[train], train)
    assert seconds[1] == pytest.approx(1e-9 * plan.quantities(shape, make_plan(shape))["steps"])
