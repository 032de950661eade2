"""Logistic regression and linear SVM by mini-batches."""

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.utils import check_random_state
from sklearn.utils.sparsefuncs import mean_variance_axis

from tenfold.baselines.base import TwoClass

# In units of 1 / spread. The mean logistic loss has a curvature of at most spread / 4: longer steps could diverge.
FIRST_STEP = 8.0


class MiniBatchLinear(TwoClass):
    """Logistic regression or linear SVM by gradient descent on small batches of shuffled rows.

    Minimises ``alpha/2 |w|^2 + mean of loss(y (x @ w + b))``. On the way the rows are centred, which changes ``b``
    only, and steps are divided by the spread, the mean squared distance from the centre, so that they suit rows of any
    scale. Steps fall with the square root of the epoch, and ``coef_`` is a mean that favours the late ones.

    Parameters
    ----------
    loss : {"logistic", "hinge"}, default="logistic"
        What a row costs: ``log(1 + exp(-margin))`` or ``max(0, 1 - margin)``.
    alpha : float, default=1e-4
        Weight of the penalty.
    batch : int, default=64
        Rows to a step.
    epochs : int, default=20
        How often ``fit`` goes over the rows.
    random_state : int, RandomState instance or None, default=None
        Shuffles the rows.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features_in_)
        The weights.
    intercept_ : ndarray of shape (1,)
        The intercept.

    References
    ----------
    L. Bottou. Stochastic gradient descent tricks. Neural Networks: Tricks of the Trade, 2nd edition, 2012.
    O. Shamir, T. Zhang. Stochastic gradient descent for non-smooth optimization. ICML 2013.
    """

    def __init__(self, loss="logistic", *, alpha=1e-4, batch=64, epochs=20, random_state=None):
        self.loss = loss
        self.alpha = alpha
        self.batch = batch
        self.epochs = epochs
        self.random_state = random_state

    def fit(self, X, y):
        """Learn from the rows of X, ``epochs`` times in a new order, forgetting what was learned before."""
        X, y = self._check(X, y)
        rng = check_random_state(self.random_state)
        if sp.issparse(X):
            centre, variance = mean_variance_axis(X, axis=0)
        else:
            centre, variance = X.mean(axis=0, dtype=np.float64), X.var(axis=0, dtype=np.float64)
        spread = variance.sum() or 1.0
        w, b, n_steps = np.zeros(X.shape[1]), 0.0, 0
        w_mean, b_mean = w.copy(), b
        for epoch in range(self.epochs):
            step = FIRST_STEP / np.sqrt(1 + epoch)
            order = rng.permutation(len(y))
            for start in range(0, len(y), self.batch):
                rows = order[start : start + self.batch]
                B = X[rows]
                slope = self._slope(y[rows], B @ w + (b - centre @ w)) / len(rows)
                w -= step / spread * (B.T @ slope - centre * slope.sum() + self.alpha * w)
                b -= step * slope.sum()
                n_steps += 1
                w_mean += (w - w_mean) * (4 / (n_steps + 3))
                b_mean += (b - b_mean) * (4 / (n_steps + 3))
        self.coef_ = w_mean[None]
        self.intercept_ = np.array([b_mean - centre @ w_mean])
        return self

    def _slope(self, y, score):
        """The derivative of each row's loss by its score."""
        margin = y * score
        return -y * (expit(-margin) if self.loss == "logistic" else margin < 1)
