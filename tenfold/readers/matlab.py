"""MATLAB files of levels 4 and 5, read by SciPy once they have been found in order."""

import io
import math
import struct
import zlib

import numpy as np
from scipy.io import loadmat

from preprocess import InputError
from tenfold.readers import hdf5
from tenfold.readers.base import TEXT_BYTES, Data, allow, reason, size
from tenfold.readers.checks import check_indices

ENDINGS = (".mat",)
OPTIONS = ("x-name", "y-name", "cost-name")

MOST_VARIABLES = 10_000
STORED = {  # by an array's class and the type of its numbers, where MATLAB has not chosen a smaller type
    (6, 9): "f8",
    (7, 7): "f4",
    (8, 1): "i1",
    (9, 2): "u1",
    (10, 3): "i2",
    (11, 4): "u2",
    (12, 5): "i4",
    (13, 6): "u4",
    (14, 12): "i8",
    (15, 13): "u8",
}


def load(path, wanted):
    with path.open("rb") as file:
        head = file.read(128)
        if head.startswith((b"MATLAB 7.3", b"\x89HDF")):
            return hdf5.load(path, wanted)
        try:
            variables = _list_mat(file, head)
            available = [variable.name for variable in variables]
            picked = wanted.pick(path, available)
            for name in picked.values():
                if available.count(name) > 1:
                    raise ValueError(f'Duplicate variable name "{name}"')
            return Data(**{array: variables[available.index(name)].load(path) for array, name in picked.items()})
        except InputError:
            raise
        except Exception as error:  # SciPy's reader raises nearly anything on a damaged file
            message = f"{path} is not a MATLAB file, or is damaged or cut short: {reason(error)}"
            if path.suffix.lower() not in ENDINGS:
                message += (
                    "; a file of another kind needs its usual ending, such as .csv (save an Excel workbook as CSV)"
                )
            raise InputError(message) from error


def _list_mat(file, head):
    """The variables of a MATLAB file of level 4, which begins with a small number, or 5, which begins with text."""
    is_level_4 = 0 in head[:4]
    order = {b"\0\1IM": "<", b"\1\0MI": ">"}.get(head[124:])
    if order is None and not is_level_4:
        raise ValueError("it does not begin as a MATLAB file")
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
    ``stored`` says how NumPy can map the array, if it is dense and needs no conversion; then SciPy does not see it.
    """

    stored = None

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
        if self.kind in "cO":  # complex numbers and objects are refused, whatever they are
            return np.empty((), complex if self.kind == "c" else object)
        self.check(path)
        if self.stored:
            return np.memmap(path, mode="r", order="F", **self.stored)
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
            raise ValueError(f"a variable that is {size(self)} where {_end(file) - at} bytes are left")
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
            allow(path, self.end - self.tag, self.name)
            if self.packed_size:
                self.body = self.tags = self._unpack()
                self.start = 0
            steps = [self._step(types) for types in (self.INDICES, self.INDICES, self.NUMBERS)]
            contents = (_read(self.tags, at, size // 4 * 4) for _, at, size in steps[:2])
            check_indices(*(np.frombuffer(content, f"{self.order}u4") for content in contents), self.shape)
            return
        is_text = self.kind == "U"
        type_, at, n_bytes = self._step(self.TEXTS if is_text else self.NUMBERS)
        allow(path, n_bytes * (TEXT_BYTES if is_text else 1), self.name)
        expected, found = math.prod(self.shape), n_bytes if is_text else n_bytes // self.WIDTHS[type_]
        if found < expected or (found > expected and not is_text):
            raise ValueError(f"{self.name} is {size(self)} but has {n_bytes} bytes of type {type_}")
        type_ = STORED.get((self.form, type_))
        if type_ and expected and len(self.shape) == 2 and not self.packed_size:
            self.stored = {"dtype": self.order + type_, "offset": at, "shape": self.shape}

    def _unpack(self):
        unpack, unpacked = zlib.decompressobj().decompress, io.BytesIO()
        self.body.seek(self.start + 8)
        for done in range(0, self.packed_size, 2**16):
            unpacked.write(unpack(self.body.read(min(self.packed_size - done, 2**16))))
            if unpacked.tell() > self.end:
                raise ValueError(f"{self.name} unpacks to more than {self.end} bytes")
        self.end = unpacked.tell()
        return unpacked
