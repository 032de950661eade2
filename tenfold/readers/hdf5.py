"""MATLAB files of version 7.3, which are HDF5 files, where h5py is installed."""

import math
import zlib

import numpy as np
import scipy.sparse as sp

from preprocess import InputError
from tenfold.readers.base import Data, allow, reason
from tenfold.readers.checks import check_indices

LONG_PIECE = 2**20  # bytes from which on a piece of an HDF5 array is looked into before HDF5 unpacks it


def load(path, wanted):
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
            picked = wanted.pick(path, available)
            return Data(**{array: _from_hdf5(path, file, name) for array, name in picked.items()})
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path} is damaged or cut short: {reason(error)}") from error


def _from_hdf5(path, file, name):
    """The array of that name. What is no array of numbers is not read, since it is refused whatever it holds."""
    node = _member(file, name)
    if "MATLAB_sparse" in node.attrs:
        data, indices = (_read_hdf5(path, node, key) if key in node else np.empty(0, int) for key in ("data", "ir"))
        indptr = _read_hdf5(path, node, "jc")
        shape = int(node.attrs["MATLAB_sparse"]), len(indptr) - 1
        check_indices(indices, indptr, shape)
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
    allow(path, max(node.size * node.dtype.itemsize, piece), name)
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
