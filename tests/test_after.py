"""What a user does after the grade, as the command is met: models, decisions, streams, clusters."""

import bz2
import csv
import gzip
import re
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import RESULT, call, make_rows, refused, score
from scipy.io import savemat
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import roc_auc_score

import exp
import preprocess
from oam import Calibration, OnlineAUC

pytestmark = [pytest.mark.filterwarnings("error"), pytest.mark.usefixtures("quick_plans")]

FEW = ("--folds", 3, "--jobs", 1)


def read_scores(path):
    """The columns of a file of scores, by name."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["row"] for row in rows] == [str(i) for i in range(1, len(rows) + 1)]
    return {name: np.array([row[name] for row in rows], float) for name in rows[0] if name != "row"}


@pytest.fixture
def model(train, tmp_path):
    path = tmp_path / "model.npz"
    assert call(train, *FEW, "--save", path)[0] == 0
    return path


# --- models ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("argv", [[], ["--features", "linear"], ["--passes", 2]])
def test_a_saved_model_scores_another_file_and_changes_no_digit(train, save, tmp_path, argv):
    plain = score(train, *FEW, *argv)
    model, scores = tmp_path / "model.npz", tmp_path / "scores.csv"
    code, out, err = call(train, *FEW, *argv, "--save", model)
    assert code == 0 and float(RESULT.fullmatch(out)[1]) == plain
    assert f"the model, learned from all 60 rows, is in {model}" in err
    X, y = make_rows(seed=1)
    code, out, _ = call("--model", model, save("new.mat", "x_te", "y_te", x=X, y=y), "--scores", scores)
    columns = read_scores(scores)
    assert code == 0 and float(RESULT.fullmatch(out)[1]) == pytest.approx(roc_auc_score(y, columns["score"]), abs=6e-5)
    assert list(columns) == ["score", "probability"]
    assert roc_auc_score(y, columns["probability"]) == pytest.approx(roc_auc_score(y, columns["score"]))
    np.testing.assert_array_equal(columns["score"], preprocess.Model.load(model).score(X))  # to the last digit


def test_the_model_of_two_files_is_the_one_that_was_tested(train, save, tmp_path):
    X, y = make_rows(seed=1)
    test = save("test.mat", x=X, y=y)
    tested = score(train, test, "--save", tmp_path / "model.npz", "--scores", tmp_path / "a.csv")
    assert score("--model", tmp_path / "model.npz", test, "--scores", tmp_path / "b.csv") == tested
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    assert list(read_scores(tmp_path / "a.csv")) == ["score"]
    refused("has no probabilities to decide by", "--model", tmp_path / "model.npz", test, "--cost", "5,1")


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


def test_scores_of_folds_are_those_of_rows_not_learned_from(train, rows, tmp_path):
    code, out, _ = call(train, *FEW, "--scores", tmp_path / "scores.csv")
    assert code == 0 and RESULT.fullmatch(out)
    columns = read_scores(tmp_path / "scores.csv")
    assert list(columns) == ["score"] and len(columns["score"]) == 60
    assert roc_auc_score(rows[1], columns["score"]) == pytest.approx(float(out.split()[-1]), abs=0.05)


def test_where_nothing_can_be_written(train, tmp_path):
    for option in ("--save", "--scores"):
        assert "cannot be written" in refused("cannot be written", train, *FEW, "-q", option, tmp_path / "no" / "where")


# --- decisions -------------------------------------------------------------------------------------------------------


def outcome(err, name):
    """TP, FP, FN, TN, precision, recall, F1, cost, savings in percent, as the table has them."""
    return np.array(re.search(rf"^{name} +(.*)%$", err, re.M)[1].split(), float)


def test_decisions_by_what_the_other_folds_teach(train, rows, tmp_path):
    """Against probabilities and thresholds worked out here from the scores that the command writes."""
    y = rows[1]
    code, out, err = call(
        train, *FEW, "--cost", "7,2", "--scores", tmp_path / "scores.csv", "--plots", tmp_path / "figures"
    )
    assert code == 0 and float(RESULT.fullmatch(out)[1]) == score(train, *FEW)
    columns = read_scores(tmp_path / "scores.csv")
    s, folds = (
        columns["score"],
        exp.one_file("", preprocess.Data(rows[0]), y, exp.make_parser().parse_args(["--folds", "3"]), None),
    )
    for i, j in folds.splits:
        np.testing.assert_allclose(columns["probability"][j], Calibration().fit(s[i], y[i]).probability(s[j]))
    np.testing.assert_array_equal(columns["decision"], columns["probability"] > 2 / 9)
    acted = columns["decision"] > 0
    tp, fp, fn = ((acted & (y > 0)).sum(), (acted & (y < 0)).sum(), (~acted & (y > 0)).sum())
    cost = 7 * fn + 2 * fp
    expected = [tp, fp, fn, len(y) - tp - fp - fn, tp / (tp + fp), tp / (tp + fn), 2 * tp / (2 * tp + fp + fn), cost]
    np.testing.assert_allclose(outcome(err, "Bayes minimum risk")[:-1], expected, atol=1e-4)
    constant = min(7 * 15, 2 * 45)
    assert outcome(err, "Bayes minimum risk")[-1] == pytest.approx(100 * (constant - cost) / constant, abs=0.06)
    assert outcome(err, "act on every row")[:4].tolist() == [15, 45, 0, 0]
    assert outcome(err, "act on no row")[7] == 7 * 15
    assert outcome(err, "moved threshold")[:4].sum() == 60
    level, threshold = map(float, re.search(r"probability is above (\S+) .* score above (\S+) ", err).groups())
    assert level == pytest.approx(2 / 9, abs=1e-4)
    costs = [7 * ((s <= t) & (y > 0)).sum() + 2 * ((s > t) & (y < 0)).sum() for t in [threshold, *s, -np.inf]]
    assert costs[0] == min(costs)
    assert {path.name for path in (tmp_path / "figures").iterdir()} >= {"precision_recall.png", "cost.png"}


def test_costs_of_each_row_are_read_from_the_file(rows, tmp_path):
    X, y = rows
    cost = np.random.RandomState(0).randint(1, 9, (60, 2))
    savemat(tmp_path / "train.mat", {"x_tr": X, "y_tr": y, "c_tr": cost, "mine": cost})
    argv = [tmp_path / "train.mat", *FEW, "--scores", tmp_path / "scores.csv"]
    for asked in (["--cost"], ["--cost-name", "mine"]):
        code, _, err = call(*argv, *asked)
        acted = read_scores(tmp_path / "scores.csv")["decision"] > 0
        probability = read_scores(tmp_path / "scores.csv")["probability"]
        assert code == 0 and "costs: those of each row" in err
        np.testing.assert_array_equal(acted, probability * cost[:, 0] > (1 - probability) * cost[:, 1])
        assert outcome(err, "Bayes minimum risk")[7] == cost[~acted & (y > 0), 0].sum() + cost[acted & (y < 0), 1].sum()
    assert "costs: 5 for a missed positive" in call(*argv, "--cost", "5,1")[2]
    refused("holds no yours", *argv, "--cost-name", "yours")
    for bad, message in ((cost[:, :1], "60 x 1, expected two numbers"), (-cost, "not all finite and at least 0")):
        savemat(tmp_path / "bad.mat", {"x_tr": X, "y_tr": y, "c_tr": bad})
        refused(message, tmp_path / "bad.mat", *FEW, "--cost")
        assert 0 < score(tmp_path / "bad.mat", *FEW) <= 1  # nobody asked for them


def test_without_numbers_or_costs_in_the_file_a_positive_costs_what_it_is_rarer(train):
    assert "costs: 3 for a missed positive, 1 for a false alarm" in call(train, *FEW, "--cost")[2]


def test_decisions_by_a_saved_model(model, save, tmp_path):
    X, y = make_rows(seed=1)
    new = save("new.mat", x=X, y=y)
    code, _, err = call("--model", model, new, "--cost", "9,1", "--scores", tmp_path / "scores.csv")
    columns = read_scores(tmp_path / "scores.csv")
    acted = columns["probability"] > 1 / 10
    assert code == 0 and list(columns) == ["score", "probability", "decision"]
    np.testing.assert_array_equal(columns["decision"], acted)
    assert outcome(err, "Bayes minimum risk")[:2].tolist() == [(acted & (y > 0)).sum(), (acted & (y < 0)).sum()]
    savemat(tmp_path / "unlabelled.mat", {"x_te": X})
    argv = ["--model", model, tmp_path / "unlabelled.mat", "--scores", tmp_path / "scores.csv", "--cost"]
    refused("neither labels of both classes nor costs for each row, expected --cost FN,FP", *argv)
    assert call(*argv, "9,1")[0] == 0
    np.testing.assert_array_equal(read_scores(tmp_path / "scores.csv")["decision"], acted)


# --- streams ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def big(monkeypatch):
    """Rows that take many chunks."""
    monkeypatch.setattr(preprocess, "STREAMED_CELLS", 4000)
    X, y = make_rows(6000, 4, 600, seed=3)
    return X.round(3), y


def write_stream(kind, X, y, tmp_path):
    """The files of a stream of that kind."""
    if kind == "npy":
        np.save(tmp_path / "x.npy", X)
        np.save(tmp_path / "y.npy", y)
        return [tmp_path / "x.npy", tmp_path / "y.npy"]
    path = tmp_path / f"rows.{kind}"
    pack = {"gz": gzip.compress, "bz2": bz2.compress}.get(kind.split(".")[-1], bytes)
    if kind.startswith("csv"):
        text = "a,b,c,d,label\n" + "".join(f"{','.join(map(str, row))},{label}\n" for row, label in zip(X.tolist(), y))
        path.write_bytes(pack(text.encode()))
    else:
        dump_svmlight_file(sp.csr_array(X), y, str(path), zero_based=False)
        path.write_bytes(pack(path.read_bytes()))
    return [path]


@pytest.mark.parametrize("kind", ["npy", "csv", "csv.gz", "svm", "svm.bz2"])
def test_streams_of_every_kind_learn_the_same(big, tmp_path, kind):
    X, y = big
    files = write_stream(kind, X, y, tmp_path)
    code, out, err = call("--stream", *files)
    assert code == 0
    assert float(RESULT.fullmatch(out)[1]) > 0.9  # the best is 0.92
    assert "6000 rows in " in err and "of them learned from, scaled by the first " in err
    assert re.search(r"AUC on a sample of \d+ positive and \d+ negative rows held out of the stream", err)
    assert score("--stream", *files) == float(out.split()[-1])
    if kind != "npy" and "svm" not in kind:
        assert score("--stream", *write_stream("npy", X, y, tmp_path)) == pytest.approx(
            float(out.split()[-1]), abs=0.02
        )


def test_held_out_rows_are_neither_learned_from_nor_scaled_by(big, tmp_path, monkeypatch):
    """Each row carries its number in a column; what is learned from and what is tested on share none."""
    X, y = big
    X = np.column_stack([X, np.arange(len(X))])
    files = write_stream("npy", X, y, tmp_path)
    seen = {"fit": set(), "learn": set(), "held": set()}
    fit, partial_fit, add = preprocess.Preprocessor.fit, OnlineAUC.partial_fit, exp.HeldOut.add

    def spy_fit(self, X):
        seen["fit"] |= set(X[:, -1])
        fit(self, X)
        self.low, self.high = X[:, -1].min(), X[:, -1].max()
        seen["scale"] = self
        return self

    def numbers(Z):
        scale = seen["scale"]
        return set(np.round(Z[:, -2] * (scale.high - scale.low) + scale.low))

    def spy_learn(self, Z, y, classes):
        seen["learn"] |= numbers(Z)
        return partial_fit(self, Z, y, classes)

    def spy_add(self, Z, y):
        if len(Z):
            seen["held"] |= numbers(Z)
        add(self, Z, y)

    monkeypatch.setattr(preprocess.Preprocessor, "fit", spy_fit)
    monkeypatch.setattr(OnlineAUC, "partial_fit", spy_learn)
    monkeypatch.setattr(exp.HeldOut, "add", spy_add)
    assert call("--stream", *files)[0] == 0
    assert seen["fit"] <= seen["learn"]
    assert not seen["learn"] & seen["held"]
    assert len(seen["learn"]) + len(seen["held"]) == 6000
    assert len(seen["held"]) == pytest.approx(600, abs=5 * np.sqrt(540))


def test_a_stream_is_never_held_whole(tmp_path, monkeypatch):
    X, y = make_rows(5000, 4, 500)
    monkeypatch.setattr(preprocess, "STREAMED_CELLS", 4000)
    sizes = [data.X.shape[0] for data, _ in preprocess.stream(write_stream("csv", X, y, tmp_path))]
    assert max(sizes) <= 1000 and sum(sizes) == 5000
    shares = [share for _, share in preprocess.stream(write_stream("npy", X, y, tmp_path))]
    assert shares == pytest.approx([0.2, 0.4, 0.6, 0.8, 1])


def test_streams_warn_of_nothing(big, tmp_path):
    x_path, y_path = write_stream("npy", *big, tmp_path)
    x_path.write_bytes(x_path.read_bytes().replace(b"(6000, 4)", b"(6000L,4)", 1))  # as Python 2 wrote it
    assert score("--stream", x_path, y_path) > 0.9
    rows = "".join(f"{a},{b},{label}\n" for (a, b, *_), label in zip(big[0], big[1]))
    (tmp_path / "blank.csv").write_text("\n\n" + rows + 3000 * "\n")
    assert score("--stream", tmp_path / "blank.csv") > 0.8


def test_streams_keep_what_files_say(tmp_path, monkeypatch):
    """Missing cells, text labels and text columns are read chunk by chunk as they are from a whole file."""
    monkeypatch.setattr(preprocess, "STREAMED_CELLS", 1)
    rng = np.random.RandomState(0)
    lines = [
        f"{a:.3f},{'' if b > 1.5 else b.round(3)},{'red' if c > 0 else 'blue'},{'yes' if a + c > 1 else 'no'}"
        for a, b, c in rng.randn(2500, 3)
    ]
    for name, text in {"plain": "\n".join(lines), "header": "\n".join(["a,b,c,sick", *lines])}.items():
        path = tmp_path / f"{name}.csv"
        path.write_text(text)
        whole = preprocess.load(path)
        parts = [data for data, _ in preprocess.stream([path])]
        assert len(parts) == 3
        np.testing.assert_array_equal(np.concatenate([part.X for part in parts]), whole.X)
        np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), whole.y)


def test_a_stream_can_be_saved_and_given_its_settings(big, tmp_path):
    X, y = big
    files = write_stream("csv", X, y, tmp_path)
    argv = ["--stream", *files, "--C", "1e-7", "--buffer", 50, "--save", tmp_path / "model.npz"]
    code, out, err = call(*argv)
    assert code == 0 and "C chosen" not in err
    assert score("--model", tmp_path / "model.npz", *files) == pytest.approx(float(out.split()[-1]), abs=0.03)


def test_streams_that_cannot_be(tmp_path, big):
    X, y = big
    x_path, y_path = write_stream("npy", X, y, tmp_path)
    np.save(tmp_path / "short.npy", y[:-1])
    np.save(tmp_path / "ones.npy", np.ones(len(y)))
    np.save(tmp_path / "objects.npy", np.array([None, 1], object), allow_pickle=True)
    (tmp_path / "text.csv").write_text("hello\n")
    (tmp_path / "few.csv").write_text("1,0\n2,1\n" + 9 * "3,0\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "blank.svm").write_text(" \n\n")
    (tmp_path / "bad.csv").write_bytes(b"1,2,0\n" + 2000 * b"3,4,1\n" + b"\xff,1,1\n")
    (tmp_path / "ragged.csv").write_bytes(b"1,2,0\n" + 2000 * b"3,4,1\n" + b"1,1\n")
    for message, *files in [
        ("expected x.npy and y.npy, or one file", x_path),
        ("expected x.npy and y.npy, or one file", tmp_path / "train.mat"),
        ("no file, expected x.npy and y.npy",),
        ("no such file", tmp_path / "none.csv"),
        ("expected rows x features and their labels", x_path, tmp_path / "short.npy"),
        ("expected rows x features and their labels", y_path, x_path),
        ("labels are 1, expected two classes", x_path, tmp_path / "ones.npy"),
        ("is not a .npy file of plain numbers", x_path, tmp_path / "objects.npy"),
        ("single column", tmp_path / "text.csv"),
        ("a class is not among the 0 rows held out of 11", tmp_path / "few.csv"),
        ("is empty", tmp_path / "empty.csv"),
        ("has no rows", tmp_path / "blank.svm"),
        ("not CSV text in UTF-8", tmp_path / "bad.csv"),
        ("has 2 cells", tmp_path / "ragged.csv"),
    ]:
        assert len(refused(message, "--stream", *files).splitlines()) == 1


@pytest.mark.parametrize("before", [b"", b"1,2,0\n" * 3])
def test_a_line_without_end_does_not_fill_the_memory(tmp_path, before):
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(before + bytes(2**27), 1))
    tracemalloc.start()
    refused("has a line of 33554432 bytes or more", "--stream", tmp_path / "bomb.csv.gz")
    assert tracemalloc.get_traced_memory()[1] < 2**27
    tracemalloc.stop()


def test_a_stream_that_begins_with_too_little(tmp_path, monkeypatch):
    monkeypatch.setattr(exp, "HELD_OUT", 1.0)
    (tmp_path / "few.csv").write_text("1,0\n2,1\n3,0\n")
    assert refused("the first rows are too few", "--stream", tmp_path / "few.csv").count("\n") == 1


@pytest.mark.parametrize(
    "argv",
    [
        ["--stream", "x.csv", "--features", "linear"],
        ["--stream", "x.csv", "--compare"],
        ["--stream", "x.csv", "--cost", "5,1"],
        ["--stream", "x.csv", "--model", "m.npz"],
        ["--stream", "x.csv", "--scheduler", "here"],
        ["--model", "m.npz", "x.mat", "--save", "m.npz"],
        ["--model", "m.npz", "x.mat", "--plots", "figures"],
        ["--model", "m.npz", "x.mat", "--C", "1"],
        ["--model", "m.npz"],
        ["--model", "m.npz", "a.mat", "b.mat"],
        ["a.mat", "b.mat", "--cost", "5,1"],
        ["a.mat", "--cost", "5,1", "--cost-name", "c"],
    ],
)
def test_options_that_do_not_go_together(argv):
    assert refused("--", *argv).startswith("usage: exp.py")
