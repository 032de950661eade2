"""Scoring files with saved models, as the command is met and from Python."""

import numpy as np
import pytest
from conftest import EFFORT, FEW, RESULT, call, make_rows, outcome, read_scores, refused, score
from scipy.io import savemat
from scipy.special import expit
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import roc_auc_score

from preprocess import InputError
from tenfold import AUCRanker, load_model
from tenfold.ranker import PublishedRanker
from tenfold.scoring import score_file

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize("argv", [EFFORT, [*EFFORT, "--features", "linear"], ["--passes", 2]])
def test_a_saved_model_scores_another_file_and_changes_no_digit(train, save, tmp_path, argv):
    plain = score(train, "--folds", 3, *argv)
    model, scores = tmp_path / "model.npz", tmp_path / "scores.csv"
    code, out, err = call(train, "--folds", 3, *argv, "--save", model)
    assert code == 0 and float(RESULT.fullmatch(out)[1]) == plain
    assert f"the model, learned from all 60 rows, is in {model}" in err
    X, y = make_rows(seed=1)
    code, out, _ = call("--model", model, save("new.mat", "x_te", "y_te", x=X, y=y), "--scores", scores)
    columns = read_scores(scores)
    assert code == 0 and float(RESULT.fullmatch(out)[1]) == pytest.approx(roc_auc_score(y, columns["score"]), abs=6e-5)
    assert list(columns) == ["score", "probability"]
    assert roc_auc_score(y, columns["probability"]) == pytest.approx(roc_auc_score(y, columns["score"]))
    np.testing.assert_array_equal(columns["score"], load_model(model).decision_function(X))  # to the last digit


@pytest.mark.parametrize("argv", [EFFORT, [*EFFORT, "--features", "linear"]])
def test_the_model_of_two_files_is_the_one_that_was_tested(train, save, tmp_path, argv):
    X, y = make_rows(seed=1)
    model, test = tmp_path / "model.npz", save("test.mat", x=X, y=y)
    tested = score(train, test, *argv, "--save", model, "--scores", tmp_path / "a.csv")
    assert score("--model", model, test, "--scores", tmp_path / "b.csv") == tested
    a, b = read_scores(tmp_path / "a.csv"), read_scores(tmp_path / "b.csv")
    assert (list(a), list(b)) == (["score"], ["score", "probability"])
    np.testing.assert_array_equal(a["score"], b["score"])
    np.testing.assert_array_equal(b["probability"], expit(b["score"]))
    assert score(train, test, *argv, "--cost", "5,1", "--scores", tmp_path / "a.csv") == tested
    assert score("--model", model, test, "--cost", "5,1", "--scores", tmp_path / "b.csv") == tested
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_two_files_of_the_published_algorithm_give_a_model_without_probabilities(train, save, tmp_path):
    X, y = make_rows(seed=1)
    model, test = tmp_path / "model.npz", save("test.mat", x=X, y=y)
    tested = score(train, test, "--passes", 2, "--save", model, "--scores", tmp_path / "a.csv")
    assert score("--model", model, test, "--scores", tmp_path / "b.csv") == tested
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    assert list(read_scores(tmp_path / "a.csv")) == ["score"]
    refused("has no probabilities to decide by", "--model", model, test, "--cost", "5,1")


def test_unlabelled_files(model, rows, tmp_path):
    X, y = rows
    savemat(tmp_path / "new.mat", {"x_te": X})
    code, out, err = call("--model", model, tmp_path / "new.mat", "--scores", tmp_path / "scores.csv")
    assert (code, out) == (0, "") and "scores are in" in err
    assert roc_auc_score(y, read_scores(tmp_path / "scores.csv")["score"]) > 0.8
    refused("new.mat has no labels, so there is no AUC", "--model", model, tmp_path / "new.mat")
    savemat(tmp_path / "ones.mat", {"x_te": X, "y_te": np.ones(len(X))})
    refused("ones.mat has one label only, 1, so there is no AUC", "--model", model, tmp_path / "ones.mat")
    savemat(tmp_path / "sevens.mat", {"x_te": X, "y_te": np.full(len(X), 7)})
    refused("label 7 is not one of -1 and 1", "--model", model, tmp_path / "sevens.mat")


@pytest.mark.parametrize("header", [True, False])
def test_csv_files_with_text_columns_labelled_or_not(tmp_path, header):
    X, y = make_rows()
    colours, answers = np.array(["red", "blue"]), np.array(["no", "yes"])
    lines = [f"{a!r},{colours[int(b > 0)]},{c!r}" for a, b, c, _ in X.tolist()]
    labelled = [f"{line},{answers[int(label > 0)]}" for line, label in zip(lines, y)]
    files = {"train": ("size,colour,weight,sick", labelled), "new": ("size,colour,weight", lines)}
    for name, (names, content) in files.items():
        (tmp_path / f"{name}.csv").write_text("\n".join([names, *content] if header else content))
    assert call(tmp_path / "train.csv", *FEW, "--save", tmp_path / "model.npz")[0] == 0
    for name, labels in (("train", True), ("new", False)):
        argv = ["--model", tmp_path / "model.npz", tmp_path / f"{name}.csv", "--scores", tmp_path / f"{name}.out"]
        code, out, _ = call(*argv)
        assert code == 0 and bool(out) == labels
    assert (tmp_path / "train.out").read_text() == (tmp_path / "new.out").read_text()


def test_a_label_column_that_is_not_the_last_is_remembered(tmp_path):
    X, y = make_rows()
    lines = [f"{label},{a},{b}" for label, (a, b, *_) in zip(y, X.tolist())]
    (tmp_path / "train.csv").write_text("\n".join(["sick,a,b", *lines]))
    assert call(tmp_path / "train.csv", *FEW, "--label", "sick", "--save", tmp_path / "model.npz")[0] == 0
    assert score("--model", tmp_path / "model.npz", tmp_path / "train.csv") > 0.8


@pytest.mark.parametrize("label", [0, 1])
def test_libsvm_files_whose_labels_mean_nothing(tmp_path, label):
    X, y = make_rows()
    dump_svmlight_file(X, y, str(tmp_path / "train.svm"), zero_based=False)
    dump_svmlight_file(X, np.full(len(y), label), str(tmp_path / "new.svm"), zero_based=False)
    assert call(tmp_path / "train.svm", *FEW, "--save", tmp_path / "model.npz")[0] == 0
    code, out, _ = call("--model", tmp_path / "model.npz", tmp_path / "new.svm", "--scores", tmp_path / "scores.csv")
    assert (code, out) == (0, "")
    assert roc_auc_score(y, read_scores(tmp_path / "scores.csv")["score"]) > 0.8


def test_models_that_do_not_fit(model, save, rows, tmp_path):
    X, y = rows
    assert (
        len(refused("has 3 features, expected 4", "--model", model, save("new.mat", x=X[:, :3], y=y)).splitlines()) == 1
    )
    assert len(refused("is not a .npz file", "--model", save("new.mat", x=X, y=y), model).splitlines()) == 1
    assert len(refused("no such file", "--model", tmp_path / "none.npz", model).splitlines()) == 1
    content = model.read_bytes()
    model.write_bytes(content[: len(content) // 2])
    assert len(refused("damaged", "--model", model, save("new.mat", x=X, y=y)).splitlines()) == 1


def test_decisions_by_a_saved_model(model, save, tmp_path):
    X, y = make_rows(seed=1)
    new = save("new.mat", x=X, y=y)
    code, _, err = call("--model", model, new, "--cost", "9,1", "--scores", tmp_path / "scores.csv")
    columns = read_scores(tmp_path / "scores.csv")
    acted = columns["probability"] > 1 / 10
    assert code == 0 and list(columns) == ["score", "probability", "decision"]
    np.testing.assert_array_equal(columns["decision"], acted)
    assert outcome(err, "Bayes minimum risk")[:2].tolist() == [(acted & (y > 0)).sum(), (acted & (y < 0)).sum()]
    assert outcome(err, "act on no row")[7] == 9 * 15 and outcome(err, "act on every row")[7] == 45
    savemat(tmp_path / "unlabelled.mat", {"x_te": X})
    argv = ["--model", model, tmp_path / "unlabelled.mat", "--scores", tmp_path / "scores.csv", "--cost"]
    refused("neither labels of both classes nor costs for each row, expected --cost FN,FP", *argv)
    code, out, err = call(*argv, "9,1")
    assert (code, out) == (0, "") and "scores are in" in err
    assert "precision" not in err  # of what came of them nothing is known
    np.testing.assert_array_equal(read_scores(tmp_path / "scores.csv")["decision"], acted)


# --- from Python -----------------------------------------------------------------------------------------------------

NEEDS = {"need_auc": True, "need_probability": False, "x_names": ["x"], "y_names": ["y"]}


@pytest.mark.parametrize("learner", [AUCRanker, PublishedRanker])
def test_a_scored_file_has_what_the_model_makes_of_it(rows, tmp_path, learner):
    X, y = rows
    ranker = learner(random_state=0).fit(X, y)
    ranker.save(tmp_path / "model.npz")
    cost = np.arange(120.0).reshape(60, 2)
    np.savez(tmp_path / "new.npz", x=X + 0.1, y=y, c=cost)
    scored = score_file(tmp_path / "model.npz", tmp_path / "new.npz", **NEEDS, cost_names=["c"])
    np.testing.assert_array_equal(scored.X, X + 0.1)
    np.testing.assert_array_equal(scored.y, y)
    np.testing.assert_array_equal(scored.cost, cost)
    np.testing.assert_array_equal(scored.classes, [-1, 1])
    np.testing.assert_array_equal(scored.scores, ranker.decision_function(X + 0.1))
    assert scored.auc == roc_auc_score(y, scored.scores)
    if learner is AUCRanker:
        np.testing.assert_array_equal(scored.probability, ranker.predict_proba(X + 0.1)[:, 1])
    else:
        assert scored.probability is None


def test_what_is_needed_and_missing_is_refused(rows, tmp_path):
    X, y = rows
    PublishedRanker(random_state=0).fit(X, y).save(tmp_path / "model.npz")
    np.savez(tmp_path / "new.npz", x=X)
    paths = tmp_path / "model.npz", tmp_path / "new.npz"
    with pytest.raises(InputError, match=r"new\.npz has no labels, so there is no AUC"):
        score_file(*paths, **NEEDS)
    with pytest.raises(InputError, match=r"model\.npz has no probabilities to decide by"):
        score_file(*paths, **{**NEEDS, "need_auc": False, "need_probability": True})
    scored = score_file(*paths, **{**NEEDS, "need_auc": False})
    assert scored.y is scored.auc is scored.cost is None and scored.scores.shape == (60,)


def test_scores_that_are_not_finite_are_refused(rows, tmp_path):
    """Zeros score well, so the damage is not seen while loading; other rows do not."""
    X, y = rows
    ranker = PublishedRanker(random_state=0).fit(X, y)
    function = ranker.score_function_
    function.set_weights([1e308 * np.sign(np.arange(5) - 3.5)], 0.0)
    ranker.save(tmp_path / "model.npz")
    np.savez(tmp_path / "new.npz", x=1e6 * X, y=y)
    with pytest.raises(InputError, match="gives scores that are not finite"):
        score_file(tmp_path / "model.npz", tmp_path / "new.npz", **NEEDS)
