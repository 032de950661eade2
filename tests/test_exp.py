"""What a fold does and how much: the plan, the rows it takes, the clock, and learning from them."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import make_rows
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.metrics import roc_auc_score

import exp
import oam
import preprocess

pytestmark = pytest.mark.filterwarnings("error")

# --- thin ------------------------------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 90), st.integers(0, 99))
@example(10, 50, 30, 0)
@example(50, 10, 30, 0)
def test_thinned_rows(n_pos, n_neg, size, seed):
    y = np.random.RandomState(seed).permutation([1] * n_pos + [-1] * n_neg)
    rows = exp.thin(y, size)
    assert len(rows) == min(len(y), size)
    assert (np.diff(rows) > 0).all()  # in order, none twice
    assert len(rows) == 0 or 0 <= rows[0] <= rows[-1] < len(y)
    if size < len(y):
        n_kept = np.count_nonzero(y[rows] > 0)
        assert n_kept <= max(size / 3, size * n_pos / len(y) + 1)
        assert n_kept >= min(n_pos, size // 3)  # positives are the last to be left out
        for sign in (1, -1):  # the first rows of each class stay
            kept, given_rows = rows[y[rows] == sign], np.flatnonzero(y == sign)
            assert_array_equal(kept, given_rows[: len(kept)])


# --- the plan --------------------------------------------------------------------------------------------------------

SHAPES = st.tuples(
    st.integers(2, 10**7), st.floats(0, 1), st.integers(1, 10**7), st.integers(1, 10**5), st.floats(1e-4, 1)
)


def plan_of(n_train, share, n_test, n_columns, density):
    n_pos = min(max(int(share * n_train), 1), n_train - 1)
    return exp.make_plan(n_train, n_pos, n_test, n_columns, max(density * n_columns, 0.01))


def check_plan(plan, n_train):
    assert 1 <= plan.landmarks <= plan.sample <= plan.rows <= n_train
    assert plan.visits >= 1
    assert all(isinstance(n, int) for n in (plan.rows, plan.sample, plan.landmarks, plan.visits))
    assert plan.sample * plan.landmarks * 4 < 2**30  # bytes of features


@settings(max_examples=300, deadline=None, derandomize=True)
@given(SHAPES, SHAPES)
def test_a_plan_follows_from_the_shape_alone_and_fits_it(shape, other):
    plan = plan_of(*shape)
    check_plan(plan, shape[0])
    check_plan(plan_of(*other), other[0])
    assert plan_of(*shape) == plan


@pytest.mark.parametrize(
    "shape",
    [
        (2, 1, 1, 1, 1),
        (2, 1, 10**7, 10**5, 10**5),
        (10**7, 10**6, 10**6, 30, 30),
        (10**7, 1, 10**6, 30, 30),
        (1000, 100, 100, 10**5, 10**5),
        (500_000, 5_000, 50_000, 300, 11.6),
        (10**5, 10, 10**4, 10**5, 0.5),
    ],
)
def test_plans_for_extreme_shapes(shape):
    plan = exp.make_plan(*shape)
    check_plan(plan, shape[0])
    assert plan.rows * min(shape[4], 1000) <= 10**8  # however many rows, there is an end to what is learned from
    assert plan.rows >= min(shape[0], 100)  # and however many cells, it is not nothing


@pytest.mark.parametrize(
    "vary, grows, falls",
    [
        ("n_train", ["rows", "sample"], ["small"]),
        ("n_pos", ["rows"], []),
        ("n_test", ["quick"], ["landmarks"]),
        ("n_columns", ["quick"], []),
        ("cells_per_row", [], ["rows", "sample"]),
    ],
)
def test_plans_grow_and_shrink_with_the_data(vary, grows, falls):
    usual = {"n_train": 10**6, "n_pos": 10**3, "n_test": 10**3, "n_columns": 100, "cells_per_row": 100}
    values = [int(10**k) for k in np.linspace(0.4, 6, 40)]
    if vary in ("n_test", "n_columns"):  # quick is judged by the work, to which landmarks belong
        usual["n_train"] = 10**4
    if vary == "n_test":
        grows = []
    plans = [exp.make_plan(**{**usual, vary: value}) for value in values]
    for name in grows:
        assert all(getattr(a, name) <= getattr(b, name) for a, b in pairwise(plans)), name
    for name in falls:
        assert all(getattr(a, name) >= getattr(b, name) for a, b in pairwise(plans)), name


# --- the clock -------------------------------------------------------------------------------------------------------


@pytest.fixture
def now(monkeypatch):
    """The time, as the clock sees it: a list of one number."""
    now = [0.0]
    monkeypatch.setattr(exp, "time", SimpleNamespace(monotonic=lambda: now[0]))
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
    clock = exp.Clock(100, 5, 1)
    for fold in range(5):
        assert deadline(clock.start(fold), now) == pytest.approx(20 * (fold + 1), abs=1e-3)
        now[0] = 20.0 * (fold + 1)


@pytest.mark.parametrize("used", [0.0, 4.0])
def test_what_a_fold_leaves_goes_to_those_after_it(now, used):
    clock = exp.Clock(100, 5, 1)
    clock.start(0)
    now[0] = used
    assert deadline(clock.start(1), now) - used == pytest.approx((100 - used) / 4, abs=1e-3)


def test_a_clock_that_has_run_out_stops_at_once(now):
    clock = exp.Clock(100, 5, 2)
    for now[0] in (100.1, 500.0):
        assert clock.start(1)() and clock.start(4)()


@pytest.mark.parametrize("jobs", [1, 2, 3, 10])
@pytest.mark.parametrize("used", [0.3, 1.0])
def test_no_fold_goes_beyond_the_end_and_none_goes_without(now, jobs, used):
    """Ten folds, each on the first free of so many cores, each of which uses that much of its share."""
    clock, free = exp.Clock(100, 10, jobs), [0.0] * jobs
    for fold in range(10):
        core = int(np.argmin(free))
        now[0] = free[core]
        share = deadline(clock.start(fold), now) - now[0]
        assert share > 100 / 10 / 3
        free[core] += used * share
    assert max(free) <= 100.001
    assert used < 1 or max(free) == pytest.approx(100, abs=0.01)


def test_a_paused_clock_takes_nothing_from_this_fold_nor_from_those_behind_it(now):
    clock = exp.Clock(100, 5, 1)
    stop = clock.start(0)
    with clock.pause():
        now[0] += 1000
    assert clock.now() == 0 and not stop()
    assert deadline(stop, now, 2000) == pytest.approx(1020, abs=1e-3)
    now[0] += 20
    assert deadline(clock.start(1), now, 2000) == pytest.approx(1040, abs=1e-3)


# --- learning --------------------------------------------------------------------------------------------------------

NEVER, AT_ONCE = float("inf"), -float("inf")


def options_of(**kwargs):
    usual = {"seed": 0, "features": None, "published": False, "plots": None, **dict.fromkeys(exp.PUBLISHED)}
    return SimpleNamespace(**{**usual, **kwargs})


def run_fold(X, y, end=NEVER, **kwargs):
    """Learn from two thirds of the rows and test on the others; the clock runs out at ``end``."""
    third = np.arange(len(y)) % 3 == 0
    work = exp.Work(X, y, X, y, [(np.flatnonzero(~third), np.flatnonzero(third))])
    return exp.run_fold(0, work, options_of(**kwargs), exp.Clock(end, 1, 1))


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
    assert set(auto.shares) <= set(exp.WORDS)
    assert linear.done == auto.done == 1


@pytest.mark.parametrize("kwargs", [{}, {"features": "linear"}, {"published": True, "passes": 2}])
def test_a_fold_depends_on_seed_and_number_only(rows, kwargs):
    first = run_fold(*rows, **kwargs)
    assert run_fold(*rows, **kwargs) == first
    assert 0 <= first.auc <= 1


@pytest.mark.parametrize("kwargs", [{}, {"features": "linear"}, {"published": True, "passes": 2}])
def test_a_fold_that_is_stopped_at_once_still_has_an_auc(kwargs):
    X, y = make_rows(9000, 3, 2250)
    fold = run_fold(X + y[:, None], y, AT_ONCE, **kwargs)
    assert fold.auc > 0.9
    assert 0 < fold.done < 1
    assert len(fold.shares) <= 1


def test_scoring_in_chunks_changes_nothing(rows, monkeypatch):
    whole = run_fold(*rows)
    monkeypatch.setattr(preprocess, "SCORED", 7)
    assert run_fold(*rows).auc == pytest.approx(whole.auc, abs=1e-9)


def test_a_fold_keeps_to_its_plan(monkeypatch):
    X, y = make_rows(300, 3, 60)
    seen = []
    fit, fit_map = preprocess.Preprocessor.fit, preprocess.LandmarkMap.fit

    def spy(self, X):
        seen.append(X.shape[0])
        return fit(self, X)

    def spy_map(self, views):
        seen.append((len(views["scaled"]), len(views.landmarks["scaled"])))
        return fit_map(self, views)

    monkeypatch.setattr(preprocess.Preprocessor, "fit", spy)
    monkeypatch.setattr(preprocess.LandmarkMap, "fit", spy_map)
    plan = replace(exp.make_plan(200, 40, 100, 3, 3), rows=90, sample=40, landmarks=20)
    monkeypatch.setattr(exp, "make_plan", lambda *shape: plan)
    assert 0 <= run_fold(X, y).auc <= 1
    assert seen[0] == 90 and len(seen) > 1 and set(seen[1:]) == {(40, 20)}


@pytest.mark.parametrize("many", [False, True])
def test_sparse_rows_of_few_columns_learn_like_dense_ones_and_of_many_stay_sparse(many, monkeypatch):
    X, y = make_rows(200, oam.FEW_COLUMNS + 1 if many else 5, 50)
    X = sp.csr_array(np.where(X > 1.5, X, 0))
    made_dense, toarray = [0], sp.csr_array.toarray
    monkeypatch.setattr(sp.csr_array, "toarray", lambda X: made_dense.append(X.shape[0]) or toarray(X))
    fold = run_fold(X, y)
    assert (list(fold.shares) == ["linear"]) == many
    assert (max(made_dense) < 100) == many  # of many columns, a block at most
    assert fold.auc > 0.5


def test_the_auc_is_that_of_the_scores(rows, monkeypatch):
    X, y = rows
    train, test = np.arange(40), np.arange(40, 60)
    weights = np.array([1.0, -2, 0.5, 3])
    model = SimpleNamespace(score=lambda X: np.round(X @ weights))
    monkeypatch.setattr(exp, "learn", lambda *args: (model, {}, 1, {}))
    fold = exp.run_fold(0, exp.Work(X, y, X, y, [(train, test)]), options_of(), exp.Clock(NEVER, 1, 1))
    assert fold.auc == pytest.approx(roc_auc_score(y[test], np.round(X[test] @ weights)), abs=1e-12)


# --- curves ----------------------------------------------------------------------------------------------------------

LEARNERS = [{}, {"features": "linear"}, {"published": True, "passes": 3}]


@pytest.mark.parametrize("kwargs", LEARNERS)
def test_curves_change_nothing_and_end_where_the_fold_ends(kwargs, monkeypatch):
    monkeypatch.setattr(exp, "CHUNK", 100)
    X, y = make_rows(900, 3, 225)
    plain, noted = run_fold(X, y, **kwargs), run_fold(X, y, plots="here", **kwargs)
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
    curve = run_fold(X, y, plots="here").curve
    for _, rows, auc in curve[:: len(curve) // 2]:
        learned = [0]

        def learn(self, X, y, *args, learned=learned, learn=oam.PairLearner.learn, **kwargs):
            learned[0] += len(y)
            learn(self, X, y, *args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(oam.PairLearner, "learn", learn)
            patch.setattr(exp.Clock, "start", lambda *args, learned=learned, rows=rows: lambda: learned[0] >= rows)
            assert run_fold(X, y).auc == auc


def test_points_lie_ever_further_apart():
    curve = exp.Curve(exp.Clock(NEVER, 1, 1), np.arange(4.0)[:, None], np.array([-1, 1, -1, 1]))
    for rows in range(1, 2001):
        curve.note(rows, lambda X: X[:, 0])
    _, rows, aucs = np.array(curve.points).T
    assert len(rows) < 50
    assert (rows[1:] >= exp.SPACING * rows[:-1]).all() and (rows[1:] < exp.SPACING * rows[:-1] + 1).all()
    assert set(aucs) == {0.75}
