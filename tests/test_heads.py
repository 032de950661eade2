"""What the first rows of a stream say: how many rows, which classes, what to hold out."""

import gzip

import numpy as np
import pytest

from preprocess import InputError
from tenfold.heads import cut_all, hold_out, read_head, whole_files


def write(path, y, rng):
    path.write_text("".join(f"{a:.4f},{b:.4f},{label}\n" for (a, b), label in zip(rng.randn(len(y), 2), y)))
    return (path,)


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr("tenfold.readers.text.STREAMED_CELLS", 60_000)
    monkeypatch.setattr("tenfold.heads.LEAST_BYTES", 2000)


def test_the_number_of_rows_is_known_or_guessed_well(tmp_path, rng, small_chunks):
    y = np.where(rng.rand(40_000) < 0.1, 1, 0)
    few, many = write(tmp_path / "few.csv", y[:900], rng), write(tmp_path / "many.csv", y, rng)
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress(many[0].read_bytes()))
    assert read_head(whole_files([few]), None, 0).n_rows == 900
    for groups in ([many], [(packed,)], [many, few]):
        head = read_head(whole_files(groups), None, 0)
        n_rows = 40_000 * len([path for (path,) in groups if path not in few]) + 900 * (few in groups)
        assert head.n_rows == pytest.approx(n_rows, rel=0.4)  # text is read ahead
        assert head.counts[1] == pytest.approx(0.1 * n_rows, rel=0.5)


def test_the_rarer_class_is_found_where_each_class_has_its_file(tmp_path, rng, small_chunks):
    files = [write(tmp_path / "a.csv", ["sick"] * 2000, rng), write(tmp_path / "b.csv", ["well"] * 30_000, rng)]
    for groups in (files, files[::-1]):
        head = read_head(whole_files(groups), None, 0)
        assert head.like.y.tolist() == ["well", "sick"] and set(head.y) == {1, -1}
    assert read_head(whole_files(files), "well", 0).like.y.tolist() == ["sick", "well"]


def test_more_of_a_rare_class_is_held_out(tmp_path, rng):
    y = np.arange(4000) % 40 == 0
    head = read_head(whole_files([write(tmp_path / "a.csv", y.astype(int), rng)]), None, 0)
    assert head.held_out == {-1: 0.1, 1: 0.3} and head.counts == {-1: 3900, 1: 100}
    assert len(head.y) == head.data.X.shape[0] and np.count_nonzero(head.y > 0) == pytest.approx(70, abs=20)


def test_what_is_held_out_does_not_depend_on_how_much_is_read_at_a_time():
    y, shares = np.where(np.arange(1000) % 3, -1, 1), {1: 0.3, -1: 0.1}
    whole = hold_out(np.random.RandomState(5), y, shares)
    rng = np.random.RandomState(5)
    np.testing.assert_array_equal(
        whole, np.concatenate([hold_out(rng, y[i : i + 70], shares) for i in range(0, 1000, 70)])
    )
    assert whole[y > 0].mean() == pytest.approx(0.3, abs=0.1)


def test_pieces_are_cut_to_size_and_have_generators_of_their_own(tmp_path, rng):
    pieces = whole_files([write(tmp_path / f"{n}.csv", [0, 1] * n, rng) for n in (100, 4000)])
    cut = cut_all(pieces, 10)
    assert 9 <= len(cut) <= 11 and cut[0].paths[0].name == "100.csv" and cut[1].paths[0].name == "4000.csv"
    assert len({piece.random(0).rand() for piece in cut}) == len(cut)
    assert [piece.random(0).rand() for piece in cut_all(pieces, 10)] == [piece.random(0).rand() for piece in cut]
    assert len(cut_all(pieces, 10, least=10**9)) == 2


def test_labels_of_more_kinds_are_refused_by_the_name_of_the_file(tmp_path, rng):
    files = [write(tmp_path / "a.csv", [0, 1] * 50, rng), write(tmp_path / "b.csv", [0, 2] * 50, rng)]
    with pytest.raises(InputError, match=r"b\.csv: the labels take 3 values \(0, 1, 2\), expected two classes"):
        read_head(whole_files(files), None, 0)
