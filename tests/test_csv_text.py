"""CSV text, with a header or without, becomes numbers, places in lists of values, and labels."""

import bz2
import gzip
import io
import os
import signal
from datetime import datetime, timedelta

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from small_files import write

from preprocess import InputError
from tenfold.readers import load
from tenfold.readers.csv_columns import find_time_format
from tenfold.readers.csv_dialect import Undecoded

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_ctrl_c_while_cells_are_read_is_no_fault_of_the_file(tmp_path, monkeypatch):
    """pandas takes it for one."""
    read = Undecoded.read

    def interrupted(self, n=-1):
        os.kill(os.getpid(), signal.SIGINT)
        return read(self, n)

    monkeypatch.setattr(Undecoded, "read", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        load(write(tmp_path / "a.csv", b"1,2,0\n3,4,1\n"))
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    "text",
    [
        "1,2,0\n3,4,1\n",
        "\ufeff1,2,0\n3,4,1\n",
        "a,b,label\n1,2,0\n3,4,1\n",
        "\ufeffa,b,label\r\n1,2,0\r\n\r\n3,4,1\r\n",  # a byte order mark, Windows line ends, an empty line
        '"a, or\nb",b,label\n"1"," 2 ",0\n3,4e0,1',
        "2019,2020,label\n1,2,0\n3,4,1\n",
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_csv_with_and_without_header(tmp_path, text, pack):
    ending = {gzip.compress: ".gz", bz2.compress: ".bz2"}.get(pack, "")
    data = load(write(tmp_path / f"a.csv{ending}", pack(text.encode())))
    assert_array_equal(data.X, [[1, 2], [3, 4]])
    assert_array_equal(data.y, [0, 1])


def test_csv_label_by_name(tmp_path):
    path = write(tmp_path / "a.csv", "a, sick ,b\n1,no,2\n3,yes,4\n")
    data = load(path, label="sick")
    assert_array_equal(data.X, [[1, 2], [3, 4]])
    assert_array_equal(data.y, ["no", "yes"])
    with pytest.raises(InputError, match="no column 'ill'; its first row is a, sick, b"):
        load(path, label="ill")


def test_csv_of_text_only_without_header(tmp_path):
    data = load(write(tmp_path / "a.csv", "red,yes\nblue,no\nred,no\nblue,yes\n"))
    assert_array_equal(data.X, [[1], [0], [1], [0]])
    assert data.categories == {0: ["blue", "red"]}
    assert_array_equal(data.y, ["yes", "no", "no", "yes"])


def test_csv_missing_cells(tmp_path):
    data = load(write(tmp_path / "a.csv", "1,,0\nNA,2,1\n?,n/a,1\nnull, nan ,0\ninf,3,0\n"))
    nan = np.nan
    assert_array_equal(data.X, [[1, nan], [nan, 2], [nan, nan], [nan, nan], [np.inf, 3]])


@pytest.mark.parametrize("gap", [" ", "    "])
def test_csv_spaces_before_cells_of_a_late_row_are_no_part_of_them(tmp_path, gap):
    """Neither of numbers nor of quotes, which may hold separators; the first rows do not tell."""
    rows = ['7,"red,or",0', "8,blue,1"] * 2_000
    late = f'9,{gap}"red,or",{gap}1', f"{gap}NA,{gap}blue,0"
    told, plain = (
        load(write(tmp_path / name, "\n".join(["n,colour,y", *rows, *last]) + "\n"))
        for name, last in (("a.csv", late), ("b.csv", [row.replace(f",{gap}", ",").strip() for row in late]))
    )
    assert_array_equal(told.X, plain.X)
    assert_array_equal(told.y, plain.y)
    assert told.X.shape == (4_002, 2) and np.isnan(told.X[-1, 0]) and told.categories == plain.categories
    assert told.categories == {1: ["blue", "red,or"]}


def test_csv_with_decimal_commas_is_read_as_numbers_not_as_text(tmp_path, monkeypatch):
    """Text takes some forty times as long."""
    monkeypatch.setattr("tenfold.readers.csv_columns.to_number", lambda cell, decimal: pytest.fail("it was text"))
    X = np.random.RandomState(0).rand(400, 3).round(3)
    rows = [";".join(f"{x:.3f}".replace(".", ",") for x in row) for row in X]
    text = "\n".join(f"{row};{i % 2}" for i, row in enumerate(rows))
    assert_array_equal(load(write(tmp_path / "a.csv", text)).X, X)


@pytest.mark.parametrize("n_columns", [3, 1200])
@pytest.mark.parametrize("cell", ["", "NA", "none", "-", "#N/A"])
def test_csv_missing_cells_are_the_same_in_few_and_in_many_columns(tmp_path, n_columns, cell):
    X = np.arange(4.0 * n_columns).reshape(4, n_columns)
    rows = [[*map(str, row), str(i % 2)] for i, row in enumerate(X)]
    rows[2][1], X[2, 1] = cell, np.nan
    assert_array_equal(load(write(tmp_path / "a.csv", "\n".join(map(",".join, rows)))).X, X)


@pytest.mark.parametrize("written", ["%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%d.%m.%Y %H:%M", "%m/%d/%Y %H:%M:%S"])
@pytest.mark.parametrize("other", [None, "", "NA", " ", "soon", "2001-01-01", "25:00"])
def test_csv_times_are_those_that_each_value_by_itself_gives(tmp_path, monkeypatch, written, other):
    """Also where a cell far below is something else."""
    monkeypatch.setattr("tenfold.readers.csv_table.rows_at_a_time", lambda n_columns, share: 300)
    seconds = np.random.RandomState(0).randint(0, 3 * 10**8, 900)
    times = [(datetime(1995, 5, 6) + timedelta(seconds=int(s))).strftime(written) for s in seconds]
    times[700] = times[700] if other is None else other
    path = write(tmp_path / "a.csv", "when,y\n" + "\n".join(f"{time},{i % 2}" for i, time in enumerate(times)))
    fast, again = load(path), load(path, like=load(path))
    assert find_time_format(times[:9]) is not None
    monkeypatch.setattr("tenfold.readers.csv_text.find_time_format", lambda cells: None)
    slow = load(path)
    assert fast.csv == slow.csv and fast.notes == slow.notes
    assert_array_equal(fast.X, slow.X)
    assert_array_equal(again.X, slow.X)


def test_csv_text_becomes_places_in_a_list_of_values(tmp_path):
    """A test file may hold the values in another order; others that it has are behind them, missing ones are NaN."""
    train = load(write(tmp_path / "train.csv", "n,colour,y\n5,red,0\n6,blue,1\n7, red,1\n8,?,0\n"))
    assert_array_equal(train.X, [[5, 1], [6, 0], [7, 1], [8, np.nan]])
    assert train.csv["columns"][1] == {"name": "colour", "kind": "text", "values": ["blue", "red"]}
    assert train.categories == {1: ["blue", "red"]} and train.new_values == {}
    test = load(write(tmp_path / "test.csv", "n,colour,y\n1,green,1\n2,blue,0\n3,Red,0\n4,,1\n5,green,0\n"), like=train)
    assert_array_equal(test.X, [[1, 2], [2, 0], [3, 3], [4, np.nan], [5, 2]])
    assert test.new_values == {1: ["green", "Red"]}
    assert test.categories == train.categories == {1: ["blue", "red"]}
    train.add_values(test.new_values)
    assert train.categories == {1: ["blue", "red", "green", "Red"]}


def test_csv_with_many_values_is_one_dense_column(tmp_path):
    values = [f"v{i}" for i in range(50)]
    data = load(write(tmp_path / "a.csv", "".join(f"{value},{i % 2}\n" for i, value in enumerate(values))))
    assert isinstance(data.X, np.ndarray) and data.X.shape == (50, 1)
    assert [data.categories[0][int(code)] for code in data.X[:, 0]] == values


def test_csv_test_file_that_begins_with_its_only_positive(tmp_path):
    train = load(write(tmp_path / "train.csv", "1,yes\n2,yes\n3,no\n"))
    assert_array_equal(load(write(tmp_path / "test.csv", "4,yes\n5,no\n"), like=train).y, ["yes", "no"])


@pytest.mark.parametrize(
    "text, message",
    [
        ("b,c,y\n1,2,0\n3,4,1\n", "no column 'a', which the training file has"),
        ("a,b,y\n1,x,0\n3,4,1\n", "column 'b' holds text, expected numbers as in the training file"),
        ("1,x,0\n3,4,1\n", "column 2 holds text, expected numbers as in the training file"),
        ("1,2,3,0\n3,4,5,1\n", "3 features, expected 2"),
        ("a,b\n1,2\n3,4\n", "no label beside a, b, expected y"),
    ],
)
def test_csv_test_file_must_match(tmp_path, text, message):
    train = load(write(tmp_path / "train.csv", "a,b,y\n1,2,0\n3,4,1\n"))
    with pytest.raises(InputError, match=message):
        load(write(tmp_path / "test.csv", text), like=train)


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.csv", "a,b,y\n", "has a header and no rows, expected at least one row"),
        ("a.csv", "\n\n", "no rows"),
        ("a.csv", "1 2 0\n3 4 1\n", "a single column, expected features and a label with a comma, a semicolon,"),
        ("a.csv", "1,2,0\n3,4\n", "row 2 has 2 cells, expected 3"),
        ("a.csv", "a,y\n3,4,1\n", "row 2 has 3 cells, expected 2"),
        ("a.csv", '1,"2\n3,4', "not CSV"),
        ("a.csv", "é,1\nb,0\n".encode("latin-1"), "UTF-8"),
        ("a.csv", "1,0\n2,\n3,1\n", "1 of 3 labels are missing"),
        ("a.csv", "1,no\n2,?\n3,yes\n4,no\n", "1 of 4 labels are missing"),
        ("a.csv.gz", gzip.compress(b"1,0\n" * 99)[:-9], "a.csv.gz"),
        ("a.csv.gz", b"plain", "a.csv.gz cannot be read"),
        ("a.csv", b"PK\x03\x04\x14\x00\x80", "it is an Excel workbook .* save it as CSV"),
        ("a.csv", b"\xd0\xcf\x11\xe0" + bytes(99), "it is an old Excel workbook"),
        ("a.csv", gzip.compress(b"1,0\n" * 99), "packed by gzip, and needs the ending .csv.gz"),
        ("a.txt", b"a,b,y\n1,2,0\n", "is not LIBSVM text: .* a table needs the ending .csv"),
        ("a.dat", b"a,b,y\n1,2,0\n", "is not a MATLAB file, .* needs its usual ending, such as .csv"),
    ],
)
def test_unusable_files(tmp_path, name, content, message):
    with pytest.raises(InputError, match=message) as caught:
        load(write(tmp_path / name, content))
    assert "\n" not in str(caught.value) and name in str(caught.value)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("n_lines", [0, 1, 2, 40])
@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_bytes_behind_some_lines_are_those_of_text(end, n_lines, piece):
    """However the lines end, and however few bytes are asked for or come at a time."""
    lines = [f"é{i}" * i for i in range(40)]
    content = end.join(lines).encode()

    class Slow(io.BytesIO):
        def read(self, n=-1):
            return super().read(min(n, piece) if n >= 0 else n)

    undecoded = Undecoded(Slow(content), n_lines)
    text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline="")
    for _ in range(n_lines):
        text.readline()
    assert b"".join(iter(lambda: undecoded.read(piece), b"")).decode() == text.read()
    assert b"".join(Undecoded(io.BytesIO(content), n_lines)).decode() == end.join(lines[n_lines:])


@pytest.mark.parametrize("cell", [b"\xff", b"1\xff", b"a\xff"])
def test_cells_that_are_not_utf_8_are_refused_in_any_column(cell, tmp_path):
    rows = b"".join(b"%d,%d,%d\n" % (i, i % 7, i % 2) for i in range(3000))
    (tmp_path / "a.csv").write_bytes(b"a,b,y\n" + rows + b"3," + cell + b",1\n" + rows)
    with pytest.raises(InputError, match=r"is not CSV text in UTF-8: .*; try --encoding, for example latin-1"):
        load(tmp_path / "a.csv")
