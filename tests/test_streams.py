"""Learning from streams: files of every kind, what is held out, and what cannot be read."""

import bz2
import gzip
import re
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import RESULT, Screen, call, frames, make_rows, refused, score
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import roc_auc_score

from oam import OnlineAUC
from preprocess import Preprocessor
from tenfold import load_model, streams
from tenfold.ranker import PublishedRanker
from tenfold.readers import load, stream
from tenfold.streams import HeldOut, learn_stream, make_learners

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def big(monkeypatch):
    """Rows that take many chunks."""
    monkeypatch.setattr("tenfold.readers.text.STREAMED_CELLS", 4000)
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
    fit, partial_fit, add = Preprocessor.fit, OnlineAUC.partial_fit, streams.HeldOut.add

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

    monkeypatch.setattr(Preprocessor, "fit", spy_fit)
    monkeypatch.setattr(OnlineAUC, "partial_fit", spy_learn)
    monkeypatch.setattr(streams.HeldOut, "add", spy_add)
    assert call("--stream", *files)[0] == 0
    assert seen["fit"] <= seen["learn"]
    assert not seen["learn"] & seen["held"]
    assert len(seen["learn"]) + len(seen["held"]) == 6000
    assert len(seen["held"]) == pytest.approx(600, abs=5 * np.sqrt(540))


def test_a_stream_is_never_held_whole(tmp_path, monkeypatch):
    X, y = make_rows(5000, 4, 500)
    monkeypatch.setattr("tenfold.readers.text.STREAMED_CELLS", 4000)
    sizes = [data.X.shape[0] for data, _ in stream(write_stream("csv", X, y, tmp_path))]
    assert max(sizes) <= 1000 and sum(sizes) == 5000
    shares = [share for _, share in stream(write_stream("npy", X, y, tmp_path))]
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
    monkeypatch.setattr("tenfold.readers.text.STREAMED_CELLS", 1)
    rng = np.random.RandomState(0)
    lines = [
        f"{a:.3f},{'' if b > 1.5 else b.round(3)},{'red' if c > 0 else 'blue'},{'yes' if a + c > 1 else 'no'}"
        for a, b, c in rng.randn(2500, 3)
    ]
    for name, text in {"plain": "\n".join(lines), "header": "\n".join(["a,b,c,sick", *lines])}.items():
        path = tmp_path / f"{name}.csv"
        path.write_text(text)
        whole = load(path)
        parts = [data for data, _ in stream([path])]
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
        refused(message, "--stream", *files)


@pytest.mark.parametrize("before", [b"", b"1,2,0\n" * 3])
def test_a_line_without_end_does_not_fill_the_memory(tmp_path, before):
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(before + bytes(2**27), 1))
    tracemalloc.start()
    refused("has a line of 33554432 bytes or more", "--stream", tmp_path / "bomb.csv.gz")
    assert tracemalloc.get_traced_memory()[1] < 2**27
    tracemalloc.stop()


def test_a_stream_that_begins_with_too_little(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "HELD_OUT", 1.0)
    (tmp_path / "few.csv").write_text("1,0\n2,1\n3,0\n")
    refused("the first rows are too few", "--stream", tmp_path / "few.csv")


@pytest.mark.parametrize("name, content", [("few.csv", "1,0\n2,1\n" + 9 * "3,0\n"), ("rows.csv", None)])
def test_nothing_of_the_live_line_is_left(tmp_path, name, content):
    """Neither where a stream ends well nor where it ends in an error."""
    rows = "".join(f"{a},{b},{label}\n" for (a, b, *_), label in zip(*make_rows(600, 4, 150)))
    (tmp_path / name).write_text(content or rows)
    code, _, err = call("--stream", tmp_path / name, stderr=Screen())
    assert code == (2 if content else 0)
    shown = frames(err)
    assert shown[0].endswith("11 rows" if content else "600 rows")
    assert shown[-2] == "" and shown[-1].startswith("exp.py: error: a class" if content else "600 rows in ")


# --- from Python -----------------------------------------------------------------------------------------------------


GIVEN = [None, {"C": 1e-7, "buffer": 50}, {"update": "sequential", "C": 1e-5, "buffer": 10}]


@pytest.mark.parametrize("settings", GIVEN)
def test_a_stream_ends_in_a_ranker_and_what_its_auc_rests_on(big, tmp_path, settings):
    X, y = big
    reports = []
    paths = write_stream("csv", X, y, tmp_path)
    result = learn_stream(paths, seed=2, settings=settings, report=lambda *report: reports.append(report))
    assert isinstance(result.ranker, PublishedRanker) and result.auc > 0.85
    assert result.n_rows == 6000 and result.n_learned + sum(result.to_choose) + sum(result.to_test) == 6000
    assert [n for n, _ in reports] == sorted({n for n, _ in reports}) and reports[-1] == (6000, 1.0)
    assert reports[0][0] * 0.8 < result.n_first < reports[0][0]
    assert result.n_choices == (1 if settings and "C" in settings else 4)
    assert (sum(result.to_choose) > 0) == (result.n_choices > 1)
    expected = {"C": result.ranker.C, "passes": 1, "buffer": 500, "update": "gradient", "random_state": 2}
    assert result.ranker.get_params() == {**expected, **(settings or {})}
    assert roc_auc_score(y, result.ranker.decision_function(X)) == pytest.approx(result.auc, abs=0.05)
    result.ranker.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.decision_function(X), result.ranker.decision_function(X))
    assert [column["name"] for column in loaded.data_.csv["columns"]] == [
        "a",
        "b",
        "c",
        "d",
    ] and not loaded.score_function_.is_calibrated
    assert learn_stream(paths, seed=2, settings=settings).auc == result.auc


def test_the_positive_class_and_the_label_column_can_be_named(big, tmp_path):
    X, y = big
    (tmp_path / "rows.csv").write_text(
        "sick,a,b\n" + "".join(f"{'yes' if label > 0 else 'no'},{a},{b}\n" for (a, b, *_), label in zip(X, y))
    )
    for positive, classes in ((None, ["no", "yes"]), ("no", ["yes", "no"])):
        result = learn_stream([tmp_path / "rows.csv"], label="sick", positive=positive)
        assert result.ranker.classes_.tolist() == classes and result.auc > 0.8


def test_held_out_rows_are_a_sample_of_each_class_and_give_the_auc():
    X, y = make_rows(600, 4, 150)
    learner = OnlineAUC(random_state=0).fit(X, y)
    all_rows, sample = (HeldOut(size, np.random.RandomState(0)) for size in (1000, 40))
    for part in np.array_split(np.arange(600), 7):
        all_rows.add(X[part], y[part])
        sample.add(X[part], y[part])
    assert (all_rows.sizes(), sample.sizes()) == ([150, 450], [40, 40])
    assert all_rows.auc(learner) == pytest.approx(roc_auc_score(y, learner.decision_function(X)), abs=1e-12)
    assert sample.auc(learner) == pytest.approx(all_rows.auc(learner), abs=0.1)


def test_step_sizes_of_a_stream_shrink_with_its_square_and_long_ones_take_more_rows_to_a_step():
    X, y = make_rows(600, 4, 150)
    short, long = (make_learners(X, y, n, {}, np.random.RandomState(0)) for n in (1000, 300_000))
    assert [learner.C for learner in short] == sorted(learner.C for learner in short) and len(short) == 4
    np.testing.assert_allclose([a.C / b.C for a, b in zip(short, long)], 300**2)
    assert ({learner.block for learner in short}, {learner.block for learner in long}) == ({64}, {512})
    given = {"C": 0.5, "update": "sequential"}
    (one,) = make_learners(X, y, 1000, given, np.random.RandomState(0))
    assert (one.C, one.update) == (0.5, "sequential") and given == {"C": 0.5, "update": "sequential"}
