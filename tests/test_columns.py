"""Versions of scaled columns. Oracles: SciPy, scikit-learn, and loops over cells."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import rankdata
from sklearn.preprocessing import StandardScaler

from tenfold.columns import POSITIVES_PER_STEP, RANK_KNOTS, RANKED_ROWS, STEPS, Columns
from tenfold.plan import MOST_CURVES, MOST_STEPS

pytestmark = pytest.mark.filterwarnings("error")


MANY, TWO = [0, 1, 2], 3  # columns of Z
PLENTY = STEPS * POSITIVES_PER_STEP  # positives enough for all steps


def fit(Z, n_pos=PLENTY, most_ranked=np.inf):
    return Columns(most_ranked).fit(Z, n_pos)


# --- standardised, and as ranks --------------------------------------------------------------------------------------


def test_standard_columns_are_those_of_scikit_learn_and_clipped(Z):
    other = np.vstack([Z, 50 * Z, -50 * Z])
    expected = StandardScaler().fit(Z[:, MANY].astype(float)).transform(other[:, MANY])
    assert np.abs(expected).max() > 6
    found = fit(Z).standard(other)
    assert found.dtype == np.float32
    assert_allclose(found[:, MANY], np.clip(expected, -6, 6), rtol=1e-4, atol=1e-4)


def test_ranks_are_middle_ranks_while_each_row_may_have_a_knot(Z):
    assert len(Z) <= RANK_KNOTS
    ranks = rankdata(Z[:, MANY], "average", axis=0)
    found = fit(Z).rank(Z)
    assert found.dtype == np.float32
    assert_allclose(found[:, MANY], np.sqrt(12) * ((ranks - 0.5) / len(Z) - 0.5), atol=1e-5)
    assert_allclose(found[:, MANY].mean(axis=0), 0, atol=1e-5)
    assert_allclose(found[:, 0].var(), 1, atol=2 / len(Z))


@pytest.mark.parametrize("power", [1, 8])
def test_ranks_of_more_rows_than_knots_are_nearly_right_and_monotone(rng, power):
    n = RANKED_ROWS
    assert n > 10 * RANK_KNOTS
    Z = (rng.rand(n, 1) ** power).astype(np.float32)
    columns = fit(Z)
    exact = np.sqrt(12) * ((rankdata(Z[:, 0]) - 0.5) / n - 0.5)
    assert np.abs(columns.rank(Z)[:, 0] - exact).max() < np.sqrt(12) / (RANK_KNOTS - 1)
    grid = columns.rank(np.linspace(-1, 2, 5000, dtype=np.float32)[:, None])[:, 0]
    assert (np.diff(grid) >= 0).all()


@pytest.mark.parametrize("version", ["standard", "rank"])
def test_columns_of_two_values_are_minus_and_plus_one(Z, version):
    columns = fit(Z)
    assert_array_equal(getattr(columns, version)(Z)[:, TWO], np.where(Z[:, TWO] > 0, 1, -1))
    only_two = fit(Z[:, [TWO, -1]])
    assert_array_equal(getattr(only_two, version)(Z[:, [TWO, -1]]), np.where(Z[:, [TWO]] > 0, 1, -1))


@pytest.mark.parametrize("version", ["standard", "rank"])
def test_the_bias_and_other_constant_columns_are_left_out(Z, version):
    assert getattr(fit(Z), version)(Z).shape == (len(Z), 4)


@pytest.mark.parametrize("version", ["standard", "rank"])
def test_values_outside_the_training_rows_are_clamped(Z, version):
    columns = fit(Z)
    inside = getattr(columns, version)(Z)
    low, high = getattr(columns, version)(np.float32([[-1e6] * 5, [1e6] * 5]))
    if version == "rank":
        assert_array_equal(low, inside.min(axis=0))
        assert_array_equal(high, inside.max(axis=0))
    else:
        assert_array_equal(low, [-6, -6, -6, -1])
        assert_array_equal(high, [6, 6, 6, 1])


@pytest.mark.parametrize("version", ["standard", "rank"])
def test_columns_learn_from_the_rows_fitted_only(Z, version):
    columns = fit(Z[:60])
    before = getattr(columns, version)(Z[:60])
    both = getattr(columns, version)(np.vstack([Z[:60], 9 * Z]))
    assert_array_equal(both[:60], before)


@pytest.mark.parametrize("version", ["standard", "rank", "curves"])
def test_float64_gives_what_float32_gives(Z, version):
    columns = fit(Z)
    for rows in (Z, Z[::3] + np.float32(0.01)):
        double = getattr(columns, version)(rows.astype(np.float64))
        assert_allclose(double, getattr(columns, version)(rows), rtol=1e-5, atol=1e-5)


def test_without_ranks_there_are_none_and_all_else_is_the_same(Z):
    ranked, unranked = fit(Z, most_ranked=3), fit(Z, most_ranked=2)
    assert ranked.ranked_ and not unranked.ranked_ and unranked.knots_ is None
    assert_array_equal(unranked.standard(Z), ranked.standard(Z))
    assert_array_equal(unranked.curves(Z), ranked.curves(Z)[:, len(MANY) :])


def test_only_columns_of_two_values_have_no_ranks_and_no_curves(Z):
    columns = fit(Z[:, [TWO, -1]])
    assert not columns.ranked_
    assert columns.curves(Z[:, [TWO, -1]]).shape == (len(Z), 0)


def test_ranks_and_steps_follow_from_the_first_rows(rng):
    Z = rng.rand(RANKED_ROWS + 500, 2).astype(np.float32)
    columns, first = fit(Z), fit(Z[:RANKED_ROWS])
    assert_array_equal(columns.rank(Z), first.rank(Z))
    assert_array_equal(columns.curves(Z), first.curves(Z))
    assert (columns.mean_ != first.mean_).any()


# --- curves ----------------------------------------------------------------------------------------------------------


def naive_steps(Z, other, n_steps):
    """For each column of many values, and each of its quantiles below its greatest value: who is above that?"""
    steps = []
    for j in range(Z.shape[1]):
        values = sorted(Z[:, j].tolist())
        if len(set(values)) < 3:
            continue
        quantiles = {values[k * (len(values) - 1) // (n_steps + 1)] for k in range(1, n_steps + 1)}
        for quantile in sorted(quantiles - {values[-1]}):
            steps.append([2 / np.sqrt(n_steps) if z > quantile else 0 for z in other[:, j]])
    return np.array(steps).T


@pytest.mark.parametrize("n_pos, n_steps", [(0, 1), (9, 1), (25, 2), (100, 10), (PLENTY, STEPS), (10**6, STEPS)])
def test_curves_are_ranks_and_steps(Z, n_pos, n_steps):
    other = np.vstack([Z, Z[:20] * np.float32(1.3), -Z[:20], Z[:20] - np.float32(0.05)])
    columns = fit(Z, n_pos)
    curves = columns.curves(other)
    expected = naive_steps(Z, other, n_steps)
    assert curves.dtype == np.float32
    assert_array_equal(curves[:, : len(MANY)], columns.rank(other)[:, MANY])
    assert_allclose(curves[:, len(MANY) :], expected, rtol=1e-6)
    assert len(MANY) <= expected.shape[1] <= n_steps * len(MANY)


def test_every_step_tells_training_rows_apart(Z):
    steps = fit(Z).curves(Z)[:, len(MANY) :]
    assert (np.ptp(steps, axis=0) > 0).all()


def test_all_steps_together_weigh_about_as_much_as_a_column(rng):
    Z = rng.rand(2000, 1).astype(np.float32)
    for n_pos in (10, 40, PLENTY):
        steps = fit(Z, n_pos).curves(Z)[:, 1:]
        assert 0.6 < steps.var(axis=0).sum() < 1.05


@pytest.mark.parametrize("d", [MOST_STEPS // STEPS + 1, MOST_STEPS // 3 + 1, MOST_CURVES, MOST_CURVES + 1])
@pytest.mark.parametrize("most_ranked", [10, MOST_CURVES, np.inf])
def test_the_more_columns_the_fewer_steps_and_beyond_a_bound_no_curves(rng, d, most_ranked):
    Z = rng.rand(50, d).astype(np.float32)
    columns = fit(Z, most_ranked=most_ranked)
    curves = columns.curves(Z)
    n_ranks = d if d <= min(most_ranked, MOST_CURVES) else 0
    assert columns.ranked_ == (n_ranks > 0)
    n_steps = MOST_STEPS // d if d <= MOST_CURVES else 0
    assert curves.shape == (50, n_ranks + n_steps * d) and n_steps * d <= MOST_STEPS
    if n_steps:
        assert_allclose(curves[:, n_ranks:], naive_steps(Z, Z, n_steps), rtol=1e-6)


# --- kept in a file --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", [[0, 1, 2, 3, 4], [0, 1, 2], [3, 4]], ids=["mixed", "many values", "two values"])
@pytest.mark.parametrize("most_ranked", [0, np.inf])
def test_columns_made_from_their_arrays_are_the_same(Z, which, most_ranked):
    Z = Z[:, which]
    columns = fit(Z, most_ranked=most_ranked)
    again = Columns.from_arrays({name: np.array(A) for name, A in columns.arrays().items()})
    assert again.ranked_ == columns.ranked_
    for name in ("varying_", "many_"):
        assert_array_equal(getattr(again, name), getattr(columns, name))
    for version in ("standard", "curves", "rank")[: 2 + columns.ranked_]:
        for rows in (Z, Z.astype(np.float64)):
            found, expected = getattr(again, version)(rows), getattr(columns, version)(rows)
            assert found.dtype == expected.dtype
            assert_array_equal(found, expected)
