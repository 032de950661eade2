"""From a file to features.

``load`` turns a file into a `Data` of numbers and labels, ``signs`` the labels into +1 and -1, and `Preprocessor`,
fitted on training rows only, turns raw rows into what the learner sees: cleaned, scaled, with a last column of ones.

Whatever is wrong with a file is an `InputError` that says in one line what was found and what was expected.
"""

import bz2
import csv
import gzip
import zlib
from dataclasses import dataclass, field
from operator import contains
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

MISSING = {"", "na", "n/a", "nan", "null", "?"}


class InputError(ValueError):
    """The user's input cannot be used; the message is one line for the user."""


@dataclass
class Data:
    """Rows and labels as they stand in a file; ``categories`` maps each text column of a CSV file to its values."""

    X: "np.ndarray | sp.csr_array"
    y: np.ndarray
    categories: dict = field(default_factory=dict)


def load(path, x_names=("x_tr",), y_names=("y_tr",), label=None, like=None):
    """Read a file by its ending: .csv, .npz, LIBSVM text (.svm, .libsvm, .txt, also .gz or .bz2), else MATLAB.

    ``x_names`` and ``y_names`` are the variables to look for, the first found is taken; ``label`` names the label
    column of a CSV file. ``like`` is the `Data` that this file's columns must match.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a directory, expected a data file")
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty, expected a data file")
    endings = [s.lower() for s in path.suffixes]
    ending = endings[-2] if endings[-1:] in ([".gz"], [".bz2"]) and len(endings) > 1 else "".join(endings[-1:])
    try:
        if ending == ".csv":
            data = _load_csv(path, label, like)
        elif ending in (".svm", ".libsvm", ".txt"):
            data = _load_libsvm(path, like)
        elif ending == ".npz":
            data = _load_npz(path, x_names, y_names)
        else:
            data = _load_mat(path, x_names, y_names)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {_one_line(error)}") from error
    _check(path, data, like)
    return data


def _one_line(error):
    return " ".join(str(error).split()) or type(error).__name__


def _pick(path, available, names):
    """The first of ``names`` that is among the variables ``available`` in the file."""
    for name in names:
        if name in available:
            return name
    held = ", ".join(sorted(available)) or "no variables"
    raise InputError(
        f"{path} holds {held}; expected {' or '.join(names)} (--x-name and --y-name choose other variables)"
    )


def _load_mat(path, x_names, y_names):
    from scipy.io import loadmat, whosmat

    with path.open("rb") as file:
        head = file.read(20)
    if head.startswith((b"MATLAB 7.3", b"\x89HDF")):
        return _load_hdf5(path, x_names, y_names)
    try:
        available = [name for name, _, _ in whosmat(path, appendmat=False)]
    except Exception as error:  # SciPy's reader raises nearly anything on a damaged file
        raise InputError(f"{path} is not a MATLAB file, or is damaged: {_one_line(error)}") from error
    names = [_pick(path, available, x_names), _pick(path, available, y_names)]
    try:
        variables = loadmat(path, appendmat=False, variable_names=names)
        return Data(*(variables[name] for name in names))
    except Exception as error:
        raise InputError(f"{path} is damaged or cut short: {_one_line(error)}") from error


def _load_hdf5(path, x_names, y_names):
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
            return Data(*(_from_hdf5(file[_pick(path, available, names)]) for names in (x_names, y_names)))
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path} is damaged or cut short: {_one_line(error)}") from error


def _from_hdf5(node):
    if "MATLAB_sparse" in node.attrs:
        data, indptr = node["data"][()] if "data" in node else np.empty(0), node["jc"][()]
        indices = node["ir"][()] if "ir" in node else np.empty(0, int)
        return sp.csc_array((data, indices, indptr), shape=(int(node.attrs["MATLAB_sparse"]), len(indptr) - 1))
    if node.attrs.get("MATLAB_empty", 0):
        return np.empty(tuple(int(n) for n in node[()]))
    return np.asarray(node[()]).T if hasattr(node, "shape") else np.empty((), object)


def _load_npz(path, x_names, y_names):
    try:
        with np.load(path, allow_pickle=False) as file:
            return Data(*(file[_pick(path, file.files, names)] for names in (x_names, y_names)))
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path} is not a .npz file of plain arrays, or is damaged: {_one_line(error)}") from error


def _load_libsvm(path, like):
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(str(path))
    except (ValueError, OverflowError, EOFError, zlib.error) as error:
        raise InputError(f"{path} is not LIBSVM text: {_one_line(error)}") from error
    if like is not None and X.shape[1] < like.X.shape[1]:  # the last features may be zero in every row of this file
        X.resize(X.shape[0], like.X.shape[1])
    return Data(X, y)


def _load_csv(path, label, like):
    """Numbers stay numbers; a column that holds any text becomes one column of 0 and 1 for each of its values."""
    header, rows = _read_csv(path)
    width = len(rows[0]) if rows else len(header)
    for number, row in enumerate(rows, start=1 if header is None else 2):
        if len(row) != width:
            raise InputError(f"{path}: row {number} has {len(row)} cells, expected {width} as in the first row")
    target = _label_column(path, header, width, label)
    columns = list(zip(*rows)) or [()] * width
    cells = columns.pop(target)
    y = _numbers(cells)
    if y is None:
        y = np.array([cell.strip() for cell in cells])
    categories = {} if like is None else like.categories
    parts = []
    for j, column in enumerate(columns):
        numbers = None if j in categories else _numbers(column)
        if numbers is not None:
            parts.append(numbers[:, None])
        elif like is None or j in categories:
            values = categories.setdefault(j, sorted({c.strip() for c in column if not _is_missing(c)}))
            parts.append(_indicators(column, values))
        else:
            raise InputError(f"{path}: feature {j + 1} holds text, expected numbers as in the training file")
    X = sp.hstack(parts, format="csr") if categories else np.hstack(parts or [np.empty((len(rows), 0))])
    if categories and X.nnz > X.shape[0] * X.shape[1] / 10:
        X = X.toarray()
    return Data(X, y, categories)


def _read_csv(path):
    """The header, or None if there is none, and the rows below it.

    A first row without a number is a header, unless each of its cells stands again further down in its column.
    """
    opener = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix.lower(), open)
    try:
        with opener(path, "rt", newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file, strict=True) if row]
    except (csv.Error, UnicodeDecodeError, EOFError, zlib.error) as error:
        raise InputError(f"{path} is not CSV text in UTF-8: {_one_line(error)}") from error
    if not rows:
        raise InputError(f"{path} has no rows, expected at least two")
    first, below = rows[0], rows[1:]
    if any(_is_number(cell) for cell in first) or all(map(contains, zip(*below), first)):
        return None, rows
    return [cell.strip() for cell in first], below


def _label_column(path, header, width, label):
    if label is None:
        return width - 1
    if header is None:
        raise InputError(f"{path} has no header row, so --label {label} names no column of it")
    if label not in header:
        raise InputError(f"{path} has no column {label!r}; its columns are {', '.join(header)}")
    return header.index(label)


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
    try:
        return np.array(cells, str).astype(float)
    except ValueError:
        pass
    try:
        return np.array(["nan" if _is_missing(cell) else cell for cell in cells], str).astype(float)
    except ValueError:
        return None


def _indicators(column, values):
    """One sparse 0/1 column for each of ``values``; a cell that is none of them is zero in all."""
    index = {value: j for j, value in enumerate(values)}
    pairs = [(i, index[cell.strip()]) for i, cell in enumerate(column) if cell.strip() in index]
    i, j = zip(*pairs) if pairs else ((), ())
    return sp.csr_array((np.ones(len(pairs)), (i, j)), shape=(len(column), len(values)))


def _check(path, data, like):
    """Bring X to row order, dense or CSR, and y to one dimension, and refuse what cannot be learned from."""
    X, y = data.X, data.y.toarray() if sp.issparse(data.y) else data.y
    kind = X.dtype.kind
    if kind not in "buif":
        found = {"c": "complex numbers", "U": "text", "S": "text"}.get(kind, "a struct, a cell array or objects")
        raise InputError(f"{path}: x holds {found}, expected real numbers")
    if X.ndim != 2:
        raise InputError(f"{path}: x has {X.ndim} dimensions, expected 2 (rows x features)")
    if 0 in X.shape:
        raise InputError(f"{path}: x is {_size(X)}, expected at least one row and one feature")
    if y.dtype.kind not in ("buifU" if path.name.lower().find(".csv") > 0 else "buif"):
        raise InputError(f"{path}: y is not numeric, expected one number a row")
    if y.ndim > 2 or (y.ndim == 2 and 1 not in y.shape):
        raise InputError(f"{path}: y is {_size(y)}, expected one label for each of the {X.shape[0]} rows of x")
    y = y.ravel()
    if len(y) != X.shape[0]:
        hint = "; x seems to be transposed" if len(y) == X.shape[1] else ""
        raise InputError(f"{path}: x has {X.shape[0]} rows and y has {len(y)} labels, expected as many{hint}")
    missing = sum(map(_is_missing, y)) if y.dtype.kind == "U" else np.count_nonzero(y != y)
    if missing:
        raise InputError(f"{path}: {missing} of {len(y)} labels are missing, expected a label for every row")
    if like is not None and X.shape[1] != like.X.shape[1]:
        raise InputError(f"{path} has {X.shape[1]} features, expected {like.X.shape[1]} as in the training file")
    data.X = sp.csr_array(X) if sp.issparse(X) else np.ascontiguousarray(X)
    data.y = y


def _size(A):
    return " x ".join(str(n) for n in A.shape) or "a single value"


def find_classes(y, positive=None):
    """The two labels, negative first. The rarer is positive unless named; of two equally frequent ones the greater."""
    values, counts = np.unique(y, return_counts=True)
    if len(values) == 1:
        raise InputError(f"all {len(y)} labels are {show(values[0])}, expected two classes")
    if len(values) > 2:
        some = ", ".join(show(v) for v in values[:5]) + (", ..." if len(values) > 5 else "")
        raise InputError(f"the labels take {len(values)} values ({some}), expected two classes")
    if positive is None:
        return values if counts[1] <= counts[0] else values[::-1]
    for order in (values, values[::-1]):
        if positive == show(order[1]) or (
            _is_number(positive) and values.dtype.kind != "U" and float(positive) == order[1]
        ):
            return order
    raise InputError(f"--positive {positive} is none of the labels, which are {show(values[0])} and {show(values[1])}")


def signs(y, classes):
    """+1 where a label is the second of ``classes``, -1 where it is the first."""
    strange = [v for v in np.unique(y) if v not in classes]
    if strange:
        raise InputError(f"the label {show(strange[0])} is not one of {show(classes[0])} and {show(classes[1])}")
    return np.where(y == classes[1], 1, -1)


def show(label):
    """A label as a person would write it: 1 rather than 1.0."""
    return f"{label:g}" if isinstance(label, np.floating) else str(label)


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
    n_features_out_ : number of columns after `transform`, the bias included
    """

    def fit(self, X):
        X = _as_float(X)
        self.mean_, missing = _column_means(X)
        if missing:
            X = _fill(X, self.mean_)
        low, high = (A.toarray().ravel() if sp.issparse(A) else A for A in (X.min(axis=0), X.max(axis=0)))
        varying = np.flatnonzero(low < high)
        if not len(varying):
            raise InputError("no feature varies over the training rows, expected at least one to learn from")
        self.kept_ = varying[_first_of_equals(X, varying, np.column_stack([low, high, self.mean_]))]
        self.changes_ = {
            "constant": X.shape[1] - len(varying),
            "duplicated": len(varying) - len(self.kept_),
            "missing": missing,
        }
        scaler = MaxAbsScaler() if sp.issparse(X) else MinMaxScaler()
        self.scaler_ = scaler.fit(np.stack([low, high])[:, self.kept_])  # the extremes are all it learns from
        self.n_features_out_ = len(self.kept_) + 1
        return self

    def transform(self, X):
        X = self.scaler_.transform(self._select(_fill(_as_float(X), self.mean_)))
        if sp.issparse(X):
            return sp.hstack([X, np.ones((X.shape[0], 1))], format="csr", dtype=np.float32)
        Z = np.ones((X.shape[0], self.n_features_out_), np.float32)
        Z[:, :-1] = X
        return Z

    def _select(self, X):
        return X if len(self.kept_) == X.shape[1] else X[:, self.kept_]


def _as_float(X):
    """Small types become float32, which holds them exactly, all others float64: differences of integers would wrap."""
    return X.astype(np.float32 if np.can_cast(X.dtype, np.float32) else np.float64, copy=False)


def _cells(X):
    return X.data if sp.issparse(X) else X


def _column_means(X):
    """Means over the finite cells of each column, 0 where there are none, and the number of other cells."""
    mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    if np.isfinite(mean).all():
        return mean, 0
    finite = X.copy()
    bad = ~np.isfinite(_cells(X))
    _cells(finite)[bad] = 0
    n_bad = bad.sum(axis=0) if not sp.issparse(X) else np.bincount(X.indices[bad], minlength=X.shape[1])
    n_known = np.maximum(X.shape[0] - n_bad, 1)
    share = finite.multiply(1 / n_known) if sp.issparse(X) else finite / n_known  # divided first, lest the sum overflow
    return np.asarray(share.sum(axis=0, dtype=np.float64)).ravel(), int(n_bad.sum())


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
        by_summary.setdefault(summary[j].tobytes(), []).append(k)
    if sp.issparse(X):
        X = X.tocsc()
    first = []
    for group in by_summary.values():
        by_content = {_column_bytes(X, columns[k]) if len(group) > 1 else b"": k for k in reversed(group)}
        first.extend(by_content.values())
    return np.sort(first)


def _column_bytes(X, j):
    if sp.issparse(X):
        cells = slice(*X.indptr[j : j + 2])
        return X.indices[cells].tobytes() + X.data[cells].tobytes()
    return X[:, j].tobytes()
