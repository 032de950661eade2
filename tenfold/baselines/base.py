"""What the learners of this folder share.

They all have ``classes_``, of which the second is the positive one, and ``n_features_in_``. Costs go by scikit-learn's
``class_weight``. Throughout, ``y`` is +1 or -1, and ``cost`` what missing each row costs.
"""

from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from oam import TwoClassMixin, two_classes

COUNTS = ("batch", "epochs", "max_iter", "n_draws", "n_estimators")  # parameters that are whole numbers
CHOICES = {"how": ("under", "over", "between"), "loss": ("logistic", "hinge")}


def takes_sparse(estimator):
    """Whether the estimator learns from sparse rows."""
    return get_tags(estimator).input_tags.sparse


def scores(model, X):
    """What a fitted model ranks the rows of X by: its decision function or else its chance of the second class."""
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict_proba(X)[:, 1]


class TwoClass(TwoClassMixin, BaseEstimator):
    """What the learners here share: checks, and labels as signs."""

    def _check(self, X, y):
        """Rows and signs, once the parameters have been checked."""
        for name, value in self.get_params(deep=False).items():
            if name in COUNTS and (not isinstance(value, Integral) or value < 1):
                raise ValueError(f"{name} is {value!r}, expected a whole number of at least 1")
            if name in CHOICES and value not in CHOICES[name]:
                raise ValueError(f"{name} is {value!r}, expected one of {CHOICES[name]}")
            if name == "alpha" and not (isinstance(value, Real) and 0 <= value < np.inf):
                raise ValueError(f"alpha is {value!r}, expected a finite number of at least 0")
        X, y = self._validate(X, y)
        check_classification_targets(y)
        self.classes_ = two_classes(y)
        return X, np.where(y == self.classes_[1], 1, -1)

    def _validate(self, *X_y, **settings):
        accepted = "csr" if takes_sparse(self) else False
        return validate_data(self, *X_y, accept_sparse=accepted, dtype=[np.float64, np.float32], **settings)

    def _cost(self, y):
        cost = compute_sample_weight(self.class_weight, self.classes_[(y > 0).astype(int)])
        if not (np.isfinite(cost).all() and (cost > 0).all()):
            raise ValueError(f"class_weight is {self.class_weight!r}, expected finite numbers above 0")
        return cost

    def decision_function(self, X):
        """Scores of the rows of X: the higher, the likelier the second class."""
        check_is_fitted(self)
        return self._score(self._validate(X, reset=False))

    def _score(self, X):
        return X @ self.coef_[0] + self.intercept_[0]


class Meta(TwoClass):
    """A learner made of others, whose scores it averages."""

    _default = LogisticRegression(max_iter=1000)

    def _inner(self):
        return self._default if self.estimator is None else self.estimator

    def _fit_one(self, X, y, rng, **settings):
        """A fitted copy of the inner estimator, every ``random_state`` inside it drawn from ``rng``."""
        model = clone(self._inner())
        names = sorted(name for name in model.get_params() if name.split("__")[-1] == "random_state")
        model.set_params(**{name: rng.randint(np.iinfo(np.int32).max) for name in names})
        return model.fit(X, y, **settings)

    def _score(self, X):
        even = 0 if hasattr(self.estimators_[0], "decision_function") else 0.5
        return np.mean([scores(model, X) - even for model in self.estimators_], axis=0)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = takes_sparse(self._inner())
        return tags
