"""The recipe as a scikit-learn estimator. Oracles: scikit-learn's own checks and tools, and the command."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import ROOT, call, make_rows
from numpy.testing import assert_allclose
from scipy.io import savemat
from scipy.special import expit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.inspection import permutation_importance
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import oam
import tenfold
from preprocess import InputError, Preprocessor
from tenfold import AUCRanker, OnlineAUC, load_model
from tenfold.plan import draw_rows, make_plan
from tenfold.ranker import PublishedRanker

pytestmark = pytest.mark.usefixtures("quick_plans")
QUICK = {"budget": 0.05, "random_state": 0}  # enough for what is around the learning


@parametrize_with_checks([AUCRanker(), PublishedRanker(C=1e-2)])
def test_scikit_learn_estimator(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def cancer():
    """Malignant is the rarer label, and here the greater one; every other row."""
    X, y = load_breast_cancer(return_X_y=True)
    return X[::2], 1 - y[::2]


@pytest.mark.parametrize("argv, settings", [([], {}), (["--features", "linear"], {"features": "linear"})])
def test_the_command_gives_what_cross_validation_by_scikit_learn_gives(cancer, tmp_path, monkeypatch, argv, settings):
    X, y = cancer
    monkeypatch.setattr("tenfold.folds.RESERVE", -99.0)  # a thousand seconds, so that no machine is too slow
    savemat(tmp_path / "data.mat", {"x_tr": X, "y_tr": y[:, None]})
    code, out, err = call(tmp_path / "data.mat", "--seed", 3, "--scores", tmp_path / "scores.csv", *argv)
    cv = StratifiedKFold(10, shuffle=True, random_state=3)
    ranker = AUCRanker(random_state=3, **settings)
    scores = cross_val_predict(ranker, X, y, cv=cv, method="decision_function")
    np.testing.assert_array_equal(np.genfromtxt(tmp_path / "scores.csv", delimiter=",", names=True)["score"], scores)
    aucs = [roc_auc_score(y[test], scores[test]) for _, test in cv.split(X, y)]  # as cross_val_score has them
    assert code == 0
    assert re.search(r"AUC of each fold: (.*)", err)[1] == " ".join(f"{auc:.4f}" for auc in aucs)
    assert out == f"AUC Score: {np.mean(aucs):.4f}\n"
    if settings:
        np.testing.assert_array_equal(cross_val_score(ranker, X, y, cv=cv, scoring="roc_auc"), aucs)


@pytest.fixture(scope="module")
def rows():
    return make_classification(400, 8, n_informative=5, weights=[0.8], class_sep=1.5, random_state=0)


def test_any_two_labels_and_the_second_is_positive(rows):
    X, y = rows
    scores = AUCRanker(**QUICK).fit(X, y).decision_function(X)
    for labels in np.array(["no", "yes"]), np.array([-3, 7]), np.array([False, True]):
        ranker = AUCRanker(**QUICK).fit(X, labels[y])
        np.testing.assert_array_equal(ranker.decision_function(X), scores)
        np.testing.assert_array_equal(ranker.classes_, labels)
        np.testing.assert_array_equal(ranker.predict(X), labels[(scores > 0).astype(int)])


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_rows(rows, make):
    X, y = np.maximum(rows[0], 0), rows[1]
    of_dense = roc_auc_score(y, AUCRanker(**QUICK).fit(X, y).decision_function(X))
    ranker = AUCRanker(**QUICK).fit(make(X), y)
    scores = ranker.decision_function(make(X))
    assert roc_auc_score(y, scores) > of_dense - 0.02
    np.testing.assert_allclose(ranker.decision_function(X), scores, rtol=1e-6)  # dense rows, after sparse ones


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("ranker", [AUCRanker(**QUICK), PublishedRanker(random_state=0)])
def test_rows_by_number_are_learned_from_as_if_they_were_all(rows, make, ranker):
    X, y = make(rows[0]), rows[1]
    some = np.random.RandomState(0).permutation(len(y))[:300]
    expected = clone(ranker).fit(X[some], y[some])
    found = clone(ranker).fit(X, y, rows=some)
    np.testing.assert_array_equal(found.decision_function(X), expected.decision_function(X))
    assert found.changes_ == expected.changes_


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_columns_may_be_looked_at_in_the_first_rows_alone(monkeypatch, make):
    """What a column is like is told by 40 of the rows that are drawn; all of these are learned from."""
    X, y = make_rows(900, 6, 300)
    monkeypatch.setattr("tenfold.ranker.make_plan", lambda *a: replace(make_plan(*a), wide=True, looked_at=40))
    scaled, scale = [], Preprocessor.transform_rows
    monkeypatch.setattr(Preprocessor, "transform_rows", lambda self, X: scaled.append(X.shape[0]) or scale(self, X))
    model = AUCRanker(random_state=0).fit(make(X), y)
    draw = draw_rows(y, 900, np.random.RandomState(0))[:40]
    assert_allclose(model.score_function_.preprocessor.extremes_, [X[draw].min(axis=0), X[draw].max(axis=0)])
    assert scaled == [900] and roc_auc_score(y, model.decision_function(X)) > 0.9


def test_missing_values_and_infinities(rows):
    X, y = rows[0].copy(), rows[1]
    X[::7, 2], X[3::11, 4], X[5::13, 1] = np.nan, np.inf, -np.inf
    ranker = AUCRanker(random_state=0).fit(X, y)
    assert ranker.changes_["missing"] == np.count_nonzero(~np.isfinite(X))
    assert roc_auc_score(y, ranker.decision_function(X)) > 0.9


def test_data_frames_are_checked_by_their_columns_names(rows):
    pd = pytest.importorskip("pandas")
    X, y = pd.DataFrame(rows[0], columns=list("abcdefgh")), rows[1]
    ranker = AUCRanker(**QUICK).fit(X, y)
    assert ranker.feature_names_in_.tolist() == list("abcdefgh")
    np.testing.assert_array_equal(
        ranker.decision_function(X), AUCRanker(**QUICK).fit(rows[0], y).decision_function(rows[0])
    )
    with pytest.raises(ValueError, match="feature names"):
        ranker.decision_function(X[list("hgfedcba")])


def test_it_works_with_what_scikit_learn_has(rows):
    X, y = rows
    ranker = AUCRanker(**QUICK)
    assert cross_val_score(make_pipeline(StandardScaler(), ranker), X, y, cv=3, scoring="roc_auc").min() > 0.9
    search = GridSearchCV(ranker, {"features": ["auto", "linear"]}, cv=2, scoring="roc_auc").fit(X, y)
    assert search.best_score_ > 0.9 and search.best_params_["features"] in ("auto", "linear")
    calibrated = CalibratedClassifierCV(ranker, cv=2).fit(X, y)
    assert roc_auc_score(y, calibrated.predict_proba(X)[:, 1]) > 0.9
    X = np.column_stack([X, np.random.RandomState(0).randn(len(y))])
    importance = permutation_importance(ranker.fit(X, y), X, y, scoring="roc_auc", n_repeats=3, random_state=0)
    assert importance.importances_mean[-1] < 0.02 < importance.importances_mean.max()
    again = pickle.loads(pickle.dumps(ranker))
    np.testing.assert_array_equal(again.decision_function(X), ranker.decision_function(X))
    assert clone(ranker).get_params() == ranker.get_params()


def test_the_learner_works_with_river(rows):
    compat = pytest.importorskip("river.compat")
    X, y = rows
    model = compat.convert_sklearn_to_river(OnlineAUC(C=1e-2, block=1, random_state=0), classes=[0, 1])
    for x, label in zip(X, y):
        model.learn_one({j: value for j, value in enumerate(x)}, int(label))
    expected = OnlineAUC(C=1e-2, block=1, random_state=0).fit(X, y).predict(X[:20])
    assert [int(model.predict_one({j: value for j, value in enumerate(x)})) for x in X[:20]] == expected.tolist()


@pytest.mark.parametrize("weights, n", [([0.5], 3000), ([0.9], 3000), ([0.95], 12_000)])
def test_probabilities_are_as_good_as_those_of_calibration_by_other_folds(weights, n, monkeypatch):
    """Rows are thinned by class where they are many: the probabilities must not show it."""
    monkeypatch.setattr("tenfold.ranker.make_plan", make_plan)
    X, y = make_classification(2 * n, 8, n_informative=5, weights=weights, flip_y=0.05, random_state=1)
    train, test = slice(n), slice(n, None)
    ours = AUCRanker(budget=0.3, random_state=0).fit(X[train], y[train])
    sklearns = CalibratedClassifierCV(AUCRanker(budget=0.3, random_state=0), cv=3).fit(X[train], y[train])
    losses = [brier_score_loss(y[test], model.predict_proba(X[test])[:, 1]) for model in (ours, sklearns)]
    probability = ours.predict_proba(X[test])
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    np.testing.assert_array_equal(probability[:, 1], expit(ours.decision_function(X[test])))
    assert losses[0] < losses[1] + 0.005
    assert probability[:, 1].mean() == pytest.approx(y[test].mean(), abs=0.02)


def test_probabilities_of_labels_that_cannot_be_learned_are_those_of_the_classes():
    X, y = np.random.RandomState(0).randn(600, 5), np.arange(600) % 4 == 0
    probability = AUCRanker(**QUICK).fit(X, y).predict_proba(X)[:, 1]
    assert probability.mean() == pytest.approx(0.25, abs=0.1)


def test_a_row_scores_the_same_alone_or_among_others(rows):
    X, y = rows
    X = np.column_stack([X, X[:, 0] > 0])  # a column of two values
    ranker = AUCRanker(**QUICK).fit(X, y)
    alone = [ranker.decision_function(X[i : i + 1])[0] for i in range(40)]
    np.testing.assert_allclose(alone, ranker.decision_function(X)[:40], rtol=1e-9)


def test_a_monitor_sees_learning_and_may_end_it(rows):
    X, y = rows
    seen, scores = [], []
    ranker = AUCRanker(**QUICK)

    def monitor(n_rows, end):
        seen.append(n_rows)
        end()
        scores.append(ranker.score_function_(X))
        return len(seen) == 2

    ranker.fit(X, y, monitor)
    assert len(seen) in (2, 3) and seen == sorted(seen) and 0 < ranker.done_ < 1
    assert roc_auc_score(y, scores[-1]) == pytest.approx(roc_auc_score(y, ranker.decision_function(X)), abs=1e-9)
    unwatched, watched = AUCRanker(**QUICK).fit(X, y), AUCRanker(**QUICK).fit(X, y, lambda n_rows, end: False)
    np.testing.assert_array_equal(watched.decision_function(X), unwatched.decision_function(X))
    assert watched.done_ == 1


def test_threads_of_matrix_products_are_limited_and_then_as_before(rows, monkeypatch):
    from threadpoolctl import threadpool_info, threadpool_limits

    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    inside = []
    fit = AUCRanker._fit
    monkeypatch.setattr(AUCRanker, "_fit", lambda *args: (inside.extend(threads()), fit(*args)))
    with threadpool_limits(2):
        before = threads()
        AUCRanker(**QUICK).fit(*rows)
        assert threads() == before
    assert set(inside) == {1}


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"features": "rich"}, "features is 'rich', expected one of"),
        ({"budget": 0}, "budget is 0, expected a finite number of seconds above 0"),
        ({"budget": np.inf}, "budget is inf, expected"),
        ({"budget": "1"}, "budget is '1', expected"),
    ],
)
def test_bad_parameters(rows, parameters, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        AUCRanker(**parameters).fit(*rows)


def test_nothing_to_learn_from():
    with pytest.raises(InputError, match="no feature varies"):
        AUCRanker(**QUICK).fit(np.ones((10, 3)), np.arange(10) % 2)


@pytest.mark.parametrize("settings", [{}, {"features": "linear"}])
def test_a_saved_ranker_is_the_same_after_loading(rows, tmp_path, settings):
    X, y = rows
    ranker = AUCRanker(**QUICK, **settings).fit(X, np.array(["no", "yes"])[y])
    ranker.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert type(again) is AUCRanker and again.get_params() == ranker.get_params()
    np.testing.assert_array_equal(again.predict_proba(X), ranker.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), ranker.predict(X))
    again.fit(X, y).save(tmp_path / "model.npz")


def test_a_saved_ranker_knows_the_names_of_its_columns(rows, tmp_path):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(rows[0], columns=list("abcdefgh"))
    AUCRanker(**QUICK).fit(X, rows[1]).save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert again.feature_names_in_.tolist() == list("abcdefgh")
    with pytest.raises(ValueError, match="feature names"):
        again.predict(X.rename(columns={"a": "z"}))


def test_the_command_scores_with_a_model_saved_from_python(tmp_path):
    X, y = make_rows()
    AUCRanker(**QUICK).fit(X, y).save(tmp_path / "model.npz")
    savemat(tmp_path / "new.mat", {"x_tr": X, "y_tr": y[:, None]})
    code, out, _ = call("--model", tmp_path / "model.npz", tmp_path / "new.mat", "-q")
    auc = roc_auc_score(y, load_model(tmp_path / "model.npz").decision_function(X))
    assert (code, out) == (0, f"AUC Score: {auc:.4f}\n")


def test_the_published_algorithm_has_probabilities_only_once_it_is_calibrated(rows):
    ranker = PublishedRanker(random_state=0).fit(*rows)
    assert not hasattr(ranker, "predict_proba")
    ranker.score_function_.calibrate(2.0, -1.0)
    scores = ranker.decision_function(rows[0])
    np.testing.assert_array_equal(ranker.predict_proba(rows[0])[:, 1], expit(scores))


def test_what_the_package_offers():
    assert tenfold.OnlineAUC is oam.OnlineAUC
    assert set(tenfold.__all__) == {"AUCRanker", "OnlineAUC", "load", "load_model"}
    assert (ROOT / "tenfold" / "__init__.py").read_text().count("import") == 8  # and no work of its own
