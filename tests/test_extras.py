"""What the command does beside the AUC: scores, models and figures, written after the folds."""

import re
import sys

import numpy as np
import pytest
from conftest import EFFORT, FEW, FIGURES, RESULT, call, make_rows, outcome, read_scores, refused, score
from scipy.io import savemat
from scipy.special import expit
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from preprocess import InputError
from tenfold import AUCRanker, load_model
from tenfold.calibration import log_odds
from tenfold.words import effort_name

pytestmark = pytest.mark.filterwarnings("error")

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
    expected = AUCRanker(effort=1 / 16, random_state=3, **settings).fit(X, y)
    found = load_model(tmp_path / "model.npz")
    assert found.get_params() == expected.get_params()
    np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))
    assert (found.data_.X.shape, found.data_.y.tolist()) == ((0, 4), [-1, 1])


def test_the_saved_model_has_the_effort_of_the_auc(train, rows, tmp_path):
    code, _, err = call(train, "--folds", 3, "--budget", 2, "--save", tmp_path / "model.npz")
    said = re.search(r"\(--effort (\S+) repeats it\)", err)[1]
    found = load_model(tmp_path / "model.npz")
    assert code == 0 and effort_name(found.effort) == said
    expected = AUCRanker(effort=found.effort, random_state=0).fit(*rows)
    np.testing.assert_array_equal(found.decision_function(rows[0]), expected.decision_function(rows[0]))


def test_a_saved_model_of_the_published_algorithm_is_calibrated_by_the_folds(train, rows, tmp_path):
    X, y = rows
    argv = [train, "--folds", 3, "--passes", 2, "--save", tmp_path / "model.npz", "--scores", tmp_path / "scores.csv"]
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
    def full(path, *_, **__):
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


@pytest.mark.parametrize("argv", [["--folds", 2, "--passes", 2], ["test", *EFFORT], FEW])
def test_figures_are_drawn_and_change_no_digit(train, tmp_path, argv):
    argv = [train if arg == "test" else arg for arg in [train, *argv]]
    directory = tmp_path / "new" / "figures"
    code, out, err = call(*argv, "--plots", directory)
    assert code == 0 and f"figures are in {directory}" in err
    assert float(RESULT.fullmatch(out)[1]) == score(*argv)
    assert sorted(path.name for path in directory.iterdir()) == FIGURES


def test_figures_of_the_folds_of_many_processes(train, tmp_path, undrawn):
    assert score(train, *FEW, "--jobs", 2, "--plots", tmp_path / "figures") == score(train, *FEW)
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == FIGURES


def test_there_are_figures_of_several_rounds(train, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr("tenfold.extras.draw", lambda directory, results, rounds, learners: drawn.append(rounds))
    code, out, err = call(train, "--folds", 3, "--budget", 2, "--plots", tmp_path / "figures")
    said = re.findall(r"^effort (\S+): mean AUC (\S+),", err, re.M)
    ((*_, last),) = drawn
    assert code == 0 and len(said) > 1 and out == f"AUC Score: {last.auc:.4f}\n"
    assert [(effort_name(one.effort), f"{one.auc:.4f}") for one in drawn[0]] == said


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
    "argv, cost",
    [
        (["--folds", 2, "--passes", 2], ["--cost"]),
        (["test", *EFFORT], ["--cost"]),
        (["test", *EFFORT], ["--cost", "7,2"]),
    ],
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


# --- a sample of the rows --------------------------------------------------------------------------------------------


@pytest.fixture
def many(save, monkeypatch):
    """A file of more rows than are used: of 3,000, 400, among them all 100 positives."""
    monkeypatch.setattr("tenfold.folds.MOST_ROWS", 400)
    X, y = make_rows(3000, 4, 100)
    return save(x=X, y=y), X, y


def read_sample(path):
    """The numbers of the rows, from 0, and all columns of a file of scores."""
    table = np.genfromtxt(path, delimiter=",", names=True)
    return table["row"].astype(int) - 1, table


def test_scores_of_a_sample_have_the_numbers_of_its_rows(many, tmp_path):
    path, X, y = many
    code, out, err = call(path, *FEW, "--scores", tmp_path / "scores.csv")
    assert code == 0 and "400 of 3000 rows are used, " in err
    used, table = read_sample(tmp_path / "scores.csv")
    assert len(used) == 400 and (np.diff(used) > 0).all() and np.count_nonzero(y[used] > 0) == 100
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    ranker = AUCRanker(effort=1 / 16, random_state=0)
    expected = cross_val_predict(ranker, X[used], y[used], cv=folds, method="decision_function")
    np.testing.assert_array_equal(table["score"], expected)
    aucs = [roc_auc_score(y[used][test], expected[test]) for _, test in folds.split(X[used], y[used])]
    assert out == f"AUC Score: {np.mean(aucs):.4f}\n"


@pytest.mark.parametrize("argv", [FEW, ("--folds", 3, "--passes", 1)])
def test_probabilities_and_counts_of_a_sample_are_those_of_the_file(many, tmp_path, argv):
    path, X, y = many
    saved, scores = tmp_path / "model.npz", tmp_path / "scores.csv"
    code, _, err = call(path, *argv, "--cost", "20,1", "--save", saved, "--scores", scores)
    assert code == 0
    probability = load_model(saved).predict_proba(X)[:, 1]
    assert probability.mean() == pytest.approx(1 / 30, abs=0.012)  # though a quarter of the sample is positive
    used, table = read_sample(scores)
    weight = np.where(y[used] > 0, 1, 2900 / 300)
    assert np.average(table["probability"], weights=weight) == pytest.approx(1 / 30, abs=0.012)
    np.testing.assert_array_equal(table["decision"], table["probability"] > 1 / 21)
    assert outcome(err, "act on every row")[:4].tolist() == [100, 2900, 0, 0]
    assert outcome(err, "act on no row")[:4].tolist() == [0, 0, 100, 2900]
    acted = table["decision"] > 0
    found = outcome(err, "Bayes minimum risk")
    expected = [weight[acted == a] @ (y[used][acted == a] == s) for a, s in ((1, 1), (1, -1), (0, 1), (0, -1))]
    np.testing.assert_allclose(found[:4], expected, atol=0.5)
    assert found[4] == pytest.approx(expected[0] / (expected[0] + expected[1]), abs=1e-4)  # precision
    assert found[7] == pytest.approx(20 * expected[2] + expected[1], rel=1e-4)


def test_costs_of_each_row_of_a_sample_are_its_own(many, tmp_path):
    path, X, y = many
    cost = np.random.RandomState(0).randint(1, 9, (3000, 2))
    savemat(path, {"x_tr": X, "y_tr": y[:, None], "c_tr": cost})
    code, _, err = call(path, *FEW, "--cost", "--scores", tmp_path / "scores.csv")
    used, table = read_sample(tmp_path / "scores.csv")
    p, (missed, alarm) = table["probability"], cost[used].T
    assert code == 0 and "costs: those of each row" in err
    np.testing.assert_array_equal(table["decision"], p * missed > (1 - p) * alarm)
