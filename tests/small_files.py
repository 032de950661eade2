"""Small files of several formats, for the tests of what reads them."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.io import savemat

X_SMALL = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 4.5], [3.0, -1.0, 0.0]])
Y_SMALL = np.array([1, -1, 1])


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def mat(path, **variables):
    savemat(path, variables, appendmat=False)
    return path


def hdf5(path, fill):
    """A file as MATLAB's -v7.3 writes it: 512 bytes of MATLAB's header, then HDF5."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w", userblock_size=512) as file:
        fill(file)
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")
    return path
