"""How much a fit does, by the shape of the data and the effort, and which rows it takes.

That is the plan, which all sets of features share, and the size that each set gives itself.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tenfold import plan
from tenfold.features import FEATURE_SETS, landmarks
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


# --- the plan, and the sets of features -------------------------------------------------------------------------------

USUAL = {"n_rows": 10**6, "n_pos": 10**3, "n_columns": 100, "n_many": 100, "cells_per_row": 100.0}
EFFORTS = st.floats(1 / 16, 1024)


@st.composite
def shapes(draw):
    n_rows, n_columns, sparse = draw(st.integers(2, 10**7)), draw(st.integers(1, 10**5)), draw(st.booleans())
    n_pos = draw(st.integers(1, n_rows - 1))
    n_many = 0 if sparse else draw(st.integers(0, n_columns))
    cells = draw(st.floats(1, min(n_columns, 2_000))) if sparse else float(n_columns)
    return Shape(n_rows, n_pos, n_columns, n_many, cells, sparse)


class Sizes:
    """What a fit of this shape is to do: the plan, the sets of features by name, and the number of landmarks."""

    def __init__(self, shape, effort=1.0, plain=False):
        self.shape = shape
        self.plan = make_plan(shape, effort, plain)
        sets = {kind.name: kind.sized(shape, self.plan) for kind in FEATURE_SETS}
        self.sets = {name: feature_set for name, feature_set in sets.items() if feature_set is not None}
        self.sample, self.landmarks = landmarks.sizes(shape, self.plan)
        self.most_ranked = landmarks.most_ranked(shape, self.plan)

    def of(self, name, attribute):
        """A size of a set, 0 if there is no such set."""
        return getattr(self.sets.get(name), attribute, 0)

    @property
    def counts(self):
        """All whole numbers, by name."""
        counts = {name: value for name, value in vars(self.plan).items() if type(value) is int}
        for name, feature_set in self.sets.items():
            of_set = vars(feature_set).items()
            counts.update({f"{name}.{attribute}": value for attribute, value in of_set if type(value) is int})
        return {**counts, "sample": self.sample, "landmarks": self.landmarks}


def check_sizes(shape, effort=1.0, plain=False):
    made = Sizes(shape, effort, plain)
    p = made.plan
    assert {type(value) for name, value in vars(p).items() if name not in ("effort", "similar")} == {bool, int}
    assert all(count >= 0 for count in made.counts.values()), made.counts
    assert min(shape.n_rows, 200) <= p.rows <= shape.n_rows  # however many cells, it is not nothing
    assert 1 <= p.looked_at <= p.rows and (p.wide or p.looked_at == p.rows)
    assert p.visits >= p.rows and p.block > 0 and p.draw > 0 and p.buffer > 0 and p.folds > 1
    assert 0 <= made.landmarks <= made.sample <= p.rows and made.sample > 0 and made.most_ranked > 0
    assert list(made.sets)[-1] == "linear" and made.of("linear", "visits") >= p.rows
    assert ("mixed" in made.sets) == (made.landmarks > 0)
    assert ("smooth" in made.sets) == ("rough" in made.sets) == (made.landmarks > 0 and p.small)
    assert ("trees" in made.sets) == (p.tree_columns > 0)
    assert "trees" not in made.sets or "forest" not in made.sets  # the one or the other
    allowed = [{"linear"}] * plain + [{"linear", "even"}] * shape.sparse + [{"linear", "trees"}] * p.wide
    assert all(set(made.sets) <= names for names in allowed)
    for name, feature_set in made.sets.items():
        assert feature_set.visits > 0, name
        if name in ("trees", "forest", "mixed"):
            assert 0 < feature_set.n_rows <= p.rows, name
    if "trees" in made.sets:
        assert 0 < made.of("trees", "n_columns") <= shape.n_columns and made.of("trees", "n_leaves") > 1
    return made


def check_growth(sizes, grows=(), falls=()):
    for name in grows:
        assert all(a.counts.get(name, 0) <= b.counts.get(name, 0) for a, b in pairwise(sizes)), name
    for name in falls:
        assert all(a.counts.get(name, 0) >= b.counts.get(name, 0) for a, b in pairwise(sizes)), name


@settings(max_examples=300, deadline=None, derandomize=True)
@given(shapes(), shapes(), st.floats(1 / 1024, 1024), st.booleans())
def test_sizes_follow_from_the_shape_and_the_effort_alone(shape, other, effort, plain):
    made = check_sizes(shape, effort, plain)
    check_sizes(other)
    again = Sizes(shape, effort, plain)
    assert again.plan == made.plan and again.counts == made.counts
    assert make_plan(shape) == make_plan(shape, 1.0)


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
def test_sizes_for_extreme_shapes(shape, effort):
    check_sizes(shape, effort)


def cells(made):
    """The cells that the parts of a fit work through: scaled, visited, compared with landmarks, and grown trees on."""
    shape, p, scored = made.shape, made.plan, made.sample + made.shape.n_test  # rows whose similarities are taken
    n_trees, n_rows, n_columns = (made.of("trees", name) for name in ("n_trees", "n_rows", "n_columns"))
    return {
        "cleaned and scaled": p.looked_at * shape.cells_per_row,
        "visited": made.of("linear", "visits") * shape.cells_per_row,
        "similarities": scored * made.landmarks,
        "to take similarities of": scored * made.landmarks * shape.n_columns,
        "ranked": scored * min(made.most_ranked, shape.n_many) * max(made.landmarks, 100),
        "of trees": n_trees * n_rows * n_columns,
        "of a forest": made.of("forest", "n_trees") * made.of("forest", "n_rows") * shape.n_columns**0.5,
    }


MOST_CELLS = {
    "cleaned and scaled": 1e8,
    "visited": 1e8,
    "similarities": 1e7,
    "to take similarities of": 5e9,
    "ranked": 5e8,
    "of trees": 2e7,
    "of a forest": 1e7,
}


@settings(max_examples=300, deadline=None, derandomize=True)
@given(shapes(), EFFORTS)
@example(Shape(10**7, 10**6, 30, 30, 30.0), 1.0)
@example(Shape(10**7, 5 * 10**6, 999, 999, 999.0), 1.0)
@example(Shape(1000, 100, 10**5, 10**5, 1e5), 1.0)
@example(Shape(500_000, 5_000, 3_000, 0, 11.6, True), 1.0)
def test_no_part_works_through_more_cells_than_the_effort_allows(shape, effort):
    """Whatever the shape. Of the rows that it learns from, each part has at least 200, however wide they are.

    Where dense rows are few and not wide, they are visited so often that it may be ten times as many cells.
    """
    made, scale = Sizes(shape, effort), max(effort, effort**0.5, 1 / 4)
    few = shape.n_rows < shape.n_columns and not (shape.sparse or made.plan.wide)
    for part, count in cells(made).items():
        most = MOST_CELLS[part] * (10 if few and part == "visited" else 1)
        assert count <= max(most * scale, 3 * 200 * shape.cells_per_row), part


@pytest.mark.parametrize(
    "vary, others, grows, falls",
    [
        ("n_rows", {"n_pos": 100}, ["rows", "sample"], []),
        ("n_pos", {}, ["rows"], ["folds"]),
        ("n_columns", {"n_rows": 20_000, "n_pos": 100}, [], ["landmarks", "folds"]),
        ("cells_per_row", {"n_pos": 10_000}, [], ["rows"]),
    ],
)
def test_sizes_grow_and_shrink_with_the_data(vary, others, grows, falls):
    values = [int(10**k) for k in np.linspace(0.4, 5.6, 40)]
    made = [Sizes(Shape(**{**USUAL, **others, vary: value})) for value in values]
    check_growth(made, grows, falls)
    assert all(made[0].counts[name] != made[-1].counts[name] for name in [*grows, *falls])


def test_data_is_small_up_to_some_rows_and_wide_from_some_columns_on():
    small = [make_plan(Shape(**{**USUAL, "n_pos": 100, "n_rows": int(10**k)})).small for k in np.linspace(2.5, 6, 30)]
    wide = [make_plan(Shape(20_000, 100, d, d, float(d))).wide for d in np.logspace(0, 5, 30).astype(int).tolist()]
    assert small == sorted(small, reverse=True) and wide == sorted(wide)
    assert {*small, *wide} == {False, True} == set(small) == set(wide)


@pytest.mark.parametrize("n_pos", [299, 300])
def test_many_rows_to_score_leave_time_for_fewer_landmarks(n_pos):
    """Down to some, and then none: a handful would not be worth the time."""
    made = [Sizes(Shape(int(10**k), n_pos, 30, 30, 30.0)) for k in np.linspace(3.5, 7, 90)]
    check_growth(made, falls=["landmarks"])
    assert made[0].landmarks > 300 and made[-1].landmarks == 0
    assert min(of.landmarks for of in made if of.landmarks) > 50


def test_trees_are_grown_where_both_classes_have_many_rows_and_similarities_then_are_fewer():
    made = {n_pos: Sizes(Shape(5_000, n_pos, 5, 5, 5.0)) for n_pos in (1, 299, 300, 4_700, 4_701, 4_999)}
    with_trees = {n_pos for n_pos, sizes in made.items() if "trees" in sizes.sets}
    assert with_trees == {300, 4_700}
    assert all(made[n_pos].landmarks < made[1].landmarks / 2 for n_pos in with_trees)
    assert all(made[n_pos].of("trees", "n_rows") == 5_000 for n_pos in with_trees)
    assert "trees" not in Sizes(Shape(3_000, 1_500, 5, 5, 5.0)).sets  # too few rows


def test_trees_look_at_all_columns_or_if_they_are_many_at_some_of_them():
    """Either way at about as many cells; and where they see less, similarities count more."""
    made = [Sizes(Shape(6_000, 2_000, d, d, float(d))) for d in (10, 100, 199, 201, 999)]
    seen = [sizes.of("trees", "n_columns") for sizes in made]
    assert seen[:3] == [10, 100, 199] and seen[3] == seen[4] < 100
    assert all(sizes.of("trees", "n_rows") * d <= plan.TREE_CELLS for sizes, d in zip(made, seen))
    assert made[3].of("mixed", "visits") > 1.5 * made[2].of("mixed", "visits")
    assert made[3].landmarks > 1.5 * made[2].landmarks


def test_a_forest_is_grown_where_there_are_no_boosted_trees_and_effort_for_it():
    for n_rows, n_pos, has_trees in ((5_000, 299, False), (5_000, 300, True), (2_000, 900, False)):
        shape = Shape(n_rows, n_pos, 16, 16, 16.0)
        assert ("forest" in Sizes(shape).sets) == (not has_trees)
        assert "forest" not in Sizes(shape, 0.5).sets
        n = [Sizes(shape, effort).of("forest", "n_trees") for effort in (1, 2, 4, 1024)]
        assert has_trees or (n[:3] == [n[0], 2 * n[0], 4 * n[0]] and n[3] < 1024)


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
            made, few = Sizes(shape), Sizes(replace(shape, n_pos=plan.MANY_ROWS - 1))
            assert list(made.sets) == ["trees", "linear"] and list(few.sets) == ["linear"]
            assert made.plan.rows <= made.plan.visits <= 3 * made.plan.rows
            assert made.sets["trees"].wide and made.of("trees", "n_columns") < 100
            assert made.sets["linear"].in_place and made.sets["linear"].each
            assert made.plan.looked_at < made.plan.rows


def test_columns_are_made_even_where_many_are_rare_and_both_classes_have_many_rows():
    for n_pos, n_two, even in ((300, 200, True), (299, 200, False), (300, 199, False), (4_701, 200, False)):
        assert ("even" in Sizes(Shape(5_000, n_pos, n_two + 7, 7, n_two + 7.0)).sets) == even
    for n_pos, even in ((300, True), (299, False)):
        assert ("even" in Sizes(Shape(5_000, n_pos, 9_000, 0, 50.0, True)).sets) == even
    assert "even" not in Sizes(Shape(60_000, 6_000, 1_000, 0, 1e3)).sets


@settings(max_examples=100, deadline=None, derandomize=True)
@given(shapes(), EFFORTS)
def test_the_scaled_columns_alone_are_learned_from_on_no_fewer_rows(shape, effort):
    plain, made = Sizes(shape, effort, plain=True), Sizes(shape, effort)
    assert list(plain.sets) == ["linear"] and plain.sets["linear"].versions == ("scaled",)
    assert plain.plan.rows == made.plan.rows and plain.plan.wide == made.plan.wide
    assert plain.of("linear", "visits") >= made.of("linear", "visits")


def test_blocks_of_sparse_rows_are_larger_and_blocks_of_wide_rows_are_paired_with_fewer():
    sparse = Shape(20_000, 2_000, 10**5, 0, 50.0, True)
    few, wide = Shape(20_000, 2_000, 100, 0, 100.0), Shape(20_000, 2_000, 10**5, 0, 1e5)
    sparse, few, wide = (make_plan(shape) for shape in (sparse, few, wide))
    assert sparse.block > few.block == wide.block
    assert sparse.draw / sparse.block == few.draw / few.block > wide.draw / wide.block


# --- the effort ------------------------------------------------------------------------------------------------------

ALWAYS = ["rows", "looked_at", "folds", "trees.n_leaves", "forest.n_trees", "forest.n_rows"]


@settings(max_examples=500, deadline=None, derandomize=True)
@given(shapes(), EFFORTS, EFFORTS)
@example(Shape(60, 15, 4, 4, 4.0), 1 / 16, 1024)
@example(Shape(5_000, 500, 20, 20, 20.0), 1 / 16, 1 / 4)
@example(Shape(10**5, 10**4, 30, 30, 30.0), 1 / 4, 1)
@example(Shape(20_000, 5_000, 3_000, 3_000, 3_000.0), 1 / 4, 4)
def test_more_effort_never_means_less(shape, effort, other):
    """Of no size of any set, as long as trees look at the same columns."""
    less, more = made = [Sizes(shape, e) for e in sorted((effort, other))]
    check_growth(made, grows=ALWAYS)
    assert len({(of.plan.wide, of.plan.small, "even" in of.sets, of.plan.buffer) for of in made}) == 1
    assume(less.plan.tree_columns == more.plan.tree_columns)
    assert set(less.sets) <= set(more.sets)
    check_growth(made, grows=less.counts)


@pytest.mark.parametrize("small", [False, True])
def test_more_effort_is_spent_on_more_of_everything(small):
    usual = {**USUAL, "n_rows": 2000, "n_pos": 400} if small else {**USUAL, "n_rows": 10**5, "n_pos": 10**4}
    made = [Sizes(Shape(**usual), effort) for effort in np.geomspace(1 / 16, 1024, 40)]
    check_growth(made, grows=made[0].counts)
    grown = {"visits", "sample", "landmarks", "linear.visits", "mixed.visits", "mixed.n_rows"}
    grown |= {"forest.n_trees"} if small else {"trees.n_trees", "trees.n_leaves", "trees.n_rows", "rows"}
    assert all(made[0].counts.get(name, 0) < made[-1].counts[name] for name in grown)
    assert made[0].of("mixed", "visits") < made[-1].of("mixed", "visits") / 90


def test_four_times_the_effort_is_about_four_times_the_work():
    """Of a set of features: its rows times landmarks, and the rows visited times landmarks."""
    for n_rows, n_pos, d in ((10**5, 10**4, 30), (300_000, 30_000, 100), (20_000, 2000, 10)):
        shape = Shape(n_rows, n_pos, d, d, float(d))
        for effort in (1, 4, 16):
            once, more = Sizes(shape, effort), Sizes(shape, 4 * effort)
            for count in ("n_rows", "visits"):
                n, of_more = once.of("mixed", count) * once.landmarks, more.of("mixed", count) * more.landmarks
                assert 2 < of_more / n < 8.5


@settings(max_examples=200, deadline=None, derandomize=True)
@given(shapes(), st.floats(1, 256), st.floats(1, 4))
def test_work_grows_no_faster_than_the_effort(shape, effort, factor):
    """But where it takes the fit over a bound: trees see more columns, or there are landmarks. More trees on more rows
    may take a little more than their share."""
    less, more = made = [Sizes(shape, e) for e in (effort, factor * effort)]
    assume(len({(of.plan.tree_columns, of.landmarks > 0) for of in made}) == 1)
    for part, power in ("similarities", 1), ("of trees", 1.5):
        assert cells(more)[part] <= 1.3 * factor**power * cells(less)[part], part
    for name in ("rows", "visits"):
        assert more.counts[name] <= 1.01 * factor * less.counts[name]
