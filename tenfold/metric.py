"""By how much each column matters, from the gradients of a first, small model.

References: S. Trivedi, J. Wang, S. Kpotufe, G. Shakhnarovich. A Consistent Estimator of the Expected Gradient
Outerproduct. UAI 2014; A. Radhakrishnan, D. Beaglehole, P. Pandit, M. Belkin. Mechanism for Feature Learning in Neural
Networks and Backpropagation-free Machine Learning Models. Science 383, 2024.
"""

import numpy as np

from oam import PairLearner
from tenfold.features import LandmarkFeatures, Versions, euclidean
from tenfold.plan import thin

ROUNDS = 2  # the second in the metric of the first
ROWS = 2_500
LANDMARKS = 250
VISITS = 4_000
STEP_SIZE = 2_500.0  # as of `tenfold.lanes.LaneEnsemble`


def column_weights(columns, Z, y, rng):
    """Weights for the columns of scaled rows, with a mean square of 1, that grow with the slope of a first model."""
    rows = thin(y, ROWS)
    X, y = columns.standard(Z[rows]), y[rows]
    weights = np.ones(X.shape[1], X.dtype)
    for _ in range(ROUNDS):
        slope = weights * _slopes(X * weights, y, rng)
        weights = np.clip(slope / max(slope.mean(), np.finfo(slope.dtype).tiny), 0.05, 20)
        weights /= np.sqrt(np.mean(weights**2))
    return weights


def _slopes(X, y, rng):
    """The root mean square, over the rows, of a small model's derivative by each column."""
    landmarks = Versions(None, X[rng.choice(len(X), min(len(X), LANDMARKS), replace=False)])
    versions = Versions(None, X, landmarks)
    features = LandmarkFeatures(("scaled", euclidean, 1, 1)).fit(versions)
    coefficients = features.coefficients(_learn(features.transform(versions), y, rng))
    (median,), D = features.median_, versions["scaled", euclidean]
    pull = np.exp(-D / median) / np.maximum(D, 1e-3 * median) * coefficients
    gradient = pull @ landmarks["scaled"] - pull.sum(axis=1, keepdims=True) * X
    return np.sqrt(np.mean(gradient**2, axis=0)) / median


def _learn(F, y, rng):
    """The weights of a single lane."""
    n_pos = np.count_nonzero(y > 0)
    passes = -(-VISITS // len(y))
    learner = PairLearner(
        F.shape[1], STEP_SIZE / (n_pos * (len(y) - n_pos) * passes), 2_000, "gradient", 32, F.dtype, rng, 64
    )
    for i in range(passes):
        learner.learn(F, y, new=i == 0)
    return learner.end().W_mean[:, 0]
