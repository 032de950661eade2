"""NumPy's files: arrays by name in a .npz file, and a stream of rows from a pair of .npy files."""

import math
import zipfile

import numpy as np
from numpy.lib import format as npy

from preprocess import InputError
from tenfold.readers.base import Data, allow, no_warnings, reason, size
from tenfold.readers.text import rows_at_a_time

ENDINGS = (".npz",)
STREAMED = ((".npy", ".npy"),)
OPTIONS = ("x-name", "y-name", "cost-name")


def load(path, wanted):
    return Data(**read_npz(path, lambda available: wanted.pick(path, available)))


def read_npz(path, pick=lambda available: dict(zip(available, available))):
    """The arrays that ``pick``, given the names of all that there are, maps to their names in the file."""
    try:
        with zipfile.ZipFile(path) as file:
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


def stream(paths, wanted):
    x_path, y_path = paths
    X, y = _map_npy(x_path), _map_npy(y_path)
    if X.ndim != 2 or X.size == 0 or y.size != len(X):
        raise InputError(f"{x_path} is {size(X)} and {y_path} is {size(y)}, expected rows x features and their labels")
    n_rows, n = len(X), rows_at_a_time(X.shape[1])
    for i in range(0, n_rows, n):
        X, y = _map_npy(x_path), _map_npy(y_path)  # anew, so that what was read before leaves the memory
        yield Data(np.array(X[i : i + n]), np.array(y.reshape(-1)[i : i + n])), min((i + n) / n_rows, 1)


def _map_npy(path):
    """The array of a .npy file, whose content stays where it is until it is asked for."""
    try:
        with no_warnings():
            return np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError:
        raise
    except Exception as error:  # NumPy raises nearly anything on a damaged header
        raise InputError(f"{path} is not a .npy file of plain numbers, or is cut short: {reason(error)}") from error
