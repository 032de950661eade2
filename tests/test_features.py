"""Scaled rows become features. Oracles: SciPy, scikit-learn, and kernels computed in full."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from scipy.stats import rankdata
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.preprocessing import StandardScaler

from tenfold import features
from tenfold.features import (
    Columns,
    FeatureSets,
    LandmarkFeatures,
    LinearFeatures,
    Versions,
    city_block,
    euclidean,
    make_feature_set,
    plain_feature_sets,
    rich_feature_sets,
)

pytestmark = pytest.mark.filterwarnings("error")

SMOOTH = ("scaled", euclidean, 2, 0.7)
ROUGH = ("scaled", city_block, 1, 1.5)


@pytest.fixture
def rng():
    return np.random.RandomState(0)


@pytest.fixture
def Z(rng):
    """Scaled rows as the `Preprocessor` gives them: many values, a heavy tail, ties, two values, and the bias."""
    n = 90
    Z = np.column_stack([rng.rand(n), rng.rand(n) ** 30, rng.randint(0, 4, n) / 3, rng.rand(n) < 0.1, np.ones(n)])
    Z[0], Z[1, :4] = [1, 1, 1, 1, 1], 0
    return Z.astype(np.float32)


MANY, TWO = [0, 1, 2], 3  # columns of Z


def versions_of(Z, landmarks=None):
    """Of rows as they are; unless there are landmarks, each row is one."""
    return Versions(None, Z, None if landmarks is None else Versions(None, landmarks))


def rows_of(rng, n=70, d=3):
    return rng.randn(n, d).astype(np.float32)


# --- Columns ---------------------------------------------------------------------------------------------------------


def test_standard_columns_are_those_of_scikit_learn_and_clipped(Z):
    other = np.vstack([Z, 50 * Z, -50 * Z])
    expected = StandardScaler().fit(Z[:, MANY].astype(float)).transform(other[:, MANY])
    assert np.abs(expected).max() > 6
    found = Columns().fit(Z).standard(other)
    assert found.dtype == np.float32
    assert_allclose(found[:, MANY], np.clip(expected, -6, 6), rtol=1e-4, atol=1e-4)


def test_ranks_are_middle_ranks_while_each_row_may_have_a_knot(Z):
    assert len(Z) <= features.RANK_KNOTS
    ranks = rankdata(Z[:, MANY], "average", axis=0)
    found = Columns().fit(Z).rank(Z)
    assert found.dtype == np.float32
    assert_allclose(found[:, MANY], np.sqrt(12) * ((ranks - 0.5) / len(Z) - 0.5), atol=1e-5)
    assert_allclose(found[:, MANY].mean(axis=0), 0, atol=1e-5)
    assert_allclose(found[:, 0].var(), 1, atol=2 / len(Z))


@pytest.mark.parametrize("power", [1, 8])
def test_ranks_of_more_rows_than_knots_are_nearly_right_and_monotone(rng, power):
    n = 20 * features.RANK_KNOTS
    Z = (rng.rand(n, 1) ** power).astype(np.float32)
    columns = Columns().fit(Z)
    exact = np.sqrt(12) * ((rankdata(Z[:, 0]) - 0.5) / n - 0.5)
    assert np.abs(columns.rank(Z)[:, 0] - exact).max() < np.sqrt(12) / (features.RANK_KNOTS - 1)
    grid = columns.rank(np.linspace(-1, 2, 5000, dtype=np.float32)[:, None])[:, 0]
    assert (np.diff(grid) >= 0).all()


@pytest.mark.parametrize("version", ["standard", "rank"])
def test_columns_of_two_values_are_minus_and_plus_one(Z, version):
    columns = Columns().fit(Z)
    assert_array_equal(getattr(columns, version)(Z)[:, TWO], np.where(Z[:, TWO] > 0, 1, -1))
    only_two = Columns().fit(Z[:, [TWO, -1]])
    assert_array_equal(getattr(only_two, version)(Z[:, [TWO, -1]]), np.where(Z[:, [TWO]] > 0, 1, -1))


@pytest.mark.parametrize("version", ["standard", "rank"])
def test_the_bias_and_other_constant_columns_are_left_out(Z, version):
    assert getattr(Columns().fit(Z), version)(Z).shape == (len(Z), 4)


@pytest.mark.parametrize("version", ["standard", "rank"])
def test_values_outside_the_training_rows_are_clamped(Z, version):
    columns = Columns().fit(Z)
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
    columns = Columns().fit(Z[:60])
    before = getattr(columns, version)(Z[:60])
    both = getattr(columns, version)(np.vstack([Z[:60], 9 * Z]))
    assert_array_equal(both[:60], before)


def test_without_ranks_there_are_no_knots(Z):
    columns = Columns(ranked=False).fit(Z)
    assert columns.knots_ is None
    assert_array_equal(columns.standard(Z), Columns().fit(Z).standard(Z))


# --- distances and kernels -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("distance, name", [(euclidean, "euclidean"), (city_block, "cityblock")])
@pytest.mark.parametrize("n, m, d", [(40, 30, 5), (1, 3, 1), (7, 1, 200)])
def test_distances(rng, distance, name, n, m, d):
    X, C = rows_of(rng, n, d), rows_of(rng, m, d)
    copies = X.copy(), C.copy()
    D = distance(X, C)
    assert D.dtype == np.float32
    assert_allclose(D, cdist(X, C, name), rtol=1e-4)
    assert_array_equal(X, copies[0])
    assert_array_equal(C, copies[1])


def test_the_distance_of_a_row_from_itself_is_no_nan(rng):
    X = 100 + rows_of(rng, 50, 20)
    assert_allclose(np.diag(euclidean(X, X)), 0, atol=1e-3 * np.sqrt((X**2).sum(axis=1)).max())


def exact_kernel(X, C, landmarks, term):
    """By scikit-learn, its width from the median distance between landmarks."""
    _, distance, power, width = term
    D = cdist(landmarks, landmarks, "euclidean" if distance is euclidean else "cityblock")
    bandwidth = width * np.median(D[D > 1e-3])
    return rbf_kernel(X, C, bandwidth**-2) if power == 2 else laplacian_kernel(X, C, 1 / bandwidth)


def landmark_kernel(X, landmarks, terms):
    X, landmarks = X.astype(float), landmarks.astype(float)
    return np.mean([exact_kernel(X, landmarks, landmarks, term) for term in terms], axis=0)


@pytest.mark.parametrize("terms", [[SMOOTH], [ROUGH], [SMOOTH, ROUGH]], ids=["smooth", "rough", "both"])
def test_products_of_features_are_the_kernel(rng, terms):
    """With all rows for landmarks: F F' / scale^2 = K inv(K + ridge) K, which is within the ridge of K."""
    Z = rows_of(rng)
    feature_set = LandmarkFeatures(*terms).fit(versions_of(Z))
    F = feature_set.transform(versions_of(Z, Z)).astype(float)
    K = landmark_kernel(Z, Z, terms)
    assert_allclose(F @ F.T / float(feature_set.scale_) ** 2, K, atol=2 * float(features.RIDGE))
    spread = ((F - F.mean(axis=0)) ** 2).sum(axis=1).mean()
    assert spread == pytest.approx(1, abs=10 * float(features.RIDGE))


@pytest.mark.parametrize("terms", [[SMOOTH], [ROUGH], [SMOOTH, ROUGH]], ids=["smooth", "rough", "both"])
def test_features_are_those_of_nystroem(rng, terms):
    """With fewer landmarks than rows, and on rows that were not there: products are k inv(K + ridge) k'."""
    Z, other = rows_of(rng), rows_of(rng, 40)
    landmarks = Z[:20]
    feature_set = LandmarkFeatures(*terms).fit(versions_of(Z, landmarks))
    F = feature_set.transform(versions_of(other, landmarks))
    assert F.dtype == np.float32
    F = F.astype(float) / float(feature_set.scale_)
    k, K = landmark_kernel(other, landmarks, terms), landmark_kernel(landmarks, landmarks, terms)
    expected = k @ np.linalg.solve(K + float(features.RIDGE) * np.eye(20), k.T)
    assert_allclose(F @ F.T, expected, atol=2e-3)


@pytest.mark.parametrize("feature_set", [LandmarkFeatures(SMOOTH, ROUGH), LinearFeatures("scaled")])
def test_score_is_the_product_of_features_and_weights(rng, feature_set):
    Z, other = rows_of(rng), rows_of(rng, 40)
    F = feature_set.fit(versions_of(Z, Z[:25])).transform(versions_of(other, Z[:25]))
    w = rng.randn(F.shape[1]).astype(np.float32)
    scores = feature_set.score(versions_of(other, Z[:25]), feature_set.coefficients(w))
    assert scores.shape == (40,)
    assert_allclose(scores, F @ w, rtol=1e-3, atol=1e-3 * np.abs(F @ w).max())


def test_chunks_change_nothing(rng):
    """More rows than are computed at a time, and the same rows in pieces that end elsewhere."""
    Z, other = rows_of(rng), rows_of(rng, 2 * features.CHUNK + 3)
    feature_set = LandmarkFeatures(SMOOTH, ROUGH).fit(versions_of(Z, Z[:25]))
    w = rng.randn(25).astype(np.float32)
    pieces = [versions_of(piece, Z[:25]) for piece in np.array_split(other, 5)]
    F, scores = (
        np.concatenate([f(v) for v in pieces])
        for f in (feature_set.transform, lambda v: feature_set.score(v, feature_set.coefficients(w)))
    )
    whole = versions_of(other, Z[:25])
    assert_allclose(feature_set.transform(whole), F, atol=1e-4)
    assert_allclose(feature_set.score(whole, feature_set.coefficients(w)), scores, atol=1e-3 * np.abs(scores).max())


@pytest.mark.parametrize(
    "Z", [np.ones((30, 2)), np.zeros((30, 2)), np.ones((1, 2)), np.arange(60).reshape(30, 2) // 30]
)
@pytest.mark.parametrize("term", [SMOOTH, ROUGH])
def test_equal_rows_do_no_harm(Z, term):
    versions = versions_of(Z.astype(np.float32))
    assert np.isfinite(LandmarkFeatures(term).fit(versions).transform(versions)).all()


# --- LinearFeatures --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_rows_lie_at_a_mean_squared_distance_of_1_from_their_mean(rng, make):
    Z = np.where(rng.rand(200, 6) < 0.3, rng.rand(200, 6) * [1, 2, 3, 4, 5, 6], 0).astype(np.float32)
    versions = versions_of(make(Z))
    feature_set = LinearFeatures("scaled").fit(versions)
    F = feature_set.transform(versions)
    assert sp.issparse(F) == sp.issparse(versions["scaled"]) and F.dtype == np.float32
    F = F.toarray() if sp.issparse(F) else F
    assert ((F - F.mean(axis=0)) ** 2).sum(axis=1).mean() == pytest.approx(1, abs=1e-4)
    assert_allclose(F / F.max(), Z / Z.max(), rtol=1e-5)
    w = rng.randn(6).astype(np.float32)
    assert_allclose(feature_set.score(versions, feature_set.coefficients(w)), F @ w, rtol=1e-4, atol=1e-5)


def test_versions_stand_side_by_side(rng):
    versions = {"a": rows_of(rng, 30, 2), "b": rows_of(rng, 30, 3)}
    feature_set = LinearFeatures("a", "b").fit(versions)
    assert_allclose(feature_set.transform(versions), np.hstack([versions["a"], versions["b"]]) * feature_set.scale_)


# --- FeatureSets -----------------------------------------------------------------------------------------------------


def all_feature_sets():
    feature_sets = [rich_feature_sets(12, small, quick) for small in (False, True) for quick in (False, True)]
    return [*feature_sets, plain_feature_sets()]


@pytest.mark.parametrize("feature_sets", all_feature_sets())
def test_linear_sets_have_all_rows_and_landmark_sets_the_sample(Z, rng, feature_sets):
    sample = np.arange(3, 90, 4)
    sets = list(feature_sets.fit_transform(Z, sample, rng))
    assert len(sets) == len(feature_sets.sets)
    for feature_set, (F, rows) in zip(feature_sets.sets.values(), sets):
        expected = sample if isinstance(feature_set, LandmarkFeatures) else np.arange(90)
        assert_array_equal(rows, expected)
        assert len(F) == len(expected) and np.isfinite(F).all()


@pytest.mark.parametrize("feature_sets", all_feature_sets())
def test_the_score_is_the_sum_over_the_sets(Z, rng, feature_sets):
    every = np.arange(90)
    sets = [F for F, _ in feature_sets.fit_transform(Z, every, rng)]
    weights = [rng.randn(F.shape[1]).astype(np.float32) for F in sets]
    expected = sum(F @ w for F, w in zip(sets, weights))
    assert_allclose(
        feature_sets.score(Z, feature_sets.coefficients(weights)), expected, atol=2e-3 * np.abs(expected).max()
    )


@pytest.mark.parametrize("asked", [1, 10, 22, 23, 10**9])
def test_landmarks_are_rows_of_the_sample_and_none_is_one_twice(Z, rng, asked):
    sample = np.arange(3, 90, 4)
    feature_sets = rich_feature_sets(asked, True, True)
    sets = list(feature_sets.fit_transform(Z, sample, rng))
    landmarks = feature_sets.landmarks_["scaled"]
    assert len(landmarks) == min(asked, len(sample)) == sets[-1][0].shape[1]
    chosen = [np.flatnonzero((Z[sample] == landmark).all(axis=1)).item() for landmark in landmarks]
    assert len(set(chosen)) == len(chosen)


def test_a_stopped_run_never_touches_the_sets_it_did_not_reach(Z, rng):
    class Untouchable:
        def __getattr__(self, name):
            raise AssertionError(f"{name} was asked for")

    feature_sets = FeatureSets(Columns(), {"first": LinearFeatures("standard"), "second": Untouchable()})
    F, rows = next(feature_sets.fit_transform(Z, np.arange(90), rng))
    w = rng.randn(F.shape[1]).astype(np.float32)
    assert_array_equal(rows, np.arange(90))
    assert_allclose(feature_sets.score(Z, feature_sets.coefficients([w])), F @ w, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("feature_sets", all_feature_sets())
def test_a_set_made_from_its_description_scores_the_same(Z, rng, feature_sets):
    """After a way through JSON, and with nothing but the medians of what was fitted."""
    weights = [rng.randn(F.shape[1]).astype(np.float32) for F, _ in feature_sets.fit_transform(Z, np.arange(90), rng)]
    coefficients = feature_sets.coefficients(weights)
    medians = [getattr(feature_set, "median_", None) for feature_set in feature_sets.sets.values()]
    descriptions = json.loads(json.dumps([feature_set.description() for feature_set in feature_sets.sets.values()]))
    again = [make_feature_set(*parts, median) for parts, median in zip(descriptions, medians)]
    versions = Versions(feature_sets.columns, Z, feature_sets.landmarks_)
    for feature_set, made, c in zip(feature_sets.sets.values(), again, coefficients, strict=True):
        assert type(made) is type(feature_set)
        assert_array_equal(made.score(versions, c), feature_set.score(versions, c))


@pytest.mark.parametrize("ranked", [True, False])
def test_columns_made_from_their_arrays_are_the_same(Z, ranked):
    columns = Columns(ranked).fit(Z)
    again = Columns.from_arrays({name: A.copy() for name, A in columns.arrays().items()})
    assert again.ranked == ranked
    for version in ("standard", "rank")[: 1 + ranked]:
        assert_array_equal(getattr(again, version)(Z), getattr(columns, version)(Z))
