"""CSV files as spreadsheets, R, NumPy and pandas write them, and what must not be misread in silence."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from small_files import dense, write

from preprocess import InputError
from tenfold.readers import load

ROWS = [(1.5, 999, "red", 0), (3.0, 1234, "blue", 1), (0.5, 250, "red", 1), (7.25, 1250, "blue", 0)]
X = [[1.5, 999, 1], [3, 1234, 0], [0.5, 250, 1], [7.25, 1250, 0]]  # blue, red
Y = [0, 1, 1, 0]


def lines(sep=",", head=("size", "price", "colour", "sick"), rows=ROWS, form=str):
    return "".join(sep.join(map(form, row)) + "\n" for row in ([head] if head else []) + list(rows))


def same(path, content, **wanted):
    data = load(write(path, content), **wanted)
    assert_array_equal(dense(data.X), X)
    assert_array_equal(data.y, Y)
    assert data.categories == {2: ["blue", "red"]}
    return "\n".join(data.notes)


@pytest.mark.parametrize("first", ["sep=;\n", "SEP=;\r\n", '"sep=;"\n'])
def test_the_first_line_by_which_excel_knows_the_separator(tmp_path, first):
    same(tmp_path / "a.csv", first + lines(";"))
    same(tmp_path / "a.csv", "sep=~\n" + lines("~"))


def test_a_header_behind_the_mark_of_a_comment_as_numpy_writes_it(tmp_path):
    assert "the label is 'sick'" in same(tmp_path / "a.csv", "# a table\n# " + lines())
    np.savetxt(tmp_path / "a.csv", [[0, 1, 2.5], [1, 3, 4]], header="y,a,b", delimiter=",")
    data = load(tmp_path / "a.csv")
    assert data.y.tolist() == [0, 1] and data.X.tolist() == [[1, 2.5], [3, 4]]
    assert "the label is 'sick'" in same(
        tmp_path / "a.csv", "# from the clinic, in May, all rows, two classes\n" + lines()
    )


@pytest.mark.parametrize("numbers", [range(1, 5), [3, 0, 2, 1], [12, 25, 26, 90]])
@pytest.mark.parametrize("name", ["", "id", "PassengerId", "row_id", "Patient ID", "Nr"])
def test_the_numbers_of_rows_are_left_out_also_if_rows_were_drawn_or_shuffled(tmp_path, numbers, name):
    rows = [(number, *row) for number, row in zip(numbers, ROWS)]
    said = same(tmp_path / "a.csv", lines(head=(name, "size", "price", "colour", "sick"), rows=rows))
    assert "is left out: it only numbers the rows" in said


@pytest.mark.parametrize("name, cells", [("paid", range(4)), ("id", [1, 1, 2, 3]), ("id", [0.5, 1, 2, 3])])
def test_columns_that_say_more_than_the_number_of_a_row(tmp_path, name, cells):
    rows = [(number, *row) for number, row in zip(cells, ROWS)]
    text = lines(head=(name, "size", "price", "colour", "sick"), rows=rows)
    assert load(write(tmp_path / "a.csv", text)).X.shape == (4, 4)


def in_groups(mark, decimal):
    """Write numbers with ``mark`` between thousands."""

    def form(cell):
        if not isinstance(cell, (int, float)):
            return cell
        return f"{cell:,}".replace(",", "_").replace(".", decimal).replace("_", mark)

    return form


def test_commas_between_thousands_are_not_decimal_ones(tmp_path):
    """999 and 1,234 side by side must not become 999 and 1.234."""
    said = same(tmp_path / "a.csv", lines(";", form=in_groups(",", ".")))
    assert "commas in numbers are between thousands: 1,234 is 1234" in said
    whole = [(int(4 * a), b, c, y) for a, b, c, y in ROWS]
    text = lines(";", rows=whole, form=in_groups(",", "."))
    assert dense(load(write(tmp_path / "a.csv", text)).X)[:, 1].tolist() == [999, 1234, 250, 1250]
    same(tmp_path / "a.csv", lines(";", form=in_groups(".", ",")))
    points = "a;b;y\n999;1;0\n1.234.567;2;1\n12.345;3;0\n"
    assert dense(load(write(tmp_path / "a.csv", points)).X)[:, 0].tolist() == [999, 1234567, 12345]


def test_a_few_rows_are_read_with_the_decimal_mark_of_the_training_file(tmp_path):
    train = load(write(tmp_path / "a.csv", "a;y\n1,5;0\n2,125;1\n"))
    assert load(write(tmp_path / "b.csv", "a;y\n2,125;1\n"), like=train).X.tolist() == [[2.125]]
    train = load(write(tmp_path / "a.csv", "a,y\n1.5,0\n2125,1\n"))
    assert load(write(tmp_path / "b.csv", "a;y\n2,125;1\n"), like=train).X.tolist() == [[2125]]


def test_a_decimal_comma_in_quotes_or_before_a_currency(tmp_path):
    quoted = lines(form=lambda cell: f'"{str(cell).replace(".", ",")}"')
    assert "separated by a comma, with a decimal comma" in same(tmp_path / "a.csv", quoted)
    text = "a;y\n1,50 €;0\n2,25 €;1\n"
    assert load(write(tmp_path / "a.csv", text)).X.tolist() == [[1.5], [2.25]]


@pytest.mark.parametrize(
    "word", [".", "--", "n.a.", "NaT", "#DIV/0!", "#VALUE!", "#REF!", "(null)", "\\N", "-nan", "Missing", "\u2013"]
)
def test_more_words_for_missing(tmp_path, word):
    text = f"a,b,y\n1,red,0\n{word},{word},1\n3,red,1\n"
    assert_array_equal(dense(load(write(tmp_path / "a.csv", text)).X), [[1, 0], [np.nan, np.nan], [3, 0]])


def test_a_strange_cell_in_a_small_file(tmp_path):
    cells = [str(i) for i in range(20)]
    cells[7] = "see note"
    data = load(write(tmp_path / "a.csv", "a,y\n" + "".join(f"{cell},{i % 2}\n" for i, cell in enumerate(cells))))
    assert data.X.shape == (20, 1) and np.isnan(data.X[7, 0])
    assert "holds numbers, except for 1 cell (see note), which counts as missing" in data.notes[-1]
    codes = ["1", "2", "3", "1", "2", "3", "1", "2", "3", "1", "2", "3", "A"]  # here it is one of a few codes
    data = load(write(tmp_path / "a.csv", "a,y\n" + "".join(f"{cell},{i % 2}\n" for i, cell in enumerate(codes))))
    assert data.X.shape == (13, 1) and data.categories == {0: ["1", "2", "3", "A"]}


@pytest.mark.parametrize(
    "dates, said",
    [
        (["31.01.20", "01.03.20"], "day.month.year"),
        (["01/31/20", "03/01/20"], "month/day/year"),
        (["31-Jan-2020", "01-Mar-2020"], "day-month-year"),
        (["31-JAN-20", "01-MAR-20"], "day-month-year"),
    ],
)
def test_more_dates(tmp_path, dates, said):
    data = load(write(tmp_path / "a.csv", f"d,y\n{dates[0]},0\n{dates[1]},1\n"))
    assert data.X.tolist() == [[0, 4, 1, 31, 0], [30, 6, 3, 1, 0]]
    assert f"holds dates ({said})" in data.notes[-1]


def test_a_label_that_cannot_be_meant(tmp_path):
    for text, message in {
        "sick,a\n0,1\n1,2\n1,3\n": r"the label, 'a', takes 3 values \(1, 2, 3\), expected two classes; --label names",
        "5,1\n1,2\n1,3\n": "the label, the last column, takes 3 values .*; a header and --label would name another",
        "y,a,y\n0,1,0\n1,2,1\n": "has 2 columns called 'y', expected one label",
    }.items():
        with pytest.raises(InputError, match=message):
            load(write(tmp_path / "a.csv", text))
    with pytest.raises(InputError, match="2 columns called 'y'"):
        load(tmp_path / "a.csv", label="y")


def test_negative_numbers_as_accountants_and_typesetters_write_them(tmp_path):
    data = load(write(tmp_path / "a.csv", 'a,y\n"($1,234.50)",0\n\u22125,1\n(2),1\n'))
    assert data.X.tolist() == [[-1234.5], [-5], [-2]]


def test_nothing_but_free_text_is_a_column_to_learn_from(tmp_path):
    text = "note,y\n" + "".join(f"patient {i},{i % 2}\n" for i in range(60))
    data = load(write(tmp_path / "a.csv", text))
    assert data.X.shape == (60, 1) and data.categories == {0: sorted(f"patient {i}" for i in range(60))}


def test_columns_of_one_name_are_matched_in_their_order(tmp_path):
    train = load(write(tmp_path / "a.csv", "a,a,b,y\n1,2,3,0\n4,5,6,1\n"))
    assert load(write(tmp_path / "b.csv", "b,a,y,a\n3,1,0,2\n"), like=train).X.tolist() == [[1, 2, 3]]
    with pytest.raises(InputError, match="has no column 'a', which the training file has"):
        load(write(tmp_path / "b.csv", "b,a,y\n3,1,0\n"), like=train)
