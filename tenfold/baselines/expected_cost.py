"""Logistic regression that minimises the expected cost."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from tenfold.baselines.base import TwoClass


class ExpectedCostLogistic(TwoClass):
    """Logistic regression that minimises the expected cost of its mistakes instead of the likelihood.

    A row is taken to be missed with chance ``sigmoid(-y (x @ w + b))``. That is not convex, and flat wherever a class
    is given up for lost. So the search starts at ``w_0``, the usual logistic regression with the same costs, and what
    is penalised is how far it goes from there:

        minimise   alpha/2 |w - w_0|^2 + sum of cost * sigmoid(-y (x @ w + b)) / sum of cost

    Parameters
    ----------
    alpha : float, default=1e-4
        Weight of the penalty.
    class_weight : dict, "balanced" or None, default=None
        What missing a row of each class costs.
    max_iter : int, default=200
        Iterations of L-BFGS, at most.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features_in_)
        The weights.
    intercept_ : ndarray of shape (1,)
        The intercept.
    n_iter_ : int
        Iterations of L-BFGS.

    References
    ----------
    A. C. Bahnsen, D. Aouada, B. Ottersten. Example-dependent cost-sensitive logistic regression for credit scoring.
    ICMLA 2014.
    """

    def __init__(self, *, alpha=1e-4, class_weight=None, max_iter=200):
        self.alpha = alpha
        self.class_weight = class_weight
        self.max_iter = max_iter

    def fit(self, X, y):
        """Learn from the rows of X."""
        X, y = self._check(X, y)
        X = X.astype(np.float64, copy=False)
        cost = self._cost(y)
        usual = LogisticRegression(max_iter=1000).fit(X, y, sample_weight=cost)
        start = np.append(usual.coef_[0], usual.intercept_)
        problem = (X, y, cost / cost.sum(), self.alpha, start[:-1])
        options = {"maxiter": self.max_iter}
        found = minimize(expected_cost, start, problem, method="L-BFGS-B", jac=True, options=options)
        self.coef_, self.intercept_ = found.x[None, :-1], found.x[-1:]
        self.n_iter_ = found.nit
        return self


def expected_cost(w_b, X, y, cost, alpha, w_0):
    """What `ExpectedCostLogistic` minimises, and its gradient, at the weights and the intercept ``w_b``."""
    w, b = w_b[:-1], w_b[-1]
    missed = expit(-y * (X @ w + b))
    slope = -cost * y * missed * (1 - missed)
    value = alpha / 2 * (w - w_0) @ (w - w_0) + cost @ missed
    return value, np.append(alpha * (w - w_0) + X.T @ slope, slope.sum())
