"""Damaged and hostile files: the command answers with a number or refuses in one line, and never crashes or swells.

All formats that the readers know are here, data as well as models and streams: damage at random, and sizes, shapes,
types and indices that lie. The command runs in a process beside this one, which a file that kills it cannot take along.
"""

import bz2
import gzip
import io
import struct
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import ROOT
from scipy.io import savemat

sys.path.insert(0, str(ROOT / "bench"))
import faults

pytestmark = pytest.mark.filterwarnings("error")

X, Y = faults.make_rows(np.random.default_rng(0))
S = sp.csc_matrix(np.where(X > 10, X, 0))
Y_MAT = Y[:, None].astype(float)
ORDERS = pytest.mark.parametrize("order", ["<", ">"])
PACKED = pytest.mark.parametrize("pack", [b"".join, faults.pack_mat], ids=["plain", "packed"])


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    worker = faults.Worker(tmp_path_factory.mktemp("faults"))
    faults.write_good(worker.folder)
    yield worker
    worker.stop()


@pytest.fixture
def refused(worker):
    """Check that the command refuses a file with this content, and for this reason."""

    def refused(name, content, reason):
        if content is not None:
            (worker.folder / name).write_bytes(content)
        verdict = worker.run([name, *faults.QUICK])
        assert verdict.word == "refused", verdict.message
        assert reason in verdict.message
        assert verdict.megabytes < 1000

    return refused


def mat(x_elements, order="<", y=Y_MAT, pack=b"".join):
    """A MATLAB file whose x_tr consists of these elements."""
    y_elements = faults.mat_elements("y_tr", y, order)
    variables = [faults.mat_variable(elements, order) for elements in (x_elements, y_elements)]
    return pack([faults.mat_head(order), *variables], *([order] if pack is faults.pack_mat else []))


def zeros(n_bytes, before=b""):
    """A packed stream of ``n_bytes`` zeros after ``before``, made in no time; its checksum is wrong."""
    start = zlib.compressobj()
    part = start.compress(before) + start.flush(zlib.Z_FULL_FLUSH)
    middle = zlib.compressobj(wbits=-15)
    megabyte = middle.compress(bytes(2**20)) + middle.flush(zlib.Z_FULL_FLUSH)
    return part + megabyte * (n_bytes // 2**20) + b"\3\0" + bytes(4)


# --- all kinds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", faults.usable_kinds())
def test_files_are_answered_before_they_are_damaged(worker, name):
    kind = faults.KINDS[name]
    for seed in range(2):
        path = worker.folder / f"sound{kind.ending}"
        path.write_bytes(kind.join(kind.make(np.random.default_rng(seed))))
        verdict = worker.run(kind.command(path.name))
        if "scipy.sparse does not support" in verdict.message:
            pytest.skip("SciPy 1.15 cannot read it")
        assert verdict.word == "answered", verdict.message


def test_damaged_files_are_answered_or_refused_in_one_line(tmp_path):
    verdicts = [verdict for _, _, verdict in faults.examine(faults.usable_kinds(), 160, 5, 1, tmp_path)]
    assert [verdict.message for verdict in verdicts if verdict.word == "wrong"] == []
    assert {verdict.word for verdict in verdicts} == {"answered", "refused"}


def test_what_counts_as_wrong(worker):
    for said in [(0, "AUC Score: 1.5000\n", ""), (0, "AUC Score: 0.5\n", ""), (0, "AUC Score: 0.5000\n", "warning\n")]:
        assert faults.judge(*said).word == "wrong"
    for code, out, err in [
        (1, "", "exp.py: error: a\n"),
        (2, "", "exp.py: error: a\nb\n"),
        (2, "x", "exp.py: error: a\n"),
    ]:
        assert faults.judge(code, out, err).word == "wrong"
    assert worker.run(["--version"]).word == "wrong"
    worker.process.kill()
    assert "died" in worker.run(["good.mat", *faults.QUICK]).message
    assert worker.run(["good.mat", *faults.QUICK]).word == "answered"


# --- MATLAB, level 5 -------------------------------------------------------------------------------------------------


@PACKED
@ORDERS
@pytest.mark.parametrize("type_", [0, 8, 10, 14, 15, 19, 20, 255])
@pytest.mark.parametrize("A", [X, S], ids=["dense", "sparse"])
def test_unknown_types_in_any_tag(refused, A, type_, order, pack):
    for k, (_, content) in enumerate(elements := faults.mat_elements("x_tr", A, order)):
        changed = [*elements[:k], (type_, content), *elements[k + 1 :]]
        refused("a.mat", mat(changed, order, pack=pack), f"an element of type {type_}, expected")


@PACKED
@pytest.mark.parametrize("type_", [8, 20, 255])
@pytest.mark.parametrize("y", [np.array(["n", "y"])[Y][:, None], Y_MAT, sp.csc_matrix(Y_MAT)])
def test_unknown_types_in_labels(refused, y, type_, pack):
    elements = faults.mat_elements("y_tr", y)
    variables = [
        faults.mat_variable(e) for e in (faults.mat_elements("x_tr", X), [*elements[:-1], (type_, elements[-1][1])])
    ]
    refused("a.mat", pack([faults.mat_head(), *variables]), f"an element of type {type_}, expected")


@PACKED
@pytest.mark.parametrize("type_", [8, 20, 255])
def test_unknown_types_in_complex_parts(refused, type_, pack):
    (flags, _), *rest = faults.mat_elements("x_tr", X)
    for real, imaginary in [(9, type_), (type_, 9)]:
        parts = [(flags, struct.pack("<2I", 0x806, 0)), *rest[:-1], (real, X.tobytes()), (imaginary, X.tobytes())]
        refused("a.mat", mat(parts, pack=pack), "x holds complex numbers")


@PACKED
@pytest.mark.parametrize("class_", [0, 19, 20, 255])
def test_unknown_classes(refused, class_, pack):
    (flags, _), *rest = faults.mat_elements("x_tr", X)
    refused("a.mat", mat([(flags, struct.pack("<2I", class_, 0)), *rest], pack=pack), f"an array of class {class_}")


@PACKED
@pytest.mark.parametrize("shape", [(2**31 - 1, 2**31 - 1), (-1, -160), (160, 0), (0, 0), (2**31 - 1, 0), (4, 4, 10, 2)])
@pytest.mark.parametrize("A", [X, S], ids=["dense", "sparse"])
def test_shapes_that_lie(refused, A, shape, pack):
    elements = faults.mat_elements("x_tr", A)
    elements[1] = (5, struct.pack(f"<{len(shape)}i", *shape))
    refused("a.mat", mat(elements, pack=pack), "a.mat")


@PACKED
@pytest.mark.parametrize("text", [b"", b"n"])
def test_text_whose_shape_lies(refused, text, pack):
    elements = faults.mat_elements("y_tr", np.array(["n", "y"])[Y][:, None])
    elements[1], elements[3] = (5, struct.pack("<2i", 2**31 - 1, 2**10)), (4, text)
    variables = [faults.mat_variable(e) for e in (faults.mat_elements("x_tr", X), elements)]
    refused("a.mat", pack([faults.mat_head(), *variables]), "y_tr is 2147483647 x 1024 but has")


@pytest.mark.parametrize("size", [0, 2**24, 2**31, 2**32 - 1])
@pytest.mark.parametrize("A", [X, S], ids=["dense", "sparse"])
def test_sizes_that_lie(refused, A, size):
    content = mat(faults.mat_elements("x_tr", A))
    x = content[128 : content.index(b"y_tr") - 48]
    at = 0
    places = [4]
    for _, element in faults.mat_elements("x_tr", A):
        places.append(8 + at + 4)
        at += 8 if len(element) <= 4 else 8 + len(element) + -len(element) % 8
    for place in places:
        if place == 8 + 32 + 4:
            continue  # the name, which is in its tag
        changed = bytearray(x)
        changed[place : place + 4] = struct.pack("<I", size)
        y = faults.mat_variable(faults.mat_elements("y_tr", Y_MAT))
        for pack in (b"".join, faults.pack_mat):
            refused("a.mat", pack([faults.mat_head(), bytes(changed), y]), "a.mat")


POINTERS = pytest.mark.parametrize(
    "indices, pointers",
    [
        ([7, 0], [0, 1, 2]),
        ([-1, 0], [0, 1, 2]),
        ([0, 0], [0, 1, 3]),
        ([0, 0], [0, 1, -1]),
        ([0, 0], [1, 1, 2]),
        ([0, 0], [0, 2]),
        ([0, 0], [0, 2**30, 0]),
        ([0, 0], [0, 2**31 - 1, -(2**31), -1, 2]),
    ],
)


@POINTERS
@PACKED
@ORDERS
def test_sparse_indices_that_lead_elsewhere(refused, indices, pointers, order, pack):
    elements = faults.mat_elements("x_tr", S, order)
    elements[1] = (5, struct.pack(order + "2i", 5, max(len(pointers) - 1, 2)))
    elements[3:] = [(5, struct.pack(f"{order}{len(values)}i", *values)) for values in (indices, pointers)]
    content = mat([*elements, (9, struct.pack(order + "2d", 1, 1))], order, Y_MAT[:5], pack)
    refused("a.mat", content, "sparse indices that lead out of an array of 5 x")


def test_packed_arrays_that_swell(refused):
    def bomb(elements, n_bytes):
        head = b"".join(faults.mat_variable([element])[8:] for element in elements)
        last = head + struct.pack("<2I", 9, n_bytes)
        packed = zeros(n_bytes, struct.pack("<2I", 14, len(last) + n_bytes) + last)
        variable = struct.pack("<2I", 15, len(packed)) + packed
        return faults.mat_head() + variable + faults.mat_variable(faults.mat_elements("y_tr", Y_MAT))

    flags, _, name, *_ = faults.mat_elements("x_tr", X)
    shape = (5, struct.pack("<2i", 2**21, 2**8))
    refused("a.mat", bomb([flags, shape, name], 2**32 - 2**20), "expected at most")
    flags, shape, name, *_ = faults.mat_elements("x_tr", S)
    refused("a.mat", bomb([flags, shape, name], 2**32 - 2**20), "expected at most")
    small = faults.mat_variable(faults.mat_elements("x_tr", S))
    packed = zeros(2**32, small)
    content = faults.mat_head() + struct.pack("<2I", 15, len(packed)) + packed
    refused("a.mat", content + faults.mat_variable(faults.mat_elements("y_tr", Y_MAT)), "unpacks to more than")


def test_many_other_variables_that_swell_are_left_alone(worker):
    other = faults.mat_variable(faults.mat_elements("other", X))
    packed = zeros(2**27, other)
    content = mat(faults.mat_elements("x_tr", X))
    others = (struct.pack("<2I", 15, len(packed)) + packed) * 100
    (worker.folder / "a.mat").write_bytes(content[:128] + others + content[128:])
    assert worker.run(["a.mat", *faults.QUICK]).word == "answered"


@pytest.mark.parametrize("name", ["x_tr", "other"])
def test_cells_in_cells(worker, name):
    empty_name = (1, b"")
    flags, shape = (6, struct.pack("<2I", 1, 0)), (5, struct.pack("<2i", 1, 1))
    head = faults.mat_variable([flags, shape, empty_name])[8:]
    depth = 10_000
    inner = b"".join(struct.pack("<2I", 14, (depth - k) * (len(head) + 8) - 8) + head for k in range(depth))
    top = faults.mat_variable([flags, shape, (1, name.encode())])[8:] + inner
    cells = struct.pack("<2I", 14, len(top)) + top
    content = mat(faults.mat_elements("x_tr" if name == "other" else "more", X))
    (worker.folder / "a.mat").write_bytes(content[:128] + cells + content[128:])
    verdict = worker.run(["a.mat", *faults.QUICK])
    assert verdict.word == ("answered" if name == "other" else "refused"), verdict.message


def test_too_many_variables(refused):
    one = faults.mat_variable(faults.mat_elements("x_tr", X[:1]))
    refused("a.mat", faults.mat_head() + one * 10_001, "more than 10000 variables")


# --- other formats ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place, value", [(0, 4000), (0, 60), (0, 5), (4, -1), (4, 2**31 - 1), (8, -40), (16, -1), (16, 2**30)]
)
def test_level_4_headers_that_lie(refused, place, value):
    file = io.BytesIO()
    savemat(file, {"x_tr": X, "y_tr": Y_MAT}, format="4")
    content = bytearray(file.getvalue())
    content[place : place + 4] = struct.pack("<i", value)
    refused("a.mat", bytes(content), "a.mat")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0, 1e18])
def test_sparse_level_4_indices_that_are_none(refused, bad):
    file = io.BytesIO()
    savemat(file, {"x_tr": S.tocoo(), "y_tr": Y_MAT}, format="4")
    content = bytearray(file.getvalue())
    content[25:33] = struct.pack("<d", bad)
    refused("a.mat", bytes(content), "a.mat")


def npy(A, shape=None):
    file = io.BytesIO()
    np.save(file, A)
    return file.getvalue().replace(str(A.shape).encode(), str(shape).encode()) if shape else file.getvalue()


def test_npz_arrays_that_swell(refused, tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        with file.open("x_tr.npy", "w") as array:
            array.write(npy(np.zeros((2**20, 1)), (2**20, 75)))
            for _ in range(600):
                array.write(bytes(2**20))
        file.writestr("y_tr.npy", npy(Y))
    refused("a.npz", (tmp_path / "a.npz").read_bytes(), "expected at most")


@pytest.mark.parametrize("shape", [(10**9, 10**9), (2**32, 2**32), (2**62, 4), (40, 2**40)])
def test_npz_shapes_that_lie(refused, shape):
    refused("a.npz", faults.pack_npz([npy(X, shape), npy(Y)]), "x_tr has")


def test_npz_members_that_are_no_arrays_of_numbers_or_text(refused):
    labels = np.array(["n", "y"])[Y]
    strange = npy(labels).replace(b"n\0\0\0", b"\0\0\0\xff")
    refused("a.npz", faults.pack_npz([npy(X), strange]), "characters")
    refused(
        "a.npz",
        faults.pack_npz([npy(X), npy(labels).replace(b"<U1", b"<U0").replace(b"(40,)", b"(%d,)" % 10**12)]),
        "labels",
    )
    refused("a.npz", faults.pack_npz([npy(X)[8:], npy(Y)]), "not a .npz file")
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x_tr", b"something")
        archive.writestr("y_tr.npy", npy(Y))
    refused("a.npz", file.getvalue(), "not a .npz file")
    refused("a.npz", faults.pack_npz([npy(X), npy(Y)], zipfile.ZIP_BZIP2), "packed in a way")


@pytest.mark.parametrize("text", [b"1,0\n2,1\n", b"1"])
@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv.bz2", "a.svm.gz", "a.svm.bz2"])
def test_packed_text_that_swells(refused, name, text):
    pack = gzip.compress if name.endswith("gz") else bz2.compress
    refused(name, pack(text * (2**21 // len(text))) * 1500, "the text would take")


@pytest.mark.parametrize("index", [2**31 - 2, 2**31, 2**40, 2**62, 2**63 - 1, 2**64, -1, -(2**40)])
def test_libsvm_indices(refused, index):
    refused("a.svm", b"1 1:1 %d:1\n0 1:2\n" % index * 20, "a.svm")


def test_csv_cells(refused):
    refused("a.csv", b"1,0\n2,1\n" + b"3,%s\n" % (b"x" * 130_000) + b"4,0\n5,1\n" * 2000, "the label column")
    refused("a.csv", b"1,0\n2,1\n" + b"3,%s\n" % (b"x" * 200_000), "the label column")
    refused("a.csv", b"1," * 200_000 + b"0\n", "has 200001 columns, expected at most 100000")


# --- HDF5 ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def hdf5(worker):
    """Write a file as MATLAB 7.3 does, but with an x of one's own."""
    h5py = pytest.importorskip("h5py")

    def write(fill):
        path = Path(worker.folder) / "a.mat"
        with h5py.File(path, "w", userblock_size=512) as file:
            fill(file)
            file["y_tr"] = Y[None]
        with path.open("r+b") as file:
            file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM")

    return write


def swelling_piece(file):
    array = file.create_dataset("x_tr", (4, 40), "f8", chunks=(4, 40), compression="gzip")
    array.id.write_direct_chunk((0, 0), zeros(3 * 2**30))


def sparse(file, rows, indices, pointers):
    group = file.create_group("x_tr")
    group.attrs["MATLAB_sparse"] = np.uint64(rows)
    group.update({"data": np.ones(len(indices)), "ir": np.array(indices), "jc": np.array(pointers)})


@POINTERS
def test_hdf5_indices_that_lead_elsewhere(refused, hdf5, indices, pointers):
    hdf5(lambda file: sparse(file, 5, indices, pointers))
    refused("a.mat", None, "sparse indices that lead out" if len(pointers) > 2 else "a.mat")


@pytest.mark.parametrize(
    "fill, reason",
    [
        (lambda file: file.create_dataset("x_tr", (2**20, 2**20), "f8", chunks=(9, 9)), "expected at most"),
        (
            lambda file: file.create_dataset("x_tr", (4, 40), "f8", chunks=(2**14, 2**14), maxshape=(None, None)),
            "expected at most",
        ),
        (lambda file: file.create_dataset("x_tr", (4, 40), "f8", external=[("other", 0, 1280)]), "in another file"),
        (lambda file: file.update(x_tr=__import__("h5py").ExternalLink("other", "x")), "a link"),
        (lambda file: file.update(x_tr=__import__("h5py").Empty("f8")), "damaged"),
        (swelling_piece, "unpacks to more than"),
        (lambda file: sparse(file, 2**40, [0], [0, 1]), "1099511627776 rows"),
        (lambda file: sparse(file, 40, [0.0], [0.0, np.nan]), "sparse indices that lead out"),
    ],
)
def test_hdf5_arrays_that_swell_or_lie_elsewhere(refused, hdf5, fill, reason):
    hdf5(fill)
    refused("a.mat", None, reason)


def test_sparse_pointers_that_fall_to_zero(refused):
    """SciPy takes the last pointer for the number of cells, and with none of them looks no further."""
    elements = faults.mat_elements("x_tr", S)
    content = np.array([0, 16, 30, 39, 0], "<i4").tobytes()
    for pack in (b"".join, faults.pack_mat):
        refused("a.mat", mat([*elements[:4], (5, content), elements[5]], pack=pack), "damaged")
