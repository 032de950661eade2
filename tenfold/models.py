"""A fitted ranker: how raw rows become scores and probabilities, and how that is kept in a file."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import ThreadpoolController

from oam import TwoClassMixin
from preprocess import InputError, Preprocessor
from tenfold.columns import Columns
from tenfold.features import FeatureSets, Versions, make_feature_set
from tenfold.readers.base import Data, check_file, reason
from tenfold.readers.csv_columns import check_csv
from tenfold.readers.numpy_files import read_npz
from tenfold.writing import write_whole

FORMAT = 4  # of model files
VERSION = "1.3.0"  # of this program
SCORED = 2048  # rows scored at a time


@cache
def _thread_pools():
    return ThreadpoolController()


def one_thread():
    """A context in which matrix products take one thread: ours are small, and threads would wait for each other."""
    return _thread_pools().limit(limits=1)


class ScoreFunction:
    """What turns raw rows into scores: a fitted `Preprocessor`, fitted `FeatureSets`, and what was learned on top.

    The score of a row is ``slope * (sum over the feature sets of features @ weights + intercept) + offset``. Slope and
    offset, set by `calibrate`, make it the logarithm of the odds; without them there are no probabilities.
    """

    def __init__(self, preprocessor, feature_sets, keep_sparse):
        self.preprocessor = preprocessor
        self.feature_sets = feature_sets
        self.keep_sparse = keep_sparse
        self.slope, self.offset, self.is_calibrated = 1.0, 0.0, False

    def scale(self, X):
        """The rows of X as the feature sets see them."""
        Z = self.preprocessor.transform_rows(X)
        return Z.toarray() if sp.issparse(Z) and not self.keep_sparse else Z

    def set_weights(self, coefficients, intercept):
        """Take over what was learned: the coefficients of each feature set, and what to add to the score."""
        self.coefficients = coefficients
        self.intercept = np.float64(intercept)
        return self

    def calibrate(self, slope, offset):
        """Make the score the logarithm of the odds: ``slope * score + offset`` of what it is without this."""
        self.slope, self.offset, self.is_calibrated = np.float64(slope), np.float64(offset), True
        return self

    def __call__(self, X):
        """The scores of the rows of X."""
        return self.slope * (self._sum(X) + self.intercept) + self.offset

    def _sum(self, X):
        """The sum over the feature sets, of raw rows if these are enough."""
        if not self.feature_sets.take_raw or (self.preprocessor.unit_ != 1).any():
            return self._sum_in_chunks(X)
        total = self.feature_sets.score_raw(self.preprocessor, X, self.coefficients)
        far = np.flatnonzero(~np.isfinite(total))  # rows so far off that scaling has to bring them back
        if len(far):
            total[far] = self._sum_in_chunks(X[far])
        return total

    def _sum_in_chunks(self, X):
        """So many rows at a time that memory stays small."""
        chunks = (X[i : i + SCORED] for i in range(0, X.shape[0], SCORED))
        parts = [self.feature_sets.score(self.scale(rows).astype(np.float64), self.coefficients) for rows in chunks]
        return np.concatenate(parts)

    def score_scaled(self, Z):
        """The scores of rows that `scale` has given."""
        parts = [Z[i : i + SCORED].astype(np.float64) for i in range(0, Z.shape[0], SCORED)]
        total = np.concatenate([self.feature_sets.score(rows, self.coefficients) for rows in parts])
        return self.slope * (total + self.intercept) + self.offset

    def to_file(self):
        """All that `from_file` needs: arrays by name, and what JSON can hold."""
        feature_sets = self.feature_sets
        arrays = {f"preprocessor.{name}": A for name, A in self.preprocessor.arrays().items()}
        arrays["score"] = np.array([self.intercept, self.slope, self.offset])
        if feature_sets.columns is not None:
            arrays.update({f"columns.{name}": A for name, A in feature_sets.columns.arrays().items()})
            arrays["landmarks"] = feature_sets.landmarks_["scaled"]
        descriptions = {}
        for (name, feature_set), coefficients in zip(feature_sets.sets.items(), self.coefficients):
            arrays[f"coefficients.{name}"] = coefficients
            descriptions[name] = feature_set.description()
            arrays.update({f"set.{name}.{part}": A for part, A in feature_set.arrays().items()})
        about = {"keep_sparse": bool(self.keep_sparse), "feature_sets": descriptions, "calibrated": self.is_calibrated}
        return arrays, about

    @classmethod
    def from_file(cls, arrays, about):
        """The function whose `to_file` gave these."""

        def part(prefix):
            return {name.removeprefix(prefix): A for name, A in arrays.items() if name.startswith(prefix)}

        preprocessor = Preprocessor.from_arrays(part("preprocessor."), about["n_features"], about["sparse"])
        columns = Columns.from_arrays(part("columns.")) if "landmarks" in arrays else None
        sets = {name: make_feature_set(*parts, part(f"set.{name}.")) for name, parts in about["feature_sets"].items()}
        feature_sets = FeatureSets(columns, sets)
        if columns is not None:
            feature_sets.landmarks_ = Versions(columns, arrays["landmarks"])
        function = cls(preprocessor, feature_sets, about["keep_sparse"])
        intercept, slope, offset = arrays["score"]
        function.set_weights([arrays[f"coefficients.{name}"] for name in sets], intercept)
        return function.calibrate(slope, offset) if about["calibrated"] else function


class RankerMixin(TwoClassMixin):
    """What rankers share once they are fitted: a ``score_function_``, and ``data_``, a `Data` without rows.

    ``data_`` has the two classes for labels, and all else that a file to score must share with the training file.
    """

    def decision_function(self, X):
        """Scores of the rows of X, the logarithm of the odds of the second class: the higher, the likelier."""
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        if sp.issparse(self.data_.X) != sp.issparse(X):
            X = sp.csr_array(X) if sp.issparse(self.data_.X) else X.toarray()
        with one_thread(), np.errstate(invalid="ignore"):
            return self.score_function_(X)

    @available_if(lambda self: self._has_probabilities())
    def predict_proba(self, X):
        """The probability of each class, for each row of X."""
        probability = expit(self.decision_function(X))
        return np.column_stack([1 - probability, probability])

    def _has_probabilities(self):
        return True

    def save(self, path):
        """Write arrays and JSON into a .npz file, whole or not at all; `tenfold.load_model` reads it."""
        check_is_fitted(self)
        arrays, about = self.score_function_.to_file()
        about |= {
            "format": FORMAT,
            "version": VERSION,
            "estimator": type(self).__name__,
            "parameters": {name: value if _is_plain(value) else None for name, value in self.get_params().items()},
            "n_features": self.n_features_in_,
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
