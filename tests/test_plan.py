"""How much a fit does, by the shape of the data, and which rows it takes."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.ensemble import HistGradientBoostingClassifier

from tenfold import lanes, plan
from tenfold.columns import Columns
from tenfold.features import LinearFeatures, Versions
from tenfold.plan import PRICES, Shape, costs, make_plan, quantities, thin
from tenfold.trees import TreeFeatures, Trees

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

USUAL = {"n_rows": 10**6, "n_pos": 10**3, "n_columns": 100, "n_many": 100, "cells_per_row": 100.0}
FREE = dict.fromkeys(PRICES, 0.0)  # a price list by which cost never binds


@st.composite
def shapes(draw):
    n_rows, n_columns, sparse = draw(st.integers(2, 10**7)), draw(st.integers(1, 10**5)), draw(st.booleans())
    n_pos = draw(st.integers(1, n_rows - 1))
    n_many = 0 if sparse else draw(st.integers(0, n_columns))
    cells = draw(st.floats(1, n_columns)) if sparse else float(n_columns)
    return Shape(n_rows, n_pos, n_columns, n_many, cells, sparse)


BUDGETS = st.floats(1e-4, 1e3)
NO_SMALL_BUDGETS = st.floats(plan.SMALL_BUDGET, 1e3)
PRICE_LISTS = st.fixed_dictionaries({name: st.floats(0, 1e-3) for name in PRICES}) | st.sampled_from([PRICES, FREE])


@pytest.fixture
def free(monkeypatch):
    monkeypatch.setattr(plan, "PRICES", FREE)


def check_plan(made, shape, budget=1.0):
    least = budget < plan.SMALL_BUDGET
    assert 1 <= made.rows <= shape.n_rows
    assert 0 <= made.landmarks <= made.sample <= made.rows
    assert made.visits >= 1 and made.folds > 1 and 0 <= made.most_ranked <= plan.MOST_CURVES
    counts = (made.rows, made.sample, made.landmarks, made.visits, made.block, made.folds, made.most_ranked)
    counts = (*counts, made.draw, made.buffer, made.looked_at)
    assert made.looked_at == (min(made.rows, plan.WIDE_LOOKED_AT) if made.wide else made.rows)
    assert made.draw == made.block * (plan.WIDE_DRAWN if made.wide else plan.DRAWN)
    assert all(type(n) is int for n in (*counts, made.trees, made.leaves, made.tree_rows, made.tree_columns))
    assert made.leaves >= (plan.WIDE_LEAVES if made.wide else plan.LEAVES)
    assert all(type(flag) is bool for flag in (made.small, made.wide))
    assert made.trees >= 0 and 0 <= made.tree_rows <= made.rows and 1 <= made.tree_columns <= shape.n_columns
    assert made.trees == 0 or made.trees >= (plan.FEWEST_OF_ALL if least else plan.FEWEST_TREES)
    assert made.trees == 0 or not shape.sparse
    chosen = plan.FEWEST_COLUMNS if least else plan.TREE_COLUMNS
    assert made.trees == 0 or not made.wide or made.tree_columns == chosen
    assert made.forest == 0 or not (shape.sparse or made.wide or made.trees)
    assert type(made.forest) is type(made.forest_rows) is int and 0 <= made.forest_rows <= made.rows
    assert made.forest == 0 or (made.forest >= plan.FEWEST_FOREST and made.forest_rows >= min(shape.n_rows, 200))
    assert made.rows >= min(shape.n_rows, 200)  # however many cells, it is not nothing
    assert made.sample * made.landmarks * 4 < 2**30 * max(budget, 1)  # bytes of features
    assert made.landmarks == 0 or not (shape.sparse or made.wide)


def check_growth(plans, grows=(), falls=()):
    for name in grows:
        assert all(getattr(a, name) <= getattr(b, name) for a, b in pairwise(plans)), name
    for name in falls:
        assert all(getattr(a, name) >= getattr(b, name) for a, b in pairwise(plans)), name


@settings(max_examples=300, deadline=None, derandomize=True)
@given(shapes(), shapes(), BUDGETS, PRICE_LISTS)
def test_a_plan_follows_from_the_shape_and_the_budget_alone_and_fits_them(shape, other, budget, prices):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "PRICES", prices)
        made = make_plan(shape, budget)
        check_plan(made, shape, budget)
        check_plan(make_plan(other), other)
        assert make_plan(shape, budget) == made
        assert make_plan(shape) == make_plan(shape, 1.0)
        in_row_space = plan.has_few_rows(made.rows, shape.n_columns, plan.FEW_ROWS)
        assert made.block == (128 if shape.sparse and not in_row_space else 32)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(shapes(), BUDGETS, PRICE_LISTS)
def test_a_plan_costs_no_more_than_it_may_or_it_is_the_smallest(shape, budget, prices):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "PRICES", prices)
        made = make_plan(shape, budget)
        seconds = costs(shape, made)
        assert seconds.keys() == prices.keys()
        assert all(np.isfinite(s) and s >= 0 for s in seconds.values())
        kind = plan.Kind(made.wide, budget < plan.SMALL_BUDGET)
        target, smallest = plan.TARGET * budget, plan._cost(shape, plan.LEAST_SCALE * min(budget, 1), kind)
        allowed = max(target, smallest + target / 2) * (1 + 1e-9)
        assert sum(costs(shape, replace(made, forest=0)).values()) <= allowed
        assert sum(seconds.values()) <= allowed * (plan.ROOM if made.forest else 1)


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
def test_plans_for_extreme_shapes(shape, free):
    made = make_plan(shape)
    check_plan(made, shape)
    assert made.rows * min(shape.cells_per_row, 1000) <= 10**8  # there is an end to what is learned from


@pytest.mark.parametrize(
    "vary, others, grows, falls",
    [
        ("n_rows", {"n_pos": 100}, ["rows", "sample"], ["small"]),
        ("n_pos", {}, ["rows"], ["folds"]),
        ("n_columns", {"n_rows": 20_000, "n_pos": 100}, ["wide"], ["landmarks", "folds"]),
        ("cells_per_row", {"n_pos": 10_000}, [], ["rows"]),
    ],
)
def test_plans_grow_and_shrink_with_the_data(vary, others, grows, falls, free):
    values = [int(10**k) for k in np.linspace(0.4, 5.6, 40)]
    plans = [make_plan(Shape(**{**USUAL, **others, vary: value})) for value in values]
    check_growth(plans, grows, falls)
    assert all(getattr(plans[0], name) != getattr(plans[-1], name) for name in [*grows, *falls])


@pytest.mark.parametrize("n_pos, most", [(299, 900), (300, int(900 * plan.SIMILAR))])
def test_many_rows_to_score_leave_time_for_fewer_landmarks(n_pos, most, free):
    shapes = [Shape(**{**USUAL, "n_rows": int(10**k), "n_pos": n_pos}) for k in np.linspace(3.5, 7, 40)]
    plans = [make_plan(shape) for shape in shapes]
    check_growth(plans, falls=["landmarks"])
    assert plans[0].landmarks == most and plans[-1].landmarks == 0


def test_trees_are_grown_where_both_classes_have_many_rows_and_similarities_then_are_fewer(free):
    for n_pos in (1, 299, 300, 4_700, 4_701, 4_999):
        made, has_trees = make_plan(Shape(5_000, n_pos, 5, 5, 5.0)), 300 <= n_pos <= 4_700
        assert made.trees == plan.TREES * has_trees
        assert made.landmarks == int(900 * (plan.SIMILAR if has_trees else 1))
        assert made.tree_rows == made.rows == 5_000
        assert make_plan(Shape(3_000, n_pos // 2, 5, 5, 5.0)).trees == 0


def test_trees_are_grown_on_so_many_cells_of_all_columns_or_of_some(free):
    for d, columns in ((10, 10), (100, 100), (199, 199), (201, plan.TREE_COLUMNS), (999, plan.TREE_COLUMNS)):
        made = make_plan(Shape(6_000, 2_000, d, d, float(d)))
        assert made.trees == plan.TREES and made.tree_columns == columns
        assert made.tree_rows == min(made.rows, int(plan.TREE_CELLS / columns))
        similar = plan.SIMILAR if columns == d else plan.SIMILAR_OF_MANY
        assert made.visits == int(14_000 * similar) and made.landmarks <= 900 * similar
    for d, columns in ((100, 100), (249, 249), (251, plan.TREE_COLUMNS)):
        made = make_plan(Shape(4_000, 2_000, d, d, float(d)))
        assert made.tree_rows == made.rows == 4_000 and made.tree_columns == columns


def test_a_forest_is_grown_where_there_are_no_boosted_trees_and_there_is_room(free):
    for n_rows, n_pos, has_trees in ((5_000, 299, False), (5_000, 300, True), (2_000, 900, False)):
        made = make_plan(Shape(n_rows, n_pos, 16, 16, 16.0))
        assert made.forest == plan.FOREST * (not has_trees)
        assert made.forest_rows == (0 if has_trees else min(n_rows, plan.FOREST_CELLS // 4))
        assert make_plan(Shape(n_rows, n_pos, 16, 16, 16.0), 0.5).forest == 0


@pytest.mark.parametrize("budget", [1, 6])
@pytest.mark.parametrize("price", [1e-9, 1e-4, 2e-3, 4e-3, 1e-2, 1])
def test_a_forest_takes_no_more_than_the_room_that_is_left(monkeypatch, price, budget):
    """All else is planned as if there were none, so that it never does harm."""
    shape = Shape(2_000, 100, 16, 16, 16.0)
    without = {**PRICES, "forest": 1e9}
    monkeypatch.setattr(plan, "PRICES", without)
    lean = make_plan(shape, budget)
    monkeypatch.setattr(plan, "PRICES", {**PRICES, "forest": price, "cells of a forest": 0})
    made = make_plan(shape, budget)
    assert lean.forest == 0 and replace(made, forest=0, forest_rows=0) == lean
    seconds, allowed = sum(costs(shape, made).values()), plan.ROOM * plan.TARGET * budget
    assert seconds <= allowed
    room = allowed - sum(costs(shape, lean).values())
    if room / price < plan.FEWEST_FOREST:
        assert made.forest == 0
    elif room / price > 2 * plan.FOREST * budget:
        assert made.forest == plan.FOREST * budget
    else:
        assert made.forest in (0, plan.FOREST * budget) or seconds > 0.9 * allowed


def test_data_is_wide_if_it_has_too_many_cells_and_columns_and_is_dense(free):
    for n_rows, n_columns, wide in (
        (10**6, 999, False),
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
            assert made.trees == plan.WIDE_TREES and made.tree_columns == plan.TREE_COLUMNS and few.trees == 0


def test_too_many_rows_for_all_but_the_columns_are_too_many_for_trees(monkeypatch):
    monkeypatch.setattr(plan, "PRICES", {**FREE, "cells to clean and scale": 1e-7})
    shape = Shape(10**7, 10**6, 30, 30, 30.0)
    assert make_plan(shape).wide and make_plan(shape).trees == 0


def test_where_there_is_least_time_trees_are_fewest():
    shape = Shape(20_000, 2_000, 2_000, 2_000, 2_000.0)
    plans = [make_plan(shape, 1 / 2**i) for i in range(6)]
    assert all(made.trees >= plan.FEWEST_TREES and made.tree_columns == plan.TREE_COLUMNS for made in plans[:5])
    assert (plans[5].trees, plans[5].tree_columns) == (plan.FEWEST_OF_ALL, plan.FEWEST_COLUMNS)
    assert sum(costs(shape, plans[5]).values()) < 0.75 * sum(costs(shape, plans[4]).values())


def test_columns_are_made_even_where_many_are_rare_and_both_classes_have_many_rows(free):
    for n_pos, n_two, even in ((300, 200, True), (299, 200, False), (300, 199, False), (4_701, 200, False)):
        assert make_plan(Shape(5_000, n_pos, n_two + 7, 7, n_two + 7.0)).even == even
    for n_pos, even in ((300, True), (299, False)):
        assert make_plan(Shape(5_000, n_pos, 9_000, 0, 50.0, True)).even == even
    assert not make_plan(Shape(60_000, 6_000, 1_000, 0, 1e3)).even


def test_another_set_of_columns_is_more_to_visit():
    shape = Shape(5_000, 500, 300, 10, 300.0)
    made = make_plan(shape)
    with_it, without = quantities(shape, made), quantities(shape, replace(made, even=False))
    more = {name for name in PRICES if with_it[name] > without[name]}
    assert made.even and more == {"steps", "cells in steps", "products", "held-out products"}
    visits, lanes = max(made.visits, made.rows), plan.STEP_SIZES * made.folds
    assert with_it["products"] - without["products"] == pytest.approx(visits * 300 * lanes)
    assert with_it["held-out products"] - without["held-out products"] == pytest.approx(made.rows * 300 * lanes)


def test_weights_in_sparse_steps_are_those_of_the_columns_that_are_learned_from():
    few, many, most = (
        Shape(20_000, 2_000, d, 0, 50.0, True) for d in (plan.SPARSE_COLUMNS // 2, plan.SPARSE_COLUMNS, 10**6)
    )
    of_few, of_many, of_most = (quantities(s, make_plan(few))["weights in sparse steps"] for s in (few, many, most))
    assert 0 < of_few == of_many / 2 and of_many == of_most
    rows = quantities(replace(most, n_rows=1_000, n_pos=100), make_plan(replace(most, n_rows=1_000, n_pos=100)))
    assert rows["sparse steps"] == rows["weights in sparse steps"] == 0 < rows["steps"]


# --- the budget ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("small", [False, True])
def test_a_larger_budget_is_spent_on_more_of_everything(small, free):
    usual = {**USUAL, "n_rows": 2000, "n_pos": 400} if small else {**USUAL, "n_rows": 10**5, "n_pos": 10**4}
    plans = [make_plan(Shape(**usual), budget) for budget in np.geomspace(plan.SMALL_BUDGET, 500, 40)]
    check_growth(plans, grows=["rows", "sample", "landmarks", "visits", "trees", "leaves", "tree_rows", "folds"])
    assert plans[0].visits < plans[-1].visits / 90 and plans[0].sample < plans[-1].sample
    assert small or plans[0].rows < plans[-1].rows
    assert small or plan.FEWEST_TREES == plans[0].trees < plans[-1].trees == 4 * plan.TREES
    assert len({(made.small, made.block) for made in plans}) == 1
    assert {made.folds for made in plans} == ({6} if small else {3, 5})


@settings(max_examples=300, deadline=None, derandomize=True)
@given(shapes(), NO_SMALL_BUDGETS, NO_SMALL_BUDGETS)
def test_more_budget_never_means_less_where_cost_does_not_bind(shape, budget, other):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "PRICES", FREE)
        check_growth(
            [make_plan(shape, b) for b in sorted((budget, other))],
            grows=["rows", "sample", "landmarks", "visits", "tree_rows"],
        )


def test_four_times_the_budget_is_about_four_times_the_work(free):
    """Of a set of features: its rows times landmarks, and the rows visited times landmarks."""
    for n_rows, n_pos, d in ((10**5, 10**4, 30), (300_000, 30_000, 100), (20_000, 2000, 10)):
        shape = Shape(n_rows, n_pos, d, d, float(d))
        once, more = make_plan(shape), make_plan(shape, 4.0)
        for count in ("sample", "visits"):
            ratio = getattr(more, count) * more.landmarks / (getattr(once, count) * once.landmarks)
            assert 2 < ratio < 8.5


def test_where_cost_binds_less_is_done_and_nearly_all_of_the_target_is_spent(monkeypatch):
    monkeypatch.setattr(plan, "PRICES", {**FREE, "products": 1e-8})
    shape = Shape(10**5, 10**4, 30, 30, 30.0)
    made, most = make_plan(shape), plan._scaled_plan(shape, 1.0, plan.Kind(wide=False, least=False))
    assert made.visits < most.visits and made.rows < most.rows and made.landmarks < most.landmarks
    assert 0.95 * plan.TARGET < sum(costs(shape, made).values()) <= plan.TARGET


# --- what it costs ---------------------------------------------------------------------------------------------------


def test_costs_are_quantities_times_prices(monkeypatch):
    shape = Shape(5000, 400, 20, 10, 20.0)
    made = make_plan(shape)
    amounts = quantities(shape, made)
    assert amounts.keys() == PRICES.keys()
    prices = {name: float(i) for i, name in enumerate(PRICES)}
    monkeypatch.setattr(plan, "PRICES", prices)
    assert costs(shape, made) == {name: prices[name] * amounts[name] for name in prices}


def test_there_are_as_many_step_sizes_as_lanes_have():
    assert plan.STEP_SIZES == len(lanes.STEP_SIZES)


@pytest.mark.parametrize("n_pos", [20, 200])
@pytest.mark.parametrize("n, n_many, n_two", [(400, 7, 3), (400, 200, 0), (60, 30, 100), (400, 0, 5), (80, 1100, 9)])
def test_cells_of_curves_and_products_of_rows_are_as_many_as_features_have(n, n_many, n_two, n_pos):
    rng = np.random.RandomState(0)
    Z = np.column_stack([rng.rand(n, n_many), rng.rand(n, n_two) < 0.4]).astype(np.float32)
    d = n_many + n_two
    shape = Shape(n, n_pos, d, n_many, float(d))
    made = replace(make_plan(shape), rows=n)
    columns = Columns(made.most_ranked).fit(Z, n_pos)
    curves, amounts = columns.curves(Z).shape[1], quantities(shape, made)
    assert amounts["cells of ranks"] == pytest.approx((n + n / 9) * n_many * columns.ranked_)
    assert amounts["cells of ranks"] + amounts["cells of steps"] == pytest.approx((n + n / 9) * curves)
    features = LinearFeatures("standard", "curves")
    F = features.fit_transform(Versions(columns, Z))
    in_row_space = features.rows_ is not None
    assert amounts["products of rows"] == in_row_space * n**2 * (d + curves + n)
    assert F.shape == (n, n if in_row_space else d + curves)


def nothing_of(shape):
    return {name for name, amount in quantities(shape, make_plan(shape)).items() if not amount}


def test_what_is_not_done_costs_nothing():
    none = nothing_of(Shape(10**4, 500, 3000, 0, 9.0, True))
    of_trees, choice = {name for name in PRICES if "trees" in name}, "cells to choose columns by"
    assert len(of_trees) == 4
    assert {
        "cells of ranks",
        "cells to sort",
        "steps",
        "raw cells to score",
        "Euclidean distances",
        choice,
        *of_trees,
    } <= none
    assert "sparse steps" not in none
    none = nothing_of(Shape(5000, 500, 9, 0, 9.0))
    assert {"city-block distances", "cells of ranks", "cells of steps", "cells to sort", "sparse steps"} <= none
    assert {choice, "raw cells to score", "products of rows"} <= none
    assert not {"Euclidean distances", "steps", "solved", *of_trees} & none
    of_forest = {name for name in PRICES if "forest" in name}
    assert of_trees <= nothing_of(Shape(5000, 50, 9, 9, 9.0)) and len(of_forest) == 3
    assert of_forest <= none and not of_forest & nothing_of(Shape(2000, 50, 9, 9, 9.0))


@pytest.mark.parametrize("d, looked_at", [(9, 9), (300, plan.TREE_COLUMNS)])
def test_trees_cost_by_how_many_are_grown_on_how_many_cells(monkeypatch, d, looked_at):
    """As they are when they are grown: trees, rows times columns to grow them on, rows to score."""
    n, grown, scored = 3_600, [], []
    rng = np.random.RandomState(0)
    Z, y = rng.rand(n, d).astype(np.float32), rng.permutation(np.where(np.arange(n) < 320, 1, -1))
    shape = Shape(n, 320, d, d, float(d))
    made = replace(make_plan(shape), trees=2, tree_rows=n)
    score, fit = Trees.score, HistGradientBoostingClassifier.fit
    monkeypatch.setattr(Trees, "score", lambda self, Z: scored.append(len(Z) * len(self.root)) or score(self, Z))
    monkeypatch.setattr(HistGradientBoostingClassifier, "fit", lambda *a: grown.append(a[1].shape) or fit(*a))
    feature_set = TreeFeatures(made.trees, n_columns=made.tree_columns)
    feature_set.fit_transform(Versions(None, Z), y, lanes.inner_folds(y, made.folds, rng))
    feature_set.score(Versions(None, Z[: n // 9]), [1.0])
    amounts, rows = quantities(shape, made), sum(rows for rows, _ in grown)
    assert len(grown) == made.folds and len(feature_set.trees_.root) == amounts["trees"] > 0
    assert {columns for _, columns in grown} == {looked_at}
    assert amounts["cells to choose columns by"] == (n * d if looked_at < d else 0)
    assert amounts["columns of trees"] == amounts["trees"] * looked_at
    assert amounts["cells of trees"] == pytest.approx(rows * made.trees * looked_at, rel=1e-6)
    assert amounts["rows through trees"] == pytest.approx(sum(scored), rel=1e-6)


def test_a_set_of_one_feature_is_learned_from_on_as_many_rows_as_planned(monkeypatch):
    rng = np.random.RandomState(0)
    n, visited = 5_000, []
    y = np.where(np.arange(n) % 9, -1, 1)
    fold = lanes.inner_folds(y, 3, rng)
    learn = lanes.PairLearner.learn
    monkeypatch.setattr(
        lanes.PairLearner, "learn", lambda self, F, *a, **b: visited.append(F.shape) or learn(self, F, *a, **b)
    )
    for rows in (np.arange(n), np.arange(300)):
        F = (y + rng.randn(n)).astype(np.float32)[rows, None]
        ensemble = lanes.LaneEnsemble(9_000, rng).fit([(F, rows)], y, fold)
        assert sum(shape[0] for shape in visited) == min(plan.VISITS_OF_ONE, len(rows))
        assert ensemble.done_ == 1 and ensemble.weights_[0] > 0
        visited.clear()


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 90), st.integers(1, 90), st.integers(0, 99))
def test_fewer_thinned_rows_are_among_more_of_them(n_pos, n_neg, size, other, seed):
    """So all sets of features share the rows of the smallest."""
    y = np.random.RandomState(seed).permutation([1] * n_pos + [-1] * n_neg)
    few, many = (thin(y, n) for n in sorted((size, other)))
    assert np.isin(few, many).all()
