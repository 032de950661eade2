"""Damaged and hostile files: each gives a valid number or one line and exit code 2, and never brings the process down.

All run in a process of their own, since SciPy's reader is known to crash on some of them.
"""

import gzip
import io
import struct
import sys
import zipfile
import zlib

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import ROOT

sys.path.insert(0, str(ROOT / "bench"))

import faults


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    worker = faults.Worker(tmp_path_factory.mktemp("faults"))
    yield worker
    worker.stop()


@pytest.fixture
def verdict(worker):
    def verdict(name, content, *arguments):
        (worker.folder / name).write_bytes(content)
        return worker.run([*(arguments or faults.QUICK), name])

    return verdict


def test_randomly_damaged_files_of_every_kind(tmp_path):
    names = faults.usable_kinds()
    found = list(faults.examine(names, 4 * len(names), seed=1, jobs=2, folder=tmp_path))
    assert [(path.name, verdict.message) for _, path, verdict in found if verdict.word == "wrong"] == []
    words = [verdict.word for _, _, verdict in found]
    assert words.count("answered") > len(names) / 2 and words.count("refused") > len(names)


def test_every_kind_is_answered_when_it_is_not_damaged(worker):
    rng = np.random.default_rng(0)
    (worker.folder / "good.mat").write_bytes(b"".join(faults.mat5(np.random.default_rng(0))))
    for name in faults.usable_kinds():
        kind = faults.KINDS[name]
        if all(not argument.startswith("good") or argument == "good.mat" for argument in kind.arguments):
            path = f"undamaged{kind.ending}"
            (worker.folder / path).write_bytes(kind.join(kind.make(rng)))
            verdict = worker.run([path if argument == "FILE" else argument for argument in kind.arguments])
            assert verdict.word == "answered", (name, verdict.message)


# --- MATLAB files ----------------------------------------------------------------------------------------------------

X, Y = faults.make_rows(np.random.default_rng(0))
DENSE = faults.mat_elements("x_tr", X)
SPARSE = faults.mat_elements("x_tr", sp.csc_matrix(np.where(X > 10, X, 0)))
LABELS = faults.mat_variable(faults.mat_elements("y_tr", Y[:, None].astype(float)))


def mat(elements, pack=bytes):
    return faults.mat_head() + pack(faults.mat_variable(elements)) + pack(LABELS)


@pytest.mark.parametrize("pack", [bytes, faults.pack_variable])
@pytest.mark.parametrize("elements", [DENSE, SPARSE])
@pytest.mark.parametrize("code", [0, 8, 14, 15, 20, 255, 0xFFFF])
def test_type_codes_for_which_scipy_has_no_type(verdict, elements, code, pack):
    assert verdict("good.mat", mat(elements, pack)).word == "answered"
    for k in range(len(elements)):
        changed = [(code if i == k else type_, content) for i, (type_, content) in enumerate(elements)]
        assert verdict("bad.mat", mat(changed, pack)).word == "refused", k


@pytest.mark.parametrize("pack", [bytes, faults.pack_variable])
@pytest.mark.parametrize("shape", [(2**31 - 1, 2**31 - 1), (2**31 - 1, 1), (-1, 4), (0, 4), (40, 5), (40, 3), (41, 4)])
def test_shapes_that_lie(verdict, shape, pack):
    for elements in (DENSE,) if shape == (40, 3) else (DENSE, SPARSE):  # SciPy makes do with fewer sparse columns
        changed = [elements[0], (5, struct.pack("<2i", *shape)), *elements[2:]]
        found = verdict("lying.mat", mat(changed, pack))
        assert found.word == "refused" and found.megabytes < 500


@pytest.mark.parametrize("pack", [bytes, faults.pack_variable])
def test_sparse_indices_that_lie(verdict, pack):
    for k, value in [(3, -1), (3, 2**31 - 1), (3, 40), (4, -1), (4, 2**31 - 1), (4, 10**6)]:
        content = bytearray(SPARSE[k][1])
        content[4:8] = struct.pack("<i", value)
        changed = [*SPARSE[:k], (5, bytes(content)), *SPARSE[k + 1 :]]
        assert verdict("lying.mat", mat(changed, pack)).word == "refused", (k, value)


def test_sizes_that_lie(verdict):
    content = bytearray(mat(DENSE))
    for at in range(128, 240, 4):
        for size in (7, 2**31):
            changed = bytes(content[:at]) + struct.pack("<I", size) + bytes(content[at + 4 :])
            found = verdict("lying.mat", changed)
            assert found.word in ("refused", "answered") and found.megabytes < 500, (at, size, found)


def test_a_packed_variable_that_swells(verdict):
    zeros = zlib.compress(struct.pack("<2I", 14, 2**31 - 1) + bytes(10**8))
    bomb = faults.mat_head() + struct.pack("<2I", 15, len(zeros)) + zeros + LABELS
    huge = [DENSE[0], (5, struct.pack("<2i", 10**8, 4)), DENSE[2]]
    body = faults.mat_variable(huge)[8:] + struct.pack("<2I", 9, 2**31 - 8)
    honest = zlib.compress(struct.pack("<2I", 14, 2**31 - 8) + body + bytes(10**8))
    for content in (bomb, faults.mat_head() + struct.pack("<2I", 15, len(honest)) + honest + LABELS):
        found = verdict("bomb.mat", content)
        assert found.word == "refused" and found.megabytes < 1000 and found.seconds < 5


def test_cells_in_cells_in_cells(verdict):
    content = b""
    for _ in range(10_000):
        head = [(6, struct.pack("<2I", 1, 0)), (5, struct.pack("<2i", 1, 1)), (1, b"")]
        tags = b"".join(struct.pack("<2I", type_, len(part)) + part + bytes(-len(part) % 8) for type_, part in head)
        content = struct.pack("<2I", 14, len(tags) + len(content)) + tags + content
    named = faults.mat_variable([(6, struct.pack("<2I", 1, 0)), (5, struct.pack("<2i", 1, 1)), (1, b"x_tr")])
    whole = struct.pack("<2I", 14, len(named) - 8 + len(content)) + named[8:] + content
    assert verdict("cells.mat", faults.mat_head() + whole + LABELS).word == "refused"


# --- other files -----------------------------------------------------------------------------------------------------


def npz(**arrays):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in arrays.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def npy(descr, shape, content):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue() + content


def test_arrays_that_swell_or_lie(verdict):
    labels = npy("<f8", (10,), np.arange(10.0).tobytes())
    for x in (
        npy("<f8", (10**5, 10**3), bytes(8 * 10**8)),
        npy("<f8", (10**6, 10**6), bytes(80)),
        npy("<f8", (-1, 4), bytes(80)),
        npy("|O", (10, 1), b"cos\nsystem\n(S'true'\ntR."),
        npy("<f8", (2**63, 2), bytes(80)),
    ):
        found = verdict("bad.npz", npz(x_tr=x, y_tr=labels))
        assert found.word == "refused" and found.megabytes < 1000


def test_text_that_swells(verdict):
    for name in ("bomb.csv.gz", "bomb.svm.gz"):
        found = verdict(
            name, gzip.compress(b"1,2,3\n" * 10**7, 1) if "csv" in name else gzip.compress(b" " * 3 * 10**8, 1)
        )
        assert found.word == "refused" and found.megabytes < 1000 and found.seconds < 10


@pytest.mark.parametrize("index", [2**31 - 1, 2**31, 2**40, 2**62, 2**64, -1, 10**9])
def test_libsvm_indices_beyond_measure(verdict, index):
    lines = b"".join(b"%d %d:1\n" % (i % 2, i % 7 + 1) for i in range(40))
    found = verdict("far.svm", lines + b"1 %d:1\n" % index)
    assert found.word == "refused" and found.megabytes < 1000


@pytest.mark.parametrize(
    "content",
    [
        b"1,2\n" * 3 + b"\0,1\n",
        b'"' + b"a" * 10**6,
        b",".join([b"1"] * 200_000) + b"\n" + b",".join([b"2"] * 200_000) + b"\n",
        b"1,2\n" + b"9" * 10**6 + b",1\n",
        b"\xff\xfe1,2\n",
    ],
)
def test_csv_text_that_is_odd(verdict, content):
    assert verdict("odd.csv", content).word in ("refused", "answered")
