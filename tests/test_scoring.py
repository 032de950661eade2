"""Scoring files of any size with saved models: one file, or many that are read some rows at a time."""

import os
import threading
import tracemalloc

import conftest
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from conftest import EFFORT, FEW, RESULT, Screen, frames, make_rows, outcome, read_scores
from scipy.io import savemat
from scipy.special import expit
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import roc_auc_score
from stream_files import KINDS, write_parts, write_stream

from preprocess import InputError
from tenfold import AUCRanker, load_model
from tenfold.ranker import PublishedRanker
from tenfold.readers.base import Data
from tenfold.scoring import score_data, score_files

pytestmark = pytest.mark.filterwarnings("error")


def call(*argv, **settings):
    """Run the command; here, scores are written over those of earlier calls."""
    return conftest.call(*argv, "--force", **settings)


def score(*argv):
    return conftest.score(*argv, "--force")


def refused(message, *argv):
    return conftest.refused(message, *argv, "--force")


@pytest.mark.parametrize("argv", [EFFORT, [*EFFORT, "--features", "linear"], ["--passes", 2]])
def test_a_saved_model_scores_another_file_and_changes_no_digit(train, save, tmp_path, argv):
    argv = ["--folds", 3, "--jobs", 1, *argv]
    plain = score(train, *argv)
    model, scores = tmp_path / "model.npz", tmp_path / "scores.csv"
    code, out, err = call(train, *argv, "--save", model)
    assert code == 0 and float(RESULT.fullmatch(out)[1]) == plain
    assert f"the model, learned from all 60 rows, is in {model}" in err
    X, y = make_rows(seed=1)
    code, out, _ = call("--model", model, save("new.mat", "x_te", "y_te", x=X, y=y), "--scores", scores)
    columns = read_scores(scores)
    assert code == 0 and float(RESULT.fullmatch(out)[1]) == pytest.approx(roc_auc_score(y, columns["score"]), abs=6e-5)
    assert list(columns) == ["score", "probability"]
    assert roc_auc_score(y, columns["probability"]) == pytest.approx(roc_auc_score(y, columns["score"]))
    np.testing.assert_array_equal(columns["score"], load_model(model).decision_function(X))  # to the last digit


@pytest.mark.parametrize("argv", [[], ["--features", "linear"]])
def test_the_model_of_two_files_is_the_one_that_was_tested(train, save, tmp_path, argv):
    X, y = make_rows(seed=1)
    model, test = tmp_path / "model.npz", save("test.mat", x=X, y=y)
    argv = [*argv, *EFFORT]
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
    refused("ones.mat has one label only, so there is no AUC", "--model", model, tmp_path / "ones.mat")
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
    refused("has no costs of each row, expected --cost FN,FP", *argv)
    code, out, err = call(*argv, "9,1")
    assert (code, out) == (0, "") and "scores are in" in err
    assert "precision" not in err  # of what came of them nothing is known
    np.testing.assert_array_equal(read_scores(tmp_path / "scores.csv")["decision"], acted)


# --- many rows -------------------------------------------------------------------------------------------------------


@pytest.fixture
def ranker(rows):
    return AUCRanker("linear", random_state=0).fit(*rows)


@pytest.fixture
def saved(ranker, tmp_path):
    ranker.save(tmp_path / "model.npz")
    return tmp_path / "model.npz"


@pytest.fixture
def big():
    X, y = make_rows(3000, 4, 300, seed=3)
    return X.round(3), y


@pytest.fixture
def small_pieces(monkeypatch):
    """Some kilobytes are cut into pieces, and some hundred rows are read at a time."""
    monkeypatch.setattr("tenfold.pieces.PIECE_BYTES", 4000)
    monkeypatch.setattr("tenfold.readers.text.STREAMED_CELLS", 4000)


def scores_of(*argv):
    """What the command prints, and the columns that it writes."""
    path = argv[argv.index("--scores") + 1]
    code, out, err = call(*argv)
    assert code == 0, err
    return out, read_scores(path)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_every_kind_are_scored_in_their_order(ranker, saved, big, tmp_path, small_pieces, kind):
    """Whether they are in one file or in many, in a directory or named by a pattern, and for any number of jobs."""
    X, y = big
    expected = ranker.decision_function(sp.csr_array(X) if kind.startswith("svm") else X)
    files, folder = write_stream(kind, X, y, tmp_path / "one"), write_parts(kind, X, y, tmp_path / "days")
    found = []
    for names, jobs in ((files, 1), (files, 3), ([folder], 2), ([folder / "*day*"], 1), (sorted(folder.iterdir()), 2)):
        out, columns = scores_of("--model", saved, *names, "--jobs", jobs, "--scores", tmp_path / "scores.csv")
        np.testing.assert_allclose(columns["score"], expected, rtol=1e-12)
        assert out == f"AUC Score: {roc_auc_score(y, expected):.4f}\n"
        found.append((tmp_path / "scores.csv").read_bytes())
    assert len(set(found)) == 1


def test_features_alone_need_no_labels(ranker, saved, big, tmp_path, small_pieces):
    X, y = big
    for i, rows in enumerate(np.array_split(np.arange(3000), 3)):
        np.save(tmp_path / f"x-{i}.npy", X[rows])
    argv = ["--model", saved, tmp_path / "x-*.npy"]
    out, columns = scores_of(*argv, "--scores", tmp_path / "scores.csv")
    assert out == "" and list(columns) == ["score", "probability"]
    np.testing.assert_array_equal(columns["score"], ranker.decision_function(X))
    np.testing.assert_array_equal(columns["probability"], expit(columns["score"]))
    refused("has no labels, so there is no AUC", *argv)
    np.save(tmp_path / "y.npy", y[:1000])
    refused("expected as many of both", *argv, tmp_path / "y.npy")
    out, columns = scores_of("--model", saved, tmp_path / "x-0.npy", tmp_path / "y.npy", "--scores", tmp_path / "s.csv")
    assert out == f"AUC Score: {roc_auc_score(y[:1000], columns['score']):.4f}\n"


def test_scores_are_written_as_parquet_where_the_name_says_so(saved, big, tmp_path, small_pieces):
    pytest.importorskip("pyarrow")
    (path,) = write_stream("csv", *big, tmp_path)
    out, columns = scores_of("--model", saved, path, "--cost", "9,1", "--scores", tmp_path / "scores.csv")
    for _ in range(2):  # an earlier one is written over
        code, again, _ = call("--model", saved, path, "--cost", "9,1", "--scores", tmp_path / "scores.parquet")
        assert (code, again) == (0, out)
    table = pd.read_parquet(tmp_path / "scores.parquet")
    assert list(table.columns) == ["row", "score", "probability", "decision"]
    assert table["row"].tolist() == list(range(1, 3001))
    for name, column in columns.items():
        np.testing.assert_array_equal(table[name], column)


def test_decisions_on_many_rows_add_up(saved, big, tmp_path, small_pieces):
    X, y = big
    (path,) = write_stream("csv", X, y, tmp_path)
    argv = "--model", saved, path, "--cost", "9,1", "--scores", tmp_path / "scores.csv"
    _, columns = scores_of(*argv)
    acted = columns["decision"] > 0
    np.testing.assert_array_equal(acted, columns["probability"] > 1 / 10)
    err = call(*argv)[2]
    expected = [(acted & (y > 0)).sum(), (acted & (y < 0)).sum(), (~acted & (y > 0)).sum(), (~acted & (y < 0)).sum()]
    assert outcome(err, "Bayes minimum risk")[:4].tolist() == expected
    assert outcome(err, "act on no row")[7] == 2700 and outcome(err, "act on every row")[7] == 2700
    assert f"{path}: 3000 rows x 4 features; label 1 is positive" in err
    refused("has no costs of each row, expected --cost FN,FP", "--model", saved, path, "--cost")


def test_rows_of_several_lines_are_scored_once(rows, tmp_path, small_pieces):
    """The file is read anew from its beginning, and nothing is said or written twice, not even into a pipe."""
    X, y = make_rows(1500, 2, 500)
    texts = ["plain" if i < 1000 else "two\nlines" for i in range(1500)]
    lines = [f'{a:.3f},{b:.3f},"{text}",{label}\n' for (a, b), text, label in zip(X, texts, y)]
    (tmp_path / "rows.csv").write_text("a,b,text,label\n" + "".join(lines[900:1100]))
    (tmp_path / "new.csv").write_text("more,a,b,text,label\n" + "".join(f"0,{line}" for line in lines))
    assert call(tmp_path / "rows.csv", *FEW, "--save", tmp_path / "model.npz")[0] == 0
    argv = ["--model", tmp_path / "model.npz", tmp_path / "new.csv", "--jobs", 2, "--scores"]
    code, out, err = call(*argv, tmp_path / "scores.csv")
    assert code == 0 and err.count("ignored: more") == 1
    assert len(read_scores(tmp_path / "scores.csv")["score"]) == 1500 and float(out.split()[-1]) > 0.7
    if hasattr(os, "mkfifo"):
        assert through_a_pipe(tmp_path, *argv) == (0, (tmp_path / "scores.csv").read_bytes())


def through_a_pipe(tmp_path, *argv):
    """The exit code, and what the command writes into a pipe that is named last."""
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    code = call(*argv, tmp_path / "pipe")[0]
    reader.join(timeout=20)
    return code, read[0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_scores_go_into_pipes_and_devices(saved, big, tmp_path, small_pieces):
    (path,) = write_stream("csv", *big, tmp_path)
    out, _ = scores_of("--model", saved, path, "--scores", tmp_path / "scores.csv")
    assert through_a_pipe(tmp_path, "--model", saved, path, "--scores") == (0, (tmp_path / "scores.csv").read_bytes())
    assert call("--model", saved, path, "--scores", "/dev/null")[:2] == (0, out)
    if os.path.exists("/dev/full"):
        refused("/dev/full cannot be written: No space left on device", "--model", saved, path, "--scores", "/dev/full")


def test_what_is_wrong_names_the_file_and_leaves_earlier_scores_as_they_are(saved, big, tmp_path, small_pieces):
    folder, scores = write_parts("csv", *big, tmp_path / "days"), tmp_path / "scores.csv"
    last = folder / "day-4.csv"
    good = last.read_text()
    scores_of("--model", saved, folder, "--scores", scores)
    before = scores.read_bytes()
    for message, content in [
        ("the label 7 is not one of -1 and 1", good + "1,2,3,4,7\n"),
        ("has 3 cells", good + "1,2,3\n"),
        ("holds text, expected numbers", good.replace(".", "x")),
        ("has 3 features, expected 4", "".join(line.partition(",")[2] for line in good.splitlines(keepends=True))),
        ("not CSV text in UTF-8", good.encode() + b"\xff,1,1,1,1\n"),
        ("is empty", ""),
    ]:
        last.write_bytes(content if isinstance(content, bytes) else content.encode())
        err = refused(message, "--model", saved, folder, "--jobs", 2, "--scores", scores, "-q")
        assert err.count("\n") == 1 and "day-4.csv" in err
    assert scores.read_bytes() == before and [path.name for path in tmp_path.glob(".*")] == []


def test_files_without_rows_or_with_labels_for_some_only(saved, big, tmp_path):
    X, y = big
    folder = write_parts("csv", X, y, tmp_path / "days")
    (folder / "day-9.csv").write_text("a,b,c,d,label\n")
    out, columns = scores_of("--model", saved, folder, "--scores", tmp_path / "scores.csv")
    assert out and len(columns["score"]) == 3000
    refused("day-9.csv has no rows", "--model", saved, folder / "day-9.csv", "--scores", tmp_path / "none.csv")
    assert not (tmp_path / "none.csv").exists()
    (folder / "day-9.csv").write_text("a,b,c,d\n1,2,3,4\n")
    refused("has labels for some rows only, so there is no AUC", "--model", saved, folder)
    argv = "--model", saved, folder, "--cost", "9,1", "--scores", tmp_path / "scores.csv"
    out, columns = scores_of(*argv)
    assert out == "" and len(columns["score"]) == 3001 and "precision" not in call(*argv)[2]


def test_the_auc_of_very_many_rows_is_nearly_exact(saved, big, tmp_path, small_pieces, monkeypatch):
    (path,) = write_stream("npy", *big, tmp_path)[:1]
    argv = "--model", saved, path, tmp_path / "y-rows.npy"
    exact = score(*argv)
    monkeypatch.setattr("tenfold.metrics.MOST_KEPT", 500)
    assert score(*argv) == pytest.approx(exact, abs=1.1e-4)


def test_memory_does_not_grow_with_the_rows(saved, ranker, tmp_path, monkeypatch):
    """Those of a few pieces are in memory at a time, and of all rows the scores only, up to a limit."""
    monkeypatch.setattr("tenfold.pieces.PIECE_BYTES", 2**18)
    monkeypatch.setattr("tenfold.readers.text.STREAMED_CELLS", 20_000)
    monkeypatch.setattr("tenfold.metrics.MOST_KEPT", 10_000)
    rng = np.random.RandomState(0)
    peaks = []
    for n in (30_000, 150_000):
        np.save(tmp_path / "x.npy", rng.rand(n, 4).astype(np.float32))
        np.save(tmp_path / "y.npy", np.arange(n) % 2 * 2 - 1)
        tracemalloc.start()
        try:
            argv = "--model", saved, tmp_path / "x.npy", tmp_path / "y.npy", "--scores", tmp_path / "scores.csv"
            assert call(*argv, "--jobs", 1)[0] == 0
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0] + 1e6, peaks


def test_how_far_it_has_got_is_shown_and_cleared_away(saved, big, tmp_path, small_pieces):
    (path,) = write_stream("csv", *big, tmp_path)
    code, _, err = call("--model", saved, path, stderr=Screen())
    shown = frames(err)
    n_rows = [int(text.split()[-2].replace(",", "")) for text in shown if text.endswith(" rows")]
    assert code == 0 and len(n_rows) > 3 and n_rows == sorted(n_rows) and n_rows[-1] == 3000
    assert shown[-2] == "" and shown[-1].startswith(f"{path}: 3000 rows")


# --- from Python -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", [AUCRanker, PublishedRanker])
def test_scored_rows_have_what_the_model_makes_of_them(rows, tmp_path, learner):
    X, y = rows
    ranker = learner(random_state=0).fit(X, y)
    cost = np.arange(120.0).reshape(60, 2)
    np.savez(tmp_path / "new.npz", x=X + 0.1, y=y, c=cost)
    how = {"x_names": ["x"], "y_names": ["y"], "cost_names": ["c"]}
    (scored,) = score_files([tmp_path / "new.npz"], "model.npz", ranker, 1, **how)
    assert scored.shape == (60, 4) and scored.notes == []
    np.testing.assert_array_equal(scored.y, y)
    np.testing.assert_array_equal(scored.cost, cost)
    np.testing.assert_array_equal(scored.scores, ranker.decision_function(X + 0.1))


def test_labels_are_signs_by_the_classes_of_the_model(rows):
    X, y = rows
    ranker = AUCRanker("linear", random_state=0).fit(X, np.where(y > 0, "no", "yes"))
    assert ranker.classes_.tolist() == ["yes", "no"] or ranker.classes_.tolist() == ["no", "yes"]
    scored = score_data(ranker, "model.npz", "new.csv", Data(X, np.where(y > 0, "no", "yes")))
    np.testing.assert_array_equal(scored.y > 0, np.where(y > 0, "no", "yes") == ranker.classes_[1])
    assert score_data(ranker, "model.npz", "new.csv", Data(X)).y is None
    with pytest.raises(InputError, match=r"^new\.csv: the label maybe is not one of "):
        score_data(ranker, "model.npz", "new.csv", Data(X, np.full(60, "maybe")))


def test_scores_that_are_not_finite_are_refused(rows, tmp_path):
    """Zeros score well, so the damage is not seen while loading; other rows do not."""
    X, y = rows
    ranker = PublishedRanker(random_state=0).fit(X, y)
    function = ranker.score_function_
    ((feature_set, _),) = function.sets
    function.sets = [(feature_set, 1e308 * np.sign(np.arange(5) - 3.5))]
    ranker.save(tmp_path / "model.npz")
    np.savez(tmp_path / "new.npz", x_te=1e6 * X, y_te=y)
    refused("gives scores that are not finite", "--model", tmp_path / "model.npz", tmp_path / "new.npz")
