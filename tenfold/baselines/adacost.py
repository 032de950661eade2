"""Cost-sensitive boosting."""

import numpy as np
from scipy.optimize import brentq
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state

from tenfold.baselines.base import Meta

# An estimator that is right more often than wrong by less than this may owe it to rounding.
NO_EDGE = 1e-12


class AdaCost(Meta):
    """AdaBoost in which missing a dear row raises its weight more, and getting it right lowers it less.

    A round fits an estimator to the rows weighted by ``D``, at first in proportion to cost. It says ``h``, +1 or -1:

        u = y h beta,   beta = (1 - c)/2 where h is right, (1 + c)/2 where it is wrong,   c = 1 - least cost / cost
        alpha, the estimator's vote, minimises  Z = sum of D exp(-alpha u)
        D becomes D exp(-alpha u) / Z

    As published, no ``alpha`` above 0 has a Z below 1 once the mean of ``c`` under ``D`` exceeds the estimator's edge,
    ``D @ (y h)``. With rare, dear positives that is often so at once. Here a round scales ``c`` down, to take no
    more than half the edge. So any estimator that is better than chance has a vote, and the product of all Z bounds the
    share of the cost that is missed in training, as it does where the published method can go on.

    With equal costs this is AdaBoost. As there, a flawless estimator is the last one, with a vote of 1, and one that is
    no better than chance ends the rounds.

    Parameters
    ----------
    estimator : estimator, default=None
        What is boosted; it has to take ``sample_weight``. None is a tree of one split.
    n_estimators : int, default=100
        Rounds, at most.
    class_weight : dict, "balanced" or None, default=None
        What missing a row of each class costs.
    random_state : int, RandomState instance or None, default=None
        Seeds the estimators.

    Attributes
    ----------
    estimators_ : list of estimators
        What has learned in each round.
    estimator_weights_ : ndarray of shape (len(estimators_),)
        Their votes, ``alpha``.

    References
    ----------
    W. Fan, S. J. Stolfo, J. Zhang, P. K. Chan. AdaCost: misclassification cost-sensitive boosting. ICML 1999.
    K. M. Ting. A comparative study of cost-sensitive boosting algorithms. ICML 2000.
    """

    _default = DecisionTreeClassifier(max_depth=1)

    def __init__(self, estimator=None, *, n_estimators=100, class_weight=None, random_state=None):
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.class_weight = class_weight
        self.random_state = random_state

    def fit(self, X, y):
        """Learn from the rows of X."""
        X, y = self._check(X, y)
        rng = check_random_state(self.random_state)
        cost = self._cost(y)
        D, c = cost / cost.sum(), 1 - cost.min() / cost
        models, votes, flawless = [], [], False
        while len(models) < self.n_estimators and not flawless:
            D = np.maximum(D, np.finfo(D.dtype).eps)
            model = self._fit_one(X, y, rng, sample_weight=D)
            right = model.predict(X) == y
            flawless = right.all()
            if D @ np.where(right, 1, -1) < NO_EDGE:
                break
            alpha, D = (1.0, D) if flawless else boost(D, right, c)
            models.append(model)
            votes.append(alpha)
        if not models:
            raise ValueError("The first estimator is no better than chance, expected one to boost")
        self.estimators_, self.estimator_weights_ = models, np.array(votes)
        return self

    def _score(self, X):
        """The weighted vote, from -1 to 1."""
        return np.average([model.predict(X) for model in self.estimators_], axis=0, weights=self.estimator_weights_)


def boost(D, right, c):
    """One round of `AdaCost`: the vote of an estimator that gets the rows ``right`` right, and the next weights."""
    sign = np.where(right, 1, -1)
    edge = D @ sign
    c = c * edge / max(edge, 2 * (D @ c))
    u = (sign - c) / 2
    alpha = least_Z(D, u)
    D = D * np.exp(-alpha * u)
    return alpha, D / D.sum()


def least_Z(D, u):
    """The ``alpha`` above 0 that minimises ``sum of D exp(-alpha u)``, which is convex and falls at 0."""

    def slope(alpha):
        return -(D * u) @ np.exp(-alpha * u)

    beyond = 1.0
    while slope(beyond) < 0:
        beyond *= 2
    return brentq(slope, 0, beyond)
