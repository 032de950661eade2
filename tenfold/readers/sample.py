"""A data set for those who have no file at hand."""

import numpy as np

from tenfold.readers.base import Data

NAME = "embedded sample (scikit-learn's digits, the eights thinned to 40 against the rest)"


def sample():
    """Scikit-learn's bundled handwritten digits: the eights, thinned to 40, against all the rest."""
    from sklearn.datasets import load_digits

    X, digit = load_digits(return_X_y=True)
    eights = np.flatnonzero(digit == 8)
    rows = np.setdiff1d(np.arange(len(digit)), eights[40:])
    return Data(X[rows], (digit[rows] == 8).astype(int))
