"""Samples of streams: that they are uniform, whose rows they have, and that all else of the command works on them."""

import gzip
import os
import re
import signal
import time
import tracemalloc

import numpy as np
import pytest
from conftest import (
    EFFORT,
    FIGURES,
    RESULT,
    Screen,
    call,
    command,
    frames,
    make_rows,
    outcome,
    refused,
    said_aucs,
    score,
)
from scipy.stats import chi2
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from stream_files import KINDS, Here, dense, write_parts, write_stream

from preprocess import InputError
from tenfold import load_model
from tenfold.parallel import Workers
from tenfold.readers import load, stream
from tenfold.streams import Kept, read_sample

pytestmark = pytest.mark.filterwarnings("error")

SHORT = ("--folds", 3, *EFFORT)


@pytest.fixture
def small_pieces(monkeypatch):
    """Some kilobytes are cut into pieces, and some hundred rows are read at a time."""
    monkeypatch.setattr("tenfold.pieces.PIECE_BYTES", 2000)
    monkeypatch.setattr("tenfold.readers.text.STREAMED_CELLS", 4000)


@pytest.fixture
def big():
    X, y = make_rows(6000, 4, 600, seed=3)
    return X.round(3), y


def numbered(n, n_pos, seed=0):
    """Rows that carry their number in the first column, and labels, of which ``n_pos`` anywhere are 1, the others 0."""
    rng = np.random.RandomState(seed)
    y = rng.permutation(n) < n_pos
    return np.column_stack([np.arange(n), rng.rand(n).round(2)]), y.astype(int)


# --- which rows ------------------------------------------------------------------------------------------------------


def test_each_row_of_a_class_is_as_likely_as_any_other(tmp_path, monkeypatch):
    """Wherever in the stream it is: rows of the first piece, which is read with no limit, and of the others."""
    monkeypatch.setattr("tenfold.pieces.PIECE_BYTES", 200)
    X, y = numbered(80, 20)
    files, n_seeds = write_stream("npy", X, y, tmp_path), 300
    times = np.zeros(80)
    for seed in range(n_seeds):
        rows = read_sample(files, Here(), seed=seed, n_rows=24).rows
        assert len(set(rows)) == 24 and (y[rows] == 1).sum() == 12
        times[rows] += 1
    for label, share in ((1, 12 / 20), (0, 12 / 60)):
        of_class = times[y == label]
        n = len(of_class)
        statistic = ((of_class - n_seeds * share) ** 2).sum() / (n_seeds * share * (1 - share)) * (n - 1) / n
        assert chi2.ppf(1e-4, n - 1) < statistic < chi2.ppf(1 - 1e-4, n - 1)


def test_pairs_of_rows_are_kept_together_as_often_as_not(tmp_path, monkeypatch):
    """The rows of two pieces are drawn apart from each other, but so many of both together."""
    monkeypatch.setattr("tenfold.pieces.PIECE_BYTES", 200)
    X, y = numbered(40, 20)
    files, n_seeds = write_stream("npy", X, y, tmp_path), 300
    kept = np.array(
        [np.isin(np.arange(40), read_sample(files, Here(), seed=s, n_rows=20).rows) for s in range(n_seeds)]
    )
    pairs = np.triu(np.corrcoef(kept[:, y == 1].T), 1)[np.triu_indices(20, 1)]
    expected = -1 / 19  # without replacement
    assert abs(pairs.mean() - expected) < 1e-4 and np.abs(pairs - expected).max() < 5 / np.sqrt(n_seeds)


@pytest.mark.parametrize(
    "n_pos, n_neg, n, expected",
    [(10, 90, 40, (10, 30)), (30, 70, 40, (20, 20)), (30, 70, 41, (20, 21)), (50, 50, 40, (20, 20))]
    + [(10, 30, 40, (10, 30)), (10, 25, 40, (10, 25)), (90, 10, 40, (30, 10)), (1, 99, 2, (1, 1))],
)
def test_all_rows_of_the_rarer_class_are_kept_up_to_half(tmp_path, small_pieces, n_pos, n_neg, n, expected):
    X, y = numbered(n_pos + n_neg, n_pos)
    data = read_sample(write_stream("npy", X, y, tmp_path), Here(), n_rows=n)
    assert ((data.y == 1).sum(), (data.y == 0).sum()) == expected
    assert data.counts == {0: n_neg, 1: n_pos}
    assert (np.diff(data.rows) > 0).all()
    np.testing.assert_array_equal(data.X, X[data.rows])
    np.testing.assert_array_equal(data.y, y[data.rows])


def test_only_the_smallest_numbers_are_kept(rng):
    kept, numbers = Kept(), rng.permutation(100)
    for some in np.array_split(np.arange(100), 7):
        kept.add(numbers[some], np.column_stack([some, some]), some[:, None])
        assert kept.smallest(20) == (1.0 if some[-1] < 19 else np.sort(numbers[: some[-1] + 1])[19])
    found, places, rows = kept.arrays()
    assert kept.count == 20 and sorted(found) == list(range(20))
    np.testing.assert_array_equal(numbers[rows[:, 0]], found)
    np.testing.assert_array_equal(places[:, 1], rows[:, 0])


# --- the same sample -------------------------------------------------------------------------------------------------


def same(a, b):
    np.testing.assert_array_equal(dense(a.X), dense(b.X))
    np.testing.assert_array_equal(a.y, b.y)
    np.testing.assert_array_equal(a.rows, b.rows)
    assert a.counts == b.counts
    return True


def test_files_of_every_kind_give_the_same_sample(tmp_path):
    X, y = numbered(900, 100)
    expected = read_sample(write_stream("npy", X, y, tmp_path), Here(), n_rows=250)
    assert expected.X.shape == (250, 2)
    for kind in KINDS:
        assert same(read_sample(write_stream(kind, X, y, tmp_path), Here(), n_rows=250), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_the_sample_is_the_same_for_any_jobs_and_any_order_of_the_files(tmp_path, small_pieces, kind):
    X, y = numbered(3000, 300)
    folder = write_parts(kind, X, y, tmp_path / "days")
    names = sorted(folder.iterdir())
    expected = read_sample([folder], Here(), n_rows=250)
    np.testing.assert_array_equal(dense(expected.X), X[expected.rows])  # the row numbers are those of the stream
    with Workers(3) as at_work:
        assert same(read_sample([folder], at_work, n_rows=250), expected)
    assert same(read_sample(names[::-1], Here(), n_rows=250), expected)
    assert same(read_sample([str(folder / "*day-*")], Here(), n_rows=250), expected)
    assert not np.array_equal(read_sample([folder], Here(), n_rows=250, seed=1).rows, expected.rows)


def test_the_command_prints_the_same_digits_for_files_of_every_kind_and_any_jobs(tmp_path, big):
    X, y = big
    first, *others = (
        call("--stream", *write_stream(kind, X, y, tmp_path), *SHORT, "--sample-rows", 900, "--jobs", jobs)
        for kind, jobs in (("npy", 1), ("npy", 3), ("csv", 2), ("csv.gz", 1), ("parquet", 2))
    )
    assert first[0] == 0 and float(RESULT.fullmatch(first[1])[1]) > 0.85  # the best is 0.92
    assert "5,400 with label -1, 600 with label 1; 900 of them are used" in first[2] and "6,000 rows read" in first[2]
    for other in others:
        assert other[:2] == first[:2] and said_aucs(other[2]) == said_aucs(first[2])


def test_a_stream_that_is_kept_whole_gives_the_digits_of_the_file(tmp_path, big):
    X, y = big
    (path,) = write_stream("csv", X, y, tmp_path)
    assert score("--stream", path, *SHORT) == score(path, *SHORT)


def test_a_stream_is_never_held_whole(tmp_path, small_pieces):
    X, y = make_rows(5000, 4, 500)
    for kind in ("csv", "npy"):
        sizes, shares = zip(*((data.X.shape[0], share) for data, share in stream(write_stream(kind, X, y, tmp_path))))
        assert max(sizes) <= 1000 and sum(sizes) == 5000
    assert shares == pytest.approx([0.2, 0.4, 0.6, 0.8, 1])


def test_memory_is_that_of_the_sample_not_that_of_the_stream(tmp_path, monkeypatch):
    """Most is held before the first limits are known, and even then a few times the sample only."""
    monkeypatch.setattr("tenfold.pieces.PIECE_BYTES", 2**18)
    monkeypatch.setattr("tenfold.readers.text.STREAMED_CELLS", 50_000)
    X, y = make_rows(200_000, 20, 20_000)
    files = write_stream("npy", X, y, tmp_path)
    tracemalloc.start()
    try:
        data = read_sample(files, Here(), n_rows=2000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert data.X.shape == (2000, 20) and X.nbytes > 3e7
    assert peak < 12 * data.X.nbytes + 4e6


def test_what_files_say_is_kept(tmp_path, monkeypatch):
    """Missing cells, text labels and text columns are read some rows at a time as they are from a whole file."""
    monkeypatch.setattr("tenfold.readers.text.STREAMED_CELLS", 1)
    rng = np.random.RandomState(0)
    lines = [
        f"{a:.3f},{'' if b > 1.5 else b.round(3)},{'red' if c > 0 else 'blue'},{'yes' if a + c > 1 else 'no'}"
        for a, b, c in rng.randn(2500, 3)
    ]
    for name, text in {"plain": "\n".join(lines), "header": "\n".join(["a,b,c,sick", *lines])}.items():
        path = tmp_path / f"{name}.csv"
        path.write_text(text)
        whole, sample = load(path), read_sample([path], Here(), n_rows=5000)
        np.testing.assert_array_equal(sample.X, whole.X)
        np.testing.assert_array_equal(sample.y, whole.y)
        assert sample.csv == whole.csv and sample.notes == whole.notes


def test_labels_that_look_like_numbers_in_some_pieces(tmp_path, small_pieces):
    """Sorted after a first piece with both, the second piece has nothing but 2."""
    labels = ["2", "3+"] * 1000 + ["2"] * 3000 + ["3+"] * 1000
    (tmp_path / "rows.csv").write_text("a,label\n" + "".join(f"{i},{label}\n" for i, label in enumerate(labels)))
    data = read_sample([tmp_path / "rows.csv"], Here(), n_rows=500)
    assert data.counts == {"2": 4000, "3+": 2000} and data.y.tolist() == [labels[i] for i in data.rows]


# --- sorted, empty, damaged ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["npy", "csv.gz"])
def test_labels_may_be_sorted(tmp_path, big, small_pieces, kind):
    """The second class may come far behind the first rows, or before all others."""
    X, y = big
    for order in (np.argsort(y, kind="stable"), np.argsort(-y, kind="stable")):
        files = write_stream(kind, X[order], y[order], tmp_path)
        data = read_sample(files, Here(), n_rows=1000)
        np.testing.assert_array_equal(data.X, X[order][data.rows])
        assert data.counts == {-1: 5400, 1: 600} and (data.y == 1).sum() == 500
        assert score("--stream", *files, *SHORT, "--sample-rows", 1000) > 0.85


def test_parts_without_rows_do_no_harm(big, tmp_path):
    """As those that a cluster writes: a header and nothing else, before or behind the others."""
    X, y = big
    folder = write_parts("csv", X, y, tmp_path / "days")
    for name in ("day--.csv", "day-9.csv"):
        (folder / name).write_text("a,b,c,d,label\n")
    for how in ((*SHORT, "--sample-rows", 600), ("--features", "linear")):
        code, out, err = call("--stream", folder, *how)
        assert code == 0 and "6,000 rows" in err and float(out.split()[-1]) > 0.85
        refused("day-9.csv has no rows, expected some", "--stream", folder / "day-9.csv", *how)


@pytest.mark.parametrize("how", [(), ("--features", "linear")])
def test_a_damaged_part_is_named(big, tmp_path, small_pieces, how):
    X, y = big
    folder = write_parts("csv", X[:900], y[:900], tmp_path / "days", 3)
    last = folder / "day-2.csv"
    good = last.read_text()
    header, *lines = good.splitlines(keepends=True)
    for message, content in [
        ("7", good + "1,2,3,4,7\n"),
        ("the label maybe is no number", good + "1,2,3,4,maybe\n"),
        ("has 3 cells", good + "1,2,3\n"),
        ("has 6 cells", good + "1,2,3,4,5,6\n"),
        ("holds text, expected numbers", header + "".join(line.replace(".", "x") for line in lines)),
        ("has no column 'a'", "".join([header.replace("a", "other", 1), *lines])),
        ("has 3 features, expected 4", "\n".join(line.strip().split(",", 1)[1] for line in lines)),
        ("labels are missing", good + "1,2,3,4,\n"),
        ("not CSV text in UTF-8", good.encode() + b"\xff,1,1,1,1\n"),
        ("is empty", ""),
    ]:
        last.write_bytes(content if isinstance(content, bytes) else content.encode())
        err = refused(message, "--stream", folder, *how, "--jobs", 2, "-q")
        assert err.count("\n") == 1 and "day-2.csv" in err


def test_a_third_label_is_refused_in_the_name_of_its_file(tmp_path, small_pieces):
    X, y = numbered(900, 300)
    y[700] = 7
    folder = write_parts("csv", X, y, tmp_path / "days", 3)
    with pytest.raises(InputError, match=r"day-2\.csv: the labels take 3 values \(0, 1, 7\), expected two classes"):
        read_sample([folder], Here())
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", np.arange(900.0))
    refused("y.npy: the labels take more than 20 values", "--stream", tmp_path / "x.npy", tmp_path / "y.npy")


def test_streams_that_cannot_be(tmp_path, big):
    X, y = big
    x_path, y_path = write_stream("npy", X, y, tmp_path)
    np.save(tmp_path / "short.npy", y[:-1])
    np.save(tmp_path / "ones.npy", np.ones(len(y)))
    np.save(tmp_path / "objects.npy", np.array([None, 1], object), allow_pickle=True)
    (tmp_path / "text.csv").write_text("hello\n")
    (tmp_path / "few.csv").write_text("1,0\n" + 9 * "3,1\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "blank.svm").write_text(" \n\n")
    (tmp_path / "bad.csv").write_bytes(b"1,2,0\n" + 2000 * b"3,4,1\n" + b"\xff,1,1\n")
    (tmp_path / "ragged.csv").write_bytes(b"1,2,0\n" + 2000 * b"3,4,1\n" + b"1,1\n")
    for message, *files in [
        ("expected rows x features, and a second .npy file of their labels", x_path),
        ("expected as many of both, such as x.npy and y.npy", x_path, y_path, tmp_path / "short.npy"),
        ("no such file", tmp_path / "train.mat"),
        ("--stream without a file",),
        ("no such file", tmp_path / "none.csv"),
        ("expected rows x features and their labels", x_path, tmp_path / "short.npy"),
        ("all 6000 labels are 1, expected two classes", x_path, tmp_path / "ones.npy"),
        ("is not a .npy file of plain numbers", x_path, tmp_path / "objects.npy"),
        ("single column", tmp_path / "text.csv"),
        ("one class has a single row", tmp_path / "few.csv"),
        ("is empty", tmp_path / "empty.csv"),
        ("has no rows", tmp_path / "blank.svm"),
        ("not CSV text in UTF-8", tmp_path / "bad.csv"),
        ("has 2 cells", tmp_path / "ragged.csv"),
        ("--passes does not go with --stream", x_path, "--passes", 2),
        ("'1' is not a whole number of at least 2", x_path, "--sample-rows", 1),
    ]:
        refused(message, "--stream", *files)


def test_files_by_name_directory_and_pattern_are_the_same_stream(big, tmp_path):
    X, y = big
    folder = write_parts("csv", X, y, tmp_path / "days")
    names = sorted(folder.iterdir())
    how = (*SHORT, "--sample-rows", 500)
    (folder / "_SUCCESS").write_text("")
    (folder / ".hidden.csv").write_text("1,2\n")
    expected = score("--stream", *names, *how)
    assert score("--stream", *reversed(names), *how) == expected
    assert score("--stream", folder / "day-*.csv", *how) == expected
    (folder / "README.md").write_text("five days")
    (folder / "sub").mkdir()
    code, out, err = call("--stream", folder, *how)
    assert code == 0 and float(out.split()[-1]) == expected
    assert f"{folder}: not read: README.md, sub/" in err


def test_columns_may_be_in_another_order_in_another_part(big, tmp_path):
    X, y = big
    folder = write_parts("csv", X, y, tmp_path / "days")
    expected = read_sample([folder], Here(), n_rows=800)
    last = folder / "day-4.csv"
    cells = [line.split(",") for line in last.read_text().split()]
    last.write_text("\n".join(",".join([row[4], *row[:4][::-1]]) for row in cells) + "\n")
    same(read_sample([folder], Here(), n_rows=800), expected)


def test_copies_and_files_that_do_not_make_a_stream(big, tmp_path):
    X, y = big
    folder = write_parts("csv", X, y, tmp_path / "days")
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("hello")
    day = folder / "day-0.csv"
    (svm,) = write_stream("svm", X, y, tmp_path)
    for message, *names in [
        ("holds no file to stream", tmp_path / "empty"),
        ("holds no file to stream, expected files that end in .csv", tmp_path / "notes"),
        ("there is no file whose name is like that", tmp_path / "*.parquet"),
        ("no such file", folder / "day-9.csv"),
        ("day-0.csv is given twice", folder, day),
        ("expected x.npy and y.npy, or files of one kind", day, svm),
        ("--sep has no effect on", svm, "--sep", ";"),
    ]:
        refused(message, "--stream", *names)
    (folder / "day-9.csv").write_bytes(day.read_bytes())
    assert "day-9.csv holds the same bytes as" in call("--stream", folder, *SHORT, "--sample-rows", 500)[2]


def test_rows_of_several_lines_are_not_cut(tmp_path, small_pieces):
    """Neither where the quotes are in the first rows nor where they are not."""
    X, y = make_rows(3000, 2, 1000)
    rows = [
        f'{i},"{"two" if i % 90 else "t"}\nlines",{a:.3f},{label}\n' for i, (a, label) in enumerate(zip(X[:, 0], y))
    ]
    plain = [line.replace("\n", " ", 1) for line in rows]
    (tmp_path / "rows.csv").write_text("".join(rows))
    (tmp_path / "late.csv").write_text("".join(plain[:2000] + rows[2000:]))
    for name in ("rows.csv", "late.csv"):
        with Workers(2) as at_work:
            data = read_sample([tmp_path / name], at_work, n_rows=400)
        assert data.counts == {-1: 2000, 1: 1000} and data.X[:, -1].tolist() == X[data.rows, 0].round(3).tolist()
        for how in ((*SHORT, "--sample-rows", 400), ("--features", "linear")):
            code, out, err = call("--stream", tmp_path / name, *how, "--jobs", 2)
            assert code == 0 and "3,000 rows" in err and float(out.split()[-1]) > 0.6


@pytest.mark.parametrize("before", [b"", b"1,2,0\n" * 3])
def test_a_line_without_end_does_not_fill_the_memory(tmp_path, before):
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(before + bytes(2**27), 1))
    tracemalloc.start()
    refused("has a line of 33554432 bytes or more", "--stream", tmp_path / "bomb.csv.gz")
    assert tracemalloc.get_traced_memory()[1] < 2**27
    tracemalloc.stop()


# --- the command -----------------------------------------------------------------------------------------------------


def test_what_is_said(tmp_path, big):
    X, y = big
    code, _, err = call("--stream", *write_stream("csv", X, y, tmp_path), *SHORT, "--sample-rows", 800)
    assert code == 0
    said = r"^6,000 rows read in [\d.]+ s: 5,400 with label -1, 600 with label 1; 800 of them are used$"
    assert re.search(said, err, re.M)
    assert "800 rows x 4 features, 400 positive (label 1), 400 negative (label -1)" in err


@pytest.mark.parametrize("broken", [True, False])
def test_nothing_of_the_live_line_is_left(tmp_path, small_pieces, broken):
    """Neither where a stream ends well nor where it ends in an error."""
    rows = "".join(f"{a},{b},{label}\n" for (a, b, *_), label in zip(*make_rows(2400, 4, 600)))
    (tmp_path / "rows.csv").write_text(rows + "1,2,3\n" * broken)
    code, _, err = call("--stream", tmp_path / "rows.csv", *SHORT, stderr=Screen())
    shown = frames(err)
    rows_shown = [int(text.split()[-2].replace(",", "")) for text in shown if text.endswith(" rows")]
    assert code == (2 if broken else 0) and len(rows_shown) > 3 and rows_shown == sorted(rows_shown)
    assert "" in shown
    assert shown[-1].startswith("exp.py: error: " if broken else "effort 1/16: mean AUC")


def test_all_extras_work_on_a_sample(tmp_path, big, undrawn):
    X, y = big
    outputs = {"--scores": "scores.csv", "--save": "model.npz", "--page": "page.html", "--plots": "figures"}
    argv = [word for option, name in outputs.items() for word in (option, tmp_path / name)]
    (path,) = write_stream("csv", X, y, tmp_path)
    code, out, err = call("--stream", path, *SHORT, "--sample-rows", 600, "--explain", "--cost", "9,1", *argv)
    assert code == 0, err
    plain = call("--stream", path, *SHORT, "--sample-rows", 600)
    assert out == plain[1] and said_aucs(err) == said_aucs(plain[2])
    rows = np.loadtxt(tmp_path / "scores.csv", delimiter=",", skiprows=1)
    sample = read_sample([path], Here(), n_rows=600)
    np.testing.assert_array_equal(rows[:, 0], sample.rows + 1)  # as they are numbered in the stream
    assert roc_auc_score(y[sample.rows], rows[:, 1]) == pytest.approx(float(out.split()[-1]), abs=0.02)
    assert re.search(r"^column +AUC lost", err, re.M) and re.search(r"^[abcd] +0\.\d{4}", err, re.M)
    assert "<title>" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert {path.name for path in (tmp_path / "figures").iterdir()} >= {*FIGURES, "cost.png", "columns.png"}
    assert score("--model", tmp_path / "model.npz", path) > 0.88


def test_other_learners_are_compared_on_a_sample(tmp_path, big, monkeypatch):
    monkeypatch.setattr("tenfold.comparison.learners", lambda cost, seed: {"logistic": LogisticRegression()})
    (path,) = write_stream("csv", *big, tmp_path)
    code, out, _ = call("--stream", path, *SHORT, "--sample-rows", 600, "--compare")
    head, ours, other, last = out.splitlines()
    assert code == 0 and head.startswith("learner") and ours.startswith("ours") and RESULT.fullmatch(f"{last}\n")
    assert other.startswith("logistic ") and float(other.split()[1]) > 0.88


@pytest.mark.parametrize("labels", [(-1, 1), (1, 0)])
def test_probabilities_and_costs_are_those_of_the_whole_stream(tmp_path, labels):
    """Half of the sample is positive, a tenth of the stream; the rarer class is positive, whatever it is called."""
    X, y = make_rows(6000, 4, 600, seed=3)
    named = np.where(y > 0, labels[1], labels[0])
    files, scores, model = write_stream("npy", X, named, tmp_path), tmp_path / "scores.csv", tmp_path / "model.npz"
    argv = "--stream", *files, *SHORT, "--sample-rows", 1000, "--scores", scores, "--save", model
    code, _, err = call(*argv, "--cost", "9,1")
    assert code == 0 and f"500 positive (label {labels[1]})" in err
    row, _, probability, decision = np.loadtxt(scores, delimiter=",", skiprows=1).T
    is_positive = y[row.astype(int) - 1] > 0
    weight = np.where(is_positive, 600 / 500, 5400 / 500)
    assert (weight * probability).sum() == pytest.approx(600, rel=0.1)
    np.testing.assert_array_equal(decision, probability > 1 / 10)
    assert outcome(err, "act on every row")[:4] == pytest.approx([600, 5400, 0, 0])
    assert outcome(err, "act on no row")[7] == 9 * 600
    expected = [weight[is_positive & (decision > 0)].sum(), weight[~is_positive & (decision > 0)].sum()]
    assert outcome(err, "Bayes minimum risk")[:2] == pytest.approx(expected, abs=1)
    ranker = load_model(model)
    assert ranker.classes_.tolist() == list(labels)
    assert ranker.predict_proba(X)[:, 1].mean() == pytest.approx(0.1, abs=0.02)


def test_costs_without_numbers_are_as_many_false_alarms_as_the_stream_has_negatives(tmp_path, big):
    code, _, err = call("--stream", *write_stream("npy", *big, tmp_path), *SHORT, "--sample-rows", 600, "--cost")
    assert code == 0 and "costs: 9 for a missed positive, 1 for a false alarm" in err


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_workers_end_with_the_command(tmp_path, name):
    X, y = make_rows(150_000, 3, 15_000)
    files = write_stream("npy", X, y, tmp_path)
    how = ["--update", "sequential", "--C", "1e-9", "--buffer", "100", "--jobs", "2"]
    process = command("--stream", *files, *how, start_new_session=True)
    time.sleep(4)
    assert process.poll() is None
    (os.killpg if name == "SIGINT" else os.kill)(process.pid, getattr(signal, name))
    out, err = process.communicate(timeout=20)  # returns when the last process that holds the pipes has ended
    assert out == "" and (name == "SIGKILL" or err.splitlines()[-1] == "exp.py: interrupted")
    assert name == "SIGKILL" or process.returncode == 130
