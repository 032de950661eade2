"""What the command does beside the AUC: scores, models and figures, written after the folds."""

import sys

import numpy as np
import pytest
from conftest import FEW, FIGURES, RESULT, call, make_rows, read_scores, refused, score
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from preprocess import InputError
from tenfold import AUCRanker, load_model
from tenfold.calibration import log_odds

pytestmark = [pytest.mark.filterwarnings("error"), pytest.mark.usefixtures("quick_plans")]

# --- scores and models -----------------------------------------------------------------------------------------------


def test_scores_of_folds_are_those_of_rows_not_learned_from(train, rows, tmp_path):
    code, out, _ = call(train, *FEW, "--scores", tmp_path / "scores.csv")
    assert code == 0 and RESULT.fullmatch(out)
    columns = read_scores(tmp_path / "scores.csv")
    assert list(columns) == ["score"] and len(columns["score"]) == 60
    assert roc_auc_score(rows[1], columns["score"]) == pytest.approx(float(out.split()[-1]), abs=0.05)


@pytest.mark.parametrize("argv, settings", [([], {}), (["--features", "linear"], {"features": "linear"})])
def test_the_saved_model_is_a_ranker_of_all_rows(train, rows, tmp_path, argv, settings):
    X, y = rows
    code, _, err = call(train, *FEW, *argv, "--seed", 3, "--save", tmp_path / "model.npz")
    assert code == 0 and f"the model, learned from all 60 rows, is in {tmp_path / 'model.npz'}" in err
    expected, found = AUCRanker(budget=8.0, random_state=3, **settings).fit(X, y), load_model(tmp_path / "model.npz")
    assert found.get_params() == expected.get_params()
    np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))
    assert (found.data_.X.shape, found.data_.y.tolist()) == ((0, 4), [-1, 1])


def test_a_saved_model_of_the_published_algorithm_is_calibrated_by_the_folds(train, rows, tmp_path):
    X, y = rows
    argv = [train, *FEW, "--passes", 2, "--save", tmp_path / "model.npz", "--scores", tmp_path / "scores.csv"]
    assert call(*argv)[0] == 0
    slope, offset = log_odds(read_scores(tmp_path / "scores.csv")["score"], y, np.ones(60))
    ranker = load_model(tmp_path / "model.npz")
    assert (ranker.score_function_.slope, ranker.score_function_.offset) == pytest.approx((slope, offset))
    np.testing.assert_array_equal(ranker.predict_proba(X)[:, 1], expit(ranker.decision_function(X)))


def test_the_positive_class_of_a_saved_model_is_the_one_that_was_named(train, rows, tmp_path):
    X, y = rows
    assert call(train, *FEW, "--positive", -1, "--save", tmp_path / "model.npz")[0] == 0
    ranker = load_model(tmp_path / "model.npz")
    assert ranker.classes_.tolist() == [1, -1]
    assert roc_auc_score(y, ranker.predict_proba(X)[:, 0]) > 0.8


def test_where_nothing_can_be_written(train, tmp_path):
    """It is found out before the run, and what is there stays as it is."""
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    np.savez(tmp_path / "other.npz", a=1)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for option in ("--save", "--scores"):
        for path, message in (
            (tmp_path / "no" / "where", "does not exist, expected one to write into"),
            (tmp_path, "is a directory, expected the name of a file"),
            (train, "is a file to read, expected another name"),
            (tmp_path / "other.csv", "exists and was not written by this program, expected another name, or --force"),
            (tmp_path / "other.npz", "exists and was not written by this program, expected another name, or --force"),
        ):
            assert len(refused(message, train, *FEW, option, path).splitlines()) == 1
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_an_earlier_run_has_written_is_written_over_and_other_files_by_force(train, tmp_path):
    for option, name in ("--save", "model.npz"), ("--scores", "scores.csv"):
        path = tmp_path / name
        path.touch()  # a file with nothing in it is nobody's
        for _ in range(2):
            assert call(train, *FEW, "-q", option, path)[0] == 0
        written = path.read_bytes()
        path.write_text("mine\n")
        refused("expected another name, or --force", train, *FEW, option, path)
        assert call(train, *FEW, "-q", option, path, "--force")[0] == 0
        assert path.read_bytes()[:9] == written[:9]


def test_a_file_that_cannot_be_written_after_the_run_takes_nothing_back(train, tmp_path, monkeypatch):
    def full(path, *_):
        raise InputError(f"{path} cannot be written: No space left on device")

    for option, name in ("--save", "tenfold.models.write_whole"), ("--scores", "tenfold.extras.write_scores"):
        monkeypatch.setattr(name, full)
        code, out, err = call(train, *FEW, "-q", option, tmp_path / "new")
        assert code == 2 and RESULT.fullmatch(out)
        assert err == f"exp.py: error: {tmp_path / 'new'} cannot be written: No space left on device\n"


def test_a_model_that_is_read_and_a_file_that_may_not_be_written_stay(train, model, tmp_path, monkeypatch):
    before = model.read_bytes()
    refused("is a file to read", "--model", model, train, "--scores", model, "--force")
    refused("--save and --scores are both", train, "--save", tmp_path / "a", "--scores", tmp_path / "." / "a")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    for option in ("--save", "--scores", "--page"):
        refused("cannot be written to", train, option, tmp_path / "new")
    refused("cannot be written to", train, "--plots", tmp_path)
    assert model.read_bytes() == before and not (tmp_path / "new").exists()


# --- figures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("argv", [["--folds", 2, "--passes", 2], ["test"]])
def test_figures_are_drawn_and_change_no_digit(train, tmp_path, argv):
    argv = [train if arg == "test" else arg for arg in [train, *argv]]
    directory = tmp_path / "new" / "figures"
    code, out, err = call(*argv, "--plots", directory)
    assert code == 0 and f"figures are in {directory}" in err
    assert float(RESULT.fullmatch(out)[1]) == score(*argv)
    assert sorted(path.name for path in directory.iterdir()) == FIGURES


def test_figures_of_the_folds_of_many_processes(train, tmp_path, undrawn):
    assert score(train, "--folds", 4, "--jobs", 2, "--plots", tmp_path / "figures") == score(train, "--folds", 4)


def test_figures_that_cannot_be_drawn_are_refused_before_the_run(train, monkeypatch):
    assert len(refused("cannot be made a directory: a file has this name", train, "--plots", train).splitlines()) == 1
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert len(refused("--plots needs matplotlib", train, "--plots", train.parent / "new").splitlines()) == 1
    assert not (train.parent / "new").exists()


def test_figures_of_others_are_not_overwritten(train, tmp_path, undrawn):
    from matplotlib.image import imsave

    directory = tmp_path / "figures"
    directory.mkdir()
    imsave(directory / "roc.png", np.zeros((1, 1)))
    mine = (directory / "roc.png").read_bytes()
    refused("roc.png exists and was not written by this program", train, *FEW, "--plots", directory)
    assert (directory / "roc.png").read_bytes() == mine
    (directory / "roc.png").unlink()
    for _ in range(2):  # those of an earlier run are
        assert call(train, *FEW, "--plots", directory)[0] == 0
    assert sorted(path.name for path in directory.iterdir()) == FIGURES


def test_columns_that_matter_are_drawn(train, tmp_path):
    assert call(train, *FEW, "--explain", "--plots", tmp_path / "figures")[0] == 0
    names = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert names == sorted([*FIGURES, "columns.png", "dependence.png"])


@pytest.mark.parametrize(
    "argv, cost", [(["--folds", 2, "--passes", 2], ["--cost"]), (["test"], ["--cost"]), (["test"], ["--cost", "7,2"])]
)
def test_decisions_are_drawn_too(train, save, tmp_path, undrawn, argv, cost):
    X, y = make_rows(42, 4, 6, seed=1)
    test = save("test.mat", "x_te", "y_te", x=X, y=y)
    argv = [train, *(test if arg == "test" else arg for arg in argv)]
    code, out, err = call(*argv, *cost, "--plots", tmp_path / "figures")
    assert code == 0, err
    assert float(RESULT.fullmatch(out)[1]) == score(*argv)
    names = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert names == sorted([*FIGURES, "cost.png", "precision_recall.png"])


# --- standard output -------------------------------------------------------------------------------------------------
