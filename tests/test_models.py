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

import tenfold
from preprocess import InputError
from tenfold import AUCRanker, load_model, models, ranker
from tenfold.features import forest, landmarks
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


def saved_and_loaded(model, path):
    model.save(path)
    return load_model(path)


def planned(monkeypatch, **changes):
    """Plans that differ in this."""
    make_plan = ranker.make_plan
    monkeypatch.setattr(ranker, "make_plan", lambda *how: replace(make_plan(*how), **changes))


def sets_of(model):
    """The fitted sets of features, by name."""
    return {feature_set.name: feature_set for feature_set, _ in model.score_function_.sets}


def tree_rows(n):
    """Rows whose labels are what trees find well."""
    X, _ = mixed_rows(n)
    return X, np.where((X[:, 0] > 0) ^ (X[:, 3] > 0) ^ (X[:, 4] > 2), 1, -1)


def assert_loaded_scores_are_the_same(model, path, make=np.asarray):
    """Also of rows further off than any before, and all are finite."""
    loaded, (others, _) = saved_and_loaded(model, path), mixed_rows(60)
    assert list(sets_of(loaded)) == list(sets_of(model))
    for rows in (others + 0.3, 1e6 * others, -1e300 * others, others.astype(np.float32)):
        scores = model.decision_function(make(rows))
        assert np.isfinite(scores).all()
        assert_array_equal(loaded.decision_function(make(rows)), scores)
    again = saved_and_loaded(loaded, path.with_name("again.npz"))
    assert_array_equal(again.decision_function(make(others)), model.decision_function(make(others)))


def test_a_model_of_many_sparse_columns(tmp_path, monkeypatch):
    for module in ("oam", "tenfold.ranker"):
        monkeypatch.setattr(f"{module}.FEW_COLUMNS", 5)
    monkeypatch.setattr("tenfold.plan.MANY_ROWS", 10)  # then columns are made even, too
    X, y = mixed_rows()
    make = lambda X: sp.csr_array(np.nan_to_num(X, posinf=9, neginf=-9))  # noqa: E731
    model = fit(make(X), y)
    assert model.score_function_.sparse and list(sets_of(model)) == ["even", "linear"]
    assert_loaded_scores_are_the_same(model, tmp_path / "model.npz", make)


@pytest.mark.parametrize("most_ranked", [100, 0], ids=["ranked", "unranked"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n", [1300, 300])
def test_a_model_with_boosted_trees(tmp_path, monkeypatch, n, make, most_ranked):
    planned(monkeypatch, tree_columns=6)
    monkeypatch.setattr(landmarks, "most_ranked", lambda shape, plan: most_ranked)
    X, y = tree_rows(n)
    model = fit(make(X), y)
    assert model.score_function_.columns.ranked_ == (most_ranked > 0)
    assert model.shares_["trees"] > 0 and "forest" not in model.shares_
    assert_loaded_scores_are_the_same(model, tmp_path / "model.npz", make)
    trees, again = (sets_of(one)["trees"].trees_ for one in (model, load_model(tmp_path / "model.npz")))
    for name, A in vars(trees).items():
        assert_array_equal(getattr(again, name), A)
        assert getattr(again, name).dtype == A.dtype


def test_a_model_with_a_forest(tmp_path, monkeypatch):
    monkeypatch.setattr(forest, "FEWEST_TREES", 5)
    model = fit(*tree_rows(300))
    assert model.shares_["forest"] > 0 and len(sets_of(model)["forest"].trees_.root) > 4
    assert_loaded_scores_are_the_same(model, tmp_path / "model.npz")


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_a_model_of_few_rows_and_many_columns(tmp_path, make):
    X, y = make_rows(60, 400, 20)
    X[:, 200:] = X[:, 200:] > 0
    model = fit(make(X), y)
    others = make(make_rows(50, 400, 10, seed=1)[0])
    loaded = saved_and_loaded(model, tmp_path / "model.npz")
    assert_array_equal(loaded.decision_function(others), model.decision_function(others))
    assert len(set(model.decision_function(others))) == 50


@pytest.mark.parametrize("n, d", [(300, 30), (60, 400)], ids=["many rows", "few rows"])
def test_a_model_of_wide_rows(tmp_path, monkeypatch, n, d):
    """Learning changes the scaled rows in place, but not those that it was given; a score is a product."""
    X, y = make_rows(n, d, n // 4)
    X[:, 1], X[:, 2] = 5, X[:, 0]
    X[::4, 3] = np.nan
    X[:, 4] = 1e6 + 1e3 * X[:, 4]
    planned(monkeypatch, wide=True)
    raw = X.copy()
    model = fit(X, y)
    assert_array_equal(X, raw)
    function, others = model.score_function_, np.vstack([X, make_rows(50, d, 10, seed=1)[0]])
    ((feature_set, coefficients),) = function.sets
    assert feature_set.name == "linear" and function.columns is None and function.landmarks is None
    loaded = saved_and_loaded(model, tmp_path / "model.npz")
    assert_array_equal(loaded.decision_function(others), model.decision_function(others))
    scaled = function.preprocessor.transform(others).astype(float) @ coefficients
    expected = function.slope * (scaled + function.intercept) + function.offset
    np.testing.assert_allclose(model.decision_function(others), expected, atol=1e-6 * np.abs(expected).max())
    assert roc_auc_score(y, model.decision_function(X)) > 0.9


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_a_model_of_wide_rows_with_trees(tmp_path, monkeypatch, make):
    """Trees come first, before the columns are changed in place; one of theirs says what is missing."""
    X, y = make_rows(900, 60, 300)
    X[:, 1], X[:, 2], X[:, 5] = 5, X[:, 0], np.where(y > 0, 1, np.nan)
    X[::3, 5], X[:, 6] = 1, 1e6 + 1e3 * X[:, 6]
    planned(monkeypatch, wide=True, tree_columns=9)
    model = fit(make(X), y)
    assert list(sets_of(model)) == ["trees", "linear"]
    assert sets_of(model)["trees"].trees_.column.max() >= len(model.score_function_.preprocessor.kept_)
    others = make(np.vstack([X, make_rows(50, 60, 10, seed=1)[0]]))
    loaded = saved_and_loaded(model, tmp_path / "model.npz")
    assert_array_equal(loaded.decision_function(others), model.decision_function(others))
    assert roc_auc_score(y, model.decision_function(others)[: len(y)]) > 0.9


@pytest.mark.parametrize("factor", [1e305, 1e-20], ids=["large", "small"])
def test_rows_of_extreme_columns_or_far_off_have_finite_scores(factor):
    X, y = make_rows()
    for rows in (X, X * [factor, 1, 1, 1]):
        model = fit(rows, y, features="linear")
        far = np.vstack([rows, np.full((1, 4), 1e308), np.full((1, 4), -1e308)])
        scores = model.decision_function(far)
        assert np.isfinite(scores).all()
        np.testing.assert_allclose(scores[:-2], model.decision_function(rows), rtol=1e-6)
        assert roc_auc_score(y, scores[:-2]) > 0.7


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
    columns += [{"name": name, "kind": "number"} for name in "cde"]
    csv = {"columns": columns, "label": "sick", "position": 0}
    model.data_ = Data(np.empty((0, 4)), np.array(["no", "yes"]), csv=csv, first_index=1)
    model.score_function_.calibrate(1.5, -0.1)
    model.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    assert loaded.data_.y.tolist() == loaded.classes_.tolist() == ["no", "yes"] and loaded.data_.X.shape == (0, 4)
    assert loaded.data_.csv == csv and loaded.data_.first_index == 1 and loaded.data_.notes == []
    function = loaded.score_function_
    assert (function.slope, function.offset, function.is_calibrated) == (1.5, -0.1, True)
    assert loaded.get_params() == model.get_params() and loaded.effort == 0.25
    assert set(loaded.predict(X)) == {"no", "yes"}


def test_the_file_holds_plain_arrays_and_json_only(tmp_path):
    fit(*make_rows()).save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    assert all(A.dtype.kind in "fiuU" for A in arrays.values())
    about = json.loads(str(arrays["about"]))
    assert about["format"] == models.FORMAT and about["version"] == tenfold.__version__


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
        (lambda arrays, about: about.update(format=1), r"is a model of format 1, expected \d+: was it saved by"),
        (lambda arrays, about: about.update(format=4), r"is a model of format 4, expected \d+: was it saved by"),
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
        (lambda arrays, about: about["feature_sets"].update(mixed={"terms": [["rank", "eval", 1, 1]]}), "is damaged"),
        (lambda arrays, about: about["feature_sets"].update(mixed={"terms": [["eval", "euclidean", 1]]}), "is damaged"),
        (lambda arrays, about: about["feature_sets"].update(mixed={"terms": []}), "is damaged"),
        (lambda arrays, about: about["feature_sets"].update(mixed={}), "is damaged"),
        (lambda arrays, about: about["feature_sets"].update(linear={"versions": ["thinned"]}), "is damaged"),
        (lambda arrays, about: about["feature_sets"].update(linear={"versions": []}), "is damaged"),
        (lambda arrays, about: about["feature_sets"].update(linear=["standard"]), "is damaged"),
        (lambda arrays, about: about["feature_sets"].update(eval={}), "is damaged"),
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
        planned(patch, tree_columns=4)
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
        (lambda arrays, about: about["feature_sets"].update(forest={}), "is damaged"),
        (lambda arrays, about: about["feature_sets"].update({"trees.": {}}), "is damaged"),
    ],
)
def test_files_whose_trees_are_damaged(tmp_path, with_trees, change, message):
    path = tmp_path / "model.npz"
    path.write_bytes(with_trees)
    assert len(sets_of(load_model(path))["trees"].trees_.root) > 4
    rewrite(path, change)
    with pytest.raises(InputError, match=message) as raised:
        load_model(path)
    assert "\n" not in str(raised.value) and "is damaged: " in str(raised.value)


def fit_kind(kind, patch):
    """A model of this kind, which together have all arrays that there are."""
    X, y = mixed_rows()
    X[1:40:3, 2] = np.nan  # not rare, so that a column says so
    if kind == "published":
        return fit(X, y, PublishedRanker)
    if kind == "sparse":
        return fit(sp.csr_array(X), y)
    if kind == "boosted trees":
        planned(patch, tree_columns=6)
    patch.setattr(forest, "FEWEST_TREES", 5)
    return fit(X, y)


@pytest.fixture(scope="module", params=["boosted trees", "forest", "sparse", "published"])
def of_kind(request, tmp_path_factory):
    """The bytes of a model of each kind."""
    path = tmp_path_factory.mktemp("kind") / "model.npz"
    with pytest.MonkeyPatch.context() as patch:
        fit_kind(request.param, patch).save(path)
    return path.read_bytes()


GENERAL_DAMAGES = {
    "gone": lambda arrays, name: arrays.pop(name),
    "text": lambda arrays, name: arrays.update({name: np.full(arrays[name].shape, "a")}),
    "one more dimension": lambda arrays, name: arrays.update({name: arrays[name][None]}),
    "cut short": lambda arrays, name: arrays.update({name: arrays[name][:-1]}),
    "too long": lambda arrays, name: arrays.update({name: np.concatenate([arrays[name], arrays[name][:1]])}),
}
OF_ANY_LENGTH = ("set.trees.root", "set.forest.root")  # there may be fewer trees, as far as anybody can tell
# What loading does not see so far.
UNSEEN = {
    "text": {"preprocessor.mean_"},
    "cut short": {"preprocessor.missing_", "preprocessor.extremes_", "preprocessor.kept_", "set.mixed.median"},
    "too long": {"preprocessor.kept_"},
}


@pytest.mark.parametrize("damage", GENERAL_DAMAGES)
def test_whatever_array_is_damaged_the_file_is_refused_in_one_line(tmp_path, of_kind, damage):
    """Or the damage makes no difference, such as a list of one number in a list of its own."""
    path, X, wrong = tmp_path / "model.npz", mixed_rows()[0], set()
    path.write_bytes(of_kind)
    expected = load_model(path).decision_function(X)
    with np.load(path) as file:
        names = [name for name in file.files if name != "about" and file[name].ndim]
    for name in names:
        if damage in ("cut short", "too long") and name in OF_ANY_LENGTH:
            continue
        path.write_bytes(of_kind)
        rewrite(path, lambda arrays, about, name=name: GENERAL_DAMAGES[damage](arrays, name))
        try:
            if not np.allclose(load_model(path).decision_function(X), expected, rtol=1e-6):
                wrong.add(name)
        except InputError as error:
            assert "is damaged: " in str(error) and "\n" not in str(error)
        except Exception:  # once it is loaded
            wrong.add(name)
    assert wrong <= UNSEEN.get(damage, set())


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
