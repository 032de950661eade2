"""From raw labels and rows to what the learner sees.

``find_classes`` and ``signs`` turn any two labels into +1 and -1; `Preprocessor`, fitted on training rows only, turns
raw rows into clean, scaled ones with a last column of ones, the bias.

Whatever is wrong with the input is an `InputError` that says in one line what was found and what was expected.
"""

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler
from sklearn.utils.validation import check_is_fitted, validate_data

CHUNK_CELLS = 2**17  # cells that are cleaned and scaled at a time
FEWEST_MISSING = 10  # training rows in which a column must be missing, and known, for another to say where
FARTHEST = 1e6  # how many times the range of the training rows another row may lie away from them


class InputError(ValueError):
    """The user's input cannot be used; the message is one line for the user."""

    def __init__(self, message):
        super().__init__(" ".join(message.split()))


def find_classes(y, positive=None, counts=None):
    """The two labels, negative first. The rarer is positive unless named; of two equally frequent ones the greater.

    Of a sample, ``counts`` says how many rows of each there are where it was drawn.
    """
    values, n_rows = np.unique(y, return_counts=True)
    counts = n_rows if counts is None else [counts[label] for label in values.tolist()]
    if len(values) == 1:
        raise InputError(f"all {len(y)} labels are {show(values[0])}, expected two classes")
    if len(values) > 2:
        some = listing([show(v) for v in values], most=5)
        raise InputError(f"the labels take {len(values)} values ({some}), expected two classes")
    if positive is None:
        return values if counts[1] <= counts[0] else values[::-1]
    same = [show(value) == positive for value in values]
    if not any(same) and values.dtype.kind != "U" and is_number(positive):
        same = [value == float(positive) for value in values]
    if any(same):
        return values if same[1] else values[::-1]
    raise InputError(f"--positive {positive} is none of the labels, which are {show(values[0])} and {show(values[1])}")


def signs(y, classes):
    """+1 where a label is the second of ``classes``, -1 where it is the first."""
    strange = set(np.unique(y).tolist()).difference(classes.tolist())
    if strange:
        raise InputError(f"the label {show(min(strange))} is not one of {show(classes[0])} and {show(classes[1])}")
    return np.where(y == classes[1], 1, -1)


def show(label):
    """A label as a person would write it: 1 rather than 1.0."""
    return str(label).removesuffix(".0")


def listing(items, most=20):
    """The first items, with commas between them."""
    return ", ".join(map(str, items[:most])) + (", ..." if len(items) > most else "")


def is_number(cell):
    """Whether a cell of text is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


class Preprocessor(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Clean and scale raw rows as learned from the training rows, and add a bias column.

    - missing: NaN and infinities become the training mean of their column, and if they are not rare in it, another
      column, behind all others, says with 0 or 1 where they were;
    - constant columns, and all but the first of exactly equal columns, are dropped;
    - scale: `MinMaxScaler`, or `MaxAbsScaler` for sparse rows, whose zeros stay zeros;
    - bias: a last column of ones.

    The result has the type float32, and is sparse if the training rows were.

    Attributes
    ----------
    kept_ : ndarray of the indices of the columns that are kept
    missing_ : ndarray of the indices of the columns for which another says where they are missing
    changes_ : dict that says how many columns were constant, how many were copies, and how many cells were missing
    extremes_ : ndarray of the least and the greatest value of each of these columns
    n_features_out_ : number of columns after `transform`, the bias included
    n_features_in_ : number of columns before it
    feature_names_in_ : their names, if the training rows were a data frame

    Examples
    --------
    >>> import numpy as np
    >>> from preprocess import Preprocessor
    >>> X = [[1, 7, 0], [2, 7, np.nan], [3, 7, 4]]
    >>> preprocessor = Preprocessor().fit(X)
    >>> preprocessor.transform(X)
    array([[0. , 0. , 1. ],
           [0.5, 0.5, 1. ],
           [1. , 1. , 1. ]], dtype=float32)
    >>> preprocessor.get_feature_names_out().tolist()
    ['x0', 'x2', 'bias']
    """

    def fit(self, X, y=None):
        """Learn means, constant and equal columns, and extremes from the rows of X; ``y`` is not used."""
        X = self._validate(X)
        self.mean_, extremes, fingerprint, n_missing, gaps = _describe_columns(X)
        varying = np.flatnonzero(extremes[0] < extremes[1])
        if not len(varying):
            rows = "the training rows" if X.shape[0] > 1 else "1 sample"
            raise InputError(f"no feature varies over {rows}, expected at least one to learn from")
        self.kept_ = varying[_first_of_equals(np.vstack([extremes, self.mean_, fingerprint, gaps])[:, varying])]
        told = np.flatnonzero(np.minimum(n_missing, X.shape[0] - n_missing) >= FEWEST_MISSING)
        self.missing_ = told[_first_of_equals(gaps[None, told])]
        self.changes_ = {
            "constant": X.shape[1] - len(varying),
            "duplicated": len(varying) - len(self.kept_),
            "missing": int(n_missing.sum()),
        }
        self.extremes_ = extremes[:, self.kept_]
        return self._fit_scaler(sp.issparse(X))

    @classmethod
    def from_arrays(cls, arrays, n_features, sparse):
        """A fitted preprocessor from what `arrays` of another returns."""
        preprocessor = cls()
        vars(preprocessor).update(arrays, n_features_in_=n_features)
        for name, length in ("kept_", n_features), ("missing_", n_features):
            places = arrays[name]
            if places.dtype.kind not in "iu" or places.ndim != 1 or not ((places >= 0) & (places < length)).all():
                raise ValueError(f"its {name.strip('_')} columns are not numbers of columns")
        if preprocessor.mean_.dtype.kind != "f" or preprocessor.extremes_.shape != (2, len(preprocessor.kept_)):
            raise ValueError("its means and extremes are not those of its columns")
        if preprocessor.mean_.shape != (n_features,):
            raise ValueError(f"it has means of {len(preprocessor.mean_)} features, expected {n_features}")
        return preprocessor._fit_scaler(sparse)

    def arrays(self):
        """All that was learned, as arrays by name."""
        return {name: getattr(self, name) for name in ("mean_", "kept_", "missing_", "extremes_")}

    def _fit_scaler(self, sparse):
        """The extremes of the columns that are kept are all that scaling learns from."""
        self.unit_ = _unit(self.extremes_)
        scaler = MaxAbsScaler() if sparse else MinMaxScaler()
        self.scaler_ = scaler.fit(self.extremes_ * self.unit_)
        self.n_features_out_ = len(self.kept_) + len(self.missing_) + 1
        return self

    def transform(self, X):
        """The rows of X, clean and scaled, with a last column of ones."""
        check_is_fitted(self)
        X = self._validate(X, reset=False, ensure_min_samples=0)
        if sp.issparse(X) != isinstance(self.scaler_, MaxAbsScaler):
            X = X.toarray() if sp.issparse(X) else sp.csr_array(as_float(X))  # as the training rows were
        bias = np.ones((X.shape[0], 1), np.float32)
        if sp.issparse(X):
            return sp.csr_array(sp.hstack([self._scale(X), self._gaps(X), bias], format="csr", dtype=np.float32))
        Z = np.empty((X.shape[0], self.n_features_out_), np.float32)
        for rows in row_chunks(X):
            np.concatenate([self._scale(X[rows]), self._gaps(X[rows]), bias[rows]], 1, out=Z[rows], casting="same_kind")
        return Z

    def _gaps(self, X):
        """1 where one of the columns ``missing_`` is missing, 0 elsewhere."""
        if not sp.issparse(X):
            return ~np.isfinite(X[:, self.missing_])
        gaps = X[:, self.missing_]
        gaps.data = (~np.isfinite(gaps.data)).astype(np.float32)
        return gaps

    def _scale(self, X):
        """The columns of X that are kept, without missing values, scaled as the scaler does it, but in place."""
        with np.errstate(over="ignore", invalid="ignore"):
            X = take(_fill(as_float(X, copy=True), self.mean_), self.kept_)
            cells, scaler = _cells(X), self.scaler_
            if (self.unit_ != 1).any():
                cells *= _of_cells(X, self.unit_)
                np.clip(cells, -1e300, 1e300, out=cells)
            if sp.issparse(X):
                cells /= _of_cells(X, scaler.scale_)
            else:
                cells *= scaler.scale_
                cells += scaler.min_
        np.clip(cells, -FARTHEST, FARTHEST, out=cells)
        return X

    def get_feature_names_out(self, input_features=None):
        """The names of the columns that are kept, of those that say what is missing, and "bias"."""
        names = super().get_feature_names_out(input_features)
        return np.array([*names[self.kept_], *(f"{name}_missing" for name in names[self.missing_]), "bias"], object)

    def _validate(self, X, **settings):
        return validate_data(self, X, accept_sparse="csr", ensure_all_finite=False, **settings)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def as_float(X, copy=False):
    """Types of one byte become float32, which scales them well enough, all others float64."""
    with np.errstate(over="ignore"):
        return X.astype(np.float32 if X.dtype.itemsize == 1 else np.float64, copy=copy)


def _cells(X):
    return X.data if sp.issparse(X) else X


def take(X, columns):
    """``X[:, columns]``, or X itself where that is all of it."""
    return X if len(columns) == X.shape[1] else X[:, columns]


def row_chunks(X):
    """Slices of rows that are few enough to stay in the cache."""
    n = max(CHUNK_CELLS // X.shape[1], 1)
    return [slice(i, i + n) for i in range(0, X.shape[0], n)]


def _unit(extremes):
    """Powers of two for columns so large that their range overflows, or so small that a scaler takes it for none."""
    largest = np.abs(extremes).max(axis=0)
    exponent = np.where((largest < 1e300) & (largest > 1e-10), 0, np.frexp(largest)[1])
    return np.ldexp(1.0, np.minimum(-exponent, 1023))


def _describe_columns(X):
    """Of each column: mean, extremes and fingerprint of its finite cells, number and fingerprint of the others.

    Columns that are equal have equal fingerprints, and hardly any others have.
    """
    describe = _describe_sparse if sp.issparse(X) else _describe_dense
    with np.errstate(over="ignore", invalid="ignore"):
        mean, low, high, fingerprint, missing, gaps = describe(X)
    mean = np.clip(mean, low, high)  # lest rounding make a constant vary
    if missing.any():  # a mean takes the place of each
        empty = missing == X.shape[0]
        mean, low, high = (np.where(empty, 0.0, A) for A in (mean, low, high))
    return mean, np.stack([low, high]).astype(np.float64) + 0.0, fingerprint, missing, gaps


def _describe_dense(X):
    n, d = X.shape
    mean, fingerprint, gaps, missing = np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d, int)
    low, high = np.full(d, np.inf), np.full(d, -np.inf)
    weight = _fingerprint_weights(n)
    for rows in row_chunks(X):
        cells = as_float(X[rows])
        if np.isfinite(cells.sum()):
            low, high = np.minimum(low, cells.min(axis=0)), np.maximum(high, cells.max(axis=0))
        else:
            bad = ~np.isfinite(cells)
            missing += bad.sum(axis=0)
            low = np.minimum(low, np.where(bad, np.inf, cells).min(axis=0))
            high = np.maximum(high, np.where(bad, -np.inf, cells).max(axis=0))
            gaps += (bad * weight[rows, None]).sum(axis=0)
            cells = np.where(bad, 0, cells)
        cells = cells / n  # first, lest the sum overflow
        mean += cells.sum(axis=0, dtype=np.float64)
        fingerprint += (cells * weight[rows, None]).sum(axis=0)
    return mean * (n / np.maximum(n - missing, 1)), low, high, fingerprint, missing, gaps


def _describe_sparse(X):
    n, d = X.shape
    cells = as_float(X.data)
    bad = ~np.isfinite(cells)
    known = np.where(bad, 0, cells) / n

    def total(weights):
        """The sum over each column, in the order of the rows, of weights that the stored cells have."""
        return np.bincount(X.indices, weights, minlength=d)

    missing = total(bad).astype(int)
    row_weight = np.repeat(_fingerprint_weights(n), np.diff(X.indptr))
    fingerprint, gaps = total(known * row_weight), total(bad * row_weight)
    some = X.copy()
    some.data = np.where(bad, np.nan, cells)
    low, high = some.nanmin(axis=0).toarray().ravel(), some.nanmax(axis=0).toarray().ravel()
    return total(known) * (n / np.maximum(n - missing, 1)), low, high, fingerprint, missing, gaps


def _fingerprint_weights(n):
    return np.random.RandomState(0).uniform(0.5, 1.5, n)


def _fill(X, mean):
    """X, in which the means have taken the place of missing values."""
    cells = _cells(X)
    if not np.isfinite(cells.sum()):
        bad = ~np.isfinite(cells)
        cells[bad] = np.broadcast_to(_of_cells(X, mean), cells.shape)[bad]
    return X


def _of_cells(X, of_columns):
    """What each column has, for each cell of X that is stored; of dense rows, for each row."""
    return of_columns[X.indices] if sp.issparse(X) else of_columns


def _first_of_equals(summary):
    """Positions, in order, of the columns of ``summary`` that equal none before them."""
    if any((np.diff(np.sort(row)) > 0).all() for row in summary):  # which is quicker to see than to sort by all rows
        return np.arange(summary.shape[1])
    order = np.lexsort(summary)  # equal ones stay in order
    differs = (summary[:, order[1:]] != summary[:, order[:-1]]).any(axis=0)
    return np.sort(order[np.append(True, differs)]) if len(order) else order
