"""Saved models: the same scores after loading, to the last bit, and one line for whatever is not such a model."""

import json
import os
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import make_rows
from numpy.testing import assert_array_equal
from scipy.special import expit
from sklearn.metrics import roc_auc_score

import exp
from preprocess import InputError
from tenfold import AUCRanker, load_model, models, ranker
from tenfold.plan import Plan
from tenfold.ranker import PublishedRanker
from tenfold.readers.base import Data

pytestmark = pytest.mark.filterwarnings("error")


def fit(X, y, learner=AUCRanker, **settings):
    effort = {"effort": 1 / 4} if learner is AUCRanker else {}
    return learner(random_state=0, **effort, **settings).fit(X, y)


def mixed_rows(n=80):
    """Columns of many values, of two, constant, equal to another, and with missing cells."""
    X, y = make_rows(n, 5, n // 4)
    X = np.column_stack([X, X[:, 0], np.ones(n), X[:, 1] > 0])
    X[::7, 2] = np.nan
    return X, y


LEARNERS = [
    {},
    {"features": "linear"},
    {"learner": PublishedRanker},
    {"learner": PublishedRanker, "update": "sequential", "C": 0.01},
]


@pytest.mark.parametrize("settings", LEARNERS)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, lambda X: np.nan_to_num(10 * X).astype(np.uint8)])
def test_scores_after_loading_are_those_before_bit_for_bit(tmp_path, settings, make):
    X, y = mixed_rows()
    model = fit(make(X), y, **settings)
    model.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    others = make(mixed_rows(60)[0] + 0.3)
    assert type(loaded) is type(model) and loaded.get_params() == model.get_params()
    assert_array_equal(loaded.decision_function(others), model.decision_function(others))
    assert_array_equal(loaded.decision_function(make(X)), model.decision_function(make(X)))
    assert len(set(model.decision_function(others))) > 10


@pytest.mark.parametrize("learner", [AUCRanker, PublishedRanker])
def test_probabilities_after_loading_are_those_before_or_none(tmp_path, learner):
    X, y = mixed_rows()
    model = fit(X, y, learner)
    model.save(tmp_path / "plain.npz")
    loaded = load_model(tmp_path / "plain.npz")
    assert loaded.score_function_.is_calibrated == hasattr(loaded, "predict_proba") == (learner is AUCRanker)
    model.score_function_.calibrate(2.5, -0.5)
    model.save(tmp_path / "calibrated.npz")
    again = load_model(tmp_path / "calibrated.npz")
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert_array_equal(again.predict_proba(X)[:, 1], expit(again.decision_function(X)))
    assert_array_equal(again.predict(X), model.predict(X))


def test_a_model_of_many_columns_or_many_sparse_ones(tmp_path, monkeypatch):
    for module in ("oam", "tenfold.ranker"):
        monkeypatch.setattr(f"{module}.FEW_COLUMNS", 5)
    X, y = mixed_rows()
    sparse = sp.csr_array(np.nan_to_num(X))
    for rows, most_ranked in ((sparse, 100), (X, 0)):
        similarities = {"small": False, "most_ranked": most_ranked, "wide": False}
        plan = Plan(
            rows=60,
            sample=60,
            landmarks=20,
            visits=500,
            block=8,
            draw=16,
            buffer=100,
            folds=2,
            looked_at=60,
            **similarities,
            trees=0,
            leaves=40,
            tree_rows=60,
            tree_columns=5,
            even=most_ranked > 0,
            forest=0,
            forest_rows=0,
        )
        monkeypatch.setattr("tenfold.ranker.make_plan", lambda shape, effort, plan=plan: plan)
        model = fit(rows, y)
        assert model.score_function_.keep_sparse == sp.issparse(rows)
        model.save(tmp_path / "model.npz")
        assert_array_equal(load_model(tmp_path / "model.npz").decision_function(rows), model.decision_function(rows))


def test_a_model_with_a_forest(tmp_path, monkeypatch):
    """Some of the rows grow it; a damaged one is refused."""
    make_plan = ranker.make_plan
    monkeypatch.setattr(ranker, "make_plan", lambda *a: replace(make_plan(*a), trees=0, forest=12, forest_rows=200))
    X, y = mixed_rows(300)
    y = np.where((X[:, 0] > 0) ^ (X[:, 3] > 0) ^ (X[:, 4] > 2), 1, -1)  # which trees find well
    model = fit(X, y)
    assert model.shares_["forest"] > 0 and len(model.score_function_.feature_sets.sets["forest"].trees_.root) == 12
    loaded = saved_and_loaded(model, tmp_path / "model.npz")
    others = mixed_rows(60)[0]
    for rows in (X, others + 0.3, 1e6 * others, -1e300 * others, others.astype(np.float32)):
        assert np.isfinite(model.decision_function(rows)).all()
        assert_array_equal(loaded.decision_function(rows), model.decision_function(rows))
    rewrite(tmp_path / "model.npz", lambda arrays, about: arrays["set.forest.value"].__setitem__(-1, -0.5))
    with pytest.raises(InputError, match="is damaged: its forest has shares below 0"):
        load_model(tmp_path / "model.npz")


def saved_and_loaded(model, path):
    model.save(path)
    return load_model(path)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_a_model_of_few_rows_and_many_columns(tmp_path, make):
    """It has learned from coordinates in the space that its rows span."""
    X, y = make_rows(60, 400, 20)
    X[:, 200:] = X[:, 200:] > 0
    model = fit(make(X), y)
    assert model.score_function_.feature_sets.sets["linear"].rows_ is not None
    others = make(make_rows(50, 400, 10, seed=1)[0])
    loaded = saved_and_loaded(model, tmp_path / "model.npz")
    assert_array_equal(loaded.decision_function(others), model.decision_function(others))
    assert len(set(model.decision_function(others))) == 50


@pytest.mark.parametrize("n, d", [(300, 30), (60, 400)], ids=["many rows", "few rows"])
def test_a_model_of_wide_rows(tmp_path, monkeypatch, n, d):
    """It scores raw rows, and they have the scores of rows that are cleaned and scaled first."""
    X, y = make_rows(n, d, n // 4)
    X[:, 1], X[:, 2] = 5, X[:, 0]
    X[::4, 3] = np.nan
    X[:, 4] = 1e6 + 1e3 * X[:, 4]
    make_plan = ranker.make_plan
    monkeypatch.setattr(
        ranker, "make_plan", lambda shape, effort: replace(make_plan(shape, effort), wide=True, landmarks=0)
    )
    raw = X.copy()
    model = fit(X, y)
    assert_array_equal(X, raw)
    function, others = model.score_function_, np.vstack([X, make_rows(50, d, 10, seed=1)[0]])
    assert list(function.feature_sets.sets) == ["linear"] and function.feature_sets.columns is None
    loaded = saved_and_loaded(model, tmp_path / "model.npz")
    assert_array_equal(loaded.decision_function(others), model.decision_function(others))
    scaled = function.preprocessor.transform(others).astype(float) @ function.coefficients[0]
    expected = function.slope * (scaled + function.intercept) + function.offset
    np.testing.assert_allclose(model.decision_function(others), expected, atol=1e-4 * np.abs(expected).max())
    assert roc_auc_score(y, model.decision_function(X)) > 0.9


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_a_model_of_wide_rows_with_trees(tmp_path, monkeypatch, make):
    """Of raw rows, only the columns that trees look at are scaled, among them one that says what is missing."""
    X, y = make_rows(900, 60, 300)
    X[:, 1], X[:, 2], X[:, 5] = 5, X[:, 0], np.where(y > 0, 1, np.nan)
    X[::3, 5], X[:, 6] = 1, 1e6 + 1e3 * X[:, 6]
    make_plan, settings = ranker.make_plan, {"wide": True, "landmarks": 0, "trees": 6, "tree_columns": 9, "forest": 0}
    monkeypatch.setattr(ranker, "make_plan", lambda shape, effort: replace(make_plan(shape, effort), **settings))
    model = fit(make(X), y)
    function = model.score_function_
    assert list(function.feature_sets.sets) == ["trees", "linear"]
    looked_at = function.feature_sets.sets["trees"].trees_.column
    assert looked_at.max() >= len(function.preprocessor.kept_)
    others = make(np.vstack([X, make_rows(50, 60, 10, seed=1)[0]]))
    loaded = saved_and_loaded(model, tmp_path / "model.npz")
    assert_array_equal(loaded.decision_function(others), model.decision_function(others))
    direct = model.decision_function(others)
    monkeypatch.setattr(type(function.feature_sets), "take_raw", False)
    np.testing.assert_allclose(direct, model.decision_function(others), atol=1e-4 * np.abs(direct).max())
    assert roc_auc_score(y, direct[: len(y)]) > 0.9


@pytest.mark.parametrize("settings", [{"features": "linear"}, {"learner": PublishedRanker}])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_raw_rows_have_the_scores_of_scaled_ones(monkeypatch, settings, make):
    X, y = mixed_rows()
    X[:, 0] *= 1e9
    model = fit(make(X), y, **settings)
    others = make(np.vstack([X, mixed_rows(60)[0] + 0.3]))
    direct = model.decision_function(others)
    monkeypatch.setattr(type(model.score_function_.feature_sets), "take_raw", False)
    np.testing.assert_allclose(direct, model.decision_function(others), atol=1e-5 * np.abs(direct).max())


@pytest.mark.parametrize("factor", [1e305, 1e-20], ids=["large", "small"])
def test_raw_rows_of_extreme_columns_or_far_off_have_finite_scores(factor):
    X, y = make_rows()
    for rows in (X, X * [factor, 1, 1, 1]):
        model = fit(rows, y, features="linear")
        far = np.vstack([rows, np.full((1, 4), 1e308), np.full((1, 4), -1e308)])
        scores = model.decision_function(far)
        assert np.isfinite(scores).all()
        np.testing.assert_allclose(scores[:-2], model.decision_function(rows), rtol=1e-6)
        assert roc_auc_score(y, scores[:-2]) > 0.7


def few_trees(monkeypatch, **changes):
    make_plan = ranker.make_plan
    monkeypatch.setattr(
        ranker, "make_plan", lambda shape, effort: replace(make_plan(shape, effort), trees=4, **changes)
    )


@pytest.mark.parametrize("most_ranked", [100, 0], ids=["ranked", "unranked"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n", [1300, 300])
def test_a_model_with_trees(tmp_path, monkeypatch, n, make, most_ranked):
    """Some of the rows grow trees; also rows further off than any before have the same scores after loading."""
    X, y = mixed_rows(n)
    y = np.where((X[:, 0] > 0) ^ (X[:, 3] > 0) ^ (X[:, 4] > 2), 1, -1)  # which trees find well
    few_trees(monkeypatch, most_ranked=most_ranked, tree_rows=n - 20)
    model = fit(make(X), y)
    sets = model.score_function_.feature_sets
    assert sets.columns.ranked_ == (most_ranked > 0)
    assert model.shares_["trees"] > 0 and len(sets.sets["trees"].trees_.root) > 4
    loaded = saved_and_loaded(model, tmp_path / "model.npz")
    again = loaded.score_function_.feature_sets.sets["trees"]
    for name, A in vars(sets.sets["trees"].trees_).items():
        assert_array_equal(getattr(again.trees_, name), A)
        assert getattr(again.trees_, name).dtype == A.dtype
    others = mixed_rows(60)[0]
    for rows in (X, others + 0.3, 1e6 * others, -1e300 * others, others.astype(np.float32)):
        scores = model.decision_function(make(rows))
        assert_array_equal(loaded.decision_function(make(rows)), scores)
        assert np.isfinite(scores).all()
    again = saved_and_loaded(loaded, tmp_path / "again.npz")
    assert_array_equal(again.decision_function(make(X)), model.decision_function(make(X)))


def test_a_model_that_the_clock_cut_short(tmp_path):
    X, y = make_rows(9000, 3, 2250)
    model = AUCRanker(random_state=0).fit(X, y, stop=lambda: True)
    assert 0 < model.done_ < 1
    model.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    assert_array_equal(loaded.decision_function(X[:50]), model.decision_function(X[:50]))


def test_scoring_in_chunks_changes_nothing(monkeypatch):
    X, y = mixed_rows()
    model = fit(X, y)
    whole = model.decision_function(X)
    monkeypatch.setattr(models, "SCORED", 7)
    np.testing.assert_allclose(model.decision_function(X), whole, rtol=1e-9)


def test_what_else_is_kept(tmp_path):
    X, y = make_rows()
    model = fit(X, np.array(["no", "yes"])[(y > 0).astype(int)])
    columns = [{"name": "a", "kind": "left out"}, {"name": "b", "kind": "text", "values": ["x", "y", "é"]}]
    csv = {"columns": [*columns, {"name": "c", "kind": "number"}], "label": "sick", "position": 0}
    model.data_ = Data(np.empty((0, 4)), np.array(["no", "yes"]), csv=csv, first_index=1)
    model.score_function_.calibrate(1.5, -0.1)
    model.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    assert loaded.data_.y.tolist() == loaded.classes_.tolist() == ["no", "yes"] and loaded.data_.X.shape == (0, 4)
    assert loaded.data_.csv == csv and loaded.data_.first_index == 1 and loaded.data_.notes == []
    function = loaded.score_function_
    assert (function.slope, function.offset, function.is_calibrated) == (1.5, -0.1, True)
    assert loaded.get_params() == {"features": "auto", "effort": 0.25, "random_state": 0}
    assert set(loaded.predict(X)) == {"no", "yes"}


def test_the_file_holds_plain_arrays_and_json_only(tmp_path):
    fit(*make_rows()).save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    assert all(A.dtype.kind in "fiuU" for A in arrays.values())
    about = json.loads(str(arrays["about"]))
    assert about["format"] == models.FORMAT == 4
    assert about["version"] == models.VERSION == exp.VERSION


def test_a_generator_of_random_numbers_is_not_kept(tmp_path):
    X, y = make_rows()
    AUCRanker(random_state=np.random.RandomState(0)).fit(X, y).save(tmp_path / "model.npz")
    assert load_model(tmp_path / "model.npz").random_state is None


@pytest.fixture
def saved(tmp_path):
    fit(*make_rows()).save(tmp_path / "model.npz")
    return tmp_path / "model.npz"


def rewrite(path, change):
    """Save the arrays of a model file again after a change to them, or to what it tells of itself."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    about = json.loads(str(arrays["about"]))
    change(arrays, about)
    arrays["about"] = np.array(json.dumps(about))
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda arrays, about: about.update(format=1), "is a model of format 1, expected 4: was it saved by another"),
        (lambda arrays, about: about.update(format=3), "is a model of format 3, expected 4: was it saved by another"),
        (
            lambda arrays, about: about.update(csv={"columns": [], "label": None, "position": 0}),
            "columns make 0 features",
        ),
        (lambda arrays, about: about.update(csv={"columns": 4 * [{"name": 1, "kind": "number"}]}), "is damaged"),
        (lambda arrays, about: about.update(csv=[1]), "is damaged"),
        (lambda arrays, about: about.pop("format"), "is not a model file"),
        (lambda arrays, about: about.pop("classes"), "is damaged"),
        (lambda arrays, about: about.update(classes=[1]), "is damaged"),
        (lambda arrays, about: about.update(classes=[1, 2, 3]), "is damaged"),
        (lambda arrays, about: about.update(n_features=5), "is damaged"),
        (lambda arrays, about: about.update(n_features=10**12), "is damaged"),
        (lambda arrays, about: about.update(n_features="four"), "is damaged"),
        (lambda arrays, about: about.update(estimator="eval"), "is damaged"),
        (lambda arrays, about: about.update(parameters={"speed": 9}), "is damaged"),
        (lambda arrays, about: about.update(feature_sets={}), "is damaged"),
        (
            lambda arrays, about: about["feature_sets"].update(mixed=["landmarks", [["rank", "eval", 1, 1]]]),
            "is damaged",
        ),
        (lambda arrays, about: about["feature_sets"].update(linear=["linear", ["fit"]]), "is damaged"),
        (lambda arrays, about: arrays.pop("landmarks"), "is damaged"),
        (lambda arrays, about: arrays.update(landmarks=arrays["landmarks"][:-1]), "is damaged"),
        (lambda arrays, about: arrays.update(score=np.array([np.nan, 1, 0])), "is damaged"),
        (lambda arrays, about: arrays.update(score=np.array([0, np.inf, 0])), "is damaged"),
        (lambda arrays, about: arrays.update(score=np.array([0.0, 1])), "is damaged"),
        (lambda arrays, about: arrays.update({"columns.knots": 1e200 * arrays["columns.knots"]}), "is damaged"),
        (lambda arrays, about: arrays.update({"preprocessor.kept_": np.array([99])}), "is damaged"),
        (lambda arrays, about: arrays.update({"preprocessor.kept_": np.array([-1.5])}), "is damaged"),
        (lambda arrays, about: arrays.update({"coefficients.mixed": np.array(["a"])}), "is damaged"),
    ],
)
def test_files_that_are_no_sound_model(saved, change, message):
    rewrite(saved, change)
    with pytest.raises(InputError, match=message) as raised:
        load_model(saved)
    assert "\n" not in str(raised.value)


@pytest.fixture(scope="module")
def with_trees(tmp_path_factory):
    """The bytes of a model with trees."""
    path = tmp_path_factory.mktemp("trees") / "model.npz"
    with pytest.MonkeyPatch.context() as patch:
        few_trees(patch)
        fit(*make_rows()).save(path)
    return path.read_bytes()


def of_node(part, index, value):
    return lambda arrays, about: arrays[f"set.trees.{part}"].__setitem__(index, value)


@pytest.mark.parametrize(
    "change, message",
    [
        (of_node("left", 0, -1), "its trees have nodes"),
        (of_node("left", 0, 10**9), "its trees have nodes"),
        (of_node("right", -1, 0), "its trees have nodes that lead back"),
        (of_node("root", -1, 10**9), "its trees have nodes"),
        (of_node("column", 0, -1), "its trees have nodes"),
        (of_node("column", -1, 99), "its trees look at column 100 of 5"),
        (of_node("column", -1, 5), "its trees look at column 6 of 5"),
        (of_node("value", -1, np.nan), "its trees have values that are not finite"),
        (of_node("value", 0, -np.inf), "its trees have values that are not finite"),
        (of_node("value", slice(None), 1e308), "scores are not finite"),
        (lambda arrays, about: arrays.pop("set.trees.root"), "is damaged"),
        (lambda arrays, about: arrays.update({"set.trees.eval": np.ones(3)}), "is damaged"),
        (lambda arrays, about: arrays.update({"set.trees.left": arrays["set.trees.left"][:-1]}), "no sound left"),
        (lambda arrays, about: arrays.update({"set.trees.left": arrays["set.trees.left"] + 0.0}), "no sound left"),
        (lambda arrays, about: arrays.update({"set.trees.column": np.array(0)}), "no sound"),
        (lambda arrays, about: arrays.update({"set.trees.value": np.array(["a"])}), "no sound value"),
        (lambda arrays, about: arrays.update({"coefficients.trees": np.empty(0)}), "is damaged"),
        (lambda arrays, about: arrays.update({"coefficients.trees": np.array([np.nan])}), "is damaged"),
        (lambda arrays, about: arrays.update({"coefficients.trees": np.array(["a"])}), "is damaged"),
        (lambda arrays, about: about["feature_sets"].update(trees=["trees", []]), "is damaged"),
        (lambda arrays, about: about["feature_sets"].update(trees=["landmarks", []]), "is damaged"),
        (lambda arrays, about: about["feature_sets"].update(mixed=["trees", [3, 40]]), "is damaged"),
        (lambda arrays, about: about["feature_sets"].update({"trees.": ["trees", [3, 40]]}), "is damaged"),
    ],
)
def test_files_whose_trees_are_damaged(tmp_path, with_trees, change, message):
    path = tmp_path / "model.npz"
    path.write_bytes(with_trees)
    assert load_model(path).score_function_.feature_sets.sets["trees"].n_trees == 4
    rewrite(path, change)
    with pytest.raises(InputError, match=message) as raised:
        load_model(path)
    assert "\n" not in str(raised.value) and "is damaged: " in str(raised.value)


def test_other_files(tmp_path):
    np.savez(tmp_path / "data.npz", x_tr=np.ones((3, 3)), y_tr=np.ones(3))
    with pytest.raises(InputError, match="is not a model file that --save has written"):
        load_model(tmp_path / "data.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(InputError, match=r"is not a \.npz file"):
        load_model(tmp_path / "text.npz")
    with pytest.raises(InputError, match="no such file"):
        load_model(tmp_path / "nothing.npz")


def test_a_flipped_bit_is_found(saved):
    content = saved.read_bytes()
    with zipfile.ZipFile(saved) as file:
        member = file.getinfo("coefficients.mixed.npy")
    at = member.header_offset + 30 + len(member.filename) + member.compress_size // 2
    for bit in range(8):
        saved.write_bytes(content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :])
        with pytest.raises(InputError):
            load_model(saved)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_an_interrupted_save_leaves_the_old_file_whole_and_nothing_else(saved, monkeypatch, interruption):
    before, model = saved.read_bytes(), fit(*make_rows(seed=1))

    def interrupt(*args, **arrays):
        raise interruption

    for module, name in ((np, "savez_compressed"), (os, "fsync")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, interrupt)
            with pytest.raises((KeyboardInterrupt, InputError)):
                model.save(saved)
        assert saved.read_bytes() == before
        assert [path.name for path in saved.parent.iterdir()] == ["model.npz"]
    model.save(saved)
    assert saved.read_bytes() != before


def test_a_file_that_cannot_be_written_is_one_line(tmp_path):
    with pytest.raises(InputError, match="cannot be written: "):
        fit(*make_rows()).save(tmp_path / "nowhere" / "model.npz")
