"""What a set of features has to offer. One set is one module of this folder, and one line in ``__init__.py``.

A set is made by ``sized``, as large as the effort allows for the shape of the data, or not at all. It is fitted on
training rows only, learned from in lanes (``tenfold/lanes.py``), and from then on its part of the score is all there
is to it.
"""

import numpy as np


class FeatureSet:
    """Some features of the rows, under a ``name``, which for people is in ``words``.

    Attributes
    ----------
    visits : int
        Rows to learn from, pass after pass over those that `fit_transform` gives.
    """

    name, words = "", ""

    @classmethod
    def sized(cls, shape, plan):
        """An unfitted set for data of this `Shape`, as large as the `Plan` allows; None if there is to be none."""
        raise NotImplementedError

    def fit_transform(self, rows, y, fold):
        """Learn from training `Rows`, their signs and their inner folds: the features, and the numbers of their rows.

        There may be features of some of the rows only.
        """
        raise NotImplementedError

    def coefficients(self, w):
        """What `score` needs to know of the weights of the features."""
        raise NotImplementedError

    def score(self, rows, coefficients):
        """``features @ w`` of new `Rows`."""
        raise NotImplementedError

    def to_file(self):
        """What `from_file` needs: settings that JSON can hold, and arrays by name."""
        return {}, {}

    @classmethod
    def from_file(cls, settings, arrays):
        """The fitted set of which `to_file` gave these; anything that does not fit together is a ValueError."""
        raise NotImplementedError


def unit_deviation(scores):
    """By what to multiply scores so that their deviation is 1."""
    return np.float32(1 / max(scores.std(), 1e-6))
