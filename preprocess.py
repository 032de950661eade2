"""From a file to features.

``load`` turns a file into a `Data` of numbers and labels, ``signs`` the labels into +1 and -1, and `Preprocessor`,
fitted on training rows only, turns raw rows into what the learner sees: cleaned, scaled, with a last column of ones.

Whatever is wrong with a file is an `InputError` that says in one line what was found and what was expected.
"""

import bz2
import contextlib
import csv
import gc
import gzip
import io
import json
import math
import os
import struct
import sys
import warnings
import zipfile
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cholesky, solve_triangular
from scipy.spatial.distance import cdist
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

MISSING = {"", "na", "n/a", "nan", "null", "?"}
OPENERS = {".gz": gzip.open, ".bz2": bz2.open}
LIBSVM = (".svm", ".libsvm", ".txt")
STREAMED_CELLS = 2_000_000  # cells read at a time from a stream
LONGEST_LINE = 2**25  # bytes
MOST_BYTES = 2**29  # of memory that the content of a file may take, or SWELLING times the file's size if that is more
MOST_TEXT = 2**24  # the same for packed text, which takes some forty times as much once it is split into cells
SWELLING = 20
ROW_BYTES, COLUMN_BYTES = 100, 500  # of memory that a row or a column costs beside its cells
TEXT_BYTES = 16  # of memory that a character of a label costs, in several copies
MOST_CSV_COLUMNS = 100_000
MOST_VARIABLES = 10_000
LONG_PIECE = 2**20  # bytes from which on a piece of an HDF5 array is looked into before HDF5 unpacks it
RANK_KNOTS = 201  # quantiles by which ranks are found
RIDGE = np.float32(1e-3)  # keeps nearly equal landmarks from blowing up
FORMAT = 1  # of model files
SCORED = 2048  # rows scored at a time
CHUNK = 512  # rows whose similarities are computed at a time
FARTHEST = 1e6  # how many times the range of the training rows another row may lie away from them


class InputError(ValueError):
    """The user's input cannot be used; the message is one line for the user."""

    def __init__(self, message):
        super().__init__(" ".join(message.split()))


@dataclass
class Data:
    """Rows and labels as they stand in a file, and what another file must share with it.

    ``y`` is None in a file without labels; ``cost`` (rows x 2) is what missing each row and what a false alarm on it
    costs, if the file says so. ``names`` are the features' names in the header of a CSV file, if it has one, and
    ``label`` that of the label; ``categories`` maps its text columns to their values. ``first_index`` is where a LIBSVM
    file begins to count its features.
    """

    X: "np.ndarray | sp.csr_array"
    y: "np.ndarray | None" = None
    cost: "np.ndarray | None" = None
    names: "list | None" = None
    label: "str | None" = None
    categories: dict = field(default_factory=dict)
    first_index: "int | None" = None

    def without_rows(self, classes):
        """What other files must share with this one, and the two classes for labels."""
        return replace(self, X=self.X[:0], y=classes, cost=None)


def load(path, x_names=("x_tr",), y_names=("y_tr",), label=None, like=None, labelled=True, cost_names=()):
    """Read a file by its ending: .csv, .npz, LIBSVM text (.svm, .libsvm, .txt, also .gz or .bz2), else MATLAB.

    ``x_names``, ``y_names`` and ``cost_names`` are the variables to look for, the first found is taken; ``label`` names
    the label column of a CSV file. ``like`` is the `Data` that this file's columns must match. Unless ``labelled``, it
    may be without labels, as it may always be without costs.
    """
    path = Path(path)
    wanted = {"X": x_names, "y": y_names, "cost": cost_names}
    optional = {"cost"} if labelled else {"cost", "y"}
    try:
        _check_file(path)
        with _no_warnings(), _no_garbage():
            if _ending(path) == ".csv":
                data = _load_csv(path, label, like, labelled)
            elif _ending(path) in LIBSVM:
                data = _load_libsvm(path, like, labelled)
            elif _ending(path) == ".npz":
                data = _load_npz(path, wanted, optional)
            else:
                data = _load_mat(path, wanted, optional)
            _check(path, data, like)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {_reason(error)}") from error
    return data


@contextlib.contextmanager
def _no_warnings():
    """Keep libraries from warning: what is wrong with a file is said in one line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _no_garbage():
    """Keep Python from looking for garbage, time and again, among the many cells of a text file."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _check_file(path):
    if path.is_dir():
        raise InputError(f"{path} is a directory, expected a data file")
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty, expected a data file")


def _ending(path):
    """The ending of a file's name, or of what is packed in it."""
    return Path(path.stem if path.suffix.lower() in OPENERS else path.name).suffix.lower()


def _reason(error):
    return str(error) or type(error).__name__


def _listing(items, most=20):
    return ", ".join(map(str, items[:most])) + (", ..." if len(items) > most else "")


def _pick(path, available, wanted, optional):
    """For each of the arrays ``wanted``, the first of its names that is among the variables ``available``."""
    picked = {}
    for array, names in wanted.items():
        found = [name for name in names if name in available]
        if found:
            picked[array] = found[0]
        elif array not in optional:
            held = _listing(sorted(available)) or "no variables"
            raise InputError(
                f"{path} holds {held}; expected {' or '.join(names)} (--x-name and --y-name choose other variables)"
            )
    return picked


def _allow(path, n_bytes, what, least=MOST_BYTES):
    """Refuse content that swells beyond measure, as that of a damaged or hostile file may."""
    most = max(least, SWELLING * path.stat().st_size)
    if n_bytes > most:
        raise InputError(
            f"{path}: {what} would take {n_bytes / 1e6:.0f} MB or more, expected at most {most / 1e6:.0f} MB in a file "
            f"of this size; it may help to save it unpacked"
        )


def _load_mat(path, wanted, optional):
    with path.open("rb") as file:
        head = file.read(128)
        if head.startswith((b"MATLAB 7.3", b"\x89HDF")):
            return _load_hdf5(path, wanted, optional)
        try:
            variables = _list_mat(file, head)
            available = [variable.name for variable in variables]
            picked = _pick(path, available, wanted, optional)
            for name in picked.values():
                if available.count(name) > 1:
                    raise ValueError(f'Duplicate variable name "{name}"')
            return Data(**{array: variables[available.index(name)].load(path) for array, name in picked.items()})
        except InputError:
            raise
        except Exception as error:  # SciPy's reader raises nearly anything on a damaged file
            raise InputError(f"{path} is not a MATLAB file, or is damaged or cut short: {_reason(error)}") from error


def _list_mat(file, head):
    """The variables of a MATLAB file of level 4, which begins with a small number, or 5, which begins with text."""
    is_level_4 = 0 in head[:4]
    order = {b"\0\1IM": "<", b"\1\0MI": ">"}.get(head[124:])
    if order is None and not is_level_4:
        raise ValueError("it begins as no MATLAB file does")
    variables, at = [], 0 if is_level_4 else len(head)
    while at < _end(file):
        if len(variables) == MOST_VARIABLES:
            raise ValueError(f"more than {MOST_VARIABLES} variables")
        variables.append(MatVariable4(file, at) if is_level_4 else MatVariable5(file, at, head, order))
        at = variables[-1].next
    return variables


def _end(file):
    return file.seek(0, io.SEEK_END)


def _read(file, at, n):
    file.seek(at)
    found = file.read(n)
    if len(found) < n:
        raise ValueError(f"{len(found)} bytes where {n} belong")
    return found


class MatVariable:
    """A variable of a MATLAB file, which SciPy reads as a file of its own: ``head``, then ``body`` from ``start`` on.

    SciPy trusts what it reads to the point of crashing the interpreter, so it sees nothing of the other variables, and
    of this one only what has been found in order. ``kind`` is the NumPy kind of the array, ``next`` where it ends.
    """

    def __init__(self, head, body, start):
        self.head, self.body, self.start, self.at = head, body, start, 0

    def read(self, n):
        if self.at < len(self.head):
            part = self.head[self.at : self.at + n]
        else:
            self.body.seek(self.start + self.at - len(self.head))
            part = self.body.read(n)
        self.at += len(part)
        return part

    def seek(self, offset, whence=0):
        self.at = offset + (self.at if whence else 0)

    def tell(self):
        return self.at

    def check(self, path):
        """Refuse what SciPy would stumble over, or what would take too much memory."""

    def load(self, path):
        from scipy.io import loadmat

        if self.kind in "cO":  # complex numbers and objects are refused, whatever they are
            return np.empty((), complex if self.kind == "c" else object)
        self.check(path)
        return loadmat(self, appendmat=False, variable_names=[self.name])[self.name]


class MatVariable4(MatVariable):
    """Five numbers, a name, and the array."""

    WIDTHS = 8, 4, 4, 2, 2, 1  # bytes of a number of each type
    KINDS = "fUf"  # of dense numbers, text, and sparse numbers

    def __init__(self, file, at):
        super().__init__(b"", file, at)
        numbers = _read(file, at, 20)
        order = "<" if 0 <= struct.unpack("<i", numbers[:4])[0] <= 5000 else ">"
        code, *self.shape, is_complex, length = struct.unpack(order + "5i", numbers)
        is_big, type_, form = code // 1000, code // 10 % 100, code % 10
        if is_big != (order == ">") or type_ >= len(self.WIDTHS) or form > 2 or is_complex not in (0, 1):
            raise ValueError(f"a variable of type {code}, {is_complex}")
        self.next = at + 20 + length + math.prod(self.shape) * self.WIDTHS[type_] * (1 + is_complex)
        if min(*self.shape, length) < 0 or self.next > _end(file):
            raise ValueError(f"a variable that is {_size(self)} where {_end(file) - at} bytes are left")
        self.name = _read(file, at + 20, length).strip(b"\0").decode("latin1")
        self.kind = "c" if is_complex else self.KINDS[form]


class MatVariable5(MatVariable):
    """Elements, each behind a tag with its type and size: flags, shape, name, and the array, or three if it is sparse.

    They may be packed together. Then those of a sparse array, whose tags lie far apart, are unpacked here; else SciPy
    does it.
    """

    HEAD = 4096  # bytes in which the tags of a dense array lie
    WIDTHS = 0, 1, 1, 2, 2, 4, 4, 4, 0, 8, 0, 0, 8, 8  # bytes of a number of each type
    NUMBERS, INDICES, NAMES, TEXTS = (1, 2, 3, 4, 5, 6, 7, 9, 12, 13), (5, 6), (1, 16), (1, 2, 4, 16, 17, 18)
    ARRAY, PACKED = 14, 15
    KINDS = "?OOOU" + 11 * "f" + "OOO"  # of an array of each class
    SPARSE, OPAQUE = 5, 17

    def __init__(self, file, at, head, order):
        super().__init__(head, file, at)
        self.order = order
        code, size = self._integers(file, at, 8)
        self.next = at + 8 + size
        if self.next > _end(file):
            raise ValueError(f"a variable of {size} bytes where {_end(file) - at - 8} are left")
        self.tags, self.packed_size = file, 0
        if code == self.PACKED:
            file.seek(at + 8)
            self.tags = io.BytesIO(zlib.decompressobj().decompress(file.read(min(size, self.HEAD)), self.HEAD))
            self.packed_size, at = size, 0
            code, size = self._integers(self.tags, at, 8)
        if code != self.ARRAY:
            raise ValueError(f"an element of type {code}, expected an array")
        self.tag, self.end = at + 8, at + 8 + size
        self._read_header()

    def _integers(self, file, at, size):
        return struct.unpack(f"{self.order}{size // 4}I", _read(file, at, size // 4 * 4))

    def _read_header(self):
        _, at, size = self._step([6])
        if size != 8:
            raise ValueError(f"{size} bytes of flags, expected 8")
        flags = self._integers(self.tags, at, size)[0]
        self.form = flags & 0xFF
        if not 0 < self.form < len(self.KINDS):
            raise ValueError(f"an array of class {self.form}")
        self.kind = "c" if flags & 0x800 else self.KINDS[self.form]
        if self.form != self.OPAQUE:
            _, at, size = self._step(self.INDICES)
            if not 8 <= size <= 128:
                raise ValueError(f"{size // 4} dimensions, expected 2 to 32")
            self.shape = self._integers(self.tags, at, size)
        _, at, size = self._step(self.NAMES)
        self.name = _read(self.tags, at, size).decode("latin1")

    def _step(self, types):
        """Step over an element, whose type must be among these: its type, where its content begins, and its size."""
        first, size = self._integers(self.tags, self.tag, 8)
        type_, small = first & 0xFFFF, first >> 16  # a small element lies inside its tag
        at, size = (self.tag + 4, small) if small else (self.tag + 8, size)
        if type_ not in types:
            raise ValueError(f"an element of type {type_}, expected {' or '.join(map(str, types))}")
        if small > 4 or at + size > self.end:
            raise ValueError(f"an element of {size} bytes where {self.end - at} are left")
        self.tag += 8 if small else 8 + size + -size % 8
        return type_, at, size

    def check(self, path):
        if self.form == self.SPARSE:
            _allow(path, self.end - self.tag, self.name)
            if self.packed_size:
                self.body = self.tags = self._unpack()
                self.start = 0
            steps = [self._step(types) for types in (self.INDICES, self.INDICES, self.NUMBERS)]
            contents = (_read(self.tags, at, size // 4 * 4) for _, at, size in steps[:2])
            _check_indices(*(np.frombuffer(content, f"{self.order}u4") for content in contents), self.shape)
            return
        is_text = self.kind == "U"
        type_, _, size = self._step(self.TEXTS if is_text else self.NUMBERS)
        _allow(path, size * (TEXT_BYTES if is_text else 1), self.name)
        expected, found = math.prod(self.shape), size if is_text else size // self.WIDTHS[type_]
        if found < expected or (found > expected and not is_text):
            raise ValueError(f"{self.name} is {_size(self)} but has {size} bytes of type {type_}")

    def _unpack(self):
        unpack, unpacked = zlib.decompressobj().decompress, io.BytesIO()
        self.body.seek(self.start + 8)
        for done in range(0, self.packed_size, 2**16):
            unpacked.write(unpack(self.body.read(min(self.packed_size - done, 2**16))))
            if unpacked.tell() > self.end:
                raise ValueError(f"{self.name} unpacks to more than {self.end} bytes")
        self.end = unpacked.tell()
        return unpacked


def _check_indices(rows, pointers, shape):
    """Refuse a sparse array whose indices lead out of it: SciPy follows them, and its own check does not find all."""
    n_rows, n_columns = shape
    pointers = pointers[: n_columns + 1]
    if (
        {rows.dtype.kind, pointers.dtype.kind} - {"i", "u"}
        or len(pointers) <= n_columns
        or pointers[0] != 0
        or pointers[-1] > len(rows)
        or (pointers[1:] < pointers[:-1]).any()
        or not ((rows >= 0) & (rows < n_rows))[: pointers[-1]].all()
    ):
        raise ValueError(f"sparse indices that lead out of an array of {n_rows} x {n_columns} cells")


def _load_hdf5(path, wanted, optional):
    """MATLAB v7.3 files are HDF5 files; MATLAB stores arrays column by column, so they arrive transposed."""
    try:
        import h5py
    except ImportError:
        raise InputError(
            f"{path} is a MATLAB v7.3 file: save it with -v7 in MATLAB, or install h5py to read it here"
        ) from None
    try:
        with h5py.File(path, "r") as file:
            available = [name for name in file if not name.startswith("#")]
            picked = _pick(path, available, wanted, optional)
            return Data(**{array: _from_hdf5(path, file, name) for array, name in picked.items()})
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path} is damaged or cut short: {_reason(error)}") from error


def _from_hdf5(path, file, name):
    """The array of that name. What is no array of numbers is not read, since it is refused whatever it holds."""
    node = _member(file, name)
    if "MATLAB_sparse" in node.attrs:
        data, indices = (_read_hdf5(path, node, key) if key in node else np.empty(0, int) for key in ("data", "ir"))
        indptr = _read_hdf5(path, node, "jc")
        shape = int(node.attrs["MATLAB_sparse"]), len(indptr) - 1
        _check_indices(indices, indptr, shape)
        return sp.csc_array((data, indices, indptr), shape=shape)
    if not hasattr(node, "dtype"):
        return np.empty((), object)  # a struct
    if node.dtype.names == ("real", "imag"):
        return np.empty((), complex)
    if node.dtype.kind not in "buif":
        return np.empty((), node.dtype)
    A = _read_hdf5(path, file, name).T
    if node.attrs.get("MATLAB_empty", 0):
        return np.empty((0, 0) if A.all() else A.tolist())  # the numbers are the shape
    is_text = node.attrs.get("MATLAB_class") == b"char"
    return np.ascontiguousarray(A, np.uint32).view("U1") if is_text else A


def _member(group, name):
    """What a file or group holds under that name, unless it lies elsewhere."""
    if type(group.get(name, getlink=True)).__name__ != "HardLink":
        raise ValueError(f"{name} is a link to somewhere else")
    return group[name]


def _read_hdf5(path, group, name):
    node = _member(group, name)
    if node.external or node.is_virtual:
        raise ValueError(f"{name} lies in another file")
    piece = math.prod(node.chunks or ()) * node.dtype.itemsize
    _allow(path, max(node.size * node.dtype.itemsize, piece), name)
    if node.compression == "gzip":
        _check_pieces(node.id, piece)
    return node[()]


def _check_pieces(dataset, expected):
    """Refuse pieces that unpack to more than they should: HDF5 would unpack all of them, however much that is."""
    how = dataset.get_create_plist()
    filters = [how.get_filter(k)[0] for k in range(how.get_nfilters())]
    if len(filters) > len(set(filters)):
        raise ValueError("it is packed twice")
    if dataset.get_storage_size() <= LONG_PIECE or not hasattr(dataset, "chunk_iter"):  # nor had it before h5py 3.8
        return
    pieces = []
    dataset.chunk_iter(pieces.append)
    for piece in pieces:
        if piece.size > LONG_PIECE:
            _, packed = dataset.read_direct_chunk(piece.chunk_offset)
            if len(zlib.decompressobj().decompress(packed, expected + 1)) > expected:
                raise ValueError(f"a piece of {piece.size} bytes unpacks to more than {expected}")


def _load_npz(path, wanted, optional):
    return Data(**_read_npz(path, lambda available: _pick(path, available, wanted, optional)))


def _read_npz(path, pick=lambda available: dict(zip(available, available))):
    """The arrays that ``pick``, given the names of all that there are, maps to their names in the file."""
    try:
        with zipfile.ZipFile(path) as file:
            available = [name.removesuffix(".npy") for name in file.namelist()]
            return {array: _from_npz(path, file, name) for array, name in pick(available).items()}
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path} is not a .npz file of plain arrays, or is damaged: {_reason(error)}") from error


def _from_npz(path, file, name):
    from numpy.lib import format as npy

    member = file.getinfo(f"{name}.npy")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name} is packed in a way that NumPy does not use")
    _allow(path, member.file_size, name)
    read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    with file.open(member) as array:
        shape, _, dtype = read_header[npy.read_magic(array)](array)
        if math.prod(shape) * dtype.itemsize > member.file_size:
            raise ValueError(f"{name} has {member.file_size} bytes, expected {math.prod(shape)} of {dtype}")
    with file.open(member) as array:
        return npy.read_array(array)


def _load_libsvm(path, like, labelled):
    with _open_text(path) as file:
        data = _parse_libsvm(path, file, like)
    if not labelled and not np.isin(data.y, like.y).all():
        data.y = None  # something stands in the place of labels in every such file
    return data


def _parse_libsvm(path, file, like):
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(file, zero_based=True)
    except InputError:
        raise
    except (ValueError, OverflowError) as error:
        raise InputError(f"{path} is not LIBSVM text: {_reason(error)}") from error
    first = int(0 not in X.indices)
    if like is not None:
        if like.first_index is not None:
            if first < like.first_index:
                raise InputError(f"{path} counts its features from 0, expected from 1 as in the training file")
            first = like.first_index
        X.resize(X.shape[0], max(X.shape[1], like.X.shape[1] + first))  # the last may be zero in all rows of this file
    return Data(X[:, first:], y, first_index=first)


def _open_text(path):
    """The bytes of a text file; what is packed is unpacked beforehand, so that it is refused before it is split up."""
    if path.suffix.lower() not in OPENERS:
        return path.open("rb")
    text = io.BytesIO()
    try:
        with OPENERS[path.suffix.lower()](path) as file:
            while piece := file.read(2**20):
                text.write(piece)
                _allow(path, text.tell(), "the text", MOST_TEXT)
    except (EOFError, zlib.error) as error:
        raise InputError(f"{path} is damaged or cut short: {_reason(error)}") from error
    text.seek(0)
    return text


def _load_csv(path, label, like, labelled):
    with io.TextIOWrapper(_open_text(path), encoding="utf-8-sig", newline="") as file:
        rows = _parse_csv(path, file)
    names, target = _header(path, rows, label, like, labelled)
    return _from_csv(path, rows[names is not None :], names, target, like)


def _parse_csv(path, lines):
    """The rows, as lists of equally many cells; empty lines are skipped."""
    try:
        rows = [row for row in csv.reader(lines, strict=True) if row]
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not CSV text in UTF-8: {_reason(error)}") from error
    if not rows:
        raise InputError(f"{path} has no rows, expected at least two")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise InputError(f"{path}: row {number} has {len(row)} cells, expected {len(rows[0])} as in the first row")
    if len(rows[0]) > MOST_CSV_COLUMNS:
        raise InputError(f"{path} has {len(rows[0])} columns, expected at most {MOST_CSV_COLUMNS} in a CSV file")
    return rows


def _header(path, rows, label, like, labelled=True):
    """The names in the first row, or None if it is no header, and the position of the label, or None if it has none.

    A first row is a header if ``label`` is in it, or if what stands in the label's place is neither a number nor a
    label of another row; without labels, if no number stands where numbers belong.
    """
    first = [cell.strip() for cell in rows[0]]
    if label is None and like is not None and like.label in first:
        label = like.label
    if not labelled and label not in first and len(first) == _n_csv_columns(like):
        where_numbers_belong = [cell for j, cell in enumerate(first) if j not in like.categories]
        is_header = where_numbers_belong and not any(_is_number(c) or _is_missing(c) for c in where_numbers_belong)
        return first if is_header or first == like.names else None, None
    if label is not None:
        if label not in first:
            raise InputError(f"{path} has no column {label!r}; its first row is {_listing(first)}")
        return first, first.index(label)
    if len(first) < 2:
        raise InputError(f"{path} has a single column, expected features and a label with commas between them")
    labels = {row[-1].strip() for row in rows[1:]}
    if like is not None:
        labels.update(map(str, np.unique(like.y)))
    is_label = _is_number(first[-1]) or _is_missing(first[-1]) or first[-1] in labels
    return None if is_label else first, len(first) - 1


def _n_csv_columns(like):
    """How many columns of cells have become the features of a CSV file."""
    return like.X.shape[1] - sum(len(values) - 1 for values in like.categories.values())


def _from_csv(path, rows, names, target, like):
    """Numbers stay numbers; a column that holds any text becomes one column of 0 and 1 for each of its values."""
    columns = list(zip(*rows)) or [()] * (len(names) if names else 0)
    y = label = None
    if target is not None:
        y = _labels(path, columns.pop(target))
        if names is not None:
            label = names.pop(target)
    if None not in (names, like) and like.names not in (None, names):
        raise InputError(
            f"{path}: the features are {_listing(names)}, expected {_listing(like.names)} as in the training file"
        )
    categories = {} if like is None else like.categories
    parts = []
    for j, column in enumerate(columns):
        numbers = None if j in categories else _numbers(column)
        if numbers is not None:
            parts.append(numbers[:, None])
        elif like is None or j in categories:
            values = categories.setdefault(j, sorted({c.strip() for c in set(column) if not _is_missing(c)}))
            parts.append(_indicators(column, values))
        else:
            raise InputError(f"{path}: feature {j + 1} holds text, expected numbers as in the training file")
    X = sp.hstack(parts, format="csr") if categories else np.hstack(parts)
    if categories and X.nnz > X.shape[0] * X.shape[1] / 10:
        X = X.toarray()
    return Data(X, y, names=names, label=label, categories=categories)


def _labels(path, cells):
    y = _numbers(cells)
    if y is not None:
        return y
    _allow(path, TEXT_BYTES * len(cells) * max(map(len, cells)), "the label column")
    return np.array(cells)


def _is_missing(cell):
    return cell.strip().lower() in MISSING


def _is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numbers(cells):
    """The cells as an array of numbers, NaN where they are missing, or None if some are text."""
    for convert in (float, lambda cell: np.nan if _is_missing(cell) else float(cell)):  # the quick one does for most
        with contextlib.suppress(ValueError):
            return np.fromiter(map(convert, cells), float, len(cells))
    return None


def _indicators(column, values):
    """One sparse 0/1 column for each of ``values``; a cell that is none of them is zero in all."""
    index = {value: j for j, value in enumerate(values)}
    index_of_cell = {cell: index.get(cell.strip(), -1) for cell in set(column)}
    j = np.fromiter(map(index_of_cell.get, column), int, len(column))
    i = np.flatnonzero(j >= 0)
    return sp.csr_array((np.ones(len(i)), (i, j[i])), shape=(len(column), len(values)))


def stream(paths, label=None):
    """Yield the rows of files that need not fit into memory, a `Data` of some at a time, and the share read so far.

    The files are a .npy pair, features and labels, or one of CSV or LIBSVM text. Of columns and categories, there are
    those of the first `Data`.
    """
    paths = [Path(path) for path in paths]
    endings = tuple(_ending(path) for path in paths)
    read = {(".npy", ".npy"): _stream_npy, (".csv",): _stream_csv, **{(ending,): _stream_libsvm for ending in LIBSVM}}
    if endings not in read:
        found = " and ".join(map(str, paths)) or "no file"
        raise InputError(f"--stream with {found}, expected x.npy and y.npy, or one file of CSV or LIBSVM text")
    like = None
    try:
        for path in paths:
            _check_file(path)
        for data, share in read[endings](*paths, label):
            _check(paths[0], data, like)
            like = like or data
            yield data, share
    except (EOFError, zlib.error) as error:
        raise InputError(f"{paths[0]} is damaged or cut short: {_reason(error)}") from error
    except OSError as error:
        raise InputError(f"{paths[0]} cannot be read: {_reason(error)}") from error


def _stream_npy(x_path, y_path, label):
    X, y = _map_npy(x_path), _map_npy(y_path)
    if X.ndim != 2 or X.size == 0 or y.size != len(X):
        raise InputError(
            f"{x_path} is {_size(X)} and {y_path} is {_size(y)}, expected rows x features and their labels"
        )
    n_rows, n = len(X), _rows_at_a_time(X.shape[1])
    for i in range(0, n_rows, n):
        X, y = _map_npy(x_path), _map_npy(y_path)  # anew, so that what was read before leaves the memory
        yield Data(np.array(X[i : i + n]), np.array(y.reshape(-1)[i : i + n])), min((i + n) / n_rows, 1)


def _map_npy(path):
    """The array of a .npy file, whose content stays where it is until it is asked for."""
    try:
        with _no_warnings():
            return np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError:
        raise
    except Exception as error:  # NumPy raises nearly anything on a damaged header
        raise InputError(f"{path} is not a .npy file of plain numbers, or is cut short: {_reason(error)}") from error


def _rows_at_a_time(n_columns):
    return max(STREAMED_CELLS // n_columns, 1000)


def _lines(path):
    """Yield some lines of a text file, packed or not, at a time, and the share of the file read so far."""
    size = path.stat().st_size
    with path.open("rb") as raw:
        opener = OPENERS.get(path.suffix.lower())
        file = opener(raw) if opener else raw
        lines = _read_lines(path, file, 1)
        n = _rows_at_a_time(lines[0].count(b",") + lines[0].count(b":") + 1) if lines else 0
        while lines:
            lines += _read_lines(path, file, n - len(lines))
            filled = [line for line in lines if line.strip()]
            if filled:
                yield filled, min(raw.tell() / size, 1)
            lines = _read_lines(path, file, 1)


def _read_lines(path, file, n):
    """At most ``n`` lines, and fewer if they are so long that they would fill the memory."""
    lines, size = [], 0
    while len(lines) < n and size < 4 * LONGEST_LINE and (line := file.readline(LONGEST_LINE)):
        if len(line) == LONGEST_LINE:
            raise InputError(f"{path} has a line of {LONGEST_LINE} bytes or more, expected shorter rows")
        lines.append(line)
        size += len(line)
    return lines


def _stream_csv(path, label):
    like = None
    for lines, share in _lines(path):
        if like is None:
            rows = _parse_csv(path, _text(path, lines))
            names, target = _header(path, rows, label, None)
            like = _from_csv(path, rows[names is not None :], names, target, None)
            yield like, share
            continue
        cells = None
        if not like.categories and like.y.dtype.kind != "U":
            with contextlib.suppress(ValueError), _no_warnings():  # some may be missing, and then are found below
                cells = np.loadtxt(lines, delimiter=",", comments=None, ndmin=2)
        if cells is not None and cells.shape[1] == like.X.shape[1] + 1:
            yield Data(np.delete(cells, target, axis=1), cells[:, target]), share
        else:
            yield _from_csv(path, _parse_csv(path, _text(path, lines)), None, target, like), share


def _text(path, lines):
    try:
        return [line.decode("utf-8-sig") for line in lines]
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not CSV text in UTF-8: {_reason(error)}") from error


def _stream_libsvm(path, label):
    like = None
    for lines, share in _lines(path):
        data = _parse_libsvm(path, io.BytesIO(b"".join(lines)), like)
        like = like or data
        data.X = data.X[:, : like.X.shape[1]]
        yield data, share


def _check(path, data, like):
    """Bring X to row order, dense or CSR, and y to one dimension, and refuse what cannot be learned from."""
    X = _native(data.X)
    if X.dtype.kind not in "buif":
        found = {"c": "complex numbers", "U": "text", "S": "text"}.get(
            X.dtype.kind, "a struct, a cell array or objects"
        )
        raise InputError(f"{path}: x holds {found}, expected real numbers")
    if X.ndim != 2:
        raise InputError(f"{path}: x has {X.ndim} dimensions, expected 2 (rows x features)")
    if 0 in X.shape:
        raise InputError(f"{path}: x is {_size(X)}, expected at least one row and one feature")
    if data.y is not None:
        data.y = _check_labels(path, _native(data.y), X)
    if data.cost is not None:
        data.cost = _check_cost(path, _native(data.cost), X)
    cells = X.nnz if sp.issparse(X) else X.size
    n_bytes = cells * X.dtype.itemsize + X.shape[0] * ROW_BYTES + X.shape[1] * COLUMN_BYTES
    _allow(path, n_bytes, f"x, which is {_size(X)},")
    if like is not None and X.shape[1] != like.X.shape[1]:
        raise InputError(f"{path} has {X.shape[1]} features, expected {like.X.shape[1]} as in the training file")
    if sp.issparse(X):
        X = sp.csr_array(X)
        X.eliminate_zeros()
    if like is not None and sp.issparse(X) != sp.issparse(like.X):
        _allow(path, math.prod(X.shape) * X.dtype.itemsize, "x, which is dense in the training file,")
        X = X.toarray() if sp.issparse(X) else sp.csr_array(_as_float(X))
    data.X = X if sp.issparse(X) else np.ascontiguousarray(X)


def _check_labels(path, y, X):
    if sp.issparse(y):
        _allow(path, math.prod(y.shape) * y.dtype.itemsize, "y")
        y = y.toarray()
    if y.dtype.kind not in "buifU":
        raise InputError(f"{path}: y holds neither numbers nor text, expected one label a row")
    if y.ndim > 2 or (y.ndim == 2 and 1 not in y.shape):
        raise InputError(f"{path}: y is {_size(y)}, expected one label for each of the {X.shape[0]} rows of x")
    y = y.ravel()
    if len(y) != X.shape[0]:
        hint = "; x seems to be transposed" if len(y) == X.shape[1] else ""
        raise InputError(f"{path}: x has {X.shape[0]} rows and y has {len(y)} labels, expected as many{hint}")
    if y.dtype.kind == "U":
        if y.dtype.itemsize and y.view(np.uint32).max() > sys.maxunicode:
            raise InputError(f"{path} is damaged: y holds characters that there are not")
        y = np.char.strip(y)
    missing = sum(map(_is_missing, y)) if y.dtype.kind == "U" else np.count_nonzero(~np.isfinite(y))
    if missing:
        raise InputError(
            f"{path}: {missing} of {len(y)} labels are missing or infinite, expected a label for every row"
        )
    return y


def _check_cost(path, cost, X):
    if sp.issparse(cost) or cost.dtype.kind not in "buif" or cost.shape != (X.shape[0], 2):
        raise InputError(f"{path}: the costs are {_size(cost)}, expected two numbers for each of {X.shape[0]} rows")
    cost = cost.astype(np.float64)
    if not (np.isfinite(cost).all() and (cost >= 0).all() and (cost.max(axis=0) > 0).all()):
        raise InputError(
            f"{path}: the costs are not all finite and at least 0, or all are 0, expected what errors cost"
        )
    return cost


def _native(A):
    """The array in this machine's byte order."""
    return A.astype(A.dtype.newbyteorder("="), copy=False)


def _size(A):
    return " x ".join(str(n) for n in A.shape) or "a single value"


def find_classes(y, positive=None):
    """The two labels, negative first. The rarer is positive unless named; of two equally frequent ones the greater."""
    values, counts = np.unique(y, return_counts=True)
    if len(values) == 1:
        raise InputError(f"all {len(y)} labels are {show(values[0])}, expected two classes")
    if len(values) > 2:
        some = _listing([show(v) for v in values], most=5)
        raise InputError(f"the labels take {len(values)} values ({some}), expected two classes")
    if positive is None:
        return values if counts[1] <= counts[0] else values[::-1]
    same = [show(value) == positive for value in values]
    if not any(same) and values.dtype.kind != "U" and _is_number(positive):
        same = [value == float(positive) for value in values]
    if any(same):
        return values if same[1] else values[::-1]
    raise InputError(f"--positive {positive} is none of the labels, which are {show(values[0])} and {show(values[1])}")


def signs(y, classes):
    """+1 where a label is the second of ``classes``, -1 where it is the first."""
    strange = set(y.tolist()).difference(classes.tolist())
    if strange:
        raise InputError(f"the label {show(min(strange))} is not one of {show(classes[0])} and {show(classes[1])}")
    return np.where(y == classes[1], 1, -1)


def show(label):
    """A label as a person would write it: 1 rather than 1.0."""
    return str(label).removesuffix(".0")


class Preprocessor:
    """Clean and scale raw rows as learned from the training rows, and add a bias column.

    - missing: NaN and infinities become the training mean of their column;
    - constant columns, and all but the first of exactly equal columns, are dropped;
    - scale: `MinMaxScaler`, or `MaxAbsScaler` for sparse rows, whose zeros stay zeros;
    - bias: a last column of ones.

    Attributes
    ----------
    kept_ : ndarray of the indices of the columns that are kept
    changes_ : dict that says how many columns were constant, how many were copies, and how many cells were missing
    extremes_ : ndarray of the least and the greatest value of each of these columns
    n_features_out_ : number of columns after `transform`, the bias included
    """

    def fit(self, X):
        X = _as_float(X)
        self.mean_, missing = _column_means(X)
        if missing:
            X = _fill(X, self.mean_)
        low, high = _extremes(X)
        varying = np.flatnonzero(low < high)
        if not len(varying):
            raise InputError("no feature varies over the training rows, expected at least one to learn from")
        self.kept_ = varying[_first_of_equals(X, varying, np.column_stack([low, high, self.mean_]))]
        self.changes_ = {
            "constant": X.shape[1] - len(varying),
            "duplicated": len(varying) - len(self.kept_),
            "missing": missing,
        }
        self.extremes_ = np.stack([low, high])[:, self.kept_].astype(np.float64)
        return self.fit_scaler(sp.issparse(X))

    def fit_scaler(self, sparse):
        """The extremes of the columns that are kept are all that scaling learns from."""
        self.unit_ = _unit(self.extremes_)
        scaler = MaxAbsScaler() if sparse else MinMaxScaler()
        self.scaler_ = scaler.fit(self.extremes_ * self.unit_)
        self.n_features_out_ = len(self.kept_) + 1
        return self

    def transform(self, X):
        X = _take(_fill(_as_float(X), self.mean_), self.kept_)
        with np.errstate(over="ignore"):
            if (self.unit_ != 1).any():
                X = X.multiply(self.unit_).tocsr() if sp.issparse(X) else X * self.unit_
                np.clip(_cells(X), -1e300, 1e300, out=_cells(X))
            X = self.scaler_.transform(X)
        np.clip(_cells(X), -FARTHEST, FARTHEST, out=_cells(X))
        if sp.issparse(X):
            return sp.csr_array(sp.hstack([X, np.ones((X.shape[0], 1))], format="csr", dtype=np.float32))
        Z = np.ones((X.shape[0], self.n_features_out_), np.float32)
        Z[:, :-1] = X
        return Z


def _as_float(X):
    """Types of one byte become float32, which scales them well enough, all others float64."""
    with np.errstate(over="ignore"):
        return X.astype(np.float32 if X.dtype.itemsize == 1 else np.float64, copy=False)


def _cells(X):
    return X.data if sp.issparse(X) else X


def _extremes(X):
    """The least and the greatest cell of each column, NaN aside."""
    if sp.issparse(X):
        return X.nanmin(axis=0).toarray().ravel(), X.nanmax(axis=0).toarray().ravel()
    return np.fmin.reduce(X), np.fmax.reduce(X)


def _unit(extremes):
    """Powers of two for columns so large that their range overflows, or so small that a scaler takes it for none."""
    largest = np.abs(extremes).max(axis=0)
    exponent = np.where((largest < 1e300) & (largest > 1e-10), 0, np.frexp(largest)[1])
    return np.ldexp(1.0, np.minimum(-exponent, 1023))


def _column_means(X):
    """Means over the finite cells of each column, 0 where there are none, and the number of other cells."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    if np.isfinite(mean).all():
        return mean, 0
    known = X.copy()
    bad = ~np.isfinite(_cells(X))
    _cells(known)[bad] = np.nan
    low, high = _extremes(known)
    _cells(known)[bad] = 0
    n_bad = bad.sum(axis=0) if not sp.issparse(X) else np.bincount(X.indices[bad], minlength=X.shape[1])
    n_known = np.maximum(X.shape[0] - n_bad, 1)
    share = known.multiply(1 / n_known) if sp.issparse(X) else known / n_known  # divided first, lest the sum overflow
    mean = np.asarray(share.sum(axis=0, dtype=np.float64)).ravel()
    return np.nan_to_num(np.clip(mean, low, high)), int(n_bad.sum())  # clipped, lest rounding make a constant vary


def _fill(X, mean):
    bad = ~np.isfinite(_cells(X))
    if not bad.any():
        return X
    X = X.copy()
    column = X.indices if sp.issparse(X) else np.broadcast_to(np.arange(X.shape[1]), X.shape)
    _cells(X)[bad] = mean[column[bad]]
    return X


def _first_of_equals(X, columns, summary):
    """Positions in ``columns`` of those that equal none before them.

    Only columns with the same ``summary`` (a row of numbers for each column of X) are compared in full.
    """
    by_summary = {}
    for k, j in enumerate(columns):
        by_summary.setdefault((summary[j] + 0.0).tobytes(), []).append(k)
    X = X.tocsc() if sp.issparse(X) else X
    first = []
    for group in by_summary.values():
        by_content = {_column_bytes(X, columns[k]) if len(group) > 1 else b"": k for k in reversed(group)}
        first.extend(by_content.values())
    return np.sort(first)


def _column_bytes(X, j):
    if sp.issparse(X):
        cells = slice(*X.indptr[j : j + 2])
        return X.indices[cells].tobytes() + X.data[cells].tobytes()
    return (X[:, j] + 0.0).tobytes()  # no -0.0


class Columns:
    """Two more versions of scaled columns: standardised, and as ranks.

    Columns of two values are -1 and +1 in both: standardising would let the rarest speak the loudest.
    Unless ``ranked``, there are no ranks, which are dear in many columns.
    """

    def __init__(self, ranked=True):
        self.ranked = ranked

    def fit(self, Z):
        low, high = Z.min(axis=0), Z.max(axis=0)
        self.varying_ = np.flatnonzero(low < high)
        Z, self.low_ = _take(Z, self.varying_), low[self.varying_]
        self.many_ = np.flatnonzero(((Z != self.low_) & (Z != high[self.varying_])).any(axis=0))
        many = _take(Z, self.many_)
        self.mean_, self.sd_ = many.mean(axis=0), many.std(axis=0)
        self.knots_ = [self._fit_ranks(column) for column in np.sort(many.T)] if self.ranked else None
        return self

    def arrays(self):
        """All that was learned, as arrays by name."""
        arrays = {name: getattr(self, name) for name in ("varying_", "low_", "many_", "mean_", "sd_")}
        if self.ranked:
            arrays["knots"] = np.concatenate([np.empty((2, 0)), *map(np.stack, self.knots_)], axis=1)
            arrays["ends"] = np.cumsum([len(knots) for knots, _ in self.knots_], dtype=int)
        return arrays

    @classmethod
    def from_arrays(cls, arrays):
        columns = cls(ranked="knots" in arrays)
        if columns.ranked:
            columns.knots_ = np.split(arrays.pop("knots"), arrays.pop("ends")[:-1], axis=1)
        vars(columns).update(arrays)
        return columns

    @staticmethod
    def _fit_ranks(column):
        """Quantiles of a sorted column and the middle rank of each, so scaled that ranks have mean 0 and variance 1."""
        at = np.linspace(0, len(column) - 1, RANK_KNOTS).round().astype(int)
        knots = np.unique(column[at])
        rank = (column.searchsorted(knots, "left") + column.searchsorted(knots, "right")) / (2 * len(column))
        return knots, (rank - 0.5) * np.sqrt(12)

    def standard(self, Z):
        return self._transform(Z, self._standardise)

    def rank(self, Z):
        return self._transform(Z, self._rank)

    def _transform(self, Z, transform_many):
        Z = _take(Z, self.varying_)
        if len(self.many_) == Z.shape[1]:
            return transform_many(Z)
        out = np.where(Z > self.low_, np.float32(1), np.float32(-1))
        if len(self.many_):
            out[:, self.many_] = transform_many(Z[:, self.many_])
        return out

    def _standardise(self, Z):
        Z = Z - self.mean_
        Z /= self.sd_
        return np.clip(Z, -6, 6, out=Z)

    def _rank(self, Z):
        return np.column_stack([np.interp(z, *knots) for z, knots in zip(Z.T, self.knots_)]).astype(np.float32)


def _take(X, columns):
    """``X[:, columns]``, or X itself where that is all of it."""
    return X if len(columns) == X.shape[1] else X[:, columns]


class Features:
    """Several feature maps, by name, of the same scaled rows; ``columns`` makes other versions of them, if need be.

    All maps share the landmarks, training rows drawn from all alike: drawn from scarce positives, each would vouch for
    itself.
    """

    def __init__(self, columns, maps, n_landmarks=0):
        self.columns = columns
        self.maps = maps
        self.n_landmarks = n_landmarks
        self.landmarks_ = None

    def fit_transform(self, Z, sample, rng):
        """Fit the maps in turn and yield for each the features of its rows and the numbers of those rows.

        Maps with landmarks are fitted on the rows ``sample`` of Z, linear ones on all.
        """
        if self.columns is not None:
            self.columns.fit(Z)
        every = np.arange(Z.shape[0])
        which = rng.choice(len(sample), min(len(sample), self.n_landmarks), replace=False)
        self.landmarks_ = Views(self.columns, Z[sample[which]])
        whole = Views(self.columns, Z, self.landmarks_)
        part = whole if len(sample) == len(every) else Views(self.columns, Z[sample], self.landmarks_)
        for a_map in self.maps.values():
            views, rows = (part, sample) if isinstance(a_map, LandmarkMap) else (whole, every)
            yield a_map.fit(views).transform(views), rows

    def coefficients(self, weights):
        """For each map, what `score` needs of the weights of its features."""
        return [a_map.coefficients(w) for a_map, w in zip(self.maps.values(), weights)]

    def score(self, Z, coefficients):
        """The sum of what each map's features and weights give for the rows of Z."""
        views = Views(self.columns, Z, self.landmarks_)
        return sum(a_map.score(views, c) for a_map, c in zip(self.maps.values(), coefficients))


class Views(dict):
    """What the maps ask of the same rows, each made when it is first asked for.

    ``views["rank"]`` is a version of the rows, ``views["rank", city_block]`` its distances from that of the landmarks.
    """

    def __init__(self, columns, Z, landmarks=None):
        super().__init__(scaled=Z)
        self.columns = columns
        self.landmarks = self if landmarks is None else landmarks

    def __missing__(self, key):
        if isinstance(key, tuple):
            version, distance = key
            self[key] = distance(self[version], self.landmarks[version])
        else:
            self[key] = getattr(self.columns, key)(self["scaled"])
        return self[key]


class LinearMap:
    """The columns themselves, so scaled that the mean squared distance of a row from the mean row is 1."""

    def __init__(self, *versions):
        self.versions = versions

    def fit(self, views):
        F = self._columns(views)
        squares = F.multiply(F) if sp.issparse(F) else F * F
        variance = squares.mean(axis=0, dtype=np.float64) - F.mean(axis=0, dtype=np.float64) ** 2
        self.scale_ = np.float32(1 / np.sqrt(max(variance.sum(), 1e-12)))
        return self

    def transform(self, views):
        return self._columns(views) * self.scale_

    def described(self):
        return "linear", self.versions

    def coefficients(self, w):
        return w * self.scale_

    def score(self, views, coefficients):
        return self._columns(views) @ coefficients

    def _columns(self, views):
        parts = [views[version] for version in self.versions]
        return np.hstack(parts) if len(parts) > 1 else parts[0]


class LandmarkMap:
    """Similarities to the landmarks, turned into features whose products are the similarities.

        k(x, c)  = mean over the terms of  exp(-(|x - c| / (width * median |x - c|)) ** power)
        features = k(x, landmarks) @ inv(L).T,   where  L @ L.T = k(landmarks, landmarks) + ridge

    A term is (version, distance, power, width).

    Reference: C. Williams, M. Seeger. Using the Nystroem Method to Speed Up Kernel Machines. NIPS 2000.
    """

    def __init__(self, *terms):
        self.terms = terms

    def fit(self, views):
        self.median_ = [_median(views.landmarks[version, distance]) for version, distance, *_ in self.terms]
        ((_, K),) = self._kernel_chunks(views.landmarks, chunk=len(views.landmarks["scaled"]))
        self.scale_ = np.float32(1 / np.sqrt(max(1 - K.mean(dtype=np.float64), 1e-3)))
        self.L_ = _factor(K)
        return self

    def transform(self, views):
        F = np.empty((len(views["scaled"]), len(self.L_)), np.float32)
        for rows, K in self._kernel_chunks(views):
            F[rows] = solve_triangular(self.L_, K.T, lower=True, overwrite_b=True, check_finite=False).T
        F *= self.scale_
        return F

    def described(self):
        return "landmarks", [(version, distance.__name__, *rest) for version, distance, *rest in self.terms]

    def coefficients(self, w):
        """By how much each landmark counts."""
        return solve_triangular(self.L_, w * self.scale_, lower=True, trans=1, check_finite=False)

    def score(self, views, coefficients):
        """``transform(views) @ w``, without a need for the features."""
        return np.concatenate([K @ coefficients for _, K in self._kernel_chunks(views)])

    def _kernel_chunks(self, views, chunk=CHUNK):
        """Yield rows, few enough to stay in the cache, and their similarities to the landmarks."""
        for i in range(0, len(views["scaled"]), chunk):
            rows = slice(i, i + chunk)
            K = 0
            for (version, distance, power, width), median in zip(self.terms, self.median_):
                D = views[version, distance][rows] / (-median * np.float32(width))
                if power == 2:
                    D *= -D
                K += np.exp(D, out=D)
            K /= np.float32(len(self.terms))
            yield rows, K


def _factor(K, ridge=RIDGE):
    """The Cholesky factor of K + ridge, or more of it where rounding has left K further from positive definite."""
    try:
        return cholesky(K + ridge * np.eye(len(K), dtype=K.dtype), lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return _factor(K, 10 * ridge)


def _median(D):
    """The median of the distances between rows that are not the same, from some of them."""
    D = D[:300]
    D = D[D > 1e-3]
    return np.float32(np.median(D)) if len(D) else np.float32(1)


def euclidean(X, C):
    """Euclidean distances of the rows of X from those of C."""
    D = X @ (-2 * C.T)
    D += np.einsum("ij,ij->i", X, X)[:, None]
    D += np.einsum("ij,ij->i", C, C)
    return np.sqrt(np.maximum(D, 0, out=D), out=D)


def city_block(X, C):
    """City-block distances of the rows of X from those of C."""
    return cdist(X, C, "cityblock").astype(np.float32)


DISTANCES = {distance.__name__: distance for distance in (euclidean, city_block)}


def plain_features():
    """The scaled columns and the bias, as they are."""
    return Features(None, {"linear": LinearMap("scaled")})


def rich_features(n_landmarks, small, quick):
    """The columns, and similarities to landmarks that fall off as a bell, with a peak, or, mixed, as both.

    Only ``small`` data leaves time for all of them. ``quick`` leaves out ranks and city-block distances, which are dear
    in many columns; there rows lie at much the same distance from each other, and wider similarities do better.
    """
    bell = ("standard", euclidean, 2)
    if quick:
        linear, peak = LinearMap("standard"), ("standard", euclidean, 1)
        mixed = LandmarkMap((*bell, 0.5), (*bell, 1), (*bell, 2), (*peak, 1))
    else:
        linear, peak = LinearMap("standard", "rank"), ("rank", city_block, 1)
        mixed = LandmarkMap((*bell, 0.5), (*peak, 0.5))
    maps = {"linear": linear, "mixed": mixed}
    if small:
        maps["smooth"] = LandmarkMap((*bell, 1))
        maps["rough"] = LandmarkMap((*peak, 1))
    return Features(Columns(ranked=not quick), maps, n_landmarks)


class Model:
    """What turns raw rows into scores: a fitted `Preprocessor`, fitted `Features` and how much each of these counts.

    ``like`` is a `Data` without rows whose labels are the two classes: what a file to score must share with that of the
    training rows. ``calibration``, arrays by name, and ``about``, a dict, are kept beside it in the file.
    """

    def __init__(self, preprocessor, features, keep_sparse, like=None, calibration=None, about=None):
        self.preprocessor = preprocessor
        self.features = features
        self.keep_sparse = keep_sparse
        self.like = like
        self.calibration = calibration or {}
        self.about = about or {}

    def scale(self, X):
        """The rows of X as the features see them."""
        Z = self.preprocessor.transform(X)
        return Z.toarray() if sp.issparse(Z) and not self.keep_sparse else Z

    def weigh(self, coefficients, intercept):
        """Take over what was learned: how much the features of each map count, and what to add to the score."""
        self.coefficients = coefficients
        self.intercept = np.float64(intercept)
        return self

    def score(self, X):
        """The scores of the rows of X, so many of them at a time that memory stays small."""
        rows = range(0, X.shape[0], SCORED)
        parts = [self.features.score(self.scale(X[i : i + SCORED]), self.coefficients) for i in rows]
        return np.concatenate(parts) + self.intercept

    def save(self, path):
        """Write arrays and JSON into a .npz file, whole or not at all."""
        preprocessor, features = self.preprocessor, self.features
        arrays = {f"rows.{name}": getattr(preprocessor, name) for name in ("mean_", "kept_", "extremes_")}
        arrays["intercept"] = self.intercept
        if features.columns is not None:
            arrays.update({f"columns.{name}": A for name, A in features.columns.arrays().items()})
            arrays["landmarks"] = features.landmarks_["scaled"]
        maps = dict(zip(features.maps, zip(features.maps.values(), self.coefficients)))  # those that were learned from
        for name, (a_map, coefficients) in maps.items():
            arrays[f"coefficients.{name}"] = coefficients
            if isinstance(a_map, LandmarkMap):
                arrays[f"median.{name}"] = np.array(a_map.median_)
        arrays.update({f"calibration.{name}": A for name, A in self.calibration.items()})
        told = {
            **self.about,
            "format": FORMAT,
            "n_features": self.like.X.shape[1],
            "sparse": sp.issparse(self.like.X),
            "keep_sparse": bool(self.keep_sparse),
            "classes": self.like.y.tolist(),
            "names": self.like.names,
            "label": self.like.label,
            "categories": list(self.like.categories.items()),
            "first_index": self.like.first_index,
            "maps": {name: a_map.described() for name, (a_map, _) in maps.items()},
        }
        write_whole(path, lambda file: np.savez_compressed(file, about=np.array(json.dumps(told)), **arrays))

    @classmethod
    def load(cls, path):
        """Read what `save` has written."""
        _check_file(Path(path))
        arrays = _read_npz(Path(path))
        try:
            about = json.loads(str(arrays["about"]))
            found = about["format"]
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{path} is not a model file that --save has written") from None
        if found != FORMAT:
            raise InputError(
                f"{path} is a model of format {found}, expected {FORMAT}: was it saved by a newer version?"
            )
        try:
            model = cls._rebuild(about, arrays)
            rows = np.zeros((2, about["n_features"]))
            with np.errstate(all="ignore"):
                trial = model.score(sp.csr_array(rows) if about["sparse"] else rows)
            if len(model.like.y) != 2 or trial.shape != (2,) or not np.isfinite(trial).all():
                raise ValueError("it has not two classes, or no finite scores")
        except Exception as error:  # whatever does not fit together
            raise InputError(f"{path} is damaged: {_reason(error)}") from error
        return model

    @classmethod
    def _rebuild(cls, about, arrays):
        def part(prefix):
            return {name.removeprefix(prefix): A for name, A in arrays.items() if name.startswith(prefix)}

        n = about["n_features"]
        empty = sp.csr_array((0, n)) if about["sparse"] else np.empty((0, n))
        categories = dict(about["categories"])
        like = Data(
            empty, np.array(about["classes"]), None, about["names"], about["label"], categories, about["first_index"]
        )
        preprocessor = Preprocessor()
        vars(preprocessor).update(part("rows."))
        if preprocessor.mean_.shape != (n,):
            raise ValueError(f"it has means of {_size(preprocessor.mean_)} features, expected {n}")
        preprocessor.fit_scaler(about["sparse"])
        columns = Columns.from_arrays(part("columns.")) if "landmarks" in arrays else None
        medians = part("median.")
        maps = {name: make_map(*described, medians.get(name)) for name, described in about["maps"].items()}
        features = Features(columns, maps)
        if columns is not None:
            features.landmarks_ = Views(columns, arrays["landmarks"])
        model = cls(preprocessor, features, about["keep_sparse"], like, part("calibration."), about)
        return model.weigh([arrays[f"coefficients.{name}"] for name in maps], arrays["intercept"])


def make_map(kind, parts, medians):
    """A map from what its ``described`` has said of it."""
    if kind == "linear":
        return LinearMap(*parts)
    a_map = LandmarkMap(*((version, DISTANCES[distance], *rest) for version, distance, *rest in parts))
    a_map.median_ = list(medians)
    return a_map


def write_whole(path, write):
    """Call ``write`` with a file to write to; what was at ``path`` before stays until all is written."""
    path = Path(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        try:
            with part.open("wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {_reason(error)}") from error
