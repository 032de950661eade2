"""Sets of features of scaled rows: the columns themselves, and similarities to landmarks, which are training rows.

Rows come in versions (see `tenfold.columns`); a feature set says which of them it takes. All sets are fitted on
training rows only.
"""

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cholesky, solve_triangular
from scipy.spatial.distance import cdist

from preprocess import row_chunks, take
from tenfold.plan import FEW_ROWS, FEW_WIDE_ROWS, LEAVES, SPARSE_COLUMNS, has_few_rows
from tenfold.trees import ForestFeatures, TreeFeatures, Trees

RIDGE = np.float32(1e-3)  # keeps nearly equal landmarks from blowing up
LEAST_DEVIATION = 0.05  # of a column's range
SMALL_DEVIATION = 0.02  # the same where columns of two values are scaled in another way
CHUNK = 512  # rows whose similarities are computed at a time
CACHED_CELLS = 50_000  # of landmarks, in float64, that stay in the cache


class FeatureSets:
    """Several sets of features, by name, of the same scaled rows; fitted ``columns`` make other versions of them.

    All sets share the landmarks, training rows drawn from all alike: drawn from scarce positives, each would vouch for
    itself.
    """

    def __init__(self, columns, sets, n_landmarks=0):
        self.columns = columns
        self.sets = sets
        self.n_landmarks = n_landmarks
        self.landmarks_ = None

    @property
    def are_scaled_columns(self):
        """Whether there is one set, and it consists of the scaled columns as they are."""
        return [getattr(s, "versions", None) for s in self.sets.values()] == [("scaled",)]

    @property
    def take_raw(self):
        """Whether `score_raw` can be used: no set needs all columns to be scaled first."""
        return all(feature_set.takes_raw for feature_set in self.sets.values())

    def fit_transform(self, Z, y, fold, rows, rng):
        """Fit the sets in turn and yield for each the features of its rows and the numbers of those rows.

        ``y`` are the signs of the rows of Z, ``fold`` their inner folds, and ``rows`` the numbers of those that each
        kind of set is fitted on, by the name of the kind; all if it is not there.
        """
        every = np.arange(Z.shape[0])
        sample = rows.get("landmarks", every)
        which = rng.choice(len(sample), min(len(sample), self.n_landmarks), replace=False)
        self.landmarks_ = Versions(self.columns, Z[sample[which]])
        whole, versions = Versions(self.columns, Z, self.landmarks_), {}
        for feature_set in self.sets.values():
            kind = feature_set.kind
            of_kind = rows.get(kind, every)
            if kind not in versions:
                all_rows = len(of_kind) == len(every)
                versions[kind] = whole if all_rows else Versions(self.columns, Z[of_kind], self.landmarks_)
            yield feature_set.fit_transform(versions[kind], y[of_kind], fold[of_kind]), of_kind

    def coefficients(self, weights):
        """For each set, what `score` needs of the weights of its features."""
        return [feature_set.coefficients(w) for feature_set, w in zip(self.sets.values(), weights)]

    def score(self, Z, coefficients):
        """The sum of what each set's features and weights give for the rows of Z."""
        versions = Versions(self.columns, Z, self.landmarks_)
        return sum(feature_set.score(versions, c) for feature_set, c in zip(self.sets.values(), coefficients))

    def score_raw(self, preprocessor, X, coefficients):
        """The same for rows that this preprocessor has not scaled yet."""
        sets = zip(self.sets.values(), coefficients)
        return sum(feature_set.score_raw(preprocessor, X, c) for feature_set, c in sets)


class Versions(dict):
    """What the sets ask of the same rows, each made when it is first asked for.

    ``versions["rank"]`` is a version of the rows, ``versions["rank", city_block]`` its distances from that of the
    landmarks.
    """

    def __init__(self, columns, Z, landmarks=None):
        super().__init__(scaled=Z)
        self.columns = columns
        self._landmarks = landmarks

    @property
    def landmarks(self):
        """Those of the landmarks, which may be these rows: a reference to itself would keep them in memory for long."""
        return self if self._landmarks is None else self._landmarks

    def __missing__(self, key):
        if isinstance(key, tuple):
            version, distance = key
            self[key] = distance(self[version], self.landmarks[version], self.columns)
        else:
            self[key] = getattr(self.columns, key)(self["scaled"])
        return self[key]


class LinearFeatures:
    """The columns themselves, so scaled that the mean squared distance of a row from the mean row is 1.

    If they are to be ``even``, each is divided by its deviation, which counts as at least ``LEAST_DEVIATION`` of its
    range: then rare words, or other columns that are hardly ever filled, speak as loud as common ones.

    Where there are more columns than rows, what is learned from are the rows' coordinates in the space that they span:
    fewer numbers with the same products.
    """

    kind = "linear"
    few_rows = FEW_ROWS
    rows_ = None

    def __init__(self, *versions, even=False):
        self.versions = versions
        self.even = even

    def fit_transform(self, versions, y=None, fold=None):
        return self._fit_transform(self._columns(versions))

    def _fit_transform(self, F):
        self._fit_scale(F)
        return self._in_row_space(_times(F, self.scale_))

    def fit(self, versions):
        """For rows that `features` describes by their columns, even if there are more columns than rows."""
        self._fit_scale(self._columns(versions))
        return self

    def features(self, versions):
        return self._columns(versions) * self.scale_

    def _fit_scale(self, F):
        variance, scale = _variance(F), np.float32(1)
        if self.even:
            scale = np.where(variance > 0, 1 / np.sqrt(np.maximum(variance, LEAST_DEVIATION**2)), 0)
        self.scale_ = (scale / np.sqrt(max((scale**2 * variance).sum(), 1e-12))).astype(np.float32)

    def _in_row_space(self, F):
        self.rows_ = None
        if not has_few_rows(*F.shape, self.few_rows):
            return F
        G = F @ F.T
        G = G.toarray() if sp.issparse(G) else G
        self.rows_, self.L_ = F, _factor(G, RIDGE * np.float32(G.diagonal().mean()))
        return self.L_

    def description(self):
        return self.kind, self.versions

    def arrays(self):
        """The weights are all there is to keep."""
        return {}

    def coefficients(self, w):
        """By how much each column counts."""
        if self.rows_ is not None:
            w = solve_triangular(self.L_, w, lower=True, trans=1, check_finite=False) @ self.rows_
        return w * self.scale_

    @property
    def takes_raw(self):
        return self.versions == ("scaled",)

    def score(self, versions, coefficients):
        return self._columns(versions) @ coefficients

    def score_raw(self, preprocessor, X, coefficients):
        """The same for rows that are not scaled yet, if it takes those."""
        return preprocessor.score_raw(X, coefficients)

    def _columns(self, versions):
        parts = [versions[version] for version in self.versions]
        return np.hstack(parts) if len(parts) > 1 else parts[0]


class ScaledFeatures(LinearFeatures):
    """The scaled columns, made even in their place: there are too many for a copy.

    That is what standardised columns are, but for means, which do not matter to differences of rows.
    """

    few_rows = FEW_WIDE_ROWS

    def __init__(self):
        super().__init__("scaled", even=True)

    def _fit_transform(self, F):
        self._fit_scale(F)
        F *= self.scale_
        return self._in_row_space(F)


class FrequentColumns(LinearFeatures):
    """Of sparse scaled columns at most so many, those that are filled in most rows; the others weigh nothing.

    Only where rows are so few that the space which they span is used instead, all columns are.
    """

    def __init__(self, n_columns, even=False):
        super().__init__("scaled", even=even)
        self.n_columns = n_columns

    def _fit_transform(self, Z):
        self.columns_ = np.arange(Z.shape[1])
        if not has_few_rows(*Z.shape, self.few_rows):
            filled = np.bincount(Z.indices, minlength=Z.shape[1])
            drawn = np.random.RandomState(0).permutation(Z.shape[1])  # among columns that are filled equally often
            self.columns_ = np.sort(np.lexsort([drawn, -filled])[: self.n_columns])
        self.n_scaled_ = Z.shape[1]
        return super()._fit_transform(take(Z, self.columns_))

    def coefficients(self, w):
        of_all = np.zeros(self.n_scaled_, w.dtype)
        of_all[self.columns_] = super().coefficients(w)
        return of_all


class StandardColumns(LinearFeatures):
    """The scaled columns, those of many values divided by their deviation, those of two values from -1 to 1.

    But for means, which do not matter to differences of rows, that is what `tenfold.columns` makes of them.
    """

    def __init__(self):
        super().__init__("scaled")

    def _fit_scale(self, Z):
        low, high, variance = Z.min(axis=0), Z.max(axis=0), _variance(Z)
        is_many = ((Z != low) & (Z != high)).any(axis=0)
        with np.errstate(divide="ignore"):
            scale = np.where(is_many, 1 / np.sqrt(np.maximum(variance, SMALL_DEVIATION**2)), 2 / (high - low))
        scale[high == low] = 0
        self.scale_ = (scale / np.sqrt(max(scale**2 @ variance, 1e-12))).astype(np.float32)


def _times(F, scale):
    """F, all of it or each column times its scale."""
    return F @ sp.diags_array(scale) if sp.issparse(F) and scale.ndim else F * scale


def _variance(F):
    """The variance of each column."""
    total, squares = np.zeros(F.shape[1]), np.zeros(F.shape[1])
    for rows in [slice(None)] if sp.issparse(F) else row_chunks(F):
        cells = F[rows].astype(np.float64)
        total += cells.sum(axis=0)
        squares += (cells.multiply(cells) if sp.issparse(F) else np.square(cells, out=cells)).sum(axis=0)
    return np.maximum(squares / F.shape[0] - (total / F.shape[0]) ** 2, 0)


class LandmarkFeatures:
    """Similarities to the landmarks, turned into features whose products are the similarities.

        k(x, c)  = mean over the terms of  exp(-(|x - c| / (width * median |x - c|)) ** power)
        features = k(x, landmarks) @ inv(L).T,   where  L @ L.T = k(landmarks, landmarks) + ridge

    A term is (version, distance, power, width).

    Reference: C. Williams, M. Seeger. Using the Nystroem Method to Speed Up Kernel Machines. NIPS 2000.
    """

    kind = "landmarks"
    takes_raw = False

    def __init__(self, *terms):
        self.terms = terms

    def fit_transform(self, versions, y=None, fold=None):
        return self.fit(versions).transform(versions)

    def fit(self, versions):
        self.median_ = [_median(versions.landmarks[version, distance]) for version, distance, *_ in self.terms]
        ((_, K),) = self._kernel_chunks(versions.landmarks, chunk=len(versions.landmarks["scaled"]))
        self.scale_ = np.float32(1 / np.sqrt(max(1 - K.mean(dtype=np.float64), 1e-3)))
        self.L_ = _factor(K)
        return self

    def transform(self, versions):
        F = np.empty((len(versions["scaled"]), len(self.L_)), np.float32)
        for rows, K in self._kernel_chunks(versions):
            F[rows] = solve_triangular(self.L_, K.T, lower=True, overwrite_b=True, check_finite=False).T
        F *= self.scale_
        return F

    features = transform

    def description(self):
        return self.kind, [(version, distance.__name__, *rest) for version, distance, *rest in self.terms]

    def arrays(self):
        """All that was learned and is needed to score, as arrays by name."""
        return {"median": np.array(self.median_)}

    def coefficients(self, w):
        """By how much each landmark counts."""
        return solve_triangular(self.L_, w * self.scale_, lower=True, trans=1, check_finite=False)

    def score(self, versions, coefficients):
        """``transform(versions) @ w``, without a need for the features."""
        return np.concatenate([K.astype(np.float64) @ coefficients for _, K in self._kernel_chunks(versions)])

    def _kernel_chunks(self, versions, chunk=CHUNK):
        """Yield rows, few enough to stay in the cache, and their similarities to the landmarks."""
        for i in range(0, len(versions["scaled"]), chunk):
            rows = slice(i, i + chunk)
            K = 0
            for (version, distance, power, width), median in zip(self.terms, self.median_):
                D = versions[version, distance][rows] / (-median * np.float32(width))
                if power == 2:
                    D *= -D
                K += np.exp(D, out=D)
            K /= np.float32(len(self.terms))
            yield rows, K


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


def euclidean(X, C, columns=None):
    """Euclidean distances of the rows of X from those of C."""
    D = _squared_distances(X, C)
    return np.sqrt(D, out=D)


def city_block(X, C, columns):
    """City-block distances of the rows of X from those of C.

    In a column of the two values -v and v that is ``(x - c) ** 2 / (2 * v)``, so that a matrix product does for these.
    """
    two = np.delete(np.arange(X.shape[1]), columns.many_)
    root = np.sqrt(2 * np.abs(C[0, two]))
    D = _squared_distances(X[:, two] / root, C[:, two] / root)
    X, C = X[:, columns.many_], C[:, columns.many_]
    n = max(CACHED_CELLS // max(X.shape[1], 1), 1)
    for i in range(0, len(X), CHUNK):  # a whole matrix of them, in float64, would take longer to get than to fill
        for j in range(0, len(C), n):
            D[i : i + CHUNK, j : j + n] += cdist(X[i : i + CHUNK], C[j : j + n], "cityblock")
    return D


def _squared_distances(X, C):
    D = X @ (-2 * C.T)
    D += np.einsum("ij,ij->i", X, X)[:, None]
    D += np.einsum("ij,ij->i", C, C)
    return np.maximum(D, 0, out=D)


DISTANCES = {distance.__name__: distance for distance in (euclidean, city_block)}
OF_TREES = {feature_set.kind: feature_set for feature_set in (TreeFeatures, ForestFeatures)}


def plain_feature_sets():
    """The scaled columns and the bias, as they are."""
    return FeatureSets(None, {"linear": LinearFeatures("scaled")})


def sparse_feature_sets(even):
    """The scaled columns, or those that are filled most often, as they are and, if that is asked for, made even."""
    evened = {"even": FrequentColumns(SPARSE_COLUMNS, even=True)} if even else {}
    return FeatureSets(None, {"linear": FrequentColumns(SPARSE_COLUMNS), **evened})


def wide_feature_sets(n_trees=0, *of_trees):
    """The scaled columns, of which there are too many for a copy that is standardised, and what trees say of a few.

    Trees, `TreeFeatures` of all that is given, come first: the other set takes the place of the scaled columns.
    """
    trees = {"trees": TreeFeatures(n_trees, *of_trees)} if n_trees else {}
    return FeatureSets(None, {**trees, "linear": ScaledFeatures()})


def rich_feature_sets(
    columns, n_landmarks, small, n_trees=0, n_leaves=LEAVES, n_tree_columns=None, n_forest=0, even=False
):
    """The columns and curves over them, similarities to landmarks that fall off as a bell, with a peak, or as both, and
    what trees say, boosted ones or those of a forest; and the columns made even, if that is asked for.

    Only ``small`` data leaves time for all kinds of similarity. Without ranks there are no city-block distances; there
    rows lie at much the same distance from each other, and wider similarities do better.
    """
    sets = {"linear": LinearFeatures("standard", "curves")}
    if even:
        sets["even"] = LinearFeatures("scaled", even=True)
    bell = ("standard", euclidean, 2)
    peak = ("rank", city_block, 1) if columns.ranked_ else ("standard", euclidean, 1)
    if n_landmarks and columns.ranked_:
        sets["mixed"] = LandmarkFeatures((*bell, 0.5), (*peak, 0.5))
    elif n_landmarks:
        sets["mixed"] = LandmarkFeatures((*bell, 0.5), (*bell, 1), (*bell, 2), (*peak, 1))
    if n_landmarks and small:
        sets["smooth"] = LandmarkFeatures((*bell, 1))
        sets["rough"] = LandmarkFeatures((*peak, 1))
    if n_trees:
        sets["trees"] = TreeFeatures(n_trees, n_leaves, n_tree_columns)
    if n_forest:
        sets["forest"] = ForestFeatures(n_forest)
    return FeatureSets(columns, sets, n_landmarks)


def make_feature_set(kind, parts, arrays):
    """A feature set from its ``description`` and ``arrays``."""
    if kind == "linear":
        return LinearFeatures(*parts)
    if kind in OF_TREES:
        return OF_TREES[kind](*parts).with_trees(Trees(**arrays))
    feature_set = LandmarkFeatures(*((version, DISTANCES[distance], *rest) for version, distance, *rest in parts))
    feature_set.median_ = list(arrays["median"])
    return feature_set
