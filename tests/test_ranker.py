"""The recipe as a scikit-learn estimator. Oracles: scikit-learn's own checks and tools, and the command."""

import json
import pickle
import re
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import ROOT, call, make_rows, said_aucs
from numpy.testing import assert_allclose, assert_array_equal
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
from small_files import dense

import oam
import tenfold
from preprocess import InputError, Preprocessor
from tenfold import AUCRanker, OnlineAUC, load_model
from tenfold.features.linear import Linear
from tenfold.lanes import learn
from tenfold.plan import Shape, draw_rows, make_plan, thin
from tenfold.ranker import PublishedRanker, scaled, training_rows

QUICK = {"effort": 1 / 16, "random_state": 0}  # enough for what is around the learning


@parametrize_with_checks([AUCRanker(effort=1 / 16), PublishedRanker(C=1e-2)])
def test_scikit_learn_estimator(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def cancer():
    """Malignant is the rarer label, and here the greater one; every other row."""
    X, y = load_breast_cancer(return_X_y=True)
    return X[::2], 1 - y[::2]


@pytest.mark.parametrize(
    "effort, argv, settings", [(1 / 16, [], {}), (0.3, [], {}), (1.5, ["--features", "linear"], {"features": "linear"})]
)
def test_the_command_gives_what_cross_validation_by_scikit_learn_gives(cancer, tmp_path, argv, settings, effort):
    X, y = cancer
    savemat(tmp_path / "data.mat", {"x_tr": X, "y_tr": y[:, None]})
    argv = [tmp_path / "data.mat", "--effort", effort, "--scores", tmp_path / "scores.csv", *argv]
    code, out, err = call(*argv)
    ranker, cv = AUCRanker(effort=effort, random_state=0, **settings), StratifiedKFold(10, shuffle=True, random_state=0)
    aucs = cross_val_score(ranker, X, y, cv=cv, scoring="roc_auc")
    assert (code, out) == (0, f"AUC Score: {aucs.mean():.4f}\n")
    assert said_aucs(err) == " ".join(f"{auc:.4f}" for auc in aucs)
    if effort == 1 / 16:
        cv = StratifiedKFold(10, shuffle=True, random_state=3)
        assert call(*argv, "--seed", 3, "--force")[0] == 0
        scores = cross_val_predict(ranker.set_params(random_state=3), X, y, cv=cv, method="decision_function")
        found = np.genfromtxt(tmp_path / "scores.csv", delimiter=",", names=True)["score"]
        np.testing.assert_array_equal(found, scores)


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
    scaled, scale = [], Preprocessor.transform
    monkeypatch.setattr(Preprocessor, "transform", lambda self, X: scaled.append(X.shape[0]) or scale(self, X))
    model = AUCRanker(random_state=0).fit(make(X), y)
    draw = draw_rows(y, 900, np.random.RandomState(0))[:40]
    assert_allclose(model.score_function_.preprocessor.extremes_, [X[draw].min(axis=0), X[draw].max(axis=0)])
    assert scaled == [900] and roc_auc_score(y, model.decision_function(X)) > 0.9


@pytest.mark.parametrize("cells", [1, 50, 10**6])
def test_raw_rows_are_scaled_some_at_a_time_and_that_changes_nothing(monkeypatch, cells):
    X, _ = make_rows(100, 6, 30)
    numbers = np.random.RandomState(0).permutation(100)[:70]
    monkeypatch.setattr("tenfold.ranker.CELLS_AT_A_TIME", cells)
    for raw, sparse in ((X, False), (sp.csr_array(X), False), (sp.csr_array(X), True)):
        preprocessor = Preprocessor().fit(raw)
        Z = scaled(preprocessor, raw, numbers, sparse)
        assert sp.issparse(Z) == sparse and Z.dtype == np.float32
        assert_array_equal(dense(Z), dense(preprocessor.transform(raw))[numbers])


# --- its sets of features --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [1, 10, 22, 23])
def test_landmarks_are_rows_to_learn_from_and_none_is_one_twice(monkeypatch, asked):
    X, y = make_rows(90, 4, 30)
    Z, shape = X.astype(np.float32), Shape(90, 30, 4, 4, 4.0)
    monkeypatch.setattr("tenfold.features.landmarks.sizes", lambda shape, plan: (23, asked))
    train = training_rows(Z, y, shape, make_plan(shape), np.random.RandomState(0))
    assert train.scaled is Z and train.columns is train.landmarks.columns
    sample, found = Z[thin(y, 23)], train.landmarks.scaled
    chosen = [np.flatnonzero((sample == landmark).all(axis=1)).item() for landmark in found]
    assert len(set(chosen)) == len(chosen) == asked


@pytest.mark.parametrize("changes", [{"wide": True}, {"plain": True}, {}], ids=["wide", "plain", "sparse"])
def test_where_only_scaled_columns_are_used_there_are_no_others_and_no_landmarks(changes):
    X, y = make_rows(90, 4, 30)
    shape = Shape(90, 30, 4, 4, 4.0, sparse=not changes)
    train = training_rows(X, y, shape, replace(make_plan(shape), **changes), np.random.RandomState(0))
    assert train.scaled is X and train.columns is None


class Spy(Linear):
    """The scaled columns of some of the rows; it notes what it was given."""

    n_rows, name = 200, "linear"

    @classmethod
    def sized(cls, shape, plan):
        return cls(visits=500)

    def fit_transform(self, rows, y, fold):
        self.seen = rows, y, fold
        some, self.numbers = rows.thinned(y, self.n_rows)
        return super().fit_transform(some, y, fold)[0], self.numbers


def test_each_set_gets_all_rows_and_the_same_ones_and_learns_from_those_that_it_names(rows, monkeypatch):
    X, y = rows
    kinds = [type(f"Spy{n}", (Spy,), {"n_rows": n}) for n in (400, 100, 200)]
    learned = []
    monkeypatch.setattr("tenfold.ranker.FEATURE_SETS", kinds)
    monkeypatch.setattr("tenfold.ranker.learn", lambda F, *a: learned.append((F, *a[:4])) or learn(F, *a))
    ranker = AUCRanker(**QUICK).fit(X, y)
    first, *others = (feature_set for feature_set, _ in ranker.score_function_.sets)
    train, signs, fold = first.seen
    order = draw_rows(np.where(y, 1, -1), 400, np.random.RandomState(0))
    assert_array_equal(signs, np.where(y, 1, -1)[order])
    assert_array_equal(train.scaled, ranker.score_function_.preprocessor.transform(X[order]))
    assert all(other.seen[0] is train for other in others)
    for feature_set, (F, numbers, of_rows, of_folds, visits) in zip([first, *others], learned, strict=True):
        assert_array_equal(numbers, thin(signs, feature_set.n_rows))
        assert_allclose(F, train.scaled[numbers] * feature_set.scale_)
        assert of_rows is signs and of_folds is fold and visits == 500


def test_sets_that_are_not_reached_before_the_stop_are_not_touched(rows, monkeypatch):
    X, y = rows
    first, second, third = ([] for _ in range(3))

    def kind(fitted):
        fit_transform = lambda self, *how: fitted.append(self) or Spy.fit_transform(self, *how)  # noqa: E731
        return type("Kind", (Spy,), {"fit_transform": fit_transform})

    monkeypatch.setattr("tenfold.ranker.FEATURE_SETS", [kind(first), kind(second), kind(third)])
    ranker = AUCRanker(**QUICK).fit(X, y, stop=lambda: True)
    assert len(first) == 1 and not second and not third
    assert 0 < ranker.done_ < 1 / 3 + 1e-9 and len(ranker.score_function_.sets) == 1
    ranker = AUCRanker(**QUICK).fit(X, y, stop=lambda: len(second) > 0)
    assert len(second) == 1 and not third
    assert 1 / 3 < ranker.done_ < 2 / 3 + 1e-9 and len(ranker.score_function_.sets) == 2
    assert roc_auc_score(y, ranker.decision_function(X)) > 0.6
    assert AUCRanker(**QUICK).fit(X, y).done_ == 1 and len(third) == 1


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
    ours = AUCRanker(effort=0.25, random_state=0).fit(X[train], y[train])
    sklearns = CalibratedClassifierCV(AUCRanker(effort=0.25, random_state=0), cv=3).fit(X[train], y[train])
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


def test_learning_ends_where_it_is_told_to_stop(rows):
    X, y = rows
    calls = []
    stopped = AUCRanker(**QUICK).fit(X, y, stop=lambda: True)
    asked = AUCRanker(**QUICK).fit(X, y, stop=lambda: bool(calls.append(1)))
    assert 0 < stopped.done_ < asked.done_ == 1 and len(calls) > 1
    assert roc_auc_score(y, stopped.decision_function(X)) > 0.6
    np.testing.assert_array_equal(asked.decision_function(X), AUCRanker(**QUICK).fit(X, y).decision_function(X))


@pytest.mark.parametrize("ranker", [AUCRanker(**QUICK), PublishedRanker()])
def test_it_tells_how_many_rows_it_has_learned_from_and_how_long_it_prepared_them(ranker, monkeypatch):
    X, y = make_rows(5000, 3, 1000)
    begun = time.monotonic()
    ranker.fit(X, y)
    assert 0 < ranker.preparing_ < time.monotonic() - begun
    assert ranker.rows_ == 5000
    ranker.fit(X, y, stop=lambda: True)
    assert ranker.done_ < 1 and (ranker.rows_ < 5000) == isinstance(ranker, PublishedRanker)  # which goes row by row
    monkeypatch.setattr("tenfold.ranker.make_plan", lambda *a: replace(make_plan(*a), rows=900))
    assert isinstance(ranker, PublishedRanker) or ranker.fit(X, y).rows_ == 900


def test_more_effort_learns_from_more_rows_and_ranks_other_rows_better():
    """Of many rows: by more than the standard error of what is learned from few."""
    X, y = make_classification(12_000, 12, n_informative=8, n_clusters_per_class=3, class_sep=0.7, random_state=0)
    train, test = slice(8_000), slice(8_000, None)
    rankers = [AUCRanker(effort=effort, random_state=0).fit(X[train], y[train]) for effort in (1 / 64, 1)]
    aucs = [roc_auc_score(y[test], ranker.decision_function(X[test])) for ranker in rankers]
    assert rankers[0].rows_ < rankers[1].rows_ == 8_000
    assert aucs[1] > aucs[0] + 0.005


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
        ({"effort": 0}, "effort is 0, expected a finite number above 0"),
        ({"effort": np.inf}, "effort is inf, expected"),
        ({"effort": "1"}, "effort is '1', expected"),
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


# --- the package -----------------------------------------------------------------------------------------------------


def test_what_the_package_offers():
    """What it names can be had, though it is imported only when it is asked for."""
    assert tenfold.OnlineAUC is oam.OnlineAUC and tenfold.AUCRanker is AUCRanker
    assert {name for name in tenfold.__all__ if callable(getattr(tenfold, name))} == set(tenfold.__all__)
    assert set(tenfold.__all__) <= set(dir(tenfold))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = tenfold.nothing


STATE = """
import gc, inspect, json, os, sys
before = dict(os.environ), gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), list(sys.meta_path)
if sys.argv[1:]:
    sys.path.insert(0, sys.argv[1])
    import tenfold
after = dict(os.environ), gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), list(sys.meta_path)
import numpy, numpy.testing, scipy.stats, scipy.sparse.linalg, scipy.special, scipy.optimize
import joblib, sklearn.calibration, sklearn.ensemble, sklearn.feature_selection, sklearn.model_selection, threadpoolctl

names = ("numpy", "numpy.testing", "scipy", "scipy.stats", "scipy.optimize", "scipy.sparse", "sklearn", "joblib")
modules = {name: module for name, module in sys.modules.items() if name.split(".")[0] in ("numpy", "scipy", "sklearn")}
print(json.dumps({
    "as before": before == after,
    "modules": {name: [type(sys.modules[name]).__name__, sys.modules[name].__file__] for name in names},
    "no modules": [name for name, module in modules.items() if type(module).__name__ == "NoneType"],
    "names": {name: sorted(vars(sys.modules[name])) for name in ("numpy", "scipy.stats", "sklearn")},
    "docstrings": [
        value.__doc__
        for module in (scipy.stats, scipy.optimize, scipy.special, numpy)
        for name, value in sorted(vars(module).items())
        if inspect.isroutine(value) and name[0] != "_"
    ],
    "distributions": [scipy.stats.norm.__doc__, scipy.stats.norm.pdf.__doc__, scipy.stats.rv_continuous.__doc__],
}))
"""


def test_importing_it_changes_no_other_library():
    """Against a process that imports the same libraries without it."""
    without, with_it = (
        json.loads(subprocess.run([sys.executable, "-c", STATE, *argv], capture_output=True, check=True).stdout)
        for argv in ([], [str(ROOT)])
    )
    assert len(with_it["docstrings"]) > 500 and with_it["as before"]
    assert with_it == without
