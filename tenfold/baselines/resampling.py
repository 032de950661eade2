"""Learners on rows drawn so that the classes balance, or in proportion to costs."""

import numpy as np
from sklearn.utils import check_random_state

from tenfold.baselines.base import Meta


class Resampled(Meta):
    """An estimator that learns from as many rows of one class as of the other.

    Parameters
    ----------
    estimator : estimator, default=None
        What learns; None is a logistic regression.
    how : {"under", "over", "between"}, default="under"
        How many rows there are of each class: as of the rarer class, as of the commoner, or their geometric mean.
    random_state : int, RandomState instance or None, default=None
        Draws the rows, and seeds the estimator.

    Attributes
    ----------
    estimators_ : list of one estimator
        What has learned.

    References
    ----------
    H. He, E. A. Garcia. Learning from imbalanced data. IEEE Transactions on Knowledge and Data Engineering 21(9), 2009.
    """

    def __init__(self, estimator=None, *, how="under", random_state=None):
        self.estimator = estimator
        self.how = how
        self.random_state = random_state

    def fit(self, X, y):
        """Draw rows of X and learn from them."""
        X, y = self._check(X, y)
        rng = check_random_state(self.random_state)
        rows = resample(y, self.how, rng)
        self.estimators_ = [self._fit_one(X[rows], y[rows], rng)]
        return self


def resample(y, how, rng):
    """Numbers of rows, as many of one class as of the other.

    The commoner class is drawn from without replacement. Of the rarer class there are all rows, and then, with
    replacement, as many more as are needed.
    """
    rare, common = sorted((np.flatnonzero(y > 0), np.flatnonzero(y < 0)), key=len)
    size = {"under": len(rare), "over": len(common), "between": round(np.sqrt(len(rare) * len(common)))}[how]
    return np.concatenate([rare, rng.choice(rare, size - len(rare)), rng.choice(common, size, replace=False)])


class RejectionSampled(Meta):
    """Costing: the mean of estimators, each of which learns from rows kept with a chance proportional to their cost.

    A draw that lacks a class is given one row of it, drawn at random.

    Parameters
    ----------
    estimator : estimator, default=None
        What learns; None is a logistic regression.
    n_draws : int, default=10
        How many estimators there are.
    class_weight : dict, "balanced" or None, default="balanced"
        What missing a row of each class costs.
    random_state : int, RandomState instance or None, default=None
        Draws the rows, and seeds the estimators.

    Attributes
    ----------
    estimators_ : list of estimators
        What has learned from each draw.

    References
    ----------
    B. Zadrozny, J. Langford, N. Abe. Cost-sensitive learning by cost-proportionate example weighting. ICDM 2003.
    """

    def __init__(self, estimator=None, *, n_draws=10, class_weight="balanced", random_state=None):
        self.estimator = estimator
        self.n_draws = n_draws
        self.class_weight = class_weight
        self.random_state = random_state

    def fit(self, X, y):
        """Draw rows of X, ``n_draws`` times, and learn from each draw."""
        X, y = self._check(X, y)
        rng = check_random_state(self.random_state)
        cost = self._cost(y)
        self.estimators_ = []
        for _ in range(self.n_draws):
            rows = reject(cost, rng)
            for sign in np.setdiff1d([-1, 1], y[rows]):
                rows = np.append(rows, rng.choice(np.flatnonzero(y == sign)))
            self.estimators_.append(self._fit_one(X[rows], y[rows], rng))
        return self


def reject(cost, rng):
    """Numbers of the rows that stay when each does with the chance ``cost / highest cost``."""
    return np.flatnonzero(rng.random_sample(len(cost)) < cost / cost.max())
