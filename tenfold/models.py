"""A fitted ranker: how raw rows become scores and probabilities, and how that is kept in a file."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted, validate_data
from threadpoolctl import ThreadpoolController

from oam import TwoClassMixin
from preprocess import InputError, Preprocessor
from tenfold import __version__
from tenfold.columns import TableEncoder
from tenfold.features import SETS
from tenfold.features.rows import Columns, Rows
from tenfold.readers.base import Data, check_file, reason
from tenfold.readers.csv_columns import check_csv
from tenfold.readers.frames import from_frame
from tenfold.readers.numpy_files import read_npz
from tenfold.writing import write_whole

FORMAT = 5  # of model files
SCORED = 2048  # rows scored at a time


@cache
def _thread_pools():
    return ThreadpoolController()


def one_thread():
    """A context in which matrix products take one thread: ours are small, and threads would wait for each other."""
    return _thread_pools().limit(limits=1)


class ScoreFunction:
    """What turns raw rows into scores: a fitted `Preprocessor`, fitted sets of features, and what was learned on top.

    The score of a row is ``slope * (sum over the sets of features @ weights + intercept) + offset``. Slope and offset,
    set by `calibrate`, make it the logarithm of the odds; without them there are no probabilities.

    Parameters
    ----------
    preprocessor : Preprocessor
    sparse : bool, whether the sets of features take sparse rows
    train : the training `Rows`, of which columns and landmarks are kept, or None
    sets : list of each set of features with its coefficients
    intercept : float
    encoder : TableEncoder or None, which comes before all else
    """

    def __init__(self, preprocessor, sparse, train, sets, intercept, encoder=None):
        self.encoder = encoder
        self.preprocessor = preprocessor
        self.sparse = sparse
        self.columns = None if train is None else train.columns
        self.landmarks = None if self.columns is None else train.landmarks
        self.sets = sets
        self.intercept = np.float64(intercept)
        self.slope, self.offset, self.is_calibrated = 1.0, 0.0, False

    def calibrate(self, slope, offset):
        """Make the score the logarithm of the odds: ``slope * score + offset`` of what it is without this."""
        self.slope, self.offset, self.is_calibrated = (np.float64(slope), np.float64(offset), True)
        return self

    def __call__(self, X, new_values=None):
        """The scores of the rows of X, so many at a time that memory stays small."""
        parts = [self._sum(X[i : i + SCORED], new_values) for i in range(0, X.shape[0], SCORED)]
        total = np.concatenate(parts)
        return self.slope * (total + self.intercept) + self.offset

    def _sum(self, X, new_values):
        X = X if self.encoder is None else self.encoder.transform(X, new_values)
        Z = self.preprocessor.transform(X)
        Z = (Z.toarray() if sp.issparse(Z) and not self.sparse else Z).astype(np.float64)
        rows = Rows(Z, self.columns, self.landmarks)
        return sum(feature_set.score(rows, coefficients) for feature_set, coefficients in self.sets)

    def to_file(self):
        """All that `from_file` needs: arrays by name, and what JSON can hold."""
        arrays = {f"preprocessor.{name}": A for name, A in self.preprocessor.arrays().items()}
        arrays["score"] = np.array([self.intercept, self.slope, self.offset])
        if self.columns is not None:
            arrays.update({f"columns.{name}": A for name, A in self.columns.arrays().items()})
            arrays["landmarks"] = self.landmarks.scaled
        settings = {}
        for feature_set, coefficients in self.sets:
            name = feature_set.name
            settings[name], own = feature_set.to_file()
            arrays[f"coefficients.{name}"] = coefficients
            arrays.update({f"set.{name}.{part}": A for part, A in own.items()})
        about = {"keep_sparse": bool(self.sparse), "feature_sets": settings, "calibrated": self.is_calibrated}
        about["n_scaled"], about["columns"] = self.preprocessor.n_features_in_, None
        if self.encoder is not None:
            about["columns"], own = self.encoder.to_file()
            arrays.update({f"column.{name}": A for name, A in own.items()})
        return arrays, about

    @classmethod
    def from_file(cls, arrays, about):
        """The function whose `to_file` gave these."""

        def part(prefix):
            return {name.removeprefix(prefix): A for name, A in arrays.items() if name.startswith(prefix)}

        preprocessor = Preprocessor.from_arrays(part("preprocessor."), about["n_scaled"], about["sparse"])
        train = None
        if "landmarks" in arrays:
            columns = Columns.from_arrays(part("columns."))
            train = Rows(None, columns, Rows(arrays["landmarks"], columns))
        sets = [
            (SETS[name].from_file(settings, part(f"set.{name}.")), arrays[f"coefficients.{name}"])
            for name, settings in about["feature_sets"].items()
        ]
        intercept, slope, offset = arrays["score"]
        encoder = None if about["columns"] is None else TableEncoder.from_file(about["columns"], part("column."))
        function = cls(preprocessor, about["keep_sparse"], train, sets, intercept, encoder)
        return function.calibrate(slope, offset) if about["calibrated"] else function


class RankerMixin(TwoClassMixin):
    """What rankers share once they are fitted: a ``score_function_``, and ``data_``, a `Data` without rows.

    ``data_`` has the two classes for labels, and all else that a file to score must share with the training file.
    """

    def decision_function(self, X, new_values=None):
        """Scores of the rows of X, the logarithm of the odds of the second class: the higher, the likelier.

        ``new_values`` are values of text beyond those of ``categories``, by the number of the column.
        """
        check_is_fitted(self)
        if self.data_.csv is not None and hasattr(X, "columns"):
            data = from_frame(X, self.data_)
            X, new_values = data.X, data.new_values
        elif self.data_.csv is not None:  # rows of a table, as readers give them
            X = check_array(X, ensure_all_finite=False)
            if X.shape[1] != self.data_.X.shape[1]:
                raise ValueError(f"X has {X.shape[1]} features, expected {self.data_.X.shape[1]}")
        else:
            X = self._validate(X, reset=False)
        if sp.issparse(self.data_.X) != sp.issparse(X):
            X = sp.csr_array(X) if sp.issparse(self.data_.X) else X.toarray()
        with one_thread(), np.errstate(invalid="ignore"):
            return self.score_function_(X, new_values)

    @available_if(lambda self: self._has_probabilities())
    def predict_proba(self, X):
        """The probability of each class, for each row of X."""
        probability = expit(self.decision_function(X))
        return np.column_stack([1 - probability, probability])

    def _has_probabilities(self):
        return True

    def save(self, path):
        """Write arrays and JSON into a file whose name ends in .npz, whole or not at all; `load_model` reads it."""
        check_is_fitted(self)
        check_name(path)
        arrays, about = self.score_function_.to_file()
        about |= {
            "format": FORMAT,
            "version": __version__,
            "estimator": type(self).__name__,
            "parameters": {name: value if _is_plain(value) else None for name, value in self.get_params().items()},
            "n_features": self.data_.X.shape[1],
            "sparse": sp.issparse(self.data_.X),
            "classes": self.classes_.tolist(),
            "feature_names": self.feature_names_in_.tolist() if hasattr(self, "feature_names_in_") else None,
            "csv": self.data_.csv,
            "first_index": self.data_.first_index,
        }
        write_whole(path, lambda file: np.savez_compressed(file, about=np.array(json.dumps(about)), **arrays))

    def _restore(self, arrays, about):
        """Become the ranker that was saved, but for its parameters."""
        n = self.n_features_in_ = about["n_features"]
        self.classes_ = np.array(about["classes"])
        if about["feature_names"] is not None:
            self.feature_names_in_ = np.array(about["feature_names"], object)
        empty = sp.csr_array((0, n)) if about["sparse"] else np.empty((0, n))
        if about["csv"] is not None:
            check_csv(about["csv"], n)
        self.data_ = Data(empty, self.classes_, csv=about["csv"], first_index=about["first_index"])
        self.score_function_ = ScoreFunction.from_file(arrays, about)
        rows = np.zeros((2, n))
        with np.errstate(all="ignore"):
            trial = self.score_function_(sp.csr_array(rows) if about["sparse"] else rows)
        if len(self.classes_) != 2 or trial.shape != (2,) or not np.isfinite(trial).all():
            raise ValueError("it does not have two classes, or its scores are not finite")
        return self

    def _validate(self, X, **settings):
        return validate_data(self, X, accept_sparse="csr", ensure_all_finite=False, **settings)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def check_name(path):
    """Refuse to save a model under a name that is not that of a model."""
    if Path(path).suffix != ".npz":
        raise InputError(f"{path}: a model is saved under a name that ends in .npz")


def _is_plain(value):
    return value is None or isinstance(value, (bool, int, float, str))


def read_model(path, estimators):
    """The ranker, one of the classes ``estimators``, that has saved itself into this file."""
    check_file(Path(path))
    arrays = read_npz(Path(path))
    try:
        about = json.loads(str(arrays["about"]))
        found = about["format"]
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{path} is not a model file that --save has written") from None
    if found != FORMAT:
        raise InputError(f"{path} is a model of format {found}, expected {FORMAT}: was it saved by another version?")
    try:
        estimator = {estimator.__name__: estimator for estimator in estimators}[about["estimator"]]
        return estimator(**about["parameters"])._restore(arrays, about)
    except Exception as error:  # whatever does not fit together
        raise InputError(f"{path} is damaged: {reason(error)}") from error
