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
from tenfold.writing import PAGE_MARK, _check_output, print_result, write_scores, write_whole


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
        _check_output("--scores", tmp_path / "pipe", [], force=False)
        write_scores(tmp_path / "pipe", np.array([0.5]))
        assert os.read(reader, 100) == b"row,score\n1,0.5\n"
    finally:
        os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


def test_what_is_known_before_the_run(tmp_path):
    for name in ("data.csv", "other.csv"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    (tmp_path / "scores.csv").write_text("row,score\n1,2.5\n")
    (tmp_path / "result.html").write_bytes(PAGE_MARK + b"<title>AUC</title>")
    (tmp_path / "link.csv").symlink_to(tmp_path / "data.csv")
    (tmp_path / "dangling.csv").symlink_to(tmp_path / "nowhere" / "a.csv")
    for name, message in {
        "data.csv": "is a file to read",
        "link.csv": "is a file to read",
        "other.csv": "was not written by this program, expected another name, or --force",
        "scores.csv": None,
        "result.html": "was written by --page, expected another name, or --force",
        "dangling.csv": "nowhere does not exist, expected one to write into",
    }.items():
        with pytest.raises(InputError, match=message) if message else nullcontext():
            _check_output("--scores", tmp_path / name, [tmp_path / "data.csv"], force=False)
    _check_output("--scores", tmp_path / "other.csv", [tmp_path / "data.csv"], force=True)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no such device")
def test_a_full_disk_is_one_line():
    _check_output("--scores", Path("/dev/full"), [], force=False)
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
