"""Similarities to landmarks, which are training rows drawn from all alike.

Drawn from scarce positives they would not do: a positive that is a landmark is most similar to itself.
"""

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from tenfold.features.base import FeatureSet
from tenfold.features.rows import CHUNK

RIDGE = np.float32(1e-3)  # keeps nearly equal landmarks from blowing up
FEWEST = 100  # landmarks that are worth it where there are many rows or columns


class Landmarks(FeatureSet):
    """Similarities to the landmarks, turned into features whose products are the similarities.

        k(x, c)  = mean over the terms of  exp(-(|x - c| / (width * median |x - c|)) ** power)
        features = k(x, landmarks) @ inv(L).T,   where  L @ L.T = k(landmarks, landmarks) + ridge

    A term is (version, metric, power, width).

    Reference: C. Williams, M. Seeger. Using the Nystroem Method to Speed Up Kernel Machines. NIPS 2000.
    """

    words = "similarities to landmarks"

    def __init__(self, n_rows=0, visits=0):
        self.n_rows = n_rows
        self.visits = visits

    @classmethod
    def sized(cls, shape, plan):
        n_rows, n_landmarks = sizes(shape, plan)
        visits = int((9_600 if plan.small else 14_000) * plan.similar)
        return cls(n_rows, max(visits, n_rows)) if n_landmarks and cls.wanted(plan) else None

    @classmethod
    def wanted(cls, plan):
        """Whether there is time for this kind of similarity."""
        return plan.small

    @staticmethod
    def terms(ranked):
        """The terms of the similarity, by whether there are ranks."""
        raise NotImplementedError

    def fit_transform(self, rows, y, fold):
        some, numbers = rows.thinned(y, self.n_rows)
        return self.fit(some).transform(some), numbers

    def fit(self, rows):
        self.terms_ = self.terms(rows.columns.ranked_)
        self.median_ = [_median(rows.landmarks.distances(version, metric)) for version, metric, *_ in self.terms_]
        ((_, K),) = self._kernel_chunks(rows.landmarks, chunk=len(rows.landmarks))
        self.scale_ = np.float32(1 / np.sqrt(max(1 - K.mean(dtype=np.float64), 1e-3)))
        self.L_ = _factor(K)
        return self

    def transform(self, rows):
        F = np.empty((len(rows), len(self.L_)), np.float32)
        for some, K in self._kernel_chunks(rows):
            F[some] = solve_triangular(self.L_, K.T, lower=True, overwrite_b=True, check_finite=False).T
        F *= self.scale_
        return F

    def coefficients(self, w):
        """By how much each landmark counts."""
        return solve_triangular(self.L_, w * self.scale_, lower=True, trans=1, check_finite=False)

    def score(self, rows, coefficients):
        """``transform(rows) @ w``, without a need for the features."""
        return np.concatenate([K.astype(np.float64) @ coefficients for _, K in self._kernel_chunks(rows)])

    def _kernel_chunks(self, rows, chunk=CHUNK):
        """Yield slices of rows, few enough to stay in the cache, and their similarities to the landmarks."""
        for i in range(0, len(rows), chunk):
            some = slice(i, i + chunk)
            K = 0
            for (version, metric, power, width), median in zip(self.terms_, self.median_):
                D = rows.distances(version, metric)[some] / (-median * np.float32(width))
                if power == 2:
                    D *= -D
                K += np.exp(D, out=D)
            K /= np.float32(len(self.terms_))
            yield some, K

    def to_file(self):
        return {"terms": self.terms_}, {"median": np.array(self.median_)}

    @classmethod
    def from_file(cls, settings, arrays):
        feature_set = cls()
        feature_set.terms_ = [tuple(term) for term in settings["terms"]]
        feature_set.median_ = list(arrays["median"])
        return feature_set


def _bell(width):
    return "standard", "euclidean", 2, width


def _peak(ranked, width):
    return ("rank", "city_block", 1, width) if ranked else ("standard", "euclidean", 1, width)


class Mixed(Landmarks):
    """The mean of a bell and a peak.

    Without ranks there are no city-block distances; there rows lie at much the same distance from each other, and wider
    similarities do better.
    """

    name = "mixed"

    @classmethod
    def wanted(cls, plan):
        return True

    @staticmethod
    def terms(ranked):
        if ranked:
            return [_bell(0.5), _peak(ranked, 0.5)]
        return [_bell(0.5), _bell(1), _bell(2), _peak(ranked, 1)]


class Smooth(Landmarks):
    """A wide bell, where rows are few."""

    name = "smooth"

    @staticmethod
    def terms(ranked):
        return [_bell(1)]


class Rough(Landmarks):
    """A wide peak, where rows are few."""

    name = "rough"

    @staticmethod
    def terms(ranked):
        return [_peak(ranked, 1)]


def sizes(shape, plan):
    """From how many rows to learn, and how many landmarks; similarities of the rows to score are bounded, too."""
    n_rows = int(min(plan.rows, 6_000 * plan.similar))
    n = int(min(n_rows, (700 if plan.small else 900) * plan.similar))
    affordable = int(min(9e6, 4e9 / shape.n_columns) * plan.effort / (n_rows + shape.n_test))
    if affordable < n:
        n = affordable if affordable >= FEWEST else 0
    return n_rows, 0 if plan.wide or plan.plain or shape.sparse else n


def most_ranked(shape, plan):
    """With how many columns of more than two values there is time for ranks."""
    n_rows, n_landmarks = sizes(shape, plan)
    return 3e8 * plan.effort / ((n_rows + shape.n_test) * max(n_landmarks, 100))


def _factor(K, ridge=RIDGE):
    """The Cholesky factor of K + ridge, or more of it where rounding has left K further from positive definite."""
    try:
        return cholesky(K + ridge * np.eye(len(K), dtype=K.dtype), lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return _factor(K, 10 * ridge)


def _median(D):
    """The median of the distances between rows that are not the same, from some of them."""
    D = D[:300]
    D = D[D > 1e-3]
    return np.float32(np.median(D)) if len(D) else np.float32(1)
