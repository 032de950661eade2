"""Versions of scaled rows, and their distances. Oracles: SciPy, scikit-learn, and loops over cells."""

import gc
import weakref
from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from scipy.stats import rankdata
from sklearn.preprocessing import StandardScaler

from tenfold.features import rows
from tenfold.features.rows import (
    MOST_CURVES,
    MOST_STEPS,
    POSITIVES_PER_STEP,
    RANK_KNOTS,
    RANKED_ROWS,
    STEPS,
    Columns,
    Rows,
    city_block,
    euclidean,
)
from tenfold.plan import thin

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
    for some in (Z, Z[::3] + np.float32(0.01)):
        double = getattr(columns, version)(some.astype(np.float64))
        assert_allclose(double, getattr(columns, version)(some), rtol=1e-5, atol=1e-5)


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
        for some in (Z, Z.astype(np.float64)):
            found, expected = getattr(again, version)(some), getattr(columns, version)(some)
            assert found.dtype == expected.dtype
            assert_array_equal(found, expected)


# --- rows ------------------------------------------------------------------------------------------------------------


def spied(name, function, calls):
    """The same function, which notes its name and its arguments with each call."""
    return lambda *args: calls.append((name, args)) or function(*args)


@pytest.fixture
def made(monkeypatch):
    """What has been made of rows: the names of versions and distances, and what they were made of."""
    calls = []
    for version in ("standard", "rank", "curves"):
        monkeypatch.setattr(Columns, version, spied(version, getattr(Columns, version), calls))
    for name, metric in rows.METRICS.items():
        monkeypatch.setitem(rows.METRICS, name, spied(name, metric, calls))
    return calls


def test_rows_give_each_version_once_and_only_when_it_is_asked_for(Z, made):
    columns = fit(Z)
    some = Rows(Z, columns)
    assert some.scaled is Z and made == []
    found = {version: getattr(some, version) for version in ("curves", "standard", "rank")}
    for version in ("rank", "curves", "standard"):
        assert getattr(some, version) is found[version]
    assert [name for name, _ in made] == ["curves", "standard", "rank"]
    assert all(of[0] is columns and of[1] is Z for _, of in made)
    for version, rows_as_it in found.items():
        assert_array_equal(rows_as_it, getattr(fit(Z), version)(Z))


def test_rows_give_each_distance_once_and_share_the_versions_of_landmarks(Z, made):
    columns = fit(Z)
    landmarks = Rows(Z[::3], columns)
    some, others = Rows(Z, columns, landmarks), Rows(Z[:40], columns, landmarks)
    for version, metric in 2 * [("standard", "euclidean"), ("rank", "city_block"), ("standard", "city_block")]:
        assert some.distances(version, metric) is some.distances(version, metric)
        assert_allclose(some.distances(version, metric)[:40], others.distances(version, metric), rtol=1e-6)
    assert Counter(name for name, _ in made) == {"euclidean": 2, "city_block": 4, "standard": 3, "rank": 3}
    assert sorted(len(of[1]) for name, of in made if name == "rank") == [30, 40, 90]


def test_thinned_rows_are_the_same_each_time_and_all_of_them_are_the_rows_themselves(Z):
    y = np.where(np.arange(90) % 9, -1, 1)
    whole = Rows(Z, fit(Z), Rows(Z[:8], fit(Z)))
    for n in (90, 200):
        part, numbers = whole.thinned(y, n)
        assert part is whole
        assert_array_equal(numbers, np.arange(90))
    for n in (30, 60):
        part, numbers = whole.thinned(y, n)
        assert whole.thinned(y, n)[0] is part and len(part) == n
        assert_array_equal(numbers, thin(y, n))
        assert_array_equal(part.scaled, Z[numbers])
        assert part.landmarks is whole.landmarks
        assert_array_equal(part.rank, whole.rank[numbers])


def test_rows_are_given_back_as_soon_as_nobody_has_them(rng):
    """Without a search for garbage, which comes late where objects are few and large."""
    Z, y = rng.rand(9, 3).astype(np.float32), np.where(np.arange(9) % 2, 1, -1)
    for landmarks in (None, Rows(Z, fit(Z))):
        some = Rows(Z, fit(Z), landmarks)
        assert some.landmarks is (some if landmarks is None else landmarks)
        some.distances("standard", "euclidean")
        some.thinned(y, 6)[0].distances("rank", "city_block")
        alive, gc_was_enabled = weakref.ref(some), gc.isenabled()
        gc.disable()
        try:
            del some
            assert alive() is None
        finally:
            if gc_was_enabled:
                gc.enable()


# --- distances -------------------------------------------------------------------------------------------------------


def floats(rng, n, d):
    return rng.randn(n, d).astype(np.float32)


class AllMany:
    """Stands for columns all of which have many values."""

    def __init__(self, Z):
        self.many_ = np.arange(Z.shape[1])


@pytest.mark.parametrize("distance, name", [(euclidean, "euclidean"), (city_block, "cityblock")])
@pytest.mark.parametrize("n, m, d", [(40, 30, 5), (1, 3, 1), (7, 1, 200)])
def test_distances(rng, distance, name, n, m, d):
    X, C = floats(rng, n, d), floats(rng, m, d)
    copies = X.copy(), C.copy()
    D = distance(X, C, AllMany(X))
    assert D.dtype == np.float32
    assert_allclose(D, cdist(X, C, name), rtol=1e-4)
    assert_array_equal(X, copies[0])
    assert_array_equal(C, copies[1])


@pytest.mark.parametrize(
    "version, which",
    [
        ("standard", [0, 1, 2, 3, 4]),
        ("standard", MANY),
        ("standard", [3, 4]),
        ("rank", [0, 1, 2, 3, 4]),
        ("rank", MANY),
    ],
    ids=["mixed", "many values", "two values", "mixed ranks", "ranks of many values"],
)
def test_city_block_distances_of_all_versions(Z, version, which):
    Z = Z[:, which]
    columns = fit(Z)
    exact = getattr(columns, version)(Z).astype(float)
    D = Rows(Z, columns, Rows(Z[:30], columns)).distances(version, "city_block")
    assert D.dtype == np.float32
    assert_allclose(D, cdist(exact, exact[:30], "cityblock"), rtol=1e-4, atol=1e-4)
    double = Rows(Z.astype(float), columns, Rows(Z[:30], columns)).distances(version, "city_block")
    assert_allclose(double, cdist(exact, exact[:30], "cityblock"), rtol=1e-5, atol=1e-5)


def test_city_block_distances_of_more_rows_than_a_chunk(rng):
    n = 2 * rows.CHUNK + 3
    Z = np.column_stack([rng.rand(n, 2), rng.rand(n) < 0.3]).astype(np.float32)
    columns = fit(Z)
    X = columns.rank(Z)
    assert_allclose(city_block(X, X[:7], columns), cdist(X, X[:7], "cityblock"), rtol=1e-4, atol=1e-5)


def test_city_block_distances_from_more_landmarks_than_stay_in_the_cache(rng, monkeypatch):
    X = floats(rng, 20, 4)
    monkeypatch.setattr(rows, "CACHED_CELLS", 30)
    assert_allclose(city_block(X, X, AllMany(X)), cdist(X, X, "cityblock"), rtol=1e-4, atol=1e-5)


def test_the_distance_of_a_row_from_itself_is_no_nan(rng):
    X = 100 + floats(rng, 50, 20)
    assert_allclose(np.diag(euclidean(X, X)), 0, atol=1e-3 * np.sqrt((X**2).sum(axis=1)).max())
