"""The reports that the command gives beside the AUC: scores, models, figures, JSON; checked before the run."""

import json
import platform
import re
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from conftest import EFFORT, FEW, FIGURES, RESULT, call, make_rows, outcome, read_scores, refused, score
from scipy.io import savemat
from scipy.special import expit
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from preprocess import InputError
from tenfold import AUCRanker, __version__, load_model, options, reports
from tenfold.calibration import log_odds
from tenfold.readers.sample import NAME
from tenfold.reports.base import Report
from tenfold.words import effort_name
from tenfold.writing import check_output

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


OUTPUTS = {"--save": "new.npz", "--scores": "new.csv", "--page": "new.html", "--json": "new.json"}


def everything_in(directory):
    """All files and directories below this one, and what is in the files."""
    return {path: path.read_bytes() if path.is_file() else None for path in directory.rglob("*")}


@pytest.mark.parametrize("option, name", OUTPUTS.items())
def test_where_nothing_can_be_written(train, tmp_path, option, name):
    """It is found out before the run, and what is there stays as it is."""
    (tmp_path / name).write_text("a,b\n1,2\n")
    ending = name.removeprefix("new")
    (tmp_path / f"directory{ending}").mkdir()
    (tmp_path / f"read{ending}").symlink_to(train)
    before = everything_in(tmp_path)
    for path, message in (
        (tmp_path / "no" / name, "does not exist, expected one to write into"),
        (tmp_path / f"directory{ending}", "is a directory, expected the name of a file"),
        (tmp_path / f"read{ending}", "is a file to read, expected another name"),
        (tmp_path / name, f"{option} {tmp_path / name} exists, expected another name, or --force to overwrite it"),
    ):
        assert len(refused(message, train, *FEW, option, path).splitlines()) == 1
        assert everything_in(tmp_path) == before
    for path in (tmp_path / "no" / name, tmp_path / f"directory{ending}", tmp_path / f"read{ending}"):
        refused(option, train, *FEW, option, path, "--force")
    assert everything_in(tmp_path) == before


@pytest.mark.parametrize("option, name", OUTPUTS.items())
def test_files_that_exist_are_overwritten_by_force_only(train, tmp_path, option, name):
    path = tmp_path / name
    path.touch()  # a file with nothing in it is nobody's
    assert call(train, *FEW, "-q", option, path)[0] == 0
    written = path.read_bytes()
    for content in (written, b"mine\n"):  # whoever has written it
        path.write_bytes(content)
        refused("exists, expected another name, or --force to overwrite it", train, *FEW, option, path)
        assert path.read_bytes() == content
        assert call(train, *FEW, "-q", option, path, "--force")[0] == 0
        assert len(path.read_bytes()) > 20 and path.read_bytes()[:9] == written[:9]


def test_the_scores_of_a_model_are_overwritten_by_force_only(train, model, tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("mine\n")
    argv = ["--model", model, train, "--scores", path]
    refused("exists, expected another name, or --force to overwrite it", *argv)
    assert path.read_text() == "mine\n"
    assert call(*argv, "--force")[0] == 0 and len(read_scores(path)["score"]) == 60


@pytest.mark.parametrize("name", ["model", "model.mat", "model.npz.txt", "npz"])
def test_a_model_is_saved_under_the_name_of_a_model_only(train, tmp_path, name):
    for force in ([], ["--force"]):
        refused("a model is saved under a name that ends in .npz", train, *FEW, "--save", tmp_path / name, *force)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("wrong", [["nothing.mat"], ["train.mat", "--x-name", "absent"], ["train.mat", "--label", "a"]])
def test_a_run_that_is_refused_leaves_all_as_it_is(train, tmp_path, monkeypatch, wrong):
    """Also where all outputs might be written: nothing is made, emptied or overwritten."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "figures").mkdir()
    for name in (*OUTPUTS.values(), "figures/roc.png"):
        (tmp_path / name).write_text("mine")
    before = everything_in(tmp_path)
    asked = [word for pair in OUTPUTS.items() for word in pair]
    for plots in ("figures", "new_figures/of_today"):
        refused("", *wrong, *FEW, *asked, "--plots", plots, "--force")
        assert everything_in(tmp_path) == before


@pytest.mark.parametrize("refusal", [["--json", "nowhere/a.json"], ["--page", "figures"]])
def test_one_output_that_cannot_be_written_keeps_all_others_from_being_made(train, tmp_path, monkeypatch, refusal):
    monkeypatch.chdir(tmp_path)
    before = everything_in(tmp_path)
    refused("--", train, *FEW, "--plots", "figures", "--scores", "a.csv", *refusal)
    assert everything_in(tmp_path) == before


def test_a_file_that_cannot_be_written_after_the_run_takes_nothing_back(train, tmp_path, monkeypatch):
    def full(path, *_, **__):
        raise InputError(f"{path} cannot be written: No space left on device")

    where = "tenfold.models.write_whole", "tenfold.reports.scores.ScoreFile", "tenfold.page.write_whole"
    for (option, name), writer in zip(OUTPUTS.items(), [*where, "tenfold.reports.json_file.write_whole"]):
        monkeypatch.setattr(writer, full)
        code, out, err = call(train, *FEW, "-q", option, tmp_path / name)
        assert code == 2 and RESULT.fullmatch(out)
        assert err == f"exp.py: error: {tmp_path / name} cannot be written: No space left on device\n"
        assert not (tmp_path / name).exists()


def test_a_model_that_is_read_and_a_file_that_may_not_be_written_stay(train, model, tmp_path, monkeypatch):
    before = model.read_bytes()
    refused("is a file to read", "--model", model, train, "--scores", model, "--force")
    refused("is a file to read", "--model", model, train, "--scores", tmp_path / "." / model.name, "--force")
    for one, other in combinations(sorted(OUTPUTS), 2):
        given = one, tmp_path / "a.npz", other, tmp_path / "." / "a.npz"
        refused(f"{one} and {other} are both", train, *given)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    for option, name in OUTPUTS.items():
        refused("cannot be written to", train, option, tmp_path / name)
    refused("cannot be written to", train, "--plots", tmp_path)
    assert model.read_bytes() == before and not any((tmp_path / name).exists() for name in OUTPUTS.values())


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
    monkeypatch.setattr(
        "tenfold.reports.drawings.draw", lambda directory, results, rounds, learners: drawn.append(rounds)
    )
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


def test_figures_that_exist_are_overwritten_by_force_only(train, tmp_path, undrawn):
    from matplotlib.image import imsave

    directory = tmp_path / "figures"
    directory.mkdir()
    imsave(directory / "roc.png", np.zeros((1, 1)))
    mine = (directory / "roc.png").read_bytes()
    exists = "roc.png exists, expected another name, or --force to overwrite it"
    refused(exists, train, *FEW, "--plots", directory)
    assert (directory / "roc.png").read_bytes() == mine
    (directory / "roc.png").unlink()
    assert call(train, *FEW, "--plots", directory)[0] == 0
    refused(exists.removeprefix("roc"), train, *FEW, "--plots", directory)  # nor are those of an earlier run
    assert call(train, *FEW, "--plots", directory, "--force")[0] == 0
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


# --- JSON ------------------------------------------------------------------------------------------------------------


def read_json(path):
    """As other programs read it: there are no words for what is not a number."""
    return json.loads(path.read_text(encoding="ascii"), parse_constant=pytest.fail)


@pytest.mark.parametrize("argv", [["--budget", 2], EFFORT, ["--features", "linear", *EFFORT]])
def test_json_has_the_auc_to_the_last_digit_and_what_it_rests_on(train, rows, tmp_path, argv):
    path, scores = tmp_path / "result.json", tmp_path / "scores.csv"
    code, out, err = call(train, "--folds", 3, "--seed", 5, *argv, "--json", path, "--scores", scores)
    assert code == 0 and f"the result is in {path}" in err
    found, score, y = read_json(path), read_scores(scores)["score"], rows[1]
    folds = StratifiedKFold(3, shuffle=True, random_state=5).split(score, y)
    assert found["folds"] == pytest.approx([roc_auc_score(y[test], score[test]) for _, test in folds], rel=1e-12)
    assert found["auc"] == sum(found["folds"]) / 3 and out == f"AUC Score: {found['auc']:.4f}\n"
    assert f"--effort {effort_name(found['effort'])} repeats it" in err
    said = re.findall(r"^effort (\S+): mean AUC (\S+),", err, re.M)
    assert [(effort_name(one["effort"]), f"{one['auc']:.4f}") for one in found["rounds"]] == said
    assert (found["rounds"][-1]["auc"], found["rounds"][-1]["effort"]) == (found["auc"], found["effort"])
    assert all(0 < one["seconds"] < found["seconds"] for one in found["rounds"])
    assert f"{found['seconds']:.1f} s of {found['settings']['budget']:g} s" in err
    assert [sum(shares.values()) for shares in found["shares"]] == pytest.approx([1] * 3)
    assert (found["files"], found["rows"], found["positives"], found["done"]) == ([str(train)], 60, 15, 1)
    features = argv[1] if argv[0] == "--features" else "auto"
    assert (found["settings"]["seed"], found["settings"]["features"]) == (5, features)
    versions = {name: sys.modules[name].__version__ for name in ("numpy", "scipy", "sklearn")}
    assert found["versions"] == {"tenfold": __version__, "python": platform.python_version(), **versions}


def test_json_of_two_files_and_of_the_published_algorithm(train, tmp_path):
    path = tmp_path / "result.json"
    code, out, _ = call(train, train, "--passes", 2, "--C", "0.01", "--json", path)
    found = read_json(path)
    assert code == 0 and out == f"AUC Score: {found['auc']:.4f}\n" and found["folds"] == [found["auc"]]
    assert found["files"] == [str(train)] * 2 and found["effort"] is None
    settings = {"C": 0.01, "buffer": 500, "passes": 2, "update": "gradient", "seed": 0, "budget": 10}
    assert found["settings"] == settings


def test_json_of_the_embedded_sample(tmp_path):
    path = tmp_path / "result.json"
    assert score("--folds", 2, "--passes", 1, "--json", path) == round(read_json(path)["auc"], 4)
    assert read_json(path)["files"] == [NAME]


def test_json_has_no_cells_of_the_file(rows, tmp_path):
    path = tmp_path / "people.csv"
    lines = [f"{row[0]},secret{i % 7},{label}" for i, (row, label) in enumerate(zip(*rows))]
    path.write_text("\n".join(["a,b,y", *lines]))
    assert call(path, *FEW, "--json", tmp_path / "result.json")[0] == 0
    assert "secret" not in (tmp_path / "result.json").read_text()


def test_json_beside_all_other_reports(train, tmp_path, monkeypatch, undrawn):
    monkeypatch.chdir(tmp_path)
    asked = [word for pair in OUTPUTS.items() for word in pair]
    code, out, err = call(train, *FEW, *asked, "--plots", "figures", "--explain", "--cost")
    assert code == 0, err
    assert float(RESULT.fullmatch(out)[1]) == score(train, *FEW) == round(read_json(tmp_path / "new.json")["auc"], 4)
    assert {path.name for path in tmp_path.iterdir()} == {*OUTPUTS.values(), "figures", train.name}


# --- a report of one's own -------------------------------------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch):
    """A new report, as one would add it: a class in the list, and its option; the fixture is what was called."""
    called = []

    class Counted(Report):
        option, needs = "counted", frozenset(["models"])

        def check(self, inputs, force):
            called.append("check")
            check_output("--counted", self.value, inputs, force)

        def write(self, result, terminal):
            called.append("write")
            models = sum(fold.model is not None for fold in result.folds)
            self.value.write_text(f"{result.name} {len(result.scores)} {models} {result.last.auc:.4f}")
            terminal.say("they are counted")

    make_parser = options.make_parser

    def make_longer(*about):
        parser = make_parser(*about)
        parser.add_argument("--counted", type=Path, help="count (default: none)")
        return parser

    monkeypatch.setattr(options, "make_parser", make_longer)
    monkeypatch.setattr(reports, "REPORTS", [*reports.REPORTS, Counted])
    return called


def test_a_new_report_is_a_class_in_the_list_and_an_option(train, tmp_path, counted):
    path = tmp_path / "count.txt"
    code, out, err = call(train, *FEW, "--counted", path, "--scores", tmp_path / "scores.csv")
    assert code == 0 and counted == ["check", "write"]
    assert path.read_text() == f"{train} 60 3 {RESULT.fullmatch(out)[1]}"
    assert err.splitlines()[-1] == "they are counted"
    assert float(RESULT.fullmatch(out)[1]) == score(train, *FEW) and len(counted) == 2  # not without its option


def test_a_new_report_is_refused_before_the_run(train, tmp_path, counted, monkeypatch):
    path = tmp_path / "count.txt"
    path.write_text("mine")
    monkeypatch.setattr("exp.cross_validate", lambda *given: pytest.fail("it runs"))
    refused("exists, expected another name, or --force", train, *FEW, "--counted", path)
    refused("is a file to read", train, *FEW, "--counted", train, "--force")
    new = tmp_path / "new"
    refused(f"--counted and --scores are both {new}", train, *FEW, "--counted", new, "--scores", new)
    assert counted == ["check"] * 3 and path.read_text() == "mine" and not new.exists()


def test_every_report_has_an_option_of_its_own():
    parser = options.make_parser(None, pytest.fail)
    known = {action.dest for action in parser._actions}
    asked = [kind.option for kind in reports.REPORTS]
    assert len(set(asked)) == len(asked) and set(asked) <= known
    assert all(kind.needs <= {"models"} for kind in reports.REPORTS)


def test_a_report_that_says_nothing_is_no_report():
    with pytest.raises(NotImplementedError):
        Report(None).write(None, None)


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
