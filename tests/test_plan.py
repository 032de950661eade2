"""How much a fit does, by the shape of the data and the effort, and which rows it takes."""

from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tenfold import plan
from tenfold.plan import Shape, draw_rows, make_plan, thin

pytestmark = pytest.mark.filterwarnings("error")

# --- rows ------------------------------------------------------------------------------------------------------------


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


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 90), st.integers(1, 90), st.integers(0, 99))
def test_fewer_thinned_rows_are_among_more_of_them(n_pos, n_neg, size, other, seed):
    """So all sets of features share the rows of the smallest."""
    y = np.random.RandomState(seed).permutation([1] * n_pos + [-1] * n_neg)
    few, many = (thin(y, n) for n in sorted((size, other)))
    assert np.isin(few, many).all()


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 130), st.sampled_from([1 / 3, 1 / 2]), st.integers(0, 99))
def test_drawn_rows(n_pos, n_neg, size, rarest, seed):
    """As many of the rarer class as there are, or as make up its share, and none twice."""
    y = np.random.RandomState(seed).permutation([1] * n_pos + [-1] * n_neg)
    rows = draw_rows(y, size, np.random.RandomState(seed))
    assert_array_equal(rows, draw_rows(y, size, np.random.RandomState(seed)))
    rows = draw_rows(y, size, np.random.RandomState(seed), rarest)
    assert len(rows) == len(set(rows.tolist())) == min(len(y), size)
    assert set(rows.tolist()) <= set(range(len(y)))
    if size < len(y):
        n_rare, n_drawn = min(n_pos, n_neg), np.count_nonzero(y[rows] == (1 if n_pos <= n_neg else -1))
        assert min(n_rare, int(size * rarest)) <= n_drawn <= max(size * rarest, size * n_rare / len(y))


def test_rows_are_drawn_at_random():
    """Each row of a class as often as the others, in any order: by the deviations of as many throws."""
    y, n = np.where(np.arange(40) < 10, 1, -1), 4000
    draws = [draw_rows(y, 15, np.random.RandomState(seed)) for seed in range(n)]
    counts = np.bincount(np.concatenate(draws), minlength=40)
    for sign, n_drawn in ((1, 5), (-1, 10)):
        share = n_drawn / np.count_nonzero(y == sign)
        error = np.sqrt(n * share * (1 - share))
        assert np.abs(counts[y == sign] - n * share).max() < 4.5 * error
    places = np.mean([np.flatnonzero(y[rows] > 0).mean() for rows in draws])
    assert places == pytest.approx(7, abs=0.15)


# --- the plan --------------------------------------------------------------------------------------------------------

USUAL = {"n_rows": 10**6, "n_pos": 10**3, "n_columns": 100, "n_many": 100, "cells_per_row": 100.0}
EFFORTS = st.floats(1 / 16, 1024)


@st.composite
def shapes(draw):
    n_rows, n_columns, sparse = draw(st.integers(2, 10**7)), draw(st.integers(1, 10**5)), draw(st.booleans())
    n_pos = draw(st.integers(1, n_rows - 1))
    n_many = 0 if sparse else draw(st.integers(0, n_columns))
    cells = draw(st.floats(1, min(n_columns, 2_000))) if sparse else float(n_columns)
    return Shape(n_rows, n_pos, n_columns, n_many, cells, sparse)


def check_plan(made, shape):
    counts = {field.name: getattr(made, field.name) for field in fields(made)}
    flags = {name: counts.pop(name) for name in ("small", "wide", "even")}
    assert all(type(flag) is bool for flag in flags.values())
    assert all(type(count) is int and count >= 0 for count in counts.values()), counts
    assert min(shape.n_rows, 200) <= made.rows <= shape.n_rows  # however many cells, it is not nothing
    assert 1 <= made.looked_at <= made.rows and (made.wide or made.looked_at == made.rows)
    assert made.landmarks <= made.sample <= made.rows and made.sample > 0
    assert made.visits > 0 and made.block > 0 and made.draw > 0 and made.buffer > 0 and made.folds > 1
    assert 0 < made.tree_rows <= made.rows and 1 <= made.tree_columns <= shape.n_columns
    assert 0 < made.forest_rows <= made.rows and made.leaves > 1
    assert not made.trees or not made.forest  # the one or the other
    assert not shape.sparse or not (made.landmarks or made.trees or made.forest or made.wide)
    assert not made.wide or not (made.landmarks or made.forest)


def check_growth(plans, grows=(), falls=()):
    for name in grows:
        assert all(getattr(a, name) <= getattr(b, name) for a, b in pairwise(plans)), name
    for name in falls:
        assert all(getattr(a, name) >= getattr(b, name) for a, b in pairwise(plans)), name


@settings(max_examples=300, deadline=None, derandomize=True)
@given(shapes(), shapes(), st.floats(1 / 1024, 1024))
def test_a_plan_follows_from_the_shape_and_the_effort_alone(shape, other, effort):
    made = make_plan(shape, effort)
    check_plan(made, shape)
    check_plan(make_plan(other), other)
    assert make_plan(shape, effort) == made
    assert make_plan(shape) == make_plan(shape, 1.0)


def cells(made, shape):
    """The cells that the parts of a fit work through: scaled, visited, compared with landmarks, and grown trees on."""
    width, scored = shape.cells_per_row, made.sample + shape.n_test  # rows whose similarities are taken
    if plan.has_few_rows(made.rows, shape.n_columns, plan.FEW_ROWS):
        width = made.rows  # they are learned from in the space that they span
    return {
        "cleaned and scaled": made.looked_at * shape.cells_per_row,
        "visited": made.visits * width,
        "similarities": scored * made.landmarks,
        "to take similarities of": scored * made.landmarks * shape.n_columns,
        "ranked": scored * made.most_ranked * max(made.landmarks, 100),
        "of trees": made.tree_rows * made.tree_columns * bool(made.trees) * made.trees,
        "of a forest": made.forest_rows * made.forest * shape.n_columns**0.5,
    }


@settings(max_examples=300, deadline=None, derandomize=True)
@given(shapes(), EFFORTS)
@example(Shape(10**7, 10**6, 30, 30, 30.0), 1.0)
@example(Shape(10**7, 5 * 10**6, 999, 999, 999.0), 1.0)
@example(Shape(1000, 100, 10**5, 10**5, 1e5), 1.0)
@example(Shape(500_000, 5_000, 3_000, 0, 11.6, True), 1.0)
def test_no_part_works_through_more_cells_than_the_effort_allows(shape, effort):
    """Whatever the shape. Of the rows that it learns from, each part has at least 200, however wide they are."""
    most = {
        "cleaned and scaled": 1e8,
        "visited": 1e8,
        "similarities": 1e7,
        "to take similarities of": 5e9,
        "ranked": 5e8,
        "of trees": 2e7,
        "of a forest": 1e7,
    }
    found, scale = cells(make_plan(shape, effort), shape), max(effort, effort**0.5, 1 / 4)
    for part, count in found.items():
        assert count <= max(most[part] * scale, 3 * 200 * shape.cells_per_row), part


@pytest.mark.parametrize(
    "shape",
    [
        Shape(2, 1, 1, 1, 1.0),
        Shape(2, 1, 10**5, 10**5, 1e5),
        Shape(10**7, 10**6, 30, 30, 30.0),
        Shape(10**7, 1, 30, 0, 30.0),
        Shape(1000, 100, 10**5, 10**5, 1e5),
        Shape(500_000, 5_000, 3_000, 0, 11.6, True),
        Shape(10**5, 10, 10**5, 0, 1.0, True),
    ],
)
@pytest.mark.parametrize("effort", [1 / 1024, 1 / 16, 1, 1024])
def test_plans_for_extreme_shapes(shape, effort):
    check_plan(make_plan(shape, effort), shape)


@pytest.mark.parametrize(
    "vary, others, grows, falls",
    [
        ("n_rows", {"n_pos": 100}, ["rows", "sample"], ["small"]),
        ("n_pos", {}, ["rows"], ["folds"]),
        ("n_columns", {"n_rows": 20_000, "n_pos": 100}, ["wide"], ["landmarks", "folds"]),
        ("cells_per_row", {"n_pos": 10_000}, [], ["rows"]),
    ],
)
def test_plans_grow_and_shrink_with_the_data(vary, others, grows, falls):
    values = [int(10**k) for k in np.linspace(0.4, 5.6, 40)]
    plans = [make_plan(Shape(**{**USUAL, **others, vary: value})) for value in values]
    check_growth(plans, grows, falls)
    assert all(getattr(plans[0], name) != getattr(plans[-1], name) for name in [*grows, *falls])


@pytest.mark.parametrize("n_pos", [299, 300])
def test_many_rows_to_score_leave_time_for_fewer_landmarks(n_pos):
    plans = [make_plan(Shape(**{**USUAL, "n_rows": int(10**k), "n_pos": n_pos})) for k in np.linspace(3.5, 7, 40)]
    check_growth(plans, falls=["landmarks"])
    assert plans[0].landmarks > 300 and plans[-1].landmarks == 0


def test_trees_are_grown_where_both_classes_have_many_rows_and_similarities_then_are_fewer():
    plans = {n_pos: make_plan(Shape(5_000, n_pos, 5, 5, 5.0)) for n_pos in (1, 299, 300, 4_700, 4_701, 4_999)}
    with_trees = {n_pos for n_pos, made in plans.items() if made.trees}
    assert with_trees == {300, 4_700}
    assert all(plans[n_pos].landmarks < plans[1].landmarks / 2 for n_pos in with_trees)
    assert all(plans[n_pos].tree_rows == 5_000 for n_pos in with_trees)
    assert make_plan(Shape(3_000, 1_500, 5, 5, 5.0)).trees == 0  # too few rows


def test_trees_look_at_all_columns_or_if_they_are_many_at_some_of_them():
    """Either way at about as many cells; and where they see less, similarities count more."""
    plans = [make_plan(Shape(6_000, 2_000, d, d, float(d))) for d in (10, 100, 199, 201, 999)]
    assert [made.tree_columns for made in plans] == [10, 100, 199, plan.TREE_COLUMNS, plan.TREE_COLUMNS]
    assert all(made.tree_rows * made.tree_columns <= plan.TREE_CELLS for made in plans)
    assert plans[3].visits > 1.5 * plans[2].visits


def test_a_forest_is_grown_where_there_are_no_boosted_trees_and_effort_for_it():
    for n_rows, n_pos, has_trees in ((5_000, 299, False), (5_000, 300, True), (2_000, 900, False)):
        shape = Shape(n_rows, n_pos, 16, 16, 16.0)
        assert bool(make_plan(shape).forest) == (not has_trees)
        assert make_plan(shape, 0.5).forest == 0
        forests = [make_plan(shape, effort).forest for effort in (1, 2, 4, 1024)]
        assert has_trees or (forests[:3] == [forests[0], 2 * forests[0], 4 * forests[0]] and forests[3] < 1024)


def test_data_is_wide_if_it_has_too_many_cells_and_columns_and_is_dense():
    for n_rows, n_columns, wide in (
        (10**6, 99, False),
        (10**4, 1200, False),
        (10_001, 1200, True),
        (60, 10**5, False),
    ):
        shape = Shape(n_rows, n_rows // 3, n_columns, n_columns, float(n_columns))
        assert make_plan(shape).wide == wide
        assert not make_plan(replace(shape, sparse=True, n_many=0)).wide
        if wide:
            made, few = make_plan(shape), make_plan(replace(shape, n_pos=plan.MANY_ROWS - 1))
            assert made.landmarks == 0 and made.rows <= made.visits <= 3 * made.rows
            assert made.trees > 0 and made.tree_columns == plan.TREE_COLUMNS and few.trees == 0


def test_columns_are_made_even_where_many_are_rare_and_both_classes_have_many_rows():
    for n_pos, n_two, even in ((300, 200, True), (299, 200, False), (300, 199, False), (4_701, 200, False)):
        assert make_plan(Shape(5_000, n_pos, n_two + 7, 7, n_two + 7.0)).even == even
    for n_pos, even in ((300, True), (299, False)):
        assert make_plan(Shape(5_000, n_pos, 9_000, 0, 50.0, True)).even == even
    assert not make_plan(Shape(60_000, 6_000, 1_000, 0, 1e3)).even


def test_blocks_of_sparse_rows_are_larger_unless_the_rows_are_few():
    many, few = Shape(20_000, 2_000, 10**5, 0, 50.0, True), Shape(500, 100, 10**5, 0, 50.0, True)
    assert make_plan(many).block > make_plan(few).block == make_plan(replace(many, sparse=False)).block
    assert all(made.draw == 2 * made.block for made in map(make_plan, (many, few)))


# --- the effort ------------------------------------------------------------------------------------------------------

ALWAYS = ["rows", "looked_at", "folds", "leaves", "forest", "forest_rows"]
OF_SETS = ["sample", "landmarks", "visits", "trees", "tree_rows"]  # as long as trees look at the same columns


@settings(max_examples=500, deadline=None, derandomize=True)
@given(shapes(), EFFORTS, EFFORTS)
@example(Shape(60, 15, 4, 4, 4.0), 1 / 16, 1024)
@example(Shape(5_000, 500, 20, 20, 20.0), 1 / 16, 1 / 4)
@example(Shape(10**5, 10**4, 30, 30, 30.0), 1 / 4, 1)
@example(Shape(20_000, 5_000, 3_000, 3_000, 3_000.0), 1 / 4, 4)
def test_more_effort_never_means_less(shape, effort, other):
    plans = [make_plan(shape, e) for e in sorted((effort, other))]
    check_growth(plans, grows=ALWAYS)
    assert len({(made.wide, made.small, made.even, made.buffer) for made in plans}) == 1
    assume(plans[0].tree_columns == plans[1].tree_columns)
    check_growth(plans, grows=OF_SETS)


@pytest.mark.parametrize("small", [False, True])
def test_more_effort_is_spent_on_more_of_everything(small):
    usual = {**USUAL, "n_rows": 2000, "n_pos": 400} if small else {**USUAL, "n_rows": 10**5, "n_pos": 10**4}
    plans = [make_plan(Shape(**usual), effort) for effort in np.geomspace(1 / 16, 1024, 40)]
    check_growth(plans, grows=[*ALWAYS, *OF_SETS])
    grown = {"visits", "sample", "landmarks", "leaves", "forest" if small else "trees"} | (set() if small else {"rows"})
    assert all(getattr(plans[0], name) < getattr(plans[-1], name) for name in grown)
    assert plans[0].visits < plans[-1].visits / 90


def test_four_times_the_effort_is_about_four_times_the_work():
    """Of a set of features: its rows times landmarks, and the rows visited times landmarks."""
    for n_rows, n_pos, d in ((10**5, 10**4, 30), (300_000, 30_000, 100), (20_000, 2000, 10)):
        shape = Shape(n_rows, n_pos, d, d, float(d))
        for effort in (1, 4, 16):
            once, more = make_plan(shape, effort), make_plan(shape, 4 * effort)
            for count in ("sample", "visits"):
                ratio = getattr(more, count) * more.landmarks / (getattr(once, count) * once.landmarks)
                assert 2 < ratio < 8.5


@settings(max_examples=200, deadline=None, derandomize=True)
@given(shapes(), st.floats(1, 256), st.floats(1, 4))
def test_work_grows_no_faster_than_the_effort(shape, effort, factor):
    """But where it takes the fit over a bound: trees see more columns, or there are landmarks. More trees on more rows
    may take a little more than their share."""
    plans = [make_plan(shape, e) for e in (effort, factor * effort)]
    assume(len({(made.tree_columns, made.landmarks > 0) for made in plans}) == 1)
    less, more = (cells(made, shape) for made in plans)
    for part, power in ("similarities", 1), ("of trees", 1.5):
        assert more[part] <= 1.3 * factor**power * less[part], part
    assert plans[1].rows <= 1.01 * factor * plans[0].rows and plans[1].visits <= 1.01 * factor * plans[0].visits
