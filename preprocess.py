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

FARTHEST = 1e6  # how many times the range of the training rows another row may lie away from them


class InputError(ValueError):
    """The user's input cannot be used; the message is one line for the user."""

    def __init__(self, message):
        super().__init__(" ".join(message.split()))


def find_classes(y, positive=None):
    """The two labels, negative first. The rarer is positive unless named; of two equally frequent ones the greater."""
    values, counts = np.unique(y, return_counts=True)
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
    strange = set(y.tolist()).difference(classes.tolist())
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

    - missing: NaN and infinities become the training mean of their column;
    - constant columns, and all but the first of exactly equal columns, are dropped;
    - scale: `MinMaxScaler`, or `MaxAbsScaler` for sparse rows, whose zeros stay zeros;
    - bias: a last column of ones.

    The result has the type float32, and is sparse if the training rows were.

    Attributes
    ----------
    kept_ : ndarray of the indices of the columns that are kept
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
        X = as_float(self._validate(X))
        self.mean_, missing = _column_means(X)
        if missing:
            X = _fill(X, self.mean_)
        low, high = _extremes(X)
        varying = np.flatnonzero(low < high)
        if not len(varying):
            rows = "the training rows" if X.shape[0] > 1 else "1 sample"
            raise InputError(f"no feature varies over {rows}, expected at least one to learn from")
        self.kept_ = varying[_first_of_equals(X, varying, np.column_stack([low, high, self.mean_]))]
        self.changes_ = {
            "constant": X.shape[1] - len(varying),
            "duplicated": len(varying) - len(self.kept_),
            "missing": missing,
        }
        self.extremes_ = np.stack([low, high])[:, self.kept_].astype(np.float64)
        return self._fit_scaler(sp.issparse(X))

    @classmethod
    def from_arrays(cls, arrays, n_features, sparse):
        """A fitted preprocessor from what `arrays` of another returns."""
        preprocessor = cls()
        vars(preprocessor).update(arrays, n_features_in_=n_features)
        if preprocessor.mean_.shape != (n_features,):
            raise ValueError(f"it has means of {len(preprocessor.mean_)} features, expected {n_features}")
        return preprocessor._fit_scaler(sparse)

    def arrays(self):
        """All that was learned, as arrays by name."""
        return {name: getattr(self, name) for name in ("mean_", "kept_", "extremes_")}

    def _fit_scaler(self, sparse):
        """The extremes of the columns that are kept are all that scaling learns from."""
        self.unit_ = _unit(self.extremes_)
        scaler = MaxAbsScaler() if sparse else MinMaxScaler()
        self.scaler_ = scaler.fit(self.extremes_ * self.unit_)
        self.n_features_out_ = len(self.kept_) + 1
        return self

    def transform(self, X):
        """The rows of X, clean and scaled, with a last column of ones."""
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        if sp.issparse(X) and isinstance(self.scaler_, MinMaxScaler):
            X = X.toarray()  # as the training rows were
        X = take(_fill(as_float(X), self.mean_), self.kept_)
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

    def get_feature_names_out(self, input_features=None):
        """The names of the columns that are kept, and "bias"."""
        names = super().get_feature_names_out(input_features)
        return np.append(names[self.kept_], "bias").astype(object)

    def _validate(self, X, **settings):
        return validate_data(self, X, accept_sparse="csr", ensure_all_finite=False, **settings)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def as_float(X):
    """Types of one byte become float32, which scales them well enough, all others float64."""
    with np.errstate(over="ignore"):
        return X.astype(np.float32 if X.dtype.itemsize == 1 else np.float64, copy=False)


def _cells(X):
    return X.data if sp.issparse(X) else X


def take(X, columns):
    """``X[:, columns]``, or X itself where that is all of it."""
    return X if len(columns) == X.shape[1] else X[:, columns]


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
