"""From a file to features.

``load`` turns a file into a `Data` of numbers and labels, ``signs`` the labels into +1 and -1, and `Preprocessor`,
fitted on training rows only, turns raw rows into what the learner sees: cleaned, scaled, with a last column of ones.

Whatever is wrong with a file is an `InputError` that says in one line what was found and what was expected.
"""

import bz2
import csv
import gzip
import warnings
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cholesky, solve_triangular
from scipy.spatial.distance import cdist
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

MISSING = {"", "na", "n/a", "nan", "null", "?"}
OPENERS = {".gz": gzip.open, ".bz2": bz2.open}
RANK_KNOTS = 201  # quantiles by which ranks are found
RIDGE = np.float32(1e-3)  # keeps nearly equal landmarks from blowing up
CHUNK = 512  # rows whose similarities are computed at a time
FARTHEST = 1e6  # how many times the range of the training rows another row may lie away from them


class InputError(ValueError):
    """The user's input cannot be used; the message is one line for the user."""

    def __init__(self, message):
        super().__init__(" ".join(message.split()))


@dataclass
class Data:
    """Rows and labels as they stand in a file, and what a test file must share with it.

    ``names`` are the features' names in the header of a CSV file, if it has one, ``categories`` maps its text columns
    to their values; ``first_index`` is where a LIBSVM file begins to count its features.
    """

    X: "np.ndarray | sp.csr_array"
    y: np.ndarray
    names: "list | None" = None
    categories: dict = field(default_factory=dict)
    first_index: "int | None" = None


def load(path, x_names=("x_tr",), y_names=("y_tr",), label=None, like=None):
    """Read a file by its ending: .csv, .npz, LIBSVM text (.svm, .libsvm, .txt, also .gz or .bz2), else MATLAB.

    ``x_names`` and ``y_names`` are the variables to look for, the first found is taken; ``label`` names the label
    column of a CSV file. ``like`` is the `Data` that this file's columns must match.
    """
    path = Path(path)
    ending = Path(path.stem if path.suffix.lower() in OPENERS else path.name).suffix.lower()
    try:
        if path.is_dir():
            raise InputError(f"{path} is a directory, expected a data file")
        if not path.exists():
            raise InputError(f"{path}: no such file")
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty, expected a data file")
        if ending == ".csv":
            data = _load_csv(path, label, like)
        elif ending in (".svm", ".libsvm", ".txt"):
            data = _load_libsvm(path, like)
        elif ending == ".npz":
            data = _load_npz(path, x_names, y_names)
        else:
            data = _load_mat(path, x_names, y_names)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {_reason(error)}") from error
    _check(path, data, like)
    return data


def _reason(error):
    return str(error) or type(error).__name__


def _listing(items, most=20):
    return ", ".join(map(str, items[:most])) + (", ..." if len(items) > most else "")


def _pick(path, available, names):
    """The first of ``names`` that is among the variables ``available`` in the file."""
    for name in names:
        if name in available:
            return name
    held = _listing(sorted(available)) or "no variables"
    raise InputError(
        f"{path} holds {held}; expected {' or '.join(names)} (--x-name and --y-name choose other variables)"
    )


def _load_mat(path, x_names, y_names):
    from scipy.io import loadmat, whosmat
    from scipy.io.matlab import MatReadWarning

    with path.open("rb") as file:
        head = file.read(20)
    if head.startswith((b"MATLAB 7.3", b"\x89HDF")):
        return _load_hdf5(path, x_names, y_names)
    try:
        available = [name for name, _, _ in whosmat(path, appendmat=False)]
    except Exception as error:  # SciPy's reader raises nearly anything on a damaged file
        raise InputError(f"{path} is not a MATLAB file, or is damaged: {_reason(error)}") from error
    names = [_pick(path, available, x_names), _pick(path, available, y_names)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", MatReadWarning)  # such as that a variable is there twice
            variables = loadmat(path, appendmat=False, variable_names=names)
        return Data(*(variables[name] for name in names))
    except Exception as error:
        raise InputError(f"{path} is damaged or cut short: {_reason(error)}") from error


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
        raise InputError(f"{path} is damaged or cut short: {_reason(error)}") from error


def _from_hdf5(node):
    if "MATLAB_sparse" in node.attrs:
        data, indptr = node["data"][()] if "data" in node else np.empty(0), node["jc"][()]
        indices = node["ir"][()] if "ir" in node else np.empty(0, int)
        return sp.csc_array((data, indices, indptr), shape=(int(node.attrs["MATLAB_sparse"]), len(indptr) - 1))
    if node.attrs.get("MATLAB_empty", 0):
        return np.empty(tuple(int(n) for n in node[()]))
    if not hasattr(node, "dtype"):
        return np.empty((), object)  # a struct
    if node.dtype.names == ("real", "imag"):
        return np.empty(node.shape, complex)
    A = np.asarray(node[()]).T
    is_text = node.attrs.get("MATLAB_class") == b"char"
    return np.ascontiguousarray(A, np.uint32).view("U1") if is_text else A


def _load_npz(path, x_names, y_names):
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            return Data(*(file[_pick(path, file.files, names)] for names in (x_names, y_names)))
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path} is not a .npz file of plain arrays, or is damaged: {_reason(error)}") from error


def _load_libsvm(path, like):
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(str(path), zero_based=True)
    except (ValueError, OverflowError, EOFError, zlib.error) as error:
        raise InputError(f"{path} is not LIBSVM text: {_reason(error)}") from error
    first = int(0 not in X.indices)
    if like is not None:
        if like.first_index is not None:
            if first < like.first_index:
                raise InputError(f"{path} counts its features from 0, expected from 1 as in the training file")
            first = like.first_index
        X.resize(X.shape[0], max(X.shape[1], like.X.shape[1] + first))  # the last may be zero in all rows of this file
    return Data(X[:, first:], y, first_index=first)


def _load_csv(path, label, like):
    """Numbers stay numbers; a column that holds any text becomes one column of 0 and 1 for each of its values."""
    rows = _read_csv(path)
    if len(rows[0]) < 2:
        raise InputError(f"{path} has a single column, expected features and a label with commas between them")
    names, target = _header(path, rows, label, like)
    columns = list(zip(*rows[names is not None :])) or [()] * len(rows[0])
    cells = columns.pop(target)
    y = _numbers(cells)
    if y is None:
        y = np.array(cells)
    if names is not None:
        del names[target]
        if like is not None and like.names not in (None, names):
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
            values = categories.setdefault(j, sorted({c.strip() for c in column if not _is_missing(c)}))
            parts.append(_indicators(column, values))
        else:
            raise InputError(f"{path}: feature {j + 1} holds text, expected numbers as in the training file")
    X = sp.hstack(parts, format="csr") if categories else np.hstack(parts)
    if categories and X.nnz > X.shape[0] * X.shape[1] / 10:
        X = X.toarray()
    return Data(X, y, names, categories)


def _read_csv(path):
    """The rows, as lists of equally many cells; empty lines are skipped."""
    try:
        with OPENERS.get(path.suffix.lower(), open)(path, "rt", newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file, strict=True) if row]
    except (csv.Error, UnicodeDecodeError, EOFError, zlib.error) as error:
        raise InputError(f"{path} is not CSV text in UTF-8: {_reason(error)}") from error
    if not rows:
        raise InputError(f"{path} has no rows, expected at least two")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise InputError(f"{path}: row {number} has {len(row)} cells, expected {len(rows[0])} as in the first row")
    return rows


def _header(path, rows, label, like):
    """The names in the first row, or None if it is no header, and the position of the label.

    A first row is a header if ``label`` is in it, or if what stands in the label's place is neither a number nor a
    label of another row.
    """
    first = [cell.strip() for cell in rows[0]]
    if label is not None:
        if label not in first:
            raise InputError(f"{path} has no column {label!r}; its first row is {_listing(first)}")
        return first, first.index(label)
    labels = {row[-1].strip() for row in rows[1:]}
    if like is not None:
        labels.update(map(str, np.unique(like.y)))
    is_label = _is_number(first[-1]) or _is_missing(first[-1]) or first[-1] in labels
    return None if is_label else first, len(first) - 1


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
        return np.array([np.nan if _is_missing(cell) else float(cell) for cell in cells])
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
    if y.dtype.kind not in "buifU":
        raise InputError(f"{path}: y holds neither numbers nor text, expected one label a row")
    if y.ndim > 2 or (y.ndim == 2 and 1 not in y.shape):
        raise InputError(f"{path}: y is {_size(y)}, expected one label for each of the {X.shape[0]} rows of x")
    y = np.char.strip(y.ravel()) if y.dtype.kind == "U" else y.ravel()
    if len(y) != X.shape[0]:
        hint = "; x seems to be transposed" if len(y) == X.shape[1] else ""
        raise InputError(f"{path}: x has {X.shape[0]} rows and y has {len(y)} labels, expected as many{hint}")
    missing = sum(map(_is_missing, y)) if y.dtype.kind == "U" else np.count_nonzero(~np.isfinite(y))
    if missing:
        raise InputError(
            f"{path}: {missing} of {len(y)} labels are missing or infinite, expected a label for every row"
        )
    if like is not None and X.shape[1] != like.X.shape[1]:
        raise InputError(f"{path} has {X.shape[1]} features, expected {like.X.shape[1]} as in the training file")
    if sp.issparse(X):
        if hasattr(X, "check_format"):  # else SciPy has checked it, in the form that older versions load
            try:
                X.check_format()
            except ValueError as error:
                raise InputError(f"{path} is damaged: {_reason(error)}") from error
        X = sp.csr_array(X)
        X.eliminate_zeros()
    if like is not None and sp.issparse(X) != sp.issparse(like.X):
        X = X.toarray() if sp.issparse(X) else sp.csr_array(_as_float(X))
    data.X = X if sp.issparse(X) else np.ascontiguousarray(X)
    data.y = y


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
        extremes = np.stack([low, high])[:, self.kept_].astype(np.float64)
        self.unit_ = _unit(extremes)
        scaler = MaxAbsScaler() if sp.issparse(X) else MinMaxScaler()
        self.scaler_ = scaler.fit(extremes * self.unit_)  # the extremes are all it learns from
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

    def score(self, Z, weights):
        """The sum of what each map's features and weights give for the rows of Z."""
        views = Views(self.columns, Z, self.landmarks_)
        return sum(a_map.score(views, w) for a_map, w in zip(self.maps.values(), weights))


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

    def score(self, views, w):
        return self._columns(views) @ (w * self.scale_)

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

    def score(self, views, w):
        """``transform(views) @ w``, without a need for the features."""
        alpha = solve_triangular(self.L_, w * self.scale_, lower=True, trans=1, check_finite=False)
        return np.concatenate([K @ alpha for _, K in self._kernel_chunks(views)])

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
