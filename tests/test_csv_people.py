"""CSV files as people have them give the same `Data` as a clean file, and what was found is said."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from conftest import EFFORT, FEW, call, make_rows, refused, score
from numpy.testing import assert_allclose, assert_array_equal
from small_files import dense, mat, write

from preprocess import InputError
from tenfold import load_model
from tenfold.readers import csv_table, load, stream

pytestmark = pytest.mark.filterwarnings("error")

X = [[1.5, -2.25], [3, 4], [0.5, 1234.5]]
Y = [0, 1, 1]
CLEAN = "size,weight,sick\n1.5,-2.25,0\n3,4,1\n.5,1234.5,1\n"


def same(path, X=X, y=Y, **wanted):
    """Check what a file holds; what is said about it."""
    data = load(path, **wanted)
    assert_allclose(dense(data.X), X)
    assert_array_equal(data.y, y)
    assert data.X.dtype == np.float64 and json.loads(json.dumps(data.csv)) == data.csv
    return "\n".join(data.notes)


# --- how the text is written -----------------------------------------------------------------------------------------


def test_a_clean_file(tmp_path):
    assert same(write(tmp_path / "a.csv", CLEAN)) == f"{tmp_path / 'a.csv'}: the label is 'sick'"


@pytest.mark.parametrize("sep, word", [(",", ""), (";", "a semicolon"), ("\t", "a tab"), ("|", "a bar")])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_separators_are_found(tmp_path, sep, word, name):
    said = same(write(tmp_path / name, CLEAN.replace(",", sep)))
    assert (f"cells are separated by {word}" in said) == bool(word)


def test_a_separator_may_be_said(tmp_path):
    same(write(tmp_path / "a.csv", CLEAN.replace(",", "~")), sep="~")
    same(write(tmp_path / "a.csv", CLEAN.replace(",", "\t")), sep="tab")
    text = "a;b,c;d\n1;2,3;0\n3;4,1;1\n"  # both would do
    assert [column["name"] for column in load(write(tmp_path / "a.csv", text), sep=",").csv["columns"]] == ["a;b"]
    for sep in ("", ",,", '"', "\n"):
        with pytest.raises(InputError, match="--sep"):
            load(tmp_path / "a.csv", sep=sep)


def test_a_decimal_comma(tmp_path):
    text = "size;weight;sick\n1,5;-2,25;0\n3;4;1\n,5;1.234,5;1\n"
    assert "a semicolon, with a decimal comma" in same(write(tmp_path / "a.csv", text))
    same(write(tmp_path / "a.csv", text.replace(";", "\t").replace("1.234", "1234")))
    same(write(tmp_path / "a.csv", CLEAN.replace(",", ";").replace("1234.5", "1,234.5")))  # commas between thousands


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "latin-1", "cp1252"])
def test_encodings(tmp_path, encoding):
    text = CLEAN.replace("size", "größe")
    content = text.encode(encoding)
    if encoding == "utf-16-be":
        content = b"\xfe\xff" + content
    path = write(tmp_path / "a.csv", content)
    if encoding in ("latin-1", "cp1252"):
        with pytest.raises(InputError, match=r"is not CSV text in UTF-8: .*; try --encoding, for example latin-1"):
            load(path)
        same(path, encoding=encoding)
        assert load(path, encoding=encoding).csv["columns"][0]["name"] == "größe"
    else:
        assert ("in UTF-16" in same(path)) == encoding.startswith("utf-16")
        assert load(path).csv["columns"][0]["name"] == "größe"


def test_encodings_that_are_none(tmp_path):
    path = write(tmp_path / "a.csv", CLEAN.encode("utf-16-le"))
    with pytest.raises(InputError, match="null characters; --encoding utf-16-le may help"):
        load(path)
    same(path, encoding="utf-16-le")
    with pytest.raises(InputError, match="--encoding klingon is unknown"):
        load(path, encoding="klingon")
    with pytest.raises(InputError, match="not CSV text in ascii"):
        load(write(path, "é" + CLEAN), encoding="ascii")


@pytest.mark.parametrize(
    "text",
    [
        "# from the clinic\n  # 12 rows, or so\n\n" + CLEAN,
        CLEAN.replace("\n", ",\n"),
        CLEAN.replace("0\n", "0,\n").replace("1\n", "1,\n"),  # a header without a comma at its end
        CLEAN.replace("\n", "\r\n"),
        CLEAN.replace("\n", "\r"),
        CLEAN.replace("size", '"size,\nin ""metres"""'),
        CLEAN.replace(",", ", "),
        CLEAN.replace("\n", "\n\n  \n"),
        CLEAN.replace("3,4", '"3" , "4"'),
        CLEAN.rstrip(),
    ],
)
def test_the_look_of_the_text(tmp_path, text):
    same(write(tmp_path / "a.csv", text))


def test_line_breaks_in_quoted_cells(tmp_path):
    text = 'note,a,y\n"red\nwine",1,0\n"white, dry",2,1\n"red\nwine",3,1\n'
    same(write(tmp_path / "a.csv", text), [[0, 1], [1, 2], [0, 3]])
    assert load(tmp_path / "a.csv").categories == {0: ["red\nwine", "white, dry"]}


def test_a_quote_without_an_end(tmp_path):
    for text in [
        'a,"b,y\n1,2,0\n',
        'a,"b,y\n' + 1000 * "1,2,0\n",
        CLEAN + '1,"2,3\n',
        CLEAN + 1000 * '"1",2,0\n' + '1,"2',
    ]:
        with pytest.raises(InputError, match=r"is not CSV text|row 1005 has 2 cells"):
            load(write(tmp_path / "a.csv", text))


@pytest.mark.parametrize("row", ["1,2", "1,2,0,4", "1,2,0,4,5", "1,2,0,,5", "1"])
@pytest.mark.parametrize("n", [2, 1000, 5000])
def test_rows_that_are_too_short_or_too_long_anywhere(tmp_path, row, n, monkeypatch):
    monkeypatch.setattr("tenfold.readers.text.STREAMED_CELLS", 1)
    path = write(tmp_path / "a.csv", "a,b,y\n" + n * "1,2,0\n3,4,1\n" + row + "\n1,2,1\n")
    message = rf"a\.csv: row {2 * n + 2} has {row.count(',') + 1} cells?, expected 3"
    with pytest.raises(InputError, match=message):
        load(path)
    with pytest.raises(InputError, match=message):
        list(stream([path]))


def test_missing_cells_at_the_end_of_rows_are_no_short_rows(tmp_path):
    same(write(tmp_path / "a.csv", "y,a,b\n0,1,\n1,2,3\n"), [[1, np.nan], [2, 3]], [0, 1])


# --- header, index and label -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "index", "Id", "#"])
@pytest.mark.parametrize("first", [0, 1])
def test_an_index_column_is_left_out(tmp_path, name, first):
    head, *lines = CLEAN.splitlines()
    text = "\n".join([f"{name},{head}", *(f"{first + i},{line}" for i, line in enumerate(lines))])
    assert "is left out: it only numbers the rows" in same(write(tmp_path / "a.csv", text))
    other = write(tmp_path / "b.csv", text.replace(f"\n{first},", f"\n{first + 1},"))  # a number comes twice
    assert load(other).X.shape == (3, 3)
    train = load(tmp_path / "a.csv")
    for path in (other, write(tmp_path / "c.csv", CLEAN)):
        same(path, like=train)


def test_the_only_column_is_no_index(tmp_path):
    same(write(tmp_path / "a.csv", "id,y\n1,0\n2,1\n3,1\n"), [[1], [2], [3]])


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("names", [None, ["a", "b", "y"], [1, 2, 3], [2010, 2012, 2013]])
def test_what_pandas_writes(tmp_path, index, names):
    pd.DataFrame(np.column_stack([X, Y]), columns=names).to_csv(tmp_path / "a.csv", index=index)
    said = same(tmp_path / "a.csv")
    assert ("its first row, of numbers, is a header" in said) == (names is None or isinstance(names[0], int))
    train = load(tmp_path / "a.csv")
    for header in (True, False):
        pd.DataFrame(np.column_stack([X, Y]), columns=names).to_csv(tmp_path / "b.csv", index=index, header=header)
        same(tmp_path / "b.csv", like=train)


@pytest.mark.parametrize(
    "text", ["0,1,1\n1,0,0\n0,1,1\n", "0,1,2\n1,0,1\n0,1,2\n", "1,2\n0,1\n3,2\n", "5,7,0\n1,2,1\n3,4,0\n"]
)
def test_rows_that_are_no_header(tmp_path, text):
    assert load(write(tmp_path / "a.csv", text)).X.shape[0] == 3


def test_a_text_label_that_returns_far_below_is_no_name(tmp_path):
    path = write(tmp_path / "a.csv", "1,yes\n" + 2000 * "2,no\n" + "3,yes\n")
    assert load(path).X.shape == (2002, 1) and load(path).y[0] == "yes"


@pytest.mark.parametrize("name", ["label", "Target", "CLASS", "y", "Outcome"])
def test_the_label_is_found_by_its_name(tmp_path, name):
    said = same(write(tmp_path / "a.csv", f"{name},a,b\n0,1.5,-2.25\n1,3,4\n1,.5,1234.5\n"))
    assert said.endswith(f"the label is '{name}'")


def test_of_two_such_names_the_last_column_is_taken(tmp_path):
    path = write(tmp_path / "a.csv", "y,target,sick\n1.5,-2.25,0\n3,4,1\n3,1234.5,1\n")
    assert said_label(path) == "the label is 'sick'"
    assert said_label(path, label="y") == "the label is 'y'"
    assert said_label(write(tmp_path / "a.csv", "1,0\n2,1\n")) == "no header; the label is the last column"


def said_label(path, **wanted):
    return load(path, **wanted).notes[-1].split(": ")[-1]


@pytest.mark.parametrize("labels", [["-", "+"], ["None", "some"], ["True", "False"], ["no", "yes"]])
def test_labels_stay_as_they_are(tmp_path, labels):
    a, b = labels
    assert load(write(tmp_path / "a.csv", f"x,y\n1,{a}\n2,{b}\n3,{a}\n")).y.tolist() == [a, b, a]


# --- cells -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cells, numbers",
    [
        (['"1,234"', '"-1,234,567.5"', "7"], [1234, -1234567.5, 7]),
        (["12 %", "12%", "-3.5 %"], [12, 12, -3.5]),
        (["$5", "-$5.5", '"$1,000"'], [5, -5.5, 1000]),
        (["5 €", "£6", "+7"], [5, 6, 7]),
        (["1 234", "1'234", "7"], [1234, 1234, 7]),
        (["True", "False", ""], [1, 0, np.nan]),
        (["TRUE", "false", "true"], [1, 0, 1]),
        (["99999999999999999999", "1e999", "-inf"], [1e20, np.inf, -np.inf]),
    ],
)
def test_numbers_as_people_write_them(tmp_path, cells, numbers):
    text = "a,y\n" + "".join(f"{cell},{label}\n" for cell, label in zip(cells, Y))
    same(write(tmp_path / "a.csv", text), np.array(numbers)[:, None])


@pytest.mark.parametrize(
    "word", ["None", "-", "#N/A", "<NA>", "NaN", "nan", "NULL", "?", "n/a", "NA", "", " nan ", "nOnE"]
)
def test_missing_cells(tmp_path, word):
    same(write(tmp_path / "a.csv", f"a,b,y\n1,red,0\n{word},{word},1\n3,red,1\n"), [[1, 0], [np.nan, np.nan], [3, 0]])


@pytest.mark.parametrize(
    "dates, days",
    [
        (["2020-01-31", "2020-03-01", "2020-02-29"], [0, 30, 29]),
        (["2020/01/31", "2020/03/01", "2020/02/29"], [0, 30, 29]),
        (["31.01.2020", "1.3.2020", "29.02.2020"], [0, 30, 29]),
        (["01/31/2020", "3/1/2020", "02/29/2020"], [0, 30, 29]),
        (["31/01/2020", "1/3/2020", "29/02/2020"], [0, 30, 29]),
        (["2020-01-31 00:00", "2020-03-01 12:00", "2020-02-29 06:00"], [0, 30.5, 29.25]),
        (["2020-01-31T00:00:00Z", "2020-03-01T12:00:00.00Z", "2020-02-29T06:00:00Z"], [0, 30.5, 29.25]),
        (["1/31/2020 12:00 AM", "3/1/2020 12:00 PM", "2/29/2020 06:00 AM"], [0, 30.5, 29.25]),
    ],
)
def test_dates(tmp_path, dates, days):
    """Days since the first, and 31 January 2020 was a Friday, 1 March a Sunday, 29 February a Saturday."""
    text = "d,y\n" + "".join(f"{date},{label}\n" for date, label in zip([*dates, ""], [*Y, 0]))
    hours = [24 * (day % 1) for day in days]
    expected = [*map(list, zip(days, [4, 6, 5], [1, 3, 2], [31, 1, 29], hours)), 5 * [np.nan]]
    said = same(write(tmp_path / "a.csv", text), expected, [*Y, 0])
    assert "column 'd' holds dates" in said
    assert "it becomes weekday, month, day of the month, hour and days since 2020-01-31" in said


def test_dates_of_another_file_count_from_the_same_day(tmp_path):
    train = load(write(tmp_path / "a.csv", "d,y\n2020-01-31,0\n2020-03-01,1\n"))
    same(write(tmp_path / "b.csv", "y,d\n0,2020-01-01\n1,\n"), [[-30, 2, 1, 1, 0], 5 * [np.nan]], [0, 1], like=train)
    for cell in ("red", "2020-01-01 red", "01.01.2020"):
        with pytest.raises(InputError, match="column 'd' holds text, expected dates as in the training file"):
            load(write(tmp_path / "b.csv", f"y,d\n0,2020-01-01\n1,{cell}\n"), like=train)


def test_a_few_cells_that_are_no_numbers_count_as_missing(tmp_path):
    lines = [f"{i % 40},{i % 2}" for i in range(200)]
    lines[7], lines[150] = "broken,1", "see note,0"
    path = write(tmp_path / "a.csv", "\n".join(["a,y", *lines]))
    data = load(path)
    assert data.X.shape == (200, 1) and np.flatnonzero(np.isnan(data.X[:, 0])).tolist() == [7, 150]
    assert "column 'a' holds numbers, except for 2 cells (broken, see note), which count as missing" in data.notes[-1]
    again = load(path, like=load(write(tmp_path / "b.csv", "a,y\n1,0\n2,1\n")))
    assert_array_equal(again.X, data.X)
    assert "except for 2 cells" in again.notes[-1]
    lines[8:30] = 22 * ["x,1"]
    assert "holds text" in load(write(path, "\n".join(["a,y", *lines]))).notes[-1]


def test_names_and_free_text_are_columns_of_text(tmp_path):
    lines = [f"patient {i},{'red' if i % 3 else 'blue'},{i},{i % 2}" for i in range(60)]
    data = load(write(tmp_path / "a.csv", "\n".join(["who,colour,a,y", *lines])))
    assert data.X.shape == (60, 3)
    assert "column 'who' holds text: 60 values" in data.notes[1]
    assert "column 'colour' holds text: 2 values" in data.notes[2]
    assert data.categories == {0: sorted(f"patient {i}" for i in range(60)), 1: ["blue", "red"]}
    for head in ("who,colour,a,y", None):
        lines = ["somebody,blue,7,1", "patient 0,green,8,0"]
        test = load(write(tmp_path / "b.csv", "\n".join([head, *lines] if head else lines)), like=data)
        assert_array_equal(test.X, [[60, 0, 7], [0, 2, 8]])
        assert test.new_values == {0: ["somebody"], 1: ["green"]}


def test_a_column_that_turns_into_text_far_below(tmp_path, monkeypatch):
    """What looked like numbers before is text as it was written."""
    monkeypatch.setattr("tenfold.readers.text.STREAMED_CELLS", 1)
    codes = [f"{i % 9:03}" for i in range(1500)] + ["A12"] * 500
    path = write(tmp_path / "a.csv", "code,b,y\n" + "".join(f"{c},{i},{i % 2}\n" for i, c in enumerate(codes)))
    data = load(path)
    assert data.csv["columns"][0] == {"name": "code", "kind": "text", "values": [f"{i:03}" for i in range(9)] + ["A12"]}
    assert [data.categories[0][int(code)] for code in data.X[:, 0]] == codes
    with pytest.raises(InputError, match="column 'code' holds text, expected numbers as in the training file"):
        list(stream([path]))


# --- another file ----------------------------------------------------------------------------------------------------


def test_columns_are_matched_by_name(tmp_path):
    train = load(write(tmp_path / "a.csv", CLEAN))
    path = write(tmp_path / "b.csv", "weight;extra;sick;size\n-2,25;x;0;1,5\n4;y;1;3\n1234,5;z;1;,5\n")
    assert "not in the training file, and ignored: extra" in same(path, like=train)
    with pytest.raises(InputError, match="has no column 'weight', which the training file has"):
        load(write(tmp_path / "b.csv", CLEAN.replace("weight", "height")), like=train)
    unlabelled = load(write(tmp_path / "b.csv", "weight,extra,size\n4,1,3\n"), like=train, labelled=False)
    assert unlabelled.y is None and unlabelled.X.tolist() == [[3, 4]]
    other = load(write(tmp_path / "b.csv", "Target,weight,size\n1,4,3\n"), like=train, labelled=False)
    assert other.y.tolist() == [1] and other.X.tolist() == [[3, 4]]


def test_a_file_without_header_has_the_label_where_the_training_file_has_it(tmp_path):
    train = load(write(tmp_path / "a.csv", "y,a,b\n0,1.5,-2.25\n1,3,4\n1,.5,1234.5\n"))
    same(write(tmp_path / "b.csv", "0,1.5,-2.25\n1,3,4\n1,.5,1234.5\n"), like=train)


def test_what_is_found_is_kept_in_a_model_and_said(tmp_path):
    A, y = make_rows()
    colours, days = np.array(["red", "blue"]), np.datetime64("2020-01-01") + np.arange(60)
    frame = pd.DataFrame({"day": days, "colour": colours[(A[:, 1] > 0).astype(int)], "a": A[:, 0], "Class": y})
    frame.to_csv(tmp_path / "train.csv", sep=";", decimal=",")
    code, _, err = call(tmp_path / "train.csv", *FEW, "--save", tmp_path / "model.npz")
    assert code == 0
    for said in (
        "a semicolon, with a decimal comma",
        "label is 'Class'",
        "numbers the rows",
        "days since 2020",
        "column 'colour' holds text: 2 values",
    ):
        assert said in err
    csv = load_model(tmp_path / "model.npz").data_.csv
    assert [column["kind"] for column in csv["columns"]] == ["left out", "date", "text", "number"]
    frame[["Class", "a", "colour", "day"]].to_csv(tmp_path / "new.csv", index=False)
    direct = score("--model", tmp_path / "model.npz", tmp_path / "train.csv")
    assert score("--model", tmp_path / "model.npz", tmp_path / "new.csv") == direct
    frame.assign(extra=1).to_csv(tmp_path / "new.csv")
    code, _, err = call("--model", tmp_path / "model.npz", tmp_path / "new.csv")
    assert code == 0 and "not in the training file, and ignored: extra" in err
    assert (
        "--quiet" in call("--help")[1] and call(tmp_path / "train.csv", tmp_path / "train.csv", "-q", *EFFORT)[2] == ""
    )


def test_streams_are_read_as_files_are(tmp_path, monkeypatch):
    monkeypatch.setattr("tenfold.readers.text.STREAMED_CELLS", 1)
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(rng.randn(2500, 2).round(3), columns=["a", "b"])
    frame["day"] = np.datetime64("2020-01-01") + np.arange(2500)
    frame["colour"] = np.array(["red", "blue", "12"])[rng.randint(0, 3, 2500)]
    frame["y"] = np.where(frame["a"] > 0, "yes", "no")
    for how in ({"encoding": "utf-16"}, {"sep": ";", "decimal": ","}, {"compression": "gzip"}):
        path = tmp_path / ("a.csv.gz" if "compression" in how else "a.csv")
        frame.to_csv(path, index=False, **how)
        whole, parts = load(path), [data for data, _ in stream([path])]
        assert len(parts) == 3 and parts[0].notes == whole.notes and parts[1].csv == whole.csv
        assert whole.categories == {7: ["12", "blue", "red"]}
        assert_array_equal(np.concatenate([dense(part.X) for part in parts]), dense(whole.X))
        assert_array_equal(np.concatenate([part.y for part in parts]), whole.y)
    code, _, err = call("--stream", path)
    assert code == 0 and err.count("the label is 'y'") == 1


def test_numbers_are_in_row_order_and_not_copied(tmp_path, monkeypatch):
    tables = []
    finish = csv_table.Table.finish
    monkeypatch.setattr(csv_table.Table, "finish", lambda table: tables.append(finish(table)) or table)
    data = load(write(tmp_path / "a.csv", CLEAN))
    assert data.X is tables[0].cells and data.X.flags.c_contiguous


def test_only_csv_files_need_pandas(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert load(mat(tmp_path / "a.mat", x_tr=np.array(X), y_tr=Y)).X.shape == (3, 2)
    with pytest.raises(InputError, match="a CSV file: install pandas to read it"):
        load(write(tmp_path / "a.csv", CLEAN))


# --- options that have no effect -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, option",
    [
        ("a.mat", "label"),
        ("a.mat", "sep"),
        ("a.npz", "encoding"),
        ("a.csv", "x-name"),
        ("a.csv.gz", "y-name"),
        ("a.tsv", "cost-name"),
        ("a.svm", "label"),
        ("a.svm", "x-name"),
    ],
)
def test_options_that_have_no_effect_on_a_file(tmp_path, name, option):
    assert refused(f"--{option} has no effect on", tmp_path / name, f"--{option}", "a").count("\n") == 1


def test_options_that_have_an_effect_on_one_file_or_on_none(tmp_path):
    A, y = make_rows()
    train = write(tmp_path / "a.csv", "\n".join(["sick,a,b,c,d", *(",".join(map(str, row)) for row in np.c_[y, A])]))
    assert score(train, mat(tmp_path / "b.mat", x_tr=A, y_tr=y), "--label", "sick", *EFFORT) > 0.5
    refused("--sep has no effect on the embedded sample", "--sep", ";")
    refused("--x-name does not go with --stream", "--stream", train, "--x-name", "a")
    for name, rows in {"x": np.ones((4, 2)), "y": np.arange(4)}.items():
        np.save(tmp_path / f"{name}.npy", rows)
    refused("--label has no effect on", "--stream", tmp_path / "x.npy", tmp_path / "y.npy", "--label", "a")
