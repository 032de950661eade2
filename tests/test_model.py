"""Saved models: the same scores after loading, to the last bit, and one line for whatever is not such a model."""

import json
import os
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import make_rows
from numpy.testing import assert_array_equal
from test_exp import options_of

import exp
import preprocess
from preprocess import Data, InputError, Model

pytestmark = [pytest.mark.filterwarnings("error"), pytest.mark.usefixtures("quick_plans")]


def make_model(X, y, **kwargs):
    work = exp.Work(X, y, X, y, [])
    model, *_ = exp.make_model(work, np.arange(len(y)), len(y), options_of(**kwargs), fold=0)
    model.like = Data(X, y).without_rows(np.array([-1, 1]))
    model.about = {"version": "1", "seed": 0}
    return model


def mixed_rows(n=80):
    """Columns of many values, of two, constant, equal to another, and with missing cells."""
    X, y = make_rows(n, 5, n // 4)
    X = np.column_stack([X, X[:, 0], np.ones(n), X[:, 1] > 0])
    X[::7, 2] = np.nan
    return X, y


LEARNERS = [{}, {"features": "linear"}, {"published": True}, {"published": True, "update": "sequential", "C": 0.01}]


@pytest.mark.parametrize("kwargs", LEARNERS)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, lambda X: np.nan_to_num(10 * X).astype(np.uint8)])
def test_scores_after_loading_are_those_before_bit_for_bit(tmp_path, kwargs, make):
    X, y = mixed_rows()
    model = make_model(make(X), y, **kwargs)
    model.save(tmp_path / "model.npz")
    loaded = Model.load(tmp_path / "model.npz")
    others = make(mixed_rows(60)[0] + 0.3)
    assert_array_equal(loaded.score(others), model.score(others))
    assert_array_equal(loaded.score(make(X)), model.score(make(X)))
    assert len(set(model.score(others))) > 10


def test_a_model_of_many_columns_or_many_sparse_ones(tmp_path, monkeypatch):
    monkeypatch.setattr("oam.FEW_COLUMNS", 5)
    X, y = mixed_rows()
    sparse = sp.csr_array(np.nan_to_num(X))
    for rows, quick in ((sparse, False), (X, True)):
        monkeypatch.setattr(exp, "make_plan", lambda *a, q=quick: exp.Plan(60, 60, 20, 500, 8, 2, False, q))
        model = make_model(rows, y)
        model.save(tmp_path / "model.npz")
        assert_array_equal(Model.load(tmp_path / "model.npz").score(rows), model.score(rows))


def test_a_model_that_the_clock_cut_short(tmp_path):
    X, y = make_rows(9000, 3, 2250)
    work = exp.Work(X, y, X, y, [])
    model, *_ = exp.make_model(work, np.arange(len(y)), 10, options_of(), fold=0, stop=lambda: True)
    model.like, model.about = Data(X, y).without_rows(np.array([-1, 1])), {}
    model.save(tmp_path / "model.npz")
    assert_array_equal(Model.load(tmp_path / "model.npz").score(X[:50]), model.score(X[:50]))


def test_what_else_is_kept(tmp_path):
    model = make_model(*make_rows())
    like = Data(
        np.empty((0, 4)), np.array(["no", "yes"]), names=["a", "b"], label="sick", categories={1: ["x", "y", "z"]}
    )
    model.like, model.calibration = like, {"a": np.float64(-1.5), "b": np.float64(0.1)}
    model.save(tmp_path / "model.npz")
    loaded = Model.load(tmp_path / "model.npz")
    assert loaded.like.y.tolist() == ["no", "yes"] and loaded.like.X.shape == (0, 4)
    assert (loaded.like.names, loaded.like.label, loaded.like.categories) == (["a", "b"], "sick", {1: ["x", "y", "z"]})
    assert loaded.calibration == model.calibration
    assert (loaded.about["version"], loaded.about["seed"]) == ("1", 0)


def test_the_file_holds_plain_arrays_and_json_only(tmp_path):
    make_model(*make_rows()).save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    assert all(A.dtype.kind in "fiuU" for A in arrays.values())
    assert json.loads(str(arrays["about"]))["format"] == preprocess.FORMAT


@pytest.fixture
def saved(tmp_path):
    make_model(*make_rows()).save(tmp_path / "model.npz")
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
        (lambda arrays, about: about.update(format=2), "is a model of format 2, expected 1: was it saved by a newer"),
        (lambda arrays, about: about.pop("format"), "is not a model file"),
        (lambda arrays, about: about.pop("classes"), "is damaged"),
        (lambda arrays, about: about.update(classes=[1]), "is damaged"),
        (lambda arrays, about: about.update(n_features=5), "is damaged"),
        (lambda arrays, about: about.update(n_features=10**12), "is damaged"),
        (lambda arrays, about: about.update(n_features="four"), "is damaged"),
        (lambda arrays, about: about.update(maps={}), "is damaged"),
        (lambda arrays, about: about["maps"].update(mixed=["landmarks", [["rank", "eval", 1, 1]]]), "is damaged"),
        (lambda arrays, about: about["maps"].update(linear=["linear", ["fit"]]), "is damaged"),
        (lambda arrays, about: arrays.pop("landmarks"), "is damaged"),
        (lambda arrays, about: arrays.update(landmarks=arrays["landmarks"][:-1]), "is damaged"),
        (lambda arrays, about: arrays.update(intercept=np.float64(np.nan)), "is damaged"),
        (lambda arrays, about: arrays.update({"columns.knots": 1e200 * arrays["columns.knots"]}), "is damaged"),
        (lambda arrays, about: arrays.update({"rows.kept_": np.array([99])}), "is damaged"),
        (lambda arrays, about: arrays.update({"rows.kept_": np.array([-1.5])}), "is damaged"),
        (lambda arrays, about: arrays.update({"coefficients.mixed": np.array(["a"])}), "is damaged"),
    ],
)
def test_files_that_are_no_sound_model(saved, change, message):
    rewrite(saved, change)
    with pytest.raises(InputError, match=message) as raised:
        Model.load(saved)
    assert "\n" not in str(raised.value)


def test_other_files(tmp_path):
    np.savez(tmp_path / "data.npz", x_tr=np.ones((3, 3)), y_tr=np.ones(3))
    with pytest.raises(InputError, match="is not a model file that --save has written"):
        Model.load(tmp_path / "data.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(InputError, match=r"is not a \.npz file"):
        Model.load(tmp_path / "text.npz")
    with pytest.raises(InputError, match="no such file"):
        Model.load(tmp_path / "nothing.npz")


def test_a_flipped_bit_is_found(saved):
    content = saved.read_bytes()
    with zipfile.ZipFile(saved) as file:
        member = file.getinfo("coefficients.mixed.npy")
    at = member.header_offset + 30 + len(member.filename) + member.compress_size // 2
    for bit in range(8):
        saved.write_bytes(content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :])
        with pytest.raises(InputError):
            Model.load(saved)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_an_interrupted_save_leaves_the_old_file_whole_and_nothing_else(saved, monkeypatch, interruption):
    before, model = saved.read_bytes(), make_model(*make_rows(seed=1))

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
        make_model(*make_rows()).save(tmp_path / "nowhere" / "model.npz")
