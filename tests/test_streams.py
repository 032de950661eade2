"""Learning from streams: files of every kind, what is held out, and what cannot be read."""

import bz2
import gzip
import os
import re
import signal
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from conftest import RESULT, Screen, call, command, frames, make_rows, refused, score, wait_for_workers
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import roc_auc_score

from preprocess import Preprocessor
from tenfold import AUCRanker, load_model, parts
from tenfold.heads import read_head, whole_files
from tenfold.ranker import PublishedRanker
from tenfold.readers import find_streams, load, stream
from tenfold.reliability import compare_aucs
from tenfold.stream_features import fit_features
from tenfold.streams import learn_stream, make_learners

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
    if kind == "parquet":
        pytest.importorskip("pyarrow")
        pd.DataFrame({**dict(zip("abcd", X.T)), "label": y}).to_parquet(path, row_group_size=500)
        return [path]
    pack = {"gz": gzip.compress, "bz2": bz2.compress}.get(kind.split(".")[-1], bytes)
    if kind.startswith("csv"):
        text = "a,b,c,d,label\n" + "".join(f"{','.join(map(str, row))},{label}\n" for row, label in zip(X.tolist(), y))
        path.write_bytes(pack(text.encode()))
    else:
        dump_svmlight_file(sp.csr_array(X), y, str(path), zero_based=False)
        path.write_bytes(pack(path.read_bytes()))
    return [path]


@pytest.mark.parametrize("kind", ["npy", "csv", "csv.gz", "svm", "svm.bz2", "parquet"])
def test_streams_of_every_kind_learn_the_same(big, tmp_path, kind):
    X, y = big
    files, how = write_stream(kind, X, y, tmp_path), ("--features", "auto" if kind == "npy" else "linear")
    code, out, err = call("--stream", *files, *how)
    assert code == 0
    assert float(RESULT.fullmatch(out)[1]) > 0.9  # the best is 0.92
    assert "6000 rows in " in err and re.search(
        r"of them used for learning; scaled as \d+ rows that were read first", err
    )
    said = (
        r"AUC 0\.\d{4} \+/- 0\.\d{4} \(standard error\), on \d+ positive and \d+ negative rows held out of the stream"
    )
    assert re.search(said, err)
    assert score("--stream", *files, *how) == float(out.split()[-1])
    if kind != "npy" and "svm" not in kind:
        assert score("--stream", *write_stream("npy", X, y, tmp_path), *how) == pytest.approx(
            float(out.split()[-1]), abs=0.02
        )


def test_held_out_rows_are_neither_learned_from_nor_scaled_by(big, tmp_path, monkeypatch):
    """Each row carries its number in a column; what is learned from and what is tested on share none."""
    X, y = big
    X = np.column_stack([X, np.arange(len(X))])
    files = write_stream("npy", X, y, tmp_path)
    seen = {"fit": set(), "learn": set(), "held": set()}
    fit, learn, add = Preprocessor.fit_rows, parts._learn_rows, parts.Samples.add

    def spy_fit(self, X):
        seen["fit"] |= set(X[:, -1])
        self.low, self.high = X[:, -1].min(), X[:, -1].max()
        seen["scale"] = self
        return fit(self, X)

    def numbers(Z):
        scale = seen["scale"]
        return set(np.round(Z[:, -2] * (scale.high - scale.low) + scale.low))

    def spy_learn(setup, state, own, Z, y, rng):
        seen["learn"] |= numbers(Z)
        seen["own"] = {id(samples) for samples in own.values()}
        return learn(setup, state, own, Z, y, rng)

    def spy_add(self, Z, y, rng):
        if len(Z) and self.reservoirs[1].size > 500:
            seen["held"] |= numbers(Z)
        add(self, Z, y, rng)

    monkeypatch.setattr(Preprocessor, "fit_rows", spy_fit)
    monkeypatch.setattr(parts, "_learn_rows", spy_learn)
    monkeypatch.setattr(parts.Samples, "add", spy_add)
    assert call("--stream", *files, "--jobs", 1)[0] == 0
    assert seen["fit"] <= seen["learn"]
    assert not seen["learn"] & seen["held"]
    assert len(seen["learn"]) + len(seen["held"]) == 6000
    positives = seen["held"] & set(np.flatnonzero(y > 0))
    assert len(positives) == pytest.approx(180, abs=5 * np.sqrt(126))  # as many as it takes, but not half
    assert len(seen["held"] - positives) == pytest.approx(540, abs=5 * np.sqrt(486))


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
    x_path, _ = write_stream("npy", X, y, tmp_path)
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
        ("expected as many of both, such as x.npy and y.npy", x_path),
        ("no such file", tmp_path / "train.mat"),
        ("no file, expected x.npy and y.npy",),
        ("no such file", tmp_path / "none.csv"),
        ("expected rows x features and their labels", x_path, tmp_path / "short.npy"),
        ("labels of the stream are 1, expected two classes", x_path, tmp_path / "ones.npy"),
        ("is not a .npy file of plain numbers", x_path, tmp_path / "objects.npy"),
        ("single column", tmp_path / "text.csv"),
        ("the rows held out of 11 lack a class", tmp_path / "few.csv"),
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


@pytest.mark.parametrize("name, content", [("few.csv", "1,0\n2,1\n" + 9 * "3,0\n"), ("rows.csv", None)])
def test_nothing_of_the_live_line_is_left(tmp_path, name, content):
    """Neither where a stream ends well nor where it ends in an error."""
    rows = "".join(f"{a},{b},{label}\n" for (a, b, *_), label in zip(*make_rows(600, 4, 150)))
    (tmp_path / name).write_text(content or rows)
    code, _, err = call("--stream", tmp_path / name, stderr=Screen())
    assert code == (2 if content else 0)
    shown = frames(err)
    assert shown[0].endswith("11 rows" if content else "600 rows")
    assert shown[-2] == "" and shown[-1].startswith("exp.py: error: the rows held out" if content else "600 rows in ")


# --- from Python -----------------------------------------------------------------------------------------------------


GIVEN = [None, {"C": 1e-7, "buffer": 50}, {"buffer": 50}, {"update": "sequential", "C": 1e-5, "buffer": 10}]


@pytest.mark.parametrize("settings", GIVEN)
def test_a_stream_ends_in_a_ranker_and_what_its_auc_rests_on(big, tmp_path, settings):
    X, y = big
    reports = []
    paths = write_stream("csv", X, y, tmp_path)
    result = learn_stream(paths, seed=2, settings=settings, report=lambda *report: reports.append(report))
    assert isinstance(result.ranker, PublishedRanker if settings else AUCRanker) and result.auc > 0.85
    assert result.n_rows == 6000 and result.n_learned + sum(result.to_choose) + sum(result.to_test) == 6000
    assert [n for n, _ in reports] == sorted({n for n, _ in reports}) and reports[-1] == (6000, 1.0)
    assert reports[0][0] * 0.5 < result.n_first <= result.n_learned
    assert result.n_choices == (1 if settings and "C" in settings else 4)
    assert (sum(result.to_choose) > 0) == (result.n_choices > 1)
    if settings:
        expected = {"C": result.ranker.C, "passes": 1, "buffer": 500, "update": "gradient", "random_state": 2}
        assert result.ranker.get_params() == {**expected, **settings}
    assert roc_auc_score(y, result.ranker.decision_function(X)) == pytest.approx(result.auc, abs=0.05)
    result.ranker.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.decision_function(X), result.ranker.decision_function(X))
    assert [column["name"] for column in loaded.data_.csv["columns"]] == ["a", "b", "c", "d"]
    assert loaded.score_function_.is_calibrated == (not settings)
    assert learn_stream(paths, seed=2, settings=settings).auc == result.auc


def test_probabilities_of_a_stream_add_up_to_its_positives(big, tmp_path):
    X, y = big
    ranker = learn_stream(write_stream("npy", X, y, tmp_path)).ranker
    assert ranker.predict_proba(X)[:, 1].mean() == pytest.approx(0.1, abs=0.03)


def test_the_positive_class_and_the_label_column_can_be_named(big, tmp_path):
    X, y = big
    (tmp_path / "rows.csv").write_text(
        "sick,a,b\n" + "".join(f"{'yes' if label > 0 else 'no'},{a},{b}\n" for (a, b, *_), label in zip(X, y))
    )
    for positive, classes in ((None, ["no", "yes"]), ("no", ["yes", "no"])):
        result = learn_stream([tmp_path / "rows.csv"], label="sick", positive=positive)
        assert result.ranker.classes_.tolist() == classes and result.auc > 0.8


def test_step_sizes_shrink_with_the_pairs_and_grow_with_the_parts(big, tmp_path):
    X, y = big
    head = read_head(whole_files([write_stream("npy", X, y, tmp_path)]), None, 0)
    function = fit_features(head, "linear", {}, 0)
    short, long = (make_learners(head, function, {1: n, -1: 9 * n}, 64, 4, {}, 0)["linear"].C for n in (100, 30_000))
    assert sorted(short) == list(short) and len(short) == 4
    np.testing.assert_allclose(short / long, 300**2, rtol=1e-5)
    alone = make_learners(head, function, {1: 100, -1: 900}, 64, 1, {}, 0)["linear"].C
    np.testing.assert_allclose(short, 2 * alone, rtol=1e-6)
    one = make_learners(head, function, {1: 100, -1: 900}, 64, 1, {"C": 0.5, "update": "sequential"}, 0)["linear"]
    assert (one.C.tolist(), one.update, one.block) == ([0.5], "sequential", 1)


# --- parts -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def many_parts(monkeypatch):
    """A stream of few rows is learned from in several parts and rounds."""
    monkeypatch.setattr("tenfold.streams.STEPS_OF_A_PART", 30)
    monkeypatch.setattr("tenfold.heads.LEAST_BYTES", 1000)


def write_parts(kind, X, y, directory, n=5):
    """The rows as ``n`` files."""
    directory.mkdir()
    for i, rows in enumerate(np.array_split(np.arange(len(y)), n)):
        (part,) = write_stream(kind, X[rows], y[rows], directory)
        part.rename(directory / f"day-{i}.{kind}")
    return directory


@pytest.mark.parametrize("kind", ["npy", "csv", "csv.gz", "svm", "parquet"])
def test_the_digits_are_the_same_for_any_number_of_jobs(big, tmp_path, many_parts, kind):
    X, y = big
    files = write_stream(kind, X, y, tmp_path) if kind == "npy" else [write_parts(kind, X, y, tmp_path / "parts")]
    features = "auto" if kind == "npy" else "linear"
    numbers = (1, 2, 3) if kind == "npy" else (1, 2)
    one, *others = (call("--stream", *files, "--features", features, "--jobs", jobs) for jobs in numbers)
    assert one[0] == 0 and float(RESULT.fullmatch(one[1])[1]) > 0.85
    assert re.search(r"\d parts at a time, in \d rounds?, merged", one[2])
    for other in others:
        assert other[1] == one[1]
        assert re.sub(r" in [\d.]+ s", "", other[2]) == re.sub(r" in [\d.]+ s", "", one[2])


@pytest.mark.parametrize("kind", ["npy", "csv", "svm"])
def test_a_file_is_cut_so_that_each_row_is_in_one_piece(big, tmp_path, kind):
    X, y = big
    (piece,) = whole_files([write_stream(kind, X, y, tmp_path)])
    for n in (1, 2, 7, 100):
        pieces = piece.cut(n)
        like = next(piece.read())[0]
        data = [data for part in pieces for data, _ in part.read(like=like)]
        assert len(pieces) == n and sum(part.size for part in pieces) == pytest.approx(piece.size)
        dense = [d.X.toarray() if sp.issparse(d.X) else d.X for d in data]
        np.testing.assert_array_equal(np.concatenate(dense), X)
        np.testing.assert_array_equal(np.concatenate([d.y for d in data]), y)


def test_rows_of_several_lines_are_not_cut(big, tmp_path, many_parts):
    """Neither where the quotes are in the first rows nor where they are not; the digits are those of one piece."""
    X, y = big
    lines = [
        f'{a},{b},"{"two" if i % 90 else "t"}\nlines",{label}\n' for i, ((a, b, *_), label) in enumerate(zip(X, y))
    ]
    plain = [line.replace("\n", " ", 1) for line in lines]
    (tmp_path / "rows.csv").write_text("".join(lines))
    (tmp_path / "late.csv").write_text("".join(plain[:4000] + lines[4000:]))
    for name in ("rows.csv", "late.csv"):
        code, out, err = call("--stream", tmp_path / name, "--jobs", 2, "--features", "linear")
        assert code == 0 and "6000 rows in" in err and "merged" not in err
        assert float(out.split()[-1]) > 0.8
    (tmp_path / "plain.csv").write_text("".join(plain))
    assert "merged" in call("--stream", tmp_path / "plain.csv", "--features", "linear")[2]


def test_files_by_name_directory_and_pattern_are_the_same_stream(big, tmp_path, many_parts):
    X, y = big
    directory = write_parts("csv", X, y, tmp_path / "days")
    names = sorted(directory.iterdir())
    (directory / "_SUCCESS").write_text("")
    (directory / ".hidden.csv").write_text("1,2\n")
    linear = ["--features", "linear", "--jobs", 1]
    expected = score("--stream", *names, *linear)
    assert score("--stream", *reversed(names), *linear) == expected
    assert score("--stream", directory / "day-*.csv", *linear) == expected
    (directory / "README.md").write_text("five days")
    (directory / "sub").mkdir()
    code, out, err = call("--stream", directory, *linear)
    assert code == 0 and float(out.split()[-1]) == expected
    assert f"{directory}: not read: README.md, sub/" in err


def test_files_of_a_stream_are_not_written_to(big, tmp_path):
    """However they were named: as a directory, by a pattern, or one by one."""
    directory = write_parts("csv", *big, tmp_path / "days")
    last = directory / "day-4.csv"
    before = last.read_bytes()
    for names in ([directory], [directory / "day-*.csv"], sorted(directory.iterdir())):
        refused(f"--save {last} is a file to read", "--stream", *names, "--save", last, "--force")
    assert last.read_bytes() == before


def test_copies_under_another_name(tmp_path):
    """Labels alone may well be the same in several files."""
    for name, X in [("a", np.eye(3)), ("b", np.ones((3, 3))), ("c", np.eye(3))]:
        np.save(tmp_path / f"x-{name}.npy", X)
        np.save(tmp_path / f"y-{name}.npy", np.zeros(3))
    _, (note,) = find_streams([tmp_path])
    assert f"{tmp_path / 'x-c.npy'} holds the same bytes as {tmp_path / 'x-a.npy'}: rows to test on" in note


def test_several_pairs_of_arrays(big, tmp_path):
    X, y = big
    for i, rows in enumerate(np.array_split(np.arange(len(y)), 3)):
        np.save(tmp_path / f"rows-{i}.npy", X[rows].astype([np.float64, np.float32, np.float16][i]))
        np.save(tmp_path / f"labels-{i}.npy", y[rows])
    code, out, err = call("--stream", tmp_path)
    assert code == 0 and "6000 rows in" in err and float(out.split()[-1]) > 0.9


def test_files_that_do_not_make_a_stream(big, tmp_path):
    X, y = big
    directory = write_parts("csv", X, y, tmp_path / "days")
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("hello")
    day = directory / "day-0.csv"
    write_stream("svm", X, y, tmp_path)
    for message, *names in [
        ("holds no file to stream", tmp_path / "empty"),
        ("holds no file to stream, expected files that end in .csv", tmp_path / "notes"),
        ("there is no file whose name is like that", tmp_path / "*.parquet"),
        ("no such file", directory / "day-9.csv"),
        ("day-0.csv is given twice", directory, day),
        ("expected x.npy and y.npy, or files of one kind", day, tmp_path / "rows.svm"),
        ("--sep has no effect on", tmp_path / "rows.svm", "--sep", ";"),
    ]:
        refused(message, "--stream", *names)


def test_a_damaged_part_is_named(big, tmp_path, many_parts):
    X, y = big
    directory = write_parts("csv", X, y, tmp_path / "days")
    last = directory / "day-4.csv"
    good = last.read_text()
    header, *lines = good.splitlines(keepends=True)
    for message, content in [
        ("the labels take 3 values (-1, 1, 7), expected two classes", good + "1,2,3,4,7\n"),
        ("has 3 cells", good + "1,2,3\n"),
        ("has 6 cells", good + "1,2,3,4,5,6\n"),
        ("holds text, expected numbers", header + "".join(line.replace(".", "x") for line in lines)),
        ("has no column 'a'", "".join([header.replace("a", "other"), *lines])),
        ("has 3 features, expected 4", "\n".join(line.strip().split(",", 1)[1] for line in lines)),
        ("labels are missing", good + "1,2,3,4,\n"),
        ("not CSV text in UTF-8", good.encode() + b"\xff,1,1,1,1\n"),
        ("is empty", ""),
    ]:
        last.write_bytes(content if isinstance(content, bytes) else content.encode())
        for jobs in (1, 2):
            assert "day-4.csv" in refused(message, "--stream", directory, "--features", "linear", "--jobs", jobs, "-q")


def test_columns_may_be_in_another_order_in_another_part(big, tmp_path):
    X, y = big
    directory = write_parts("csv", X, y, tmp_path / "days")
    expected = score("--stream", directory, "--features", "linear")
    last = directory / "day-4.csv"
    cells = [line.split(",") for line in last.read_text().split()]
    last.write_text("\n".join(",".join([row[4], *row[:4][::-1]]) for row in cells) + "\n")
    assert score("--stream", directory, "--features", "linear") == expected


def test_sorted_labels_give_an_auc_of_all_rows(big, tmp_path, many_parts):
    """All positives in one part, at the end or at the beginning: the AUC is that of the model on all rows."""
    X, y = big
    for order in (np.argsort(y, kind="stable"), np.argsort(-y, kind="stable")):
        np.save(tmp_path / "x.npy", X[order])
        np.save(tmp_path / "y.npy", y[order])
        result = learn_stream([tmp_path / "x.npy", tmp_path / "y.npy"], features="linear")
        assert result.n_rounds > 1 and result.n_rows == 6000
        assert result.auc > 0.88
        true = roc_auc_score(y, result.ranker.decision_function(X))
        assert abs(result.auc - true) < 4 * result.error


def test_a_second_class_far_behind_the_first_rows_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("tenfold.readers.text.STREAMED_CELLS", 4000)
    X, y = make_rows(40_000, 2, 4000)
    order = np.argsort(y, kind="stable")
    (tmp_path / "rows.csv.gz").write_bytes(
        gzip.compress("".join(f"{a:.3f},{b:.3f},{label}\n" for (a, b), label in zip(X[order], y[order])).encode(), 1)
    )
    assert score("--stream", tmp_path / "rows.csv.gz", "--features", "linear") > 0.8  # the best is 0.84


@pytest.mark.parametrize("name", ["a9a", "ijcnn1", "magic04", "flights_cancelled", "celeba_bald"])
def test_parts_merged_rank_as_one_pass_does(assignment, tmp_path, monkeypatch, name):
    """Eight files, two at a time in four rounds, against one pass over everything, on rows that are in none of them."""
    data = load(assignment.parent / f"{name}.mat")
    X, y = data.X, data.y.ravel()
    test, *files = np.array_split(np.random.RandomState(0).permutation(len(y)), 9)
    for i, rows in enumerate(files):
        np.save(tmp_path / f"x-{i}.npy", X[rows])
        np.save(tmp_path / f"y-{i}.npy", y[rows])
    monkeypatch.setattr("tenfold.heads.LEAST_BYTES", 2**30)
    one = learn_stream([tmp_path], features="linear")
    for constant, value in {"STEPS_OF_A_PART": 1, "MOST_PARTS": 2, "ROUNDS": 4}.items():
        monkeypatch.setattr(f"tenfold.streams.{constant}", value)
    merged = learn_stream([tmp_path], features="linear")
    assert (one.n_parts, merged.n_parts, merged.n_rounds) == (1, 2, 4)
    assert merged.to_test == one.to_test
    lead, error = compare_aucs(y[test], *(result.ranker.decision_function(X[test]) for result in (one, merged)))
    assert lead > -0.002 - 2 * error, (lead, error)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_workers_end_with_the_command(tmp_path, name):
    X, y = make_rows(150_000, 3, 15_000)
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", y)
    how = ["--update", "sequential", "--C", "1e-9", "--buffer", "100", "--jobs", "2"]
    process = command("--stream", tmp_path / "x.npy", tmp_path / "y.npy", *how, start_new_session=True)
    wait_for_workers(process, 2)
    assert process.poll() is None
    (os.killpg if name == "SIGINT" else os.kill)(process.pid, getattr(signal, name))
    out, err = process.communicate(timeout=20)  # returns when the last process that holds the pipes has ended
    assert out == "" and (name == "SIGKILL" or err.splitlines()[-1] == "exp.py: interrupted")
    assert name == "SIGKILL" or process.returncode == 130


def test_parts_without_rows_do_no_harm(big, tmp_path):
    """As those that a cluster writes: a header and nothing else, before or behind the others."""
    X, y = big
    directory = write_parts("csv", X, y, tmp_path / "days")
    for name in ("day--.csv", "day-9.csv"):
        (directory / name).write_text("a,b,c,d,label\n")
    code, out, err = call("--stream", directory, "--features", "linear")
    assert code == 0 and "6000 rows in" in err and float(out.split()[-1]) > 0.85
    refused("has no rows, expected some", "--stream", directory / "day-9.csv")
