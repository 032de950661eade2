"""Files that are written whole or not at all, and files of scores."""

import io
import os
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from conftest import read_scores

from preprocess import InputError
from tenfold.writing import FIGURES, ScoreFile, check_directory, check_output, print_result, whole_file, write_whole


def write_scores(path, *columns, **named):
    with ScoreFile(path) as file:
        file.add(*columns, **named)


def test_a_file_is_written_and_nothing_beside_it(tmp_path):
    for content in (b"first", b"second"):
        write_whole(str(tmp_path / "a.bin"), lambda file, content=content: file.write(content))
        assert (tmp_path / "a.bin").read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt(), OSError(28, "No space left on device"), ValueError()])
@pytest.mark.parametrize("at", ["write", "fsync"])
def test_an_interruption_leaves_the_old_file_whole_and_nothing_else(tmp_path, monkeypatch, interruption, at):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")

    def interrupt(*args):
        raise interruption

    def write(file):
        file.write(b"new")
        if at == "write":
            interrupt()

    if at == "fsync":
        monkeypatch.setattr(os, "fsync", interrupt)
    expected = InputError if isinstance(interruption, OSError) else type(interruption)
    with pytest.raises(expected) as raised:
        write_whole(path, write)
    if isinstance(interruption, OSError):
        assert str(raised.value) == f"{path} cannot be written: No space left on device"
    assert path.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


@pytest.mark.parametrize("name", ["nowhere/a.csv", "directory"])
def test_a_file_that_cannot_be_written_is_one_line(tmp_path, name):
    (tmp_path / "directory").mkdir()
    with pytest.raises(InputError, match="cannot be written: ") as raised:
        write_scores(tmp_path / name, np.zeros(3))
    assert "\n" not in str(raised.value)
    assert [path.name for path in tmp_path.iterdir()] == ["directory"]


def test_what_was_there_stays_until_all_is_written(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    with whole_file(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new" and [path.name for path in tmp_path.iterdir()] == ["a.bin"]


def test_a_link_is_followed(tmp_path):
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    for score in (0.5, 0.25):
        write_scores(tmp_path / "link.csv", np.array([score]))
        assert (tmp_path / "real.csv").read_text() == f"row,score\n1,{score}\n"
    assert (tmp_path / "link.csv").is_symlink()


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    if not hasattr(os, "mkfifo"):
        pytest.skip("there are no named pipes")
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        check_output("--scores", tmp_path / "pipe", [], force=False)
        write_scores(tmp_path / "pipe", np.array([0.5]))
        assert os.read(reader, 100) == b"row,score\n1,0.5\n"
    finally:
        os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


def test_what_is_known_before_the_run(tmp_path):
    """Whatever the contents are: a file that exists is overwritten by force only, and one to read never."""
    for name in ("data.csv", "other.csv"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    (tmp_path / "scores.csv").write_text("row,score\n1,2.5\n")
    (tmp_path / "empty.csv").touch()
    (tmp_path / "link.csv").symlink_to(tmp_path / "data.csv")
    (tmp_path / "link_to_other.csv").symlink_to(tmp_path / "other.csv")
    (tmp_path / "dangling.csv").symlink_to(tmp_path / "nowhere" / "a.csv")
    exists = "exists, expected another name, or --force to overwrite it"
    for name, message, by_force in [
        ("data.csv", "is a file to read", "is a file to read"),
        ("link.csv", "is a file to read", "is a file to read"),
        ("other.csv", exists, None),
        ("scores.csv", exists, None),
        ("link_to_other.csv", exists, None),
        ("empty.csv", None, None),
        ("new.csv", None, None),
        (".", "is a directory, expected the name of a file", "is a directory"),
        ("dangling.csv", "nowhere does not exist, expected one to write into", "does not exist"),
        ("nowhere/a.csv", "nowhere does not exist, expected one to write into", "does not exist"),
    ]:
        for force, expected in (False, message), (True, by_force):
            with pytest.raises(InputError, match=expected) if expected else nullcontext():
                check_output("--scores", tmp_path / name, [tmp_path / "data.csv"], force)
    assert (tmp_path / "other.csv").read_text() == "a,b\n1,2\n" and not (tmp_path / "new.csv").exists()


def test_what_may_not_be_written_is_not_written_by_force_either(tmp_path, monkeypatch):
    (tmp_path / "a.csv").touch()
    monkeypatch.setattr("os.access", lambda path, mode: path.is_dir())
    for force in (False, True):
        with pytest.raises(InputError, match="exists and cannot be written to, expected another name"):
            check_output("--scores", tmp_path / "a.csv", [], force)


@pytest.mark.parametrize("name", FIGURES)
def test_figures_that_exist_are_overwritten_by_force_only(tmp_path, name):
    for other in ("notes.txt", "mine.png"):  # are no figures of ours
        (tmp_path / other).write_text("mine")
    figure = tmp_path / f"{name}.png"
    figure.touch()
    check_directory(tmp_path, force=False)
    figure.write_text("mine")
    with pytest.raises(InputError, match=rf"{name}\.png exists, expected another name, or --force to overwrite it"):
        check_directory(tmp_path, force=False)
    check_directory(tmp_path, force=True)
    assert figure.read_text() == "mine"


def test_a_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("mine")
    for name in ("file", "file/figures"):
        for force in (False, True):
            with pytest.raises(InputError, match="cannot be made a directory"):
                check_directory(tmp_path / name, force)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no such device")
def test_a_full_disk_is_one_line():
    check_output("--scores", Path("/dev/full"), [], force=False)
    with pytest.raises(InputError, match="/dev/full cannot be written: No space left on device"):
        write_scores(Path("/dev/full"), np.zeros(3))


@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_scores_come_back_to_the_last_digit(tmp_path, n_columns):
    rng = np.random.RandomState(0)
    scores = np.concatenate([rng.randn(50) * 10.0 ** rng.randint(-300, 300, 50), [0.1, -0.0, 1e308]])
    columns = {"score": scores, "probability": rng.rand(53), "decision": rng.rand(53) < 0.5}
    columns = dict(list(columns.items())[:n_columns])
    write_scores(tmp_path / "scores.csv", *columns.values())
    found = read_scores(tmp_path / "scores.csv")
    assert list(found) == list(columns)
    for name, column in columns.items():
        np.testing.assert_array_equal(found[name], column)
    lines = (tmp_path / "scores.csv").read_bytes().split(b"\n")
    assert len(lines) == 55 and lines[-1] == b""
    assert n_columns < 3 or {line.split(b",")[-1] for line in lines[1:-1]} == {b"0", b"1"}


def test_rows_that_are_not_all_have_their_own_numbers(tmp_path):
    write_scores(tmp_path / "scores.csv", np.array([0.5, 2.0, -1.0]), rows=np.array([0, 7, 599_999]))
    assert (tmp_path / "scores.csv").read_text() == "row,score\n1,0.5\n8,2.0\n600000,-1.0\n"


@pytest.mark.parametrize("name", ["scores.csv", "scores.parquet", "scores.PQ"])
def test_scores_that_come_some_at_a_time_are_one_table(tmp_path, name):
    pytest.importorskip("pyarrow")
    rng = np.random.RandomState(0)
    columns = rng.randn(50), rng.rand(50), rng.rand(50) < 0.5
    with ScoreFile(tmp_path / name) as file:
        for part in (slice(0, 20), slice(20, 21), slice(21, 50)):
            file.add(*(column[part] for column in columns))
        assert list(tmp_path.glob(name)) == []  # before it is whole
    if name.endswith("csv"):
        found = read_scores(tmp_path / name)
    else:
        from pyarrow import parquet

        table = parquet.ParquetFile(tmp_path / name).read()
        found = {name: table[name].to_numpy() for name in table.column_names}
        np.testing.assert_array_equal(found.pop("row"), np.arange(1, 51))
    assert list(found) == ["score", "probability", "decision"]
    for name, column in zip(found, columns):
        np.testing.assert_array_equal(found[name], column)


@pytest.mark.parametrize("name", ["scores.csv", "scores.parquet"])
def test_scores_that_stop_in_the_middle_leave_the_old_file(tmp_path, name):
    pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), ScoreFile(tmp_path / name) as file:
        file.add(np.zeros(3))
        raise KeyboardInterrupt
    assert (tmp_path / name).read_bytes() == b"old" and [path.name for path in tmp_path.iterdir()] == [name]


def test_a_probability_may_be_missing_where_there_are_decisions(tmp_path):
    write_scores(tmp_path / "scores.csv", np.array([0.5, 2.0]), acted=np.array([False, True]))
    assert (tmp_path / "scores.csv").read_text() == "row,score,decision\n1,0.5,0\n2,2.0,1\n"


def test_a_result_is_a_line_on_standard_output_or_an_error(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    print_result("AUC Score: 0.5000")
    assert out.getvalue() == "AUC Score: 0.5000\n"
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(OSError, match="standard output is closed"):
        print_result("AUC Score: 0.5000")
