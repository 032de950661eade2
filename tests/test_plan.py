"""How much a fit does, by the shape of the data, and which rows it takes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tenfold.plan import make_plan, thin

pytestmark = pytest.mark.filterwarnings("error")

# --- thin ------------------------------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 90), st.integers(0, 99))
@example(10, 50, 30, 0)
@example(50, 10, 30, 0)
def test_thinned_rows(n_pos, n_neg, size, seed):
    y = np.random.RandomState(seed).permutation([1] * n_pos + [-1] * n_neg)
    rows = thin(y, size)
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

SHAPES = st.tuples(st.integers(2, 10**7), st.floats(0, 1), st.integers(1, 10**5), st.floats(1e-4, 1), st.booleans())
USUAL = {"n_train": 10**6, "n_pos": 10**3, "n_columns": 100, "cells_per_row": 100}


def plan_of(n_train, share, n_columns, density, sparse, **budget):
    n_pos = min(max(int(share * n_train), 1), n_train - 1)
    return make_plan(n_train, n_pos, n_columns, max(density * n_columns, 0.01), sparse, **budget)


def check_plan(plan, n_train, budget=1.0):
    assert 1 <= plan.landmarks <= plan.sample <= plan.rows <= n_train
    assert plan.visits >= 1
    assert all(isinstance(n, int) for n in (plan.rows, plan.sample, plan.landmarks, plan.visits))
    assert plan.sample * plan.landmarks * 4 < 2**30 * max(budget, 1)  # bytes of features


def check_growth(plans, grows=(), falls=()):
    for name in grows:
        assert all(getattr(a, name) <= getattr(b, name) for a, b in pairwise(plans)), name
    for name in falls:
        assert all(getattr(a, name) >= getattr(b, name) for a, b in pairwise(plans)), name


@settings(max_examples=300, deadline=None, derandomize=True)
@given(SHAPES, SHAPES)
def test_a_plan_follows_from_the_shape_alone_and_fits_it(shape, other):
    plan = plan_of(*shape)
    check_plan(plan, shape[0])
    check_plan(plan_of(*other), other[0])
    assert plan_of(*shape) == plan == plan_of(*shape, budget=1.0)
    assert plan.block == (128 if shape[-1] else 32)


@pytest.mark.parametrize(
    "shape",
    [
        (2, 1, 1, 1),
        (2, 1, 10**5, 10**5),
        (10**7, 10**6, 30, 30),
        (10**7, 1, 30, 30),
        (1000, 100, 10**5, 10**5),
        (500_000, 5_000, 300, 11.6),
        (10**5, 10, 10**5, 0.5),
    ],
)
def test_plans_for_extreme_shapes(shape):
    plan = make_plan(*shape)
    check_plan(plan, shape[0])
    assert plan.rows * min(shape[3], 1000) <= 10**8  # however many rows, there is an end to what is learned from
    assert plan.rows >= min(shape[0], 100)  # and however many cells, it is not nothing


@pytest.mark.parametrize(
    "vary, grows, falls",
    [
        ("n_train", ["rows", "sample"], ["small"]),
        ("n_pos", ["rows"], []),
        ("n_columns", ["quick"], []),
        ("cells_per_row", [], ["rows", "sample"]),
    ],
)
def test_plans_grow_and_shrink_with_the_data(vary, grows, falls):
    usual = {**USUAL, "n_train": 10**4} if vary == "n_columns" else USUAL  # quick is judged by the work with landmarks
    values = [int(10**k) for k in np.linspace(0.4, 6, 40)]
    check_growth([make_plan(**{**usual, vary: value}) for value in values], grows, falls)


def test_many_rows_to_score_leave_time_for_fewer_landmarks():
    plans = [make_plan(**{**USUAL, "n_train": int(10**k)}) for k in np.linspace(3.5, 7, 40)]
    check_growth(plans, falls=["landmarks"])
    assert plans[0].landmarks == 1000 and plans[-1].landmarks == 100


# --- the budget ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("small", [False, True])
def test_a_larger_budget_is_spent_on_more_of_everything(small):
    usual = {**USUAL, "n_train": 2000, "n_pos": 400} if small else {**USUAL, "n_train": 10**5, "n_pos": 10**4}
    plans = [make_plan(**usual, budget=budget) for budget in np.geomspace(0.01, 100, 40)]
    check_growth(plans, grows=["rows", "sample", "landmarks", "visits"])
    assert plans[0].visits < plans[-1].visits / 99 and plans[0].rows < plans[-1].rows
    assert len({(plan.folds, plan.small, plan.block) for plan in plans}) == 1


@settings(max_examples=300, deadline=None, derandomize=True)
@given(SHAPES, st.floats(0.01, 100))
def test_any_budget_has_a_plan(shape, budget):
    plan = plan_of(*shape, budget=budget)
    check_plan(plan, shape[0], budget)
    assert plan.rows >= min(shape[0], 100)


def test_four_times_the_budget_is_about_four_times_the_work():
    """Of a set of features: its rows times landmarks, and the rows visited times landmarks."""
    for shape in ((10**5, 10**4, 30, 30), (10**6, 10**5, 100, 100), (20_000, 2000, 10, 10)):
        once, more = make_plan(*shape), make_plan(*shape, budget=4.0)
        for count in ("sample", "visits"):
            ratio = getattr(more, count) * more.landmarks / (getattr(once, count) * once.landmarks)
            assert 2 < ratio < 8.5
