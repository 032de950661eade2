"""Files become `Data`, whatever their format: paths, variables, what is checked in every file, and new formats."""

import gzip
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from scipy.io import savemat
from small_files import X_SMALL, Y_SMALL, dense, mat, write

from preprocess import InputError, Preprocessor
from tenfold import readers
from tenfold.readers import load, stream
from tenfold.readers.base import Data, Wanted
from tenfold.readers.checks import in_rows
from tenfold.readers.text import open_text

pytestmark = pytest.mark.filterwarnings("error")


# --- paths and formats -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["datos ñandú 数据.mat", "noending", "a.b.c"])
def test_a_file_without_a_known_ending_is_matlab(tmp_path, name):
    assert load(mat(tmp_path / name, x_tr=X_SMALL, y_tr=Y_SMALL)).X.shape == (3, 3)


def test_paths_that_are_no_files(tmp_path):
    for path, message in [(tmp_path, "is a directory"), (tmp_path / "no.mat", "no such file"), ("x" * 5000, "xxx")]:
        with pytest.raises(InputError, match=message):
            load(path)


def test_a_forbidden_file(tmp_path, monkeypatch):
    """Simulated, since nothing is forbidden to an administrator."""

    def refuse(*args):
        raise PermissionError(13, "Permission denied")

    path = mat(tmp_path / "a.mat", x_tr=X_SMALL, y_tr=Y_SMALL)
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match=r"cannot be read: .*Permission denied"):
        load(path)


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.mat", b"", "is empty"),
    ],
)
def test_unusable_files(tmp_path, name, content, message):
    with pytest.raises(InputError, match=message) as caught:
        load(write(tmp_path / name, content))
    assert "\n" not in str(caught.value) and name in str(caught.value)


# --- variables -------------------------------------------------------------------------------------------------------


def test_other_variable_names(tmp_path):
    path = mat(tmp_path / "a.mat", A=X_SMALL, b=Y_SMALL, x_tr=X_SMALL[:1])
    assert_array_equal(load(path, x_names=["nothing", "A"], y_names=["b"]).X, X_SMALL)
    with pytest.raises(InputError, match=r"holds A, b, x_tr; expected y_tr \("):
        load(path)


# --- what every file must satisfy ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (3,)])
@pytest.mark.parametrize("save", [mat, lambda path, **v: np.savez(path, **v)])
def test_labels_may_be_a_row_a_column_or_flat(tmp_path, shape, save):
    path = tmp_path / ("a.mat" if save is mat else "a.npz")
    save(path, x_tr=X_SMALL, y_tr=Y_SMALL.reshape(shape))
    assert_array_equal(load(path).y, Y_SMALL)


@pytest.mark.parametrize(
    "x, y, message",
    [
        (X_SMALL * 1j, Y_SMALL, "complex numbers, expected real"),
        (sp.csc_matrix(X_SMALL * 1j), Y_SMALL, "complex numbers, expected real"),
        ("text", Y_SMALL, "text, expected real numbers"),
        ({"field": 1}, Y_SMALL, "a struct, a cell array"),
        (np.array([[1, "a"]], object), Y_SMALL, "a struct, a cell array"),
        (np.ones((3, 2, 2)), Y_SMALL, "3 dimensions, expected 2"),
        (np.ones((0, 3)), Y_SMALL, "x is 0 x 3"),
        (np.ones((3, 0)), Y_SMALL, "x is 3 x 0"),
        (X_SMALL, np.ones((2, 3)), "y is 2 x 3, expected one label"),
        (X_SMALL, {"field": 1}, "y holds neither"),
        (X_SMALL, Y_SMALL * 1j, "y holds neither"),
        (X_SMALL, np.ones(5), "3 rows and y has 5 labels, expected the same number$"),
        (X_SMALL[:2], Y_SMALL, "2 rows and y has 3 labels, expected the same number; x seems to be transposed"),
        (X_SMALL, [0, np.nan, 1], "1 of 3 labels are missing"),
        (X_SMALL, [0, np.inf, 1], "1 of 3 labels are missing or infinite"),
    ],
)
def test_unusable_variables(tmp_path, x, y, message):
    with pytest.raises(InputError, match=message):
        load(mat(tmp_path / "a.mat", x_tr=x, y_tr=y))


def test_a_test_file_may_be_stored_otherwise(tmp_path):
    """Dense or sparse, as the training file is; a feature more or less is an error."""
    for make in (np.asarray, sp.csr_array):
        like = Data(make(X_SMALL), Y_SMALL)
        for other in (X_SMALL, sp.csc_matrix(X_SMALL)):
            data = load(mat(tmp_path / "a.mat", x_tr=other, y_tr=Y_SMALL), like=like)
            assert type(data.X) is type(like.X)
            assert_array_equal(dense(data.X), X_SMALL)
    np.savez(tmp_path / "a.npz", x_tr=X_SMALL.astype(np.float16), y_tr=Y_SMALL)  # a type that SciPy cannot hold
    assert_array_equal(load(tmp_path / "a.npz", like=like).X.toarray(), X_SMALL)
    with pytest.raises(InputError, match="2 features, expected 3 as in the training file"):
        load(mat(tmp_path / "a.mat", x_tr=X_SMALL[:, :2], y_tr=Y_SMALL), like=like)


def test_a_stored_zero_is_a_zero(tmp_path):
    data = load(write(tmp_path / "a.svm", "1 1:2 2:2\n0 1:0\n0 2:0\n"))
    assert data.X.nnz == 2
    assert Preprocessor().fit(data.X).changes_["duplicated"] == 1


@pytest.mark.parametrize(
    "cells, kind",
    [
        ([1.0, 2.0, -(2.0**100)], np.float32),
        ([0.5, np.nan, np.inf], np.float32),
        ([1.0, 0.1, 2.0], np.float64),
        ([1.0, 1e39, 2.0], np.float64),  # which float32 takes for infinite
        ([1.0, 2.0**24 + 1, 2.0], np.float64),
    ],
)
def test_sparse_cells_take_half_the_memory_where_nothing_is_lost(tmp_path, cells, kind):
    X = sp.csc_matrix((cells, ([0, 1, 2], [0, 1, 1])), shape=(3, 2))
    found = load(mat(tmp_path / "a.mat", x_tr=X, y_tr=Y_SMALL)).X
    assert found.dtype == kind
    assert_array_equal(found.toarray(), X.toarray())


def test_cells_given_twice_are_summed_before_they_take_less_memory(tmp_path):
    """As files of version 4 hold them: float32 has each of them, but not their sum."""
    X = sp.coo_matrix(([2.0**24, 1.0, 1.0], ([0, 0, 1], [0, 0, 1])), shape=(3, 2))
    savemat(tmp_path / "a.mat", {"x_tr": X, "y_tr": Y_SMALL}, format="4")
    assert load(tmp_path / "a.mat").X[0, 0] == 2**24 + 1


# --- readers ---------------------------------------------------------------------------------------------------------


def test_every_reader_offers_what_is_asked_of_it():
    endings = [ending for reader in readers.READERS for ending in reader.ENDINGS]
    assert len(endings) == len(set(endings))
    assert all(ending.startswith(".") and ending == ending.lower() for ending in endings)
    assert readers.DEFAULT in readers.READERS
    for reader in readers.READERS:
        assert callable(reader.load) and isinstance(reader.OPTIONS, tuple)
        assert hasattr(reader, "stream") == hasattr(reader, "STREAMED")


def test_what_is_wanted_has_names(tmp_path):
    path = mat(tmp_path / "a.mat", x_tr=X_SMALL, y_tr=Y_SMALL)
    with pytest.raises(TypeError):
        load(path, ["x_tr"])
    with pytest.raises(TypeError):
        load(path, name="x_tr")


@pytest.fixture
def semicolons(monkeypatch):
    """A new format, by a reader that is in `READERS`: rows of numbers with semicolons between them, the label first."""

    def parse(text):
        cells = np.array([line.split(";") for line in text.split()], float)
        return Data(cells[:, 1:], cells[:, 0])

    def load(path, wanted):
        reader.wanted = wanted
        with open_text(path) as file:
            return parse(file.read().decode())

    def stream(paths, wanted, start, stop):
        lines = [line for path in paths for line in path.read_text().split()]
        for i, line in enumerate(lines):
            yield parse(line), (i + 1) / len(lines)

    reader = SimpleNamespace(ENDINGS=(".dat",), OPTIONS=("label",), load=load, stream=stream)
    reader.STREAMED = ((".dat",), (".dat", ".dat"))
    monkeypatch.setattr(readers, "READERS", (*readers.READERS, reader))
    return reader


ROWS = "1;5;6\n0;7;8\n"


@pytest.mark.parametrize("name, pack", [("a.dat", bytes), ("a.DAT", bytes), ("a.dat.gz", gzip.compress)])
def test_a_new_reader_is_found_by_its_ending(tmp_path, semicolons, name, pack):
    like = Data(np.ones((1, 2)), np.ones(1))
    data = load(write(tmp_path / name, pack(ROWS.encode())), x_names=("x",), label="sick", like=like)
    assert_array_equal(data.X, [[5, 6], [7, 8]])
    assert_array_equal(data.y, [1, 0])
    assert semicolons.wanted == Wanted(x_names=("x",), label="sick", like=like)


def test_without_it_such_a_file_is_taken_for_matlab(tmp_path):
    with pytest.raises(InputError, match="not a MATLAB file"):
        load(write(tmp_path / "a.dat", ROWS))


def test_files_of_a_new_reader_are_checked_like_others(tmp_path, semicolons, monkeypatch):
    with pytest.raises(InputError, match="is empty"):
        load(write(tmp_path / "a.dat", ""))
    with pytest.raises(InputError, match="1 of 2 labels are missing"):
        load(write(tmp_path / "a.dat", ROWS.replace("0;", "nan;")))
    with pytest.raises(InputError, match="2 features, expected 3 as in the training file"):
        load(write(tmp_path / "a.dat", ROWS), like=Data(X_SMALL, Y_SMALL))

    def fail(path, wanted):
        raise OSError("the disk is full of holes")

    monkeypatch.setattr(semicolons, "load", fail)
    with pytest.raises(InputError, match=r"a\.dat cannot be read: the disk is full of holes"):
        load(tmp_path / "a.dat")


def test_a_new_reader_may_stream(tmp_path, semicolons):
    path = write(tmp_path / "a.dat", ROWS)
    for paths in ([path], [path, str(path)]):
        parts = list(stream(paths))
        assert_array_equal(np.concatenate([data.X for data, _ in parts]), [[5, 6], [7, 8]] * len(paths))
        assert_array_equal(np.concatenate([data.y for data, _ in parts]), [1, 0] * len(paths))
        assert parts[-1][1] == 1
    with pytest.raises(InputError, match="1 features, expected 2"):
        list(stream([write(tmp_path / "a.dat", ROWS + "1;9\n")]))


def test_a_new_reader_need_not_stream(tmp_path, semicolons):
    path = write(tmp_path / "a.dat", ROWS)
    del semicolons.STREAMED, semicolons.stream
    with pytest.raises(InputError, match=r"--stream with .*a\.dat, expected x\.npy and y\.npy, or files of one kind"):
        next(stream([path]))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name")
def test_a_pipe_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(InputError, match="is a pipe, expected a data file"):
        load(tmp_path / "a.csv")


# --- features that stay in their file --------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [">f4", "<f8", "u1"])
def test_rows_of_any_order_are_brought_into_row_order(order, kind):
    A = np.array(np.random.RandomState(0).randint(0, 200, (700, 300)), kind, order=order)
    rows = np.sort(np.random.RandomState(1).choice(700, 270, replace=False))
    for found, expected in (in_rows(A), A), (in_rows(A, rows), A[rows]), (in_rows(A, rows[:0]), A[:0]):
        assert found.flags.c_contiguous and found.dtype.isnative
        assert_array_equal(found, expected)


def test_features_may_stay_in_the_file_until_they_are_used(tmp_path):
    path = mat(tmp_path / "a.mat", x_tr=X_SMALL, y_tr=Y_SMALL)
    usual, mapped = load(path), load(path, as_stored=True)
    assert isinstance(mapped.X, np.memmap) and not isinstance(usual.X, np.memmap)
    assert not any(isinstance(A, np.memmap) for A in (usual.y, mapped.y))
    assert_array_equal(mapped.X, usual.X)
    one_column = load(mat(tmp_path / "b.mat", x_tr=X_SMALL[:, :1], y_tr=Y_SMALL))
    assert not isinstance(one_column.X, np.memmap)  # though it is in row order, too
