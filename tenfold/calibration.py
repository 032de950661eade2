"""From scores to log-odds, by scikit-learn's sigmoid calibration."""

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV

from oam import TwoClassMixin

LEAST_SLOPE = 1e-3  # a greater score is never a lesser probability


def log_odds(scores, y, weight):
    """A slope and an offset: ``slope * score + offset`` is the logarithm of a row's odds of being positive.

    ``scores`` should be of rows not learned from. ``weight`` is how many rows each of them stands for.

    Reference: J. Platt. Probabilistic Outputs for Support Vector Machines. Advances in Large Margin Classifiers, 1999.
    """
    every = np.arange(len(y))
    model = CalibratedClassifierCV(_ScoreClassifier(), method="sigmoid", cv=[(every, every)], ensemble=False)
    model.fit(scores[:, None], y, sample_weight=weight)
    (sigmoid,) = model.calibrated_classifiers_[0].calibrators
    slope, offset = -float(sigmoid.a_), -float(sigmoid.b_)
    if not slope >= LEAST_SLOPE or not np.isfinite(offset):
        slope, offset = LEAST_SLOPE, float(np.log(weight[y > 0].sum() / weight[y < 0].sum()))
    return slope, offset


class _ScoreClassifier(TwoClassMixin, BaseEstimator):
    """A classifier of rows that consist of nothing but a score; there is nothing to fit."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0]
