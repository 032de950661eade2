"""NumPy's files: arrays by name in a .npz file, and a stream of rows from a pair of .npy files."""

import math
import zipfile

import numpy as np
from numpy.lib import format as npy

from preprocess import InputError
from tenfold.readers.base import Data, allow, no_warnings, reason, size
from tenfold.readers.text import rows_at_a_time

ENDINGS = (".npz",)
STREAMED = ((".npy", ".npy"), (".npy",))  # features and labels, or features to score
OPTIONS = ("x-name", "y-name", "cost-name")


def load(path, wanted):
    return Data(**read_npz(path, lambda available: wanted.pick(path, available)))


def read_npz(path, pick=lambda available: dict(zip(available, available))):
    """The arrays that ``pick``, given the names of all that there are, maps to their names in the file."""
    try:
        with zipfile.ZipFile(path) as file, no_warnings():
            available = [name.removesuffix(".npy") for name in file.namelist()]
            return {array: _from_npz(path, file, name) for array, name in pick(available).items()}
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path} is not a .npz file of plain arrays, or is damaged: {reason(error)}") from error


def _from_npz(path, file, name):
    member = file.getinfo(f"{name}.npy")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name} is packed in a way that NumPy does not use")
    allow(path, member.file_size, name)
    read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    with file.open(member) as array:
        shape, _, dtype = read_header[npy.read_magic(array)](array)
        if math.prod(shape) * dtype.itemsize > member.file_size:
            raise ValueError(f"{name} has {member.file_size} bytes, expected {math.prod(shape)} of {dtype}")
    with file.open(member) as array:
        return npy.read_array(array)


def stream(paths, wanted, start=0, stop=None):
    if len(paths) == 1:
        yield from _stream_unlabelled(*paths, wanted, start, stop)
        return
    x_path, y_path = paths
    X, y = map_npy(x_path), map_npy(y_path)
    if X.ndim != 2 or X.size == 0 or y.size != len(X):
        raise InputError(f"{x_path} is {size(X)} and {y_path} is {size(y)}, expected rows x features and their labels")
    stop, n = len(X) if stop is None else stop, rows_at_a_time(X.shape[1], wanted.at_a_time)
    for i in range(start, stop, n):
        X, y = map_npy(x_path), map_npy(y_path)  # anew, so that what was read before leaves the memory
        rows = slice(i, min(i + n, stop))
        yield Data(np.array(X[rows]), np.array(y.reshape(-1)[rows])), (rows.stop - start) / (stop - start)


def _stream_unlabelled(path, wanted, start, stop):
    X = map_npy(path)
    if wanted.labelled or X.ndim != 2 or X.size == 0:
        raise InputError(f"{path} is {size(X)}, expected rows x features, and a second .npy file of their labels")
    stop, n = len(X) if stop is None else stop, rows_at_a_time(X.shape[1], wanted.at_a_time)
    for i in range(start, stop, n):
        last = min(i + n, stop)
        yield Data(np.array(map_npy(path)[i:last])), (last - start) / (stop - start)


def length(paths):
    """The rows of a pair."""
    X = map_npy(paths[0])
    return len(X) if X.ndim else None


def group(paths):
    """The pairs of features (rows x columns) and labels that these files make, in the order of their names."""
    features, labels = [], []
    for path in sorted(paths):
        A = map_npy(path)
        (features if A.ndim == 2 and A.shape[1] > 1 else labels).append(path)
    if len(paths) == 2 and len(features) != 1:  # as with a single column: then as they come
        return [tuple(paths)]
    if not labels:
        return [(path,) for path in features]
    if len(features) != len(labels):
        raise InputError(
            f"--stream with {len(features)} .npy files of features (rows x columns) and {len(labels)} of labels, "
            f"expected as many of both, such as x.npy and y.npy"
        )
    return list(zip(features, labels))


def map_npy(path):
    """The array of a .npy file, whose content stays where it is until it is asked for."""
    try:
        with no_warnings():
            return np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError:
        raise
    except Exception as error:  # NumPy raises nearly anything on a damaged header
        raise InputError(f"{path} is not a .npy file of plain numbers, or is cut short: {reason(error)}") from error
