"""Streams as pieces: each row is in one of them, whoever cuts and reads them; and what their first rows say."""

import numpy as np
import pytest
from stream_files import dense, write_parts, write_stream

from preprocess import InputError
from tenfold import pieces
from tenfold.pieces import Piece, as_labels_of, find_pieces, read_places, refuse_labels

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def rows(rng):
    return rng.randn(3000, 3).round(3), np.where(np.arange(3000) % 5, 0, 1)


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(pieces, "PIECE_BYTES", 4000)
    monkeypatch.setattr("tenfold.readers.text.STREAMED_CELLS", 1000)


@pytest.mark.parametrize("kind", ["npy", "csv", "svm", "parquet"])
def test_a_file_is_cut_so_that_each_row_is_in_one_piece(rows, tmp_path, kind):
    X, y = rows
    (whole,), _ = find_pieces(write_stream(kind, X, y, tmp_path))
    like = next(whole.read())[0]
    for n in (1, 2, 7, 100):
        cut = whole.cut(n)
        data = [data for part in cut for data, _ in part.read(like=like)]
        assert len(cut) == (min(n, 6) if kind == "parquet" else n)  # which is cut between its groups of rows only
        assert sum(part.size for part in cut) == pytest.approx(whole.size)
        np.testing.assert_array_equal(np.concatenate([dense(d.X) for d in data]), X)
        np.testing.assert_array_equal(np.concatenate([d.y for d in data]), y)


def test_pieces_follow_from_the_files_and_are_in_their_order(rows, tmp_path, small_pieces, monkeypatch):
    folder = write_parts("csv", *rows, tmp_path / "days")
    names = sorted(folder.iterdir())
    found, notes = find_pieces([folder])
    assert find_pieces(names[::-1]) == (found, []) and notes == []
    assert [piece.number for piece in found] == sorted(piece.number for piece in found)
    assert {piece.paths for piece in found} == {(name,) for name in names} and len(found) > 10
    assert all(piece.size < 2 * 4000 for piece in found)
    monkeypatch.chdir(folder)  # and they are found from everywhere else
    assert find_pieces(["day-*.csv"])[0] == found and all(path.is_absolute() for piece in found for path in piece.paths)
    whole, _ = find_pieces([folder], can_be_cut=False)
    assert [(piece.paths, piece.start, piece.stop) for piece in whole] == [((name,), 0, None) for name in names]


def test_there_are_no_more_pieces_than_so_many(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE_BYTES", 1)
    monkeypatch.setattr(pieces, "MOST_PIECES", 40)
    assert 35 <= len(find_pieces(write_stream("npy", *rows, tmp_path))[0]) <= 45


def test_what_is_packed_is_not_cut(rows, tmp_path, small_pieces):
    for kind in ("csv.gz", "svm.bz2"):
        (piece,), _ = find_pieces(write_stream(kind, *rows, tmp_path))
        assert piece.cut(9) == [piece]


def test_each_piece_has_random_numbers_of_its_own_whoever_reads_it(rows, tmp_path, small_pieces):
    found, _ = find_pieces([write_parts("csv", *rows, tmp_path / "days")])
    first = [piece.random(0).rand() for piece in found]
    assert len(set(first)) == len(found) and [piece.random(0).rand() for piece in found] == first
    assert not {piece.random(1).rand() for piece in found} & set(first)
    assert not {piece.random(0, purpose=1).rand() for piece in found} & set(first)
    far = Piece(found[0].paths, 0, 2**33 + 5, None, 1)
    assert far.random(0).rand() not in first


def test_first_rows_come_from_places_all_over_the_stream(rows, tmp_path, small_pieces, monkeypatch):
    X, y = rows
    folder = write_parts("csv", np.column_stack([np.arange(3000), X]), y, tmp_path / "days")
    found, _ = find_pieces([folder])
    places = read_places(found, {})
    assert len(places) == pieces.PLACES < len(found)
    at = [data.X[0, 0] for _, data, _ in places]
    assert at == sorted(at) and at[0] == 0 and at[-1] > 2700 and np.diff(at).max() < 400
    assert all(0 < share <= 1 for _, _, share in places)
    monkeypatch.setattr(pieces, "FIRST_ROWS", 100)
    assert sum(len(data.y) for _, data, _ in read_places(found, {})) < 400


def test_the_columns_are_those_of_the_first_place(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,label\n1,red,0\n2,blue,1\n")
    (tmp_path / "b.csv").write_text("b,a,label\ngreen,3,1\nred,4,0\n")
    found, _ = find_pieces([tmp_path])
    (_, first, _), (_, second, _) = read_places(found, {})
    assert first.csv == second.csv and second.X.tolist() == [[3, 2], [4, 1]]
    assert second.new_values == {1: ["green"]} and np.isnan(second.without_new_values()[0, 1])


def test_a_stream_of_headers_has_no_rows(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,label\n")
    found, _ = find_pieces([tmp_path])
    with pytest.raises(InputError, match=r"a\.csv has no rows, expected some"):
        read_places(found, {})


@pytest.mark.parametrize(
    "known, found, expected",
    [([0.0, 1.0], [1.0, 0.0], [1.0, 0.0]), (["2", "3+"], [2.0, 2.0], ["2", "2"]), (["no", "yes"], ["yes"], ["yes"])],
)
def test_labels_are_of_the_kind_of_those_that_are_known(known, found, expected):
    assert as_labels_of(np.array(known), np.array(found), "a.csv").tolist() == expected


def test_other_labels_are_refused_in_the_name_of_the_file():
    with pytest.raises(InputError, match=r"^a\.csv: the label maybe is no number, expected one as in the first rows$"):
        as_labels_of(np.array([0.0, 1.0]), np.array(["0", "maybe"]), "a.csv")
    with pytest.raises(InputError, match=r"^a\.csv: the labels take 3 values \(0, 1, 7\), expected two classes$"):
        refuse_labels("a.csv", {1.0: 5, 0.0: 2, 7.0: 1})
