"""Scaled rows become features. Oracles: SciPy, scikit-learn, and kernels computed in full."""

import gc
import json
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from tenfold import features
from tenfold.columns import Columns
from tenfold.features import (
    FeatureSets,
    LandmarkFeatures,
    LinearFeatures,
    ScaledFeatures,
    Versions,
    city_block,
    euclidean,
    make_feature_set,
    plain_feature_sets,
    rich_feature_sets,
    wide_feature_sets,
)
from tenfold.lanes import inner_folds
from tenfold.plan import has_few_rows
from tenfold.trees import TreeFeatures

pytestmark = pytest.mark.filterwarnings("error")

SMOOTH = ("scaled", euclidean, 2, 0.7)
ROUGH = ("scaled", city_block, 1, 1.5)


def columns_of(Z, n_pos=40, most_ranked=np.inf):
    return Columns(most_ranked).fit(Z, n_pos)


class AllMany:
    """Stands for columns all of which have many values."""

    def __init__(self, Z):
        self.many_ = np.arange(Z.shape[1])


def versions_of(Z, landmarks=None):
    """Of rows as they are; unless there are landmarks, each row is one."""
    return Versions(AllMany(Z), Z, None if landmarks is None else Versions(AllMany(Z), landmarks))


def rows_of(rng, n=70, d=3):
    return rng.randn(n, d).astype(np.float32)


# --- distances and kernels -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("distance, name", [(euclidean, "euclidean"), (city_block, "cityblock")])
@pytest.mark.parametrize("n, m, d", [(40, 30, 5), (1, 3, 1), (7, 1, 200)])
def test_distances(rng, distance, name, n, m, d):
    X, C = rows_of(rng, n, d), rows_of(rng, m, d)
    copies = X.copy(), C.copy()
    D = distance(X, C, AllMany(X))
    assert D.dtype == np.float32
    assert_allclose(D, cdist(X, C, name), rtol=1e-4)
    assert_array_equal(X, copies[0])
    assert_array_equal(C, copies[1])


@pytest.mark.parametrize("version", ["standard", "rank"])
@pytest.mark.parametrize("which", [[0, 1, 2, 3, 4], [0, 1, 2], [3, 4]], ids=["mixed", "many values", "two values"])
def test_city_block_distances_of_all_versions(Z, version, which):
    Z = Z[:, which]
    columns = columns_of(Z)
    if not columns.ranked_ and version == "rank":
        pytest.skip("columns of two values have no ranks")
    versions = Versions(columns, Z, Versions(columns, Z[:30]))
    exact = getattr(columns, version)(Z).astype(float)
    D = versions[version, city_block]
    assert D.dtype == np.float32
    assert_allclose(D, cdist(exact, exact[:30], "cityblock"), rtol=1e-4, atol=1e-4)
    double = Versions(columns, Z.astype(float), Versions(columns, Z[:30]))[version, city_block]
    assert_allclose(double, cdist(exact, exact[:30], "cityblock"), rtol=1e-5, atol=1e-5)


def test_city_block_distances_of_more_rows_than_a_chunk(rng):
    Z = np.column_stack([rng.rand(2 * features.CHUNK + 3, 2), rng.rand(2 * features.CHUNK + 3) < 0.3])
    Z = Z.astype(np.float32)
    columns = columns_of(Z)
    X = columns.rank(Z)
    assert_allclose(city_block(X, X[:7], columns), cdist(X, X[:7], "cityblock"), rtol=1e-4, atol=1e-5)


def test_versions_are_made_once(Z):
    versions = Versions(columns_of(Z), Z)
    assert versions["scaled"] is Z
    for key in ("standard", "rank", ("rank", city_block), ("standard", euclidean)):
        assert versions[key] is versions[key]


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


@pytest.mark.parametrize(
    "feature_set, is_kernel", [(LandmarkFeatures(SMOOTH, ROUGH), True), (LinearFeatures("scaled"), False)]
)
def test_score_is_the_product_of_features_and_weights(rng, feature_set, is_kernel):
    Z, other = rows_of(rng), rows_of(rng, 40)
    F = feature_set.fit_transform(versions_of(Z, Z[:25]))
    w = rng.randn(F.shape[1]).astype(np.float32)
    of_others = feature_set.transform(versions_of(other, Z[:25])) if is_kernel else other * feature_set.scale_
    for rows, expected in ((Z, F @ w), (other, of_others @ w)):
        scores = feature_set.score(versions_of(rows, Z[:25]), feature_set.coefficients(w))
        assert scores.shape == (len(rows),)
        assert_allclose(scores, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


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
    feature_set = LinearFeatures("scaled")
    F = feature_set.fit_transform(versions)
    assert sp.issparse(F) == sp.issparse(versions["scaled"]) and F.dtype == np.float32
    F = F.toarray() if sp.issparse(F) else F
    assert ((F - F.mean(axis=0)) ** 2).sum(axis=1).mean() == pytest.approx(1, abs=1e-4)
    assert_allclose(F / F.max(), Z / Z.max(), rtol=1e-5)
    w = rng.randn(6).astype(np.float32)
    assert_allclose(feature_set.score(versions, feature_set.coefficients(w)), F @ w, rtol=1e-4, atol=1e-5)


def test_versions_stand_side_by_side(rng):
    versions = {"a": rows_of(rng, 30, 2), "b": rows_of(rng, 30, 3)}
    feature_set = LinearFeatures("a", "b")
    assert_allclose(feature_set.fit_transform(versions), np.hstack([versions["a"], versions["b"]]) * feature_set.scale_)


# --- rows that are fewer than their columns --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "n, d, few", [(10, 30, True), (10, 29, False), (1, 3, True), (2000, 6000, True), (2001, 10**5, False)]
)
def test_few_rows_are_a_third_of_the_columns(n, d, few):
    assert has_few_rows(n, d, 2_000) == few


def gram(Z):
    """Products of rows, so scaled that rows lie at a mean squared distance of 1 from their mean."""
    Z = Z.astype(float)
    return Z @ Z.T / Z.var(axis=0).sum()


def test_few_rows_become_coordinates_with_the_same_products(rng):
    Z = rows_of(rng, 20, 100)
    F = LinearFeatures("scaled").fit_transform(versions_of(Z))
    assert F.shape == (20, 20) and F.dtype == np.float32
    ridge = float(features.RIDGE) * np.trace(gram(Z)) / 20
    assert_allclose(F @ F.T, gram(Z) + ridge * np.eye(20), atol=1e-5 * np.abs(gram(Z)).max())


def test_weights_of_coordinates_count_for_columns(rng):
    """Of the combination of rows a, the weights of the columns are Z' a, and those of the coordinates L' a."""
    Z, other = rows_of(rng, 20, 100), rows_of(rng, 50, 100)
    feature_set = LinearFeatures("scaled")
    F = feature_set.fit_transform(versions_of(Z))
    a = rng.randn(20)
    coefficients = feature_set.coefficients((F.T @ a).astype(np.float32))
    expected = a @ Z / Z.astype(float).var(axis=0).sum()
    assert_allclose(coefficients, expected, atol=1e-4 * np.abs(expected).max())
    for rows in (Z, other):
        scores = feature_set.score(versions_of(rows), coefficients)
        assert_allclose(scores, rows @ expected, atol=1e-4 * np.abs(rows @ expected).max())


def test_coordinates_of_rows_score_them_as_their_columns_do(rng):
    Z = rows_of(rng, 20, 100)
    feature_set = LinearFeatures("scaled")
    F = feature_set.fit_transform(versions_of(Z))
    w = rng.randn(20).astype(np.float32)
    scores = feature_set.score(versions_of(Z), feature_set.coefficients(w))
    assert_allclose(scores, F @ w, atol=5e-3 * np.abs(F @ w).max())


def test_few_equal_rows_do_no_harm():
    Z = np.ones((5, 30), np.float32)
    feature_set = LinearFeatures("scaled")
    F = feature_set.fit_transform(versions_of(Z))
    assert np.isfinite(F).all() and np.isfinite(feature_set.coefficients(np.ones(5, np.float32))).all()


def test_sparse_rows_stay_columns_unless_they_are_few():
    Z = sp.random_array((67, 200), density=0.1, format="csr", dtype=np.float32, random_state=0)
    F = LinearFeatures("scaled").fit_transform(versions_of(Z))
    assert sp.issparse(F) and F.shape == (67, 200)
    assert LinearFeatures("scaled").fit_transform(versions_of(Z[:66])).shape == (66, 66)


# --- scaled columns in place -----------------------------------------------------------------------------------------


def scaled_rows(rng, n, d):
    """Columns of many values, of small deviation, and one that is constant."""
    Z = rng.rand(n, d).astype(np.float32)
    Z[:, 1] = 0.5 + 0.01 * Z[:, 1]
    Z[:, -1] = 1
    return Z


@pytest.mark.parametrize("n, d", [(80, 6), (20, 100)], ids=["many rows", "few rows"])
def test_scaled_columns_are_divided_by_their_deviation(rng, n, d):
    Z, other = scaled_rows(rng, n, d), scaled_rows(rng, 30, d)
    raw = Z.copy()
    deviation = np.maximum(raw.astype(float).std(axis=0), features.LEAST_DEVIATION)
    expected = np.where(np.arange(d) < d - 1, raw / deviation, 0)
    expected /= np.sqrt(expected.var(axis=0).sum())
    feature_set = ScaledFeatures()
    F = feature_set.fit_transform(versions_of(Z))
    assert_allclose(Z, expected, rtol=1e-4, atol=1e-5)  # in place
    ridge = float(features.RIDGE) * (expected**2).sum() / n if n < d else 0
    assert_allclose(F @ F.T, expected @ expected.T + ridge * np.eye(n), rtol=1e-4, atol=1e-4)
    assert F.shape == (n, min(n, d)) and F.dtype == np.float32 and (n < d or F is Z)
    w = rng.randn(F.shape[1]).astype(np.float32)
    coefficients = feature_set.coefficients(w)
    scores = feature_set.score(versions_of(raw), coefficients)
    assert_allclose(scores, F @ w, atol=(5e-3 if n < d else 1e-4) * np.abs(F @ w).max())
    of_columns = np.linalg.solve(F.T.astype(float), w) @ expected if n < d else w
    scale = np.divide(expected[0], raw[0], dtype=float)
    expected_scores = other @ (of_columns * scale)
    assert_allclose(
        feature_set.score(versions_of(other), coefficients), expected_scores, atol=1e-3 * np.abs(expected_scores).max()
    )


# --- sparse columns --------------------------------------------------------------------------------------------------


def sparse_rows(n, d, seed=0):
    """Rows of a few counts; columns are filled the less often the further behind they are."""
    rng = np.random.RandomState(seed)
    columns = (d * rng.rand(n * 8) ** 3).astype(int)
    X = sp.csr_array((rng.randint(1, 4, n * 8), (np.repeat(np.arange(n), 8), columns)), shape=(n, d), dtype=np.float32)
    X.sum_duplicates()
    return X


def test_of_too_many_sparse_columns_those_filled_most_often_are_learned_from(rng):
    Z = sparse_rows(400, 300)
    feature_set = features.FrequentColumns(20)
    F = feature_set.fit_transform({"scaled": Z})
    filled = (Z.toarray() != 0).sum(axis=0)
    chosen = feature_set.columns_
    assert len(set(chosen)) == 20 and (np.diff(chosen) > 0).all()
    assert filled[chosen].min() >= np.delete(filled, chosen).max() > 0
    dense = Z.toarray()[:, chosen]
    assert_allclose(F.toarray(), dense / np.sqrt(dense.var(axis=0).sum()), rtol=1e-5)
    w = rng.randn(20).astype(np.float32)
    coefficients = feature_set.coefficients(w)
    assert coefficients.shape == (300,) and set(np.flatnonzero(coefficients)) == set(chosen)
    assert_allclose(feature_set.score({"scaled": Z}, coefficients), F @ w, rtol=1e-4, atol=1e-5)
    few = features.FrequentColumns(300).fit_transform({"scaled": Z})
    assert_allclose(few.toarray(), LinearFeatures("scaled").fit_transform({"scaled": Z}).toarray(), rtol=1e-5)


def test_of_sparse_columns_filled_equally_often_some_are_drawn():
    """In the order of the file, what comes last would never be learned from."""
    Z = sp.csr_array(np.ones((400, 300), np.float32))
    feature_set = features.FrequentColumns(60)
    feature_set.fit_transform({"scaled": Z})
    assert 5 <= np.count_nonzero(feature_set.columns_ < 60) <= 24  # 12 are to be expected


def test_few_sparse_rows_are_learned_from_in_the_space_that_they_span_by_all_columns(rng):
    Z = sparse_rows(40, 300)
    feature_set = features.FrequentColumns(20)
    F = feature_set.fit_transform({"scaled": Z})
    assert F.shape == (40, 40) and isinstance(F, np.ndarray)
    assert_allclose(F @ F.T, gram(Z.toarray()), atol=5e-3 * gram(Z.toarray()).max())
    w = rng.randn(40).astype(np.float32)
    coefficients = feature_set.coefficients(w)
    assert np.count_nonzero(coefficients) > 100
    assert_allclose(feature_set.score({"scaled": Z}, coefficients), F @ w, atol=2e-2 * np.abs(F @ w).max())


@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_array.toarray])
def test_even_columns_deviate_alike_unless_that_is_next_to_nothing(make, rng):
    Z = sparse_rows(600, 90)
    Z.data[Z.indices == 3] *= 1e-3
    F = LinearFeatures("scaled", even=True).fit_transform({"scaled": make(Z)})
    F = F.toarray() if sp.issparse(F) else F
    deviation, raw = F.astype(float).std(axis=0), Z.toarray().astype(float).std(axis=0)
    is_small = raw < features.LEAST_DEVIATION
    assert is_small[3] and not is_small.all()
    assert_allclose(deviation[~is_small], deviation[~is_small][0], rtol=1e-4)
    assert_allclose(deviation[is_small] / raw[is_small], deviation[0] / features.LEAST_DEVIATION, rtol=1e-4)
    assert_allclose((deviation**2).sum(), 1, rtol=1e-4)


@pytest.mark.parametrize("n, d", [(50, 7), (30, 400)])
def test_the_variance_of_sparse_columns(n, d):
    Z = sparse_rows(n, d)
    assert_allclose(features._variance(Z), Z.toarray().astype(float).var(axis=0), rtol=1e-9, atol=1e-12)


def test_only_scaled_columns_are_scaled_columns(Z):
    assert plain_feature_sets().are_scaled_columns and wide_feature_sets().are_scaled_columns
    for n_landmarks in (0, 12):
        assert not rich_feature_sets(columns_of(Z), n_landmarks, True).are_scaled_columns
    sets = {"linear": LinearFeatures("scaled"), "smooth": LandmarkFeatures(SMOOTH)}
    assert not FeatureSets(None, sets, 3).are_scaled_columns
    assert not FeatureSets(None, {"smooth": LandmarkFeatures(SMOOTH)}, 3).are_scaled_columns
    assert not FeatureSets(None, {"trees": TreeFeatures(3)}).are_scaled_columns
    assert not wide_feature_sets(3).are_scaled_columns
    assert wide_feature_sets(3).take_raw and plain_feature_sets().take_raw
    assert not FeatureSets(None, sets, 3).take_raw and not rich_feature_sets(columns_of(Z), 0, True).take_raw


# --- FeatureSets -----------------------------------------------------------------------------------------------------

RICH = [
    {"n_landmarks": 12, "small": False},
    {"n_landmarks": 12, "small": True},
    {"n_landmarks": 12, "small": False, "n_trees": 3},
    {"n_landmarks": 12, "small": True, "n_trees": 3},
    {"n_landmarks": 12, "small": True, "n_trees": 3, "most_ranked": 0},
    {"n_landmarks": 12, "small": False, "most_ranked": 0},
    {"n_landmarks": 0, "small": True, "n_trees": 3},
    {"n_landmarks": 12, "small": False, "n_trees": 3, "even": True},
]


@pytest.fixture(params=["plain", "wide", "wide with trees", *RICH], ids=str)
def feature_sets(request, Z):
    """All kinds of feature sets, with columns fitted on Z."""
    if request.param == "plain":
        return plain_feature_sets()
    if request.param == "wide":
        return wide_feature_sets()
    if request.param == "wide with trees":
        return wide_feature_sets(3, 8, 2)
    settings = {**request.param}
    columns = columns_of(Z, most_ranked=settings.pop("most_ranked", np.inf))
    return rich_feature_sets(columns, **settings)


@pytest.fixture
def y(rng):
    """Signs of the rows of Z."""
    return rng.permutation(np.where(np.arange(90) % 3, -1, 1))


@pytest.fixture
def fold(y, rng):
    """Inner folds of the rows of Z."""
    return inner_folds(y, 3, rng)


def test_sets_are_as_many_as_there_is_time_for(Z):
    columns = columns_of(Z)
    assert list(rich_feature_sets(columns, 0, True).sets) == ["linear"]
    assert list(rich_feature_sets(columns, 0, True, 3).sets) == ["linear", "trees"]
    assert list(rich_feature_sets(columns, 9, False, 3).sets) == ["linear", "mixed", "trees"]
    assert list(rich_feature_sets(columns, 9, True, 0).sets) == ["linear", "mixed", "smooth", "rough"]
    assert list(rich_feature_sets(columns, 9, True, 3).sets) == ["linear", "mixed", "smooth", "rough", "trees"]


@pytest.mark.parametrize("most_ranked, peak", [(np.inf, ("rank", "city_block")), (0, ("standard", "euclidean"))])
def test_peaks_are_by_ranks_if_there_are_any(Z, most_ranked, peak):
    sets = rich_feature_sets(columns_of(Z, most_ranked=most_ranked), 9, True).sets
    terms = {name: [term[:2] for term in s.description()[1]] for name, s in sets.items() if name != "linear"}
    assert terms["mixed"][-1] == peak
    assert terms["rough"] == [peak]
    assert set(terms["mixed"][:-1]) == set(terms["smooth"]) == {("standard", "euclidean")}


@pytest.mark.parametrize("of_trees", [np.arange(1, 90, 2), np.arange(90)], ids=["some", "all"])
def test_linear_sets_have_all_rows_and_others_those_of_their_kind(Z, y, fold, rng, feature_sets, of_trees):
    sample = np.arange(3, 90, 4)
    sets = list(feature_sets.fit_transform(Z, y, fold, {"landmarks": sample, "trees": of_trees}, rng))
    assert len(sets) == len(feature_sets.sets)
    for feature_set, (F, rows) in zip(feature_sets.sets.values(), sets):
        expected = {LandmarkFeatures: sample, TreeFeatures: of_trees}.get(type(feature_set), np.arange(90))
        assert_array_equal(rows, expected)
        assert len(F) == len(expected) and np.isfinite(F).all()


def test_each_set_is_fitted_on_the_labels_and_folds_of_its_own_rows(Z, y, fold, rng):
    class Spy(LinearFeatures):
        def __init__(self, kind):
            super().__init__("scaled")
            self.kind = kind

        def fit_transform(self, versions, y, fold):
            self.seen = versions["scaled"], y, fold
            return super().fit_transform(versions)

    rows = {"some": np.arange(3, 90, 4), "others": np.arange(0, 90, 5), "each": np.arange(90)}
    sets = {name: Spy(name) for name in (*rows, "unnamed")}
    found = [of for _, of in FeatureSets(columns_of(Z), sets).fit_transform(Z, y, fold, rows, rng)]
    for spy, of, expected in zip(sets.values(), found, [*rows.values(), np.arange(90)], strict=True):
        assert_array_equal(of, expected)
        for seen, whole in zip(spy.seen, (Z, y, fold), strict=True):
            assert_array_equal(seen, whole[expected])


def test_the_score_is_the_sum_over_the_sets(Z, y, fold, rng, feature_sets):
    """Trees score training rows by the mean over folds, so these have an oracle of their own."""
    sets = [F for F, _ in feature_sets.fit_transform(Z.copy(), y, fold, {}, rng)]
    weights = [rng.randn(F.shape[1]).astype(np.float32) for F in sets]
    expected = 0
    for feature_set, F, w in zip(feature_sets.sets.values(), sets, weights):
        is_trees = isinstance(feature_set, TreeFeatures)
        expected = expected + (feature_set.trees_.score(Z) * feature_set.scale_ * w if is_trees else F @ w)
    for rows in (Z, Z.astype(np.float64)):
        assert_allclose(
            feature_sets.score(rows, feature_sets.coefficients(weights)), expected, atol=2e-3 * np.abs(expected).max()
        )


@pytest.mark.parametrize("asked", [1, 10, 22, 23, 10**9])
def test_landmarks_are_rows_of_the_sample_and_none_is_one_twice(Z, y, fold, rng, asked):
    sample = np.arange(3, 90, 4)
    feature_sets = rich_feature_sets(columns_of(Z), asked, True)
    sets = list(feature_sets.fit_transform(Z, y, fold, {"landmarks": sample}, rng))
    landmarks = feature_sets.landmarks_["scaled"]
    assert len(landmarks) == min(asked, len(sample)) == sets[-1][0].shape[1]
    chosen = [np.flatnonzero((Z[sample] == landmark).all(axis=1)).item() for landmark in landmarks]
    assert len(set(chosen)) == len(chosen)


def test_a_stopped_run_never_touches_the_sets_it_did_not_reach(Z, y, fold, rng):
    class Untouchable:
        def __getattr__(self, name):
            raise AssertionError(f"{name} was asked for")

    feature_sets = FeatureSets(columns_of(Z), {"first": LinearFeatures("standard"), "second": Untouchable()})
    F, rows = next(feature_sets.fit_transform(Z, y, fold, {}, rng))
    w = rng.randn(F.shape[1]).astype(np.float32)
    assert_array_equal(rows, np.arange(90))
    assert_allclose(feature_sets.score(Z, feature_sets.coefficients([w])), F @ w, rtol=1e-4, atol=1e-5)


def test_a_set_made_from_its_description_scores_the_same(Z, y, fold, rng, feature_sets):
    """After a way through JSON, and with nothing but its arrays of what was fitted."""
    weights = [
        rng.randn(F.shape[1]).astype(np.float32) for F, _ in feature_sets.fit_transform(Z.copy(), y, fold, {}, rng)
    ]
    coefficients = feature_sets.coefficients(weights)
    arrays = [feature_set.arrays() for feature_set in feature_sets.sets.values()]
    descriptions = json.loads(json.dumps([feature_set.description() for feature_set in feature_sets.sets.values()]))
    again = [make_feature_set(*parts, A) for parts, A in zip(descriptions, arrays)]
    versions = Versions(feature_sets.columns, Z, feature_sets.landmarks_)
    for feature_set, made, c in zip(feature_sets.sets.values(), again, coefficients, strict=True):
        assert isinstance(feature_set, type(made)) and feature_set.kind == made.kind
        assert_array_equal(made.score(versions, c), feature_set.score(versions, c))


def test_rows_are_given_back_as_soon_as_their_versions_are_gone(rng):
    """Without a search for garbage, which comes late where objects are few and large."""
    Z = rng.rand(9, 3).astype(np.float32)
    for landmarks in (None, Versions(columns_of(Z), Z)):
        versions = Versions(columns_of(Z), Z, landmarks)
        assert versions.landmarks is (versions if landmarks is None else landmarks)
        versions["standard"]
        alive, gc_was_enabled = weakref.ref(versions), gc.isenabled()
        gc.disable()
        try:
            del versions
            assert alive() is None
        finally:
            if gc_was_enabled:
                gc.enable()
