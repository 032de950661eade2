"""MATLAB files of version 7.3, which are HDF5 files, become what was written into them."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from small_files import X_SMALL, Y_SMALL, dense, hdf5, write

from preprocess import InputError
from tenfold.readers import load

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize("make", [np.asarray, sp.csc_matrix])
def test_mat_of_version_7_3(tmp_path, make):
    X = make(X_SMALL)

    def fill(file):
        if sp.issparse(X):
            group = file.create_group("x_tr")
            group.attrs["MATLAB_sparse"] = np.uint64(X.shape[0])
            for key, values in [("data", X.data), ("ir", X.indices), ("jc", X.indptr)]:
                group[key] = values
        else:
            file["x_tr"] = X.T
        file["y_tr"] = Y_SMALL[:, None]
        file.create_group("#refs#")

    data = load(hdf5(tmp_path / "a.mat", fill))
    assert sp.issparse(data.X) == sp.issparse(X)
    assert_array_equal(dense(data.X), X_SMALL)
    assert_array_equal(data.y, Y_SMALL)


def as_text(file, name, codes):
    """MATLAB stores characters as numbers and says so in an attribute."""
    file.create_dataset(name, data=np.array(codes, np.uint16)).attrs["MATLAB_class"] = np.bytes_("char")


def test_text_labels_of_version_7_3(tmp_path):
    data = load(
        hdf5(tmp_path / "a.mat", lambda file: (as_text(file, "y_tr", [list(b"nyn")]), file.update(x_tr=X_SMALL)))
    )
    assert_array_equal(data.y, ["n", "y", "n"])


def a_struct(file):
    file.create_group("x_tr")["field"] = 1


def a_text(file):
    as_text(file, "x_tr", np.full((3, 3), 65))


def a_cell(file):
    file["held"] = 1
    file.create_dataset("x_tr", (3, 3), dtype=__import__("h5py").ref_dtype)


def an_empty(file):
    file.create_dataset("x_tr", data=np.array([3, 0], np.uint64)).attrs["MATLAB_empty"] = np.uint8(1)


def a_complex(file):
    file["x_tr"] = np.ones((3, 3), [("real", float), ("imag", float)])


def a_broken_sparse(file):
    group = file.create_group("x_tr")
    group.attrs["MATLAB_sparse"] = np.uint64(3)
    for key, values in [("data", np.ones(1)), ("ir", np.array([7])), ("jc", np.array([0, 1]))]:
        group[key] = values


@pytest.mark.parametrize(
    "fill, message",
    [
        (a_struct, "x holds a struct"),
        (a_text, "x holds text"),
        (a_cell, "x holds a struct, a cell"),
        (an_empty, "x is 3 x 0"),
        (a_complex, "complex"),
        (a_broken_sparse, "damaged"),
    ],
)
def test_what_version_7_3_may_hold_instead_of_numbers(tmp_path, fill, message):
    with pytest.raises(InputError, match=message):
        load(hdf5(tmp_path / "a.mat", lambda file: (fill(file), file.create_dataset("y_tr", data=Y_SMALL))))


def test_version_7_3_without_h5py_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(InputError, match=r"v7.3 .* -v7 .* install h5py"):
        load(write(tmp_path / "a.mat", b"MATLAB 7.3 MAT-file".ljust(1000)))


def test_a_file_cut_short_anywhere_is_an_input_error(tmp_path):
    X, y = np.random.RandomState(0).randint(0, 9, (40, 5)), np.arange(40) % 2
    path = hdf5(tmp_path / "a.mat", lambda file: file.update(x_tr=X.T, y_tr=y))
    content = path.read_bytes()
    for length in np.linspace(0, len(content) - 1, 60).astype(int):
        with pytest.raises(InputError):
            load(write(path, content[:length]))
