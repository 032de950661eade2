"""Sets of features: what each makes of scaled rows, and what all of them have to offer, a new one included.

Oracles: scikit-learn, and kernels computed in full.
"""

import io
import json
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from preprocess import InputError
from tenfold import AUCRanker, load_model, ranker, words
from tenfold.features import FEATURE_SETS, SETS, landmarks, linear
from tenfold.features.base import FeatureSet
from tenfold.features.boosting import Boosting
from tenfold.features.forest import Forest
from tenfold.features.landmarks import CHUNK, RIDGE, Landmarks, Mixed, Rough, Smooth
from tenfold.features.linear import Even, Linear
from tenfold.features.rows import Columns, Rows
from tenfold.lanes import inner_folds
from tenfold.plan import thin

pytestmark = pytest.mark.filterwarnings("error")

BELL = ("scaled", "euclidean", 2, 0.7)
PEAK = ("scaled", "city_block", 1, 1.5)
TERMS = pytest.mark.parametrize("terms", [[BELL], [PEAK], [BELL, PEAK]], ids=["bell", "peak", "both"])


class OfTerms(Landmarks):
    """Similarities that are the mean of terms that a test has chosen."""

    def __init__(self, *terms, n_rows=10**6):
        super().__init__(n_rows)
        self.terms = lambda ranked: terms


def floats(rng, n=70, d=3):
    return rng.randn(n, d).astype(np.float32)


def as_they_are(Z, of_landmarks=None):
    """Rows whose columns all have many values; without others each is a landmark."""
    columns = SimpleNamespace(many_=np.arange(Z.shape[1]), ranked_=False)
    return Rows(Z, columns, None if of_landmarks is None else Rows(of_landmarks, columns))


# --- similarities to landmarks ---------------------------------------------------------------------------------------


def exact_kernel(X, C, of_landmarks, term):
    """By scikit-learn, its width from the median distance between landmarks."""
    _, metric, power, width = term
    D = cdist(of_landmarks, of_landmarks, metric.replace("_", ""))
    bandwidth = width * np.median(D[D > 1e-3])
    return rbf_kernel(X, C, bandwidth**-2) if power == 2 else laplacian_kernel(X, C, 1 / bandwidth)


def landmark_kernel(X, of_landmarks, terms):
    X, of_landmarks = X.astype(float), of_landmarks.astype(float)
    return np.mean([exact_kernel(X, of_landmarks, of_landmarks, term) for term in terms], axis=0)


@TERMS
def test_products_of_features_are_the_kernel(rng, terms):
    """With all rows for landmarks: F F' / scale^2 = K inv(K + ridge) K, which is within the ridge of K."""
    Z = floats(rng)
    feature_set = OfTerms(*terms).fit(as_they_are(Z))
    F = feature_set.transform(as_they_are(Z, Z)).astype(float)
    K = landmark_kernel(Z, Z, terms)
    assert_allclose(F @ F.T / float(feature_set.scale_) ** 2, K, atol=2 * float(RIDGE))
    spread = ((F - F.mean(axis=0)) ** 2).sum(axis=1).mean()
    assert spread == pytest.approx(1, abs=10 * float(RIDGE))


@TERMS
def test_features_are_those_of_nystroem(rng, terms):
    """With fewer landmarks than rows, and on rows that were not there: products are k inv(K + ridge) k'."""
    Z, other = floats(rng), floats(rng, 40)
    feature_set = OfTerms(*terms).fit(as_they_are(Z, Z[:20]))
    F = feature_set.transform(as_they_are(other, Z[:20]))
    assert F.dtype == np.float32
    F = F.astype(float) / float(feature_set.scale_)
    k, K = landmark_kernel(other, Z[:20], terms), landmark_kernel(Z[:20], Z[:20], terms)
    expected = k @ np.linalg.solve(K + float(RIDGE) * np.eye(20), k.T)
    assert_allclose(F @ F.T, expected, atol=2e-3)


def test_chunks_change_nothing(rng):
    """More rows than are computed at a time, and the same rows in pieces that end elsewhere."""
    Z, other = floats(rng), floats(rng, 2 * CHUNK + 3)
    feature_set = OfTerms(BELL, PEAK).fit(as_they_are(Z, Z[:25]))
    c = feature_set.coefficients(rng.randn(25).astype(np.float32))
    whole, pieces = as_they_are(other, Z[:25]), [as_they_are(part, Z[:25]) for part in np.array_split(other, 5)]
    F = np.concatenate([feature_set.transform(piece) for piece in pieces])
    scores = np.concatenate([feature_set.score(piece, c) for piece in pieces])
    assert_allclose(feature_set.transform(whole), F, atol=1e-4)
    assert_allclose(feature_set.score(whole, c), scores, atol=1e-3 * np.abs(scores).max())


@pytest.mark.parametrize(
    "Z", [np.ones((30, 2)), np.zeros((30, 2)), np.ones((1, 2)), np.arange(60).reshape(30, 2) // 30]
)
@pytest.mark.parametrize("term", [BELL, PEAK])
def test_landmarks_that_are_equal_do_no_harm(Z, term):
    rows = as_they_are(Z.astype(np.float32))
    assert np.isfinite(OfTerms(term).fit(rows).transform(rows)).all()


@pytest.mark.parametrize("n_rows", [40, 70])
def test_similarities_of_some_of_the_rows_are_learned_from(rng, n_rows):
    Z, y = floats(rng), np.where(np.arange(70) % 5, -1, 1)
    F, numbers = OfTerms(BELL, n_rows=n_rows).fit_transform(as_they_are(Z, Z[:9]), y, np.zeros(70))
    assert_array_equal(numbers, thin(y, n_rows))
    assert_array_equal(F, OfTerms(BELL).fit_transform(as_they_are(Z[numbers], Z[:9]), y, np.zeros(70))[0])


@pytest.mark.parametrize("ranked, peak", [(True, ("rank", "city_block")), (False, ("standard", "euclidean"))])
def test_peaks_are_by_ranks_if_there_are_any(ranked, peak):
    versions = {kind: [term[:2] for term in kind.terms(ranked)] for kind in (Mixed, Smooth, Rough)}
    assert versions[Mixed][-1] == peak and versions[Rough] == [peak]
    assert set(versions[Mixed][:-1]) == set(versions[Smooth]) == {("standard", "euclidean")}


def test_nearly_equal_landmarks_get_as_much_of_a_ridge_as_it_takes(rng):
    K = np.ones((50, 50), np.float32) + 3e-3 * rng.rand(50, 50).astype(np.float32)
    K = (K + K.T) / 2
    needed = -np.linalg.eigvalsh(K.astype(float)).min()  # much more than rounding would leave
    assert needed > float(RIDGE)
    L = landmarks._factor(K)
    added = (L.astype(float) @ L.T.astype(float) - K)[np.arange(50), np.arange(50)]
    assert_allclose(added, added[0], rtol=1e-2)
    assert needed < added[0] < 11 * needed


# --- the columns -----------------------------------------------------------------------------------------------------


def fit_columns(feature_set, Z):
    """The features of all rows of Z, dense."""
    n = Z.shape[0]
    F, numbers = feature_set.fit_transform(Rows(Z), np.ones(n), np.zeros(n))
    assert_array_equal(numbers, np.arange(n))
    assert sp.issparse(F) == sp.issparse(Z) and F.dtype == np.float32
    return F.toarray() if sp.issparse(F) else F


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_rows_lie_at_a_mean_squared_distance_of_1_from_their_mean(rng, make):
    Z = np.where(rng.rand(200, 6) < 0.3, rng.rand(200, 6) * [1, 2, 3, 4, 5, 6], 0).astype(np.float32)
    F = fit_columns(Linear(), make(Z))
    assert ((F - F.mean(axis=0)) ** 2).sum(axis=1).mean() == pytest.approx(1, abs=1e-4)
    assert_allclose(F / F.max(), Z / Z.max(), rtol=1e-5)


def test_versions_stand_side_by_side(Z):
    rows = Rows(Z, Columns().fit(Z, 40))
    feature_set = Linear(("standard", "curves"))
    F, _ = feature_set.fit_transform(rows, np.ones(90), np.zeros(90))
    assert_allclose(F, np.hstack([rows.standard, rows.curves]) * feature_set.scale_)
    assert F.astype(float).var(axis=0).sum() == pytest.approx(1, abs=1e-4)


def scaled_rows(rng, n, d):
    """Columns of many values, of small deviation, and one that is constant."""
    Z = rng.rand(n, d).astype(np.float32)
    Z[:, 1] = 0.5 + 0.01 * Z[:, 1]
    Z[:, -1] = 1
    return Z


@pytest.mark.parametrize("n, d", [(80, 6), (20, 100)], ids=["many rows", "few rows"])
@pytest.mark.parametrize("in_place", [False, True])
def test_columns_are_each_divided_by_their_deviation(rng, n, d, in_place):
    Z, other = scaled_rows(rng, n, d), scaled_rows(rng, 30, d)
    raw = Z.copy()
    deviation = np.maximum(raw.astype(float).std(axis=0), linear.LEAST_DEVIATION)
    expected = np.where(np.arange(d) < d - 1, raw / deviation, 0)
    expected /= np.sqrt(expected.var(axis=0).sum())
    feature_set = Linear(each=True, in_place=in_place)
    F = fit_columns(feature_set, Z)
    assert_allclose(F, expected, rtol=1e-4, atol=1e-5)
    assert_array_equal(Z, F if in_place else raw)
    w = rng.randn(d).astype(np.float32)
    scale = np.divide(expected[0], raw[0], dtype=float)
    for rows in (raw, other):
        scores = feature_set.score(Rows(rows), feature_set.coefficients(w))
        assert_allclose(scores, rows @ (w * scale), atol=1e-4 * np.abs(scores).max())


def sparse_rows(n, d, seed=0):
    """Rows of a few counts; columns are filled the less often the further behind they are."""
    rng = np.random.RandomState(seed)
    columns = (d * rng.rand(n * 8) ** 3).astype(int)
    X = sp.csr_array((rng.randint(1, 4, n * 8), (np.repeat(np.arange(n), 8), columns)), shape=(n, d), dtype=np.float32)
    X.sum_duplicates()
    return X


def test_of_too_many_sparse_columns_those_filled_most_often_are_learned_from(rng):
    Z = sparse_rows(400, 300)
    feature_set = Linear(most_columns=20)
    F = fit_columns(feature_set, Z)
    filled = (Z.toarray() != 0).sum(axis=0)
    chosen = feature_set.columns_
    assert len(set(chosen)) == 20 and (np.diff(chosen) > 0).all()
    assert filled[chosen].min() >= np.delete(filled, chosen).max() > 0
    dense = Z.toarray()[:, chosen]
    assert_allclose(F, dense / np.sqrt(dense.var(axis=0).sum()), rtol=1e-5)
    w = rng.randn(20).astype(np.float32)
    coefficients = feature_set.coefficients(w)
    assert coefficients.shape == (300,) and set(np.flatnonzero(coefficients)) == set(chosen)
    assert_allclose(feature_set.score(Rows(Z), coefficients), F @ w, rtol=1e-4, atol=1e-5)
    assert_array_equal(fit_columns(Linear(most_columns=300), Z), fit_columns(Linear(), Z))


def test_of_sparse_columns_filled_equally_often_some_are_drawn():
    """In the order of the file, what comes last would never be learned from."""
    feature_set = Linear(most_columns=60)
    fit_columns(feature_set, sp.csr_array(np.ones((400, 300), np.float32)))
    assert 5 <= np.count_nonzero(feature_set.columns_ < 60) <= 24  # 12 are to be expected


@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_array.toarray], ids=["sparse", "dense"])
def test_even_columns_deviate_alike_unless_that_is_next_to_nothing(make):
    Z = sparse_rows(600, 90)
    Z.data[Z.indices == 3] *= 1e-3
    F = fit_columns(Even(each=True), make(Z))
    deviation, raw = F.astype(float).std(axis=0), Z.toarray().astype(float).std(axis=0)
    is_small = raw < linear.LEAST_DEVIATION
    assert is_small[3] and not is_small.all()
    assert_allclose(deviation[~is_small], deviation[~is_small][0], rtol=1e-4)
    assert_allclose(deviation[is_small] / raw[is_small], deviation[0] / linear.LEAST_DEVIATION, rtol=1e-4)
    assert_allclose((deviation**2).sum(), 1, rtol=1e-4)


@pytest.mark.parametrize("n, d", [(50, 7), (30, 400)])
def test_the_variance_of_sparse_columns(n, d):
    Z = sparse_rows(n, d)
    assert_allclose(linear._variance(Z), Z.toarray().astype(float).var(axis=0), rtol=1e-9, atol=1e-12)


# --- what all sets have to offer -------------------------------------------------------------------------------------

MADE = {
    "boosted trees": lambda: Boosting(3, 8, 4, 60),
    "boosted trees of few columns": lambda: Boosting(3, 8, 2, 90),
    "boosted trees of wide data": lambda: Boosting(3, 8, 2, 50, wide=True),
    "forest": lambda: Forest(12, 60),
    "mixed": lambda: Mixed(60),
    "smooth": lambda: Smooth(90),
    "rough": lambda: Rough(40),
    "linear": lambda: Linear(("standard", "curves")),
    "plain": lambda: Linear(),
    "wide": lambda: Linear(each=True, in_place=True),
    "frequent columns": lambda: Linear(most_columns=2),
    "even": lambda: Even(each=True),
    "even frequent columns": lambda: Even(each=True, most_columns=3),
}


@pytest.fixture(params=MADE)
def feature_set(request):
    """Every kind of set, unfitted."""
    return MADE[request.param]()


@pytest.fixture
def y(rng):
    """Signs of the rows of Z."""
    return rng.permutation(np.where(np.arange(90) % 3, -1, 1))


@pytest.fixture(params=["ranked", "unranked"])
def training(request, Z):
    """The rows of Z, twelve of which are landmarks."""
    columns = Columns(np.inf if request.param == "ranked" else 0).fit(Z, 40)
    return Rows(Z, columns, Rows(Z[3:15], columns))


def fitted(feature_set, training, y, rng):
    """Features, and numbers of their rows, of rows that are sparse if only some of their columns are to be used."""
    if getattr(feature_set, "most_columns", None):
        training = Rows(sp.csr_array(training.scaled))
    F, numbers = feature_set.fit_transform(training, y, inner_folds(y, 3, rng))
    return (F.toarray() if sp.issparse(F) else F), numbers


def of_other_rows(training, feature_set, Z):
    """Rows to score, as a fitted ranker has them."""
    Z = sp.csr_array(Z) if getattr(feature_set, "most_columns", None) else Z
    return Rows(Z.astype(np.float64), training.columns, training.landmarks)


def test_all_sets_have_a_test_here_a_name_of_their_own_and_words_for_people():
    assert {type(make()) for make in MADE.values()} == set(FEATURE_SETS) == set(SETS.values())
    assert all(kind.name and kind.words for kind in FEATURE_SETS)


def test_features_are_finite_and_score_is_their_product_with_the_weights(feature_set, training, y, rng):
    """Trees score training rows by the mean over folds, so these have an oracle of their own."""
    Z = training.scaled.copy()
    F, numbers = fitted(feature_set, training, y, rng)
    assert F.shape[0] == len(numbers) and (np.diff(numbers) > 0).all() and np.isfinite(F).all()
    w = rng.randn(F.shape[1]).astype(np.float32)
    scores = feature_set.score(of_other_rows(training, feature_set, Z), feature_set.coefficients(w))
    assert scores.shape == (90,) and np.isfinite(scores).all()
    if not isinstance(feature_set, (Boosting, Forest)):
        assert_allclose(scores[numbers], F @ w, atol=2e-3 * np.abs(F @ w).max())


def test_other_rows_change_nothing(feature_set, training, y, rng):
    Z = training.scaled.copy()
    F, _ = fitted(feature_set, training, y, rng)
    c = feature_set.coefficients(rng.randn(F.shape[1]).astype(np.float32))
    alone, among_others = (of_other_rows(training, feature_set, A) for A in (Z[:7], np.vstack([Z, 9 * Z, -Z])))
    found, expected = feature_set.score(alone, c), feature_set.score(among_others, c)[:7]
    assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_a_set_that_comes_from_a_file_scores_the_same_to_the_last_digit(feature_set, training, y, rng):
    """After a way through JSON and through an .npz file, and with nothing else of what was fitted."""
    Z = training.scaled.copy()
    F, _ = fitted(feature_set, training, y, rng)
    coefficients = feature_set.coefficients(rng.randn(F.shape[1]).astype(np.float32))
    settings, arrays = feature_set.to_file()
    file = io.BytesIO()
    np.savez(file, **arrays)
    file.seek(0)
    again = type(feature_set).from_file(json.loads(json.dumps(settings)), dict(np.load(file, allow_pickle=False)))
    for rows in (Z, floats(rng, 40, Z.shape[1]), 1e6 * Z):
        rows = of_other_rows(training, feature_set, rows)
        assert_array_equal(again.score(rows, coefficients), feature_set.score(rows, coefficients))
    once_more, of_arrays = again.to_file()
    assert json.dumps(once_more) == json.dumps(settings) and of_arrays.keys() == arrays.keys()


def test_only_the_last_set_may_change_the_scaled_rows(feature_set, training, y, rng):
    """All others leave them to the sets behind them."""
    before = training.scaled.copy()
    fitted(feature_set, training, y, rng)
    assert (training.scaled == before).all() or type(feature_set) is FEATURE_SETS[-1]


# --- a new set -------------------------------------------------------------------------------------------------------


class Splines(FeatureSet):
    """Of each standardised column how far it is above each of three quantiles."""

    name, words, visits = "splines", "bent columns", 4_000

    @classmethod
    def sized(cls, shape, plan):
        return None if plan.plain or plan.wide or shape.sparse else cls()

    def fit_transform(self, rows, y, fold):
        self.knots_ = np.quantile(rows.standard, [0.25, 0.5, 0.75], axis=0).astype(np.float32)
        F = self._bent(rows)
        self.scale_ = np.float32(1 / np.sqrt(F.var(axis=0).sum()))
        return F * self.scale_, np.arange(len(rows))

    def _bent(self, rows):
        return np.hstack([np.maximum(rows.standard - knots, 0) for knots in self.knots_] + [rows.standard])

    def coefficients(self, w):
        return w * self.scale_

    def score(self, rows, coefficients):
        return self._bent(rows) @ coefficients

    def to_file(self):
        return {}, {"knots": self.knots_}

    @classmethod
    def from_file(cls, settings, arrays):
        feature_set = cls()
        feature_set.knots_ = arrays["knots"]
        return feature_set


@pytest.fixture
def with_splines(monkeypatch):
    """As if the new set were a module of the folder, and a name in the list."""
    monkeypatch.setattr(ranker, "FEATURE_SETS", [Splines, *FEATURE_SETS])
    monkeypatch.setitem(SETS, "splines", Splines)


def bent_rows(n, seed=0):
    """Rows of which the positives lie in the middle of two columns."""
    X = np.random.RandomState(seed).randn(n, 4)
    return X, np.abs(X[:, :2]).sum(axis=1) < 1


def test_a_new_set_is_learned_from_named_saved_and_loaded(with_splines, tmp_path, monkeypatch):
    (X, y), (X_test, y_test) = bent_rows(500), bent_rows(500, seed=1)
    model = AUCRanker(effort=1 / 4, random_state=0).fit(X, y)
    assert next(iter(model.shares_)) == "splines" and model.shares_["splines"] > 0.2
    assert f"bent columns {model.shares_['splines']:.0%}" in words.shares_line([model.shares_])
    scores = model.decision_function(X_test)
    assert roc_auc_score(y_test, scores) > 0.95
    assert "splines" not in AUCRanker("linear", effort=1 / 4, random_state=0).fit(X, y).shares_
    model.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    assert_array_equal(loaded.decision_function(X_test), scores)
    assert_array_equal(loaded.predict_proba(X_test), model.predict_proba(X_test))
    monkeypatch.delitem(SETS, "splines")  # where the new module is not
    with pytest.raises(InputError, match=r"is damaged: .*splines") as raised:
        load_model(tmp_path / "model.npz")
    assert "\n" not in str(raised.value)


def test_a_new_set_alone_is_all_that_a_score_consists_of(with_splines, monkeypatch):
    monkeypatch.setattr(ranker, "FEATURE_SETS", [Splines])
    (X, y), (X_test, y_test) = bent_rows(500), bent_rows(500, seed=1)
    model = AUCRanker(effort=1 / 4, random_state=0).fit(X, y)
    assert model.shares_ == {"splines": pytest.approx(1)} and model.done_ == 1
    function = model.score_function_
    ((of_set, coefficients),) = function.sets
    Z = Rows(function.preprocessor.transform(X_test).astype(float), function.columns)
    expected = function.slope * (of_set.score(Z, coefficients) + function.intercept) + function.offset
    assert_allclose(model.decision_function(X_test), expected, rtol=1e-9)
    assert roc_auc_score(y_test, expected) > 0.95
