"""MATLAB files of levels 4 and 5 become what was written into them. Oracles: SciPy, and the arrays written."""

import struct
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import ROOT
from numpy.testing import assert_array_equal
from scipy.io import loadmat, savemat
from small_files import X_SMALL, Y_SMALL, mat, write

from preprocess import InputError, find_classes, signs
from tenfold.readers import load, matlab
from tenfold.readers.base import Data
from tenfold.readers.checks import check

sys.path.insert(0, str(ROOT / "bench"))
import faults

pytestmark = pytest.mark.filterwarnings("error")

X, Y = faults.make_rows(np.random.default_rng(0))
S = sp.csc_matrix(np.where(X > 10, X, 0))
ORDERS = pytest.mark.parametrize("order", ["<", ">"])
PACKED = pytest.mark.parametrize("pack", [b"".join, faults.pack_mat], ids=["plain", "packed"])


@pytest.mark.parametrize("kind", ["float64", "float32", "uint8", "int8", "int16", "uint16", "int32", "int64", "bool"])
@pytest.mark.parametrize("compress", [True, False])
def test_mat_keeps_types_as_small_as_they_are(tmp_path, kind, compress):
    X = np.abs(X_SMALL).astype(kind)
    savemat(tmp_path / "a.mat", {"x_tr": X, "y_tr": Y_SMALL}, do_compression=compress)
    data = load(tmp_path / "a.mat")
    assert_array_equal(data.X, X)
    assert data.X.dtype == (np.uint8 if kind == "bool" else X.dtype)  # MATLAB's logical is a byte


def test_mat_of_version_4(tmp_path):
    savemat(tmp_path / "a.mat", {"x_tr": X_SMALL, "y_tr": Y_SMALL}, format="4")
    assert_array_equal(load(tmp_path / "a.mat").X, X_SMALL)


@pytest.mark.parametrize("make", [sp.csc_matrix, sp.csr_matrix, sp.coo_matrix])
def test_mat_sparse_stays_sparse(tmp_path, make):
    data = load(mat(tmp_path / "a.mat", x_tr=make(X_SMALL), y_tr=sp.csc_matrix(Y_SMALL)))
    assert sp.issparse(data.X) and data.X.format == "csr"
    assert_array_equal(data.X.toarray(), X_SMALL)
    assert_array_equal(data.y, Y_SMALL)


def test_text_labels_are_padded_in_matlab_but_not_here(tmp_path):
    assert_array_equal(load(mat(tmp_path / "a.mat", x_tr=X_SMALL, y_tr=["no", "yes", "no"])).y, ["no", "yes", "no"])


def test_a_variable_that_is_there_twice_is_refused(tmp_path):
    once = mat(tmp_path / "a.mat", x_tr=X_SMALL).read_bytes()
    twice = once + mat(tmp_path / "a.mat", x_tr=X_SMALL + 1, y_tr=Y_SMALL).read_bytes()[128:]
    with pytest.raises(InputError, match='Duplicate variable name "x_tr"'):
        load(write(tmp_path / "a.mat", twice))


def test_the_assignments_file(assignment):
    data = load(assignment)
    assert data.X.shape == (14341, 122)
    assert np.count_nonzero(signs(data.y, find_classes(data.y)) > 0) == 66


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.mat", b"hello, this is no MATLAB file\n" * 20, "not a MATLAB file"),
        ("a.mat", b"x", "not a MATLAB file"),
    ],
)
def test_unusable_files(tmp_path, name, content, message):
    with pytest.raises(InputError, match=message) as caught:
        load(write(tmp_path / name, content))
    assert "\n" not in str(caught.value) and name in str(caught.value)


@pytest.mark.parametrize("compress", [True, False])
def test_a_file_cut_short_anywhere_is_an_input_error(tmp_path, compress):
    X, y = np.random.RandomState(0).randint(0, 9, (40, 5)), np.arange(40) % 2
    path = tmp_path / "a.mat"
    savemat(path, {"x_tr": X, "y_tr": y}, do_compression=compress)
    content = path.read_bytes()
    for length in np.linspace(0, len(content) - 1, 60).astype(int):
        with pytest.raises(InputError):
            load(write(path, content[:length]))


def test_a_damaged_mat_file_loads_or_is_an_input_error(tmp_path):
    """Compressed, as MATLAB writes it: SciPy's reader may crash on the damage that a checksum does not find."""
    rng = np.random.RandomState(0)
    savemat(tmp_path / "a.mat", {"x_tr": sp.csc_matrix(X_SMALL), "y_tr": Y_SMALL}, do_compression=True)
    content = (tmp_path / "a.mat").read_bytes()
    for _ in range(150):
        damaged = bytearray(content)
        damaged[rng.randint(128, len(content))] ^= 1 << rng.randint(8)
        try:
            load(write(tmp_path / "a.mat", bytes(damaged)))
        except InputError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("shape", [(1, 1300), (1300, 1), (700, 1100), (513, 3)])
@pytest.mark.parametrize("kind", ["u1", "f4", "f8", "i8"])
@pytest.mark.parametrize("compress", [True, False])
def test_arrays_come_in_row_order_block_by_block(tmp_path, shape, kind, compress):
    X = np.arange(np.prod(shape)).reshape(shape).astype(kind)
    savemat(tmp_path / "a.mat", {"x_tr": X, "y_tr": np.arange(len(X))}, do_compression=compress)
    data = load(tmp_path / "a.mat")
    assert_array_equal(data.X, X)
    assert data.X.flags.c_contiguous and data.X.dtype == X.dtype and type(data.X) is np.ndarray


def test_arrays_in_row_order_are_not_copied(tmp_path):
    data = Data(X_SMALL, Y_SMALL)
    check(write(tmp_path / "a.mat", ""), data, None)
    assert data.X is X_SMALL


def test_scipy_reads_only_what_cannot_be_mapped(tmp_path, monkeypatch):
    """MATLAB writes doubles that are small whole numbers as bytes; SciPy converts these, and reads what is packed."""
    seen = []
    monkeypatch.setattr(matlab, "loadmat", lambda *args, **kwargs: seen.append(args) or loadmat(*args, **kwargs))
    (tmp_path / "a.mat").write_bytes(in_elements(faults.mat_elements("x_tr", X)))
    assert_array_equal(load(tmp_path / "a.mat").X, X)
    assert not seen
    elements = faults.mat_elements("x_tr", np.abs(X).astype("u1"))
    elements[0] = (6, struct.pack("<2I", 6, 0))
    (tmp_path / "a.mat").write_bytes(in_elements(elements))
    data = load(tmp_path / "a.mat")
    assert_array_equal(data.X, np.abs(X).astype("u1"))
    assert len(seen) == 1 and data.X.dtype == loadmat(tmp_path / "a.mat")["x_tr"].dtype


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux says what is mapped")
def test_the_file_does_not_stay_mapped(tmp_path):
    path = mat(tmp_path / "mapped.mat", x_tr=X_SMALL, y_tr=Y_SMALL)
    data = load(path)
    assert str(path) not in Path("/proc/self/maps").read_text()
    path.write_bytes(bytes(path.stat().st_size))
    assert_array_equal(data.X, X_SMALL)


# --- element by element ----------------------------------------------------------------------------------------------


def in_elements(x_elements, order="<", pack=b"".join):
    """A MATLAB file whose x_tr consists of these elements, and whose y_tr of the labels."""
    y_elements = faults.mat_elements("y_tr", Y[:, None].astype(float), order)
    variables = [faults.mat_variable(elements, order) for elements in (x_elements, y_elements)]
    return pack([faults.mat_head(order), *variables], *([order] if pack is faults.pack_mat else []))


@ORDERS
@PACKED
def test_arrays_in_either_byte_order(tmp_path, order, pack):
    for x in (X, X.astype("i1"), np.abs(X).astype("u1")):
        (tmp_path / "a.mat").write_bytes(in_elements(faults.mat_elements("x_tr", x, order), order, pack=pack))
        data = load(tmp_path / "a.mat")
        assert data.X.dtype == x.dtype
        assert_array_equal(data.X, x)
        assert_array_equal(data.y, Y)


@PACKED
def test_sparse_arrays_with_room_to_spare(tmp_path, pack):
    """MATLAB may keep more places than it uses; what stands in them is nothing."""
    elements = faults.mat_elements("x_tr", S)
    elements[3] = (5, elements[3][1] + struct.pack("<2i", -1, 99))
    elements[5] = (9, elements[5][1] + bytes(16))
    (tmp_path / "a.mat").write_bytes(in_elements(elements, pack=pack))
    assert_array_equal(load(tmp_path / "a.mat").X.toarray(), S.toarray())


def test_objects_beside_the_arrays_do_not_matter(tmp_path):
    """Such as tables and strings, which only MATLAB can read."""
    opaque = faults.mat_variable([(6, struct.pack("<2I", 17, 0)), (1, b"table1"), (1, b"MCOS"), (1, b"table")])
    content = in_elements(faults.mat_elements("x_tr", X))
    (tmp_path / "a.mat").write_bytes(content[:128] + opaque + opaque.replace(b"table1", b"table2") + content[128:])
    assert_array_equal(load(tmp_path / "a.mat").X, X)
    with pytest.raises(InputError, match="x holds a struct, a cell array or objects"):
        load(tmp_path / "a.mat", x_names=["table1"])
