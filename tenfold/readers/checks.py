"""What every file must satisfy, whatever its format: rows of real numbers, a label and perhaps two costs for each."""

import math
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp
from joblib import cpu_count

from preprocess import InputError, as_float
from tenfold.readers.base import allow, is_missing, size

ROW_BYTES, COLUMN_BYTES = 100, 500  # of memory that a row or a column costs beside its cells
BLOCK = 256, 256  # rows and columns that are turned from column order into row order at a time


def check(path, data, like, as_stored=False):
    """Bring X to row order, dense or CSR, and y to one dimension, and refuse what cannot be learned from.

    If ``as_stored``, a dense X stays as it is, or where it is.
    """
    X = data.X
    if X.dtype.kind not in "buif":
        found = {"c": "complex numbers", "U": "text", "S": "text"}.get(
            X.dtype.kind, "a struct, a cell array or objects"
        )
        raise InputError(f"{path}: x holds {found}, expected real numbers")
    if X.ndim != 2:
        raise InputError(f"{path}: x has {X.ndim} dimensions, expected 2 (rows x features)")
    if 0 in X.shape:
        raise InputError(f"{path}: x is {size(X)}, expected at least one row and one feature")
    if data.y is not None:
        data.y = _check_labels(path, native(data.y), X)
    if data.cost is not None:
        data.cost = _check_cost(path, native(data.cost), X)
    cells = X.nnz if sp.issparse(X) else X.size
    n_bytes = cells * X.dtype.itemsize + X.shape[0] * ROW_BYTES + X.shape[1] * COLUMN_BYTES
    allow(path, n_bytes, f"x, which is {size(X)},")
    if like is not None and X.shape[1] != like.X.shape[1]:
        raise InputError(f"{path} has {X.shape[1]} features, expected {like.X.shape[1]} as in the training file")
    if sp.issparse(X):
        data.X = X = native(X)  # lest what it takes the place of be kept
        X.sum_duplicates()
        X.data = _narrow(X.data)
        X = sp.csr_array(X)
        X.eliminate_zeros()
    if like is not None and sp.issparse(X) != sp.issparse(like.X):
        allow(path, math.prod(X.shape) * X.dtype.itemsize, "x, which is dense in the training file,")
        X = X.toarray() if sp.issparse(X) else sp.csr_array(as_float(X))
    data.X = X if as_stored else in_rows(X)


def _check_labels(path, y, X):
    if sp.issparse(y):
        allow(path, math.prod(y.shape) * y.dtype.itemsize, "y")
        y = y.toarray()
    if y.dtype.kind not in "buifU":
        raise InputError(f"{path}: y holds neither numbers nor text, expected one label a row")
    if y.ndim > 2 or (y.ndim == 2 and 1 not in y.shape):
        raise InputError(f"{path}: y is {size(y)}, expected one label for each of the {X.shape[0]} rows of x")
    y = y.ravel()
    if len(y) != X.shape[0]:
        hint = "; x seems to be transposed" if len(y) == X.shape[1] else ""
        raise InputError(f"{path}: x has {X.shape[0]} rows and y has {len(y)} labels, expected the same number{hint}")
    if isinstance(y, np.memmap):
        y = np.array(y)
    if y.dtype.kind == "U":
        if y.dtype.itemsize and y.view(np.uint32).max() > sys.maxunicode:
            raise InputError(f"{path} is damaged: y holds characters that do not exist")
        y = np.char.strip(y)
    if y.dtype.kind == "U":
        missing = sum(n for label, n in Counter(y.tolist()).items() if is_missing(label))
    else:
        missing = np.count_nonzero(~np.isfinite(y))
    if missing:
        raise InputError(
            f"{path}: {missing} of {len(y)} labels are missing or infinite, expected a label for every row"
        )
    return y


def _check_cost(path, cost, X):
    if sp.issparse(cost) or cost.dtype.kind not in "buif" or cost.shape != (X.shape[0], 2):
        raise InputError(f"{path}: the costs are {size(cost)}, expected two numbers for each of {X.shape[0]} rows")
    cost = cost.astype(np.float64)
    if not (np.isfinite(cost).all() and (cost >= 0).all() and (cost.max(axis=0) > 0).all()):
        raise InputError(
            f"{path}: some costs are negative, missing or infinite, or all are 0; expected numbers of at least 0"
        )
    return cost


def native(A):
    """The array in this machine's byte order."""
    return A.astype(A.dtype.newbyteorder("="), copy=False)


def _narrow(cells):
    """The cells in float32 if they are float64 and that holds each of them exactly, as it does counts, else as is."""
    if cells.dtype != np.float64:
        return cells
    with np.errstate(over="ignore"):
        narrow = cells.astype(np.float32)
    return narrow if ((narrow == cells) | np.isnan(narrow)).all() else cells


def in_rows(A, rows=None):
    """An array, or the rows of it with these numbers, in row order and this machine's byte order.

    If that takes a copy, it is made on all cores, by blocks that fit into a cache.
    """
    if is_in_rows(A):
        return native(A if rows is None else A[rows])
    n = A.shape[0] if rows is None else len(rows)
    copy = np.empty((n, A.shape[1]), A.dtype.newbyteorder("="))
    n_rows, n_columns = BLOCK

    def copy_rows(i):
        some = slice(i, i + n_rows)
        for j in range(0, A.shape[1], n_columns):
            columns = slice(j, j + n_columns)
            copy[some, columns] = A[some if rows is None else rows[some], columns]

    with ThreadPoolExecutor(cpu_count()) as threads:
        for _ in threads.map(copy_rows, range(0, n, n_rows)):
            pass  # but what went wrong in a thread goes wrong here
    return copy


def is_in_rows(A):
    """Whether an array lies in memory, and each of its rows in one piece, as those of a sparse one do."""
    return sp.issparse(A) or (A.flags.c_contiguous and not isinstance(A, np.memmap))


def check_indices(rows, pointers, shape):
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
