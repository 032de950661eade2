"""Online AUC maximization with buffers of positives and negatives.

A linear score ``x @ w`` is learned from a stream of rows so that positives score above negatives. Each arriving row is
compared with a uniform sample (a reservoir) of the other class, and every pair whose margin is below 1 moves ``w``:

    minimise   1/2 |w|^2 + C * sum over pairs (p, n) of  max(0, 1 - (p - n) @ w)

===========  =========================================================================================
``x, y``     the row that has just arrived, and its class, +1 or -1
``P, N``     reservoir buffers of positives and negatives, at most ``buffer`` rows each
``B``        the buffer of the class opposite to ``y``
``W``        weights, one row a lane (a lane is one value of ``C``); the scores of ``x`` are ``W @ x``
``C_t``      ``C * max(1, opposite rows seen / buffer)``: a full buffer stands for all it has seen
violators    pairs whose positive does not score at least 1 above their negative
===========  =========================================================================================

Reference: P. Zhao, S. C. H. Hoi, R. Jin, T. Yang. Online AUC Maximization. ICML 2011.
"""

import copy
from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

UPDATES = ("gradient", "sequential")

# Below this many comparisons a lane, comparing every pair is quicker than sorting.
COMPARE_AT_MOST = 10_000


class Reservoir:
    """A uniform sample, without replacement, of at most ``size`` of the rows added so far (Vitter's algorithm R)."""

    def __init__(self, size):
        self.size = size
        self.seen = 0
        self._rows = None

    @property
    def rows(self):
        return self._rows[: min(self.seen, self.size)]

    def add(self, X, which, uniform):
        """Offer the rows ``X[which]`` in order; ``uniform``, in [0, 1) for each row of X, decides their slots."""
        t = np.arange(self.seen + 1, self.seen + len(which) + 1)
        slot = np.where(t <= self.size, t - 1, (uniform[which] * t).astype(np.intp))
        kept = which[slot < self.size]
        slot = slot[slot < self.size]
        if sp.issparse(X):
            self._add_sparse(X[kept], slot)
        else:
            if self._rows is None:
                self._rows = np.empty((self.size, X.shape[1]), X.dtype)
            self._rows[slot] = X[kept]  # of rows that fall into one slot the last stays, as it would one by one
        self.seen += len(which)

    def _add_sparse(self, X, slot):
        filled = min(self.seen, self.size)
        source = np.arange(max(filled, slot.max(initial=-1) + 1))
        source[slot] = filled + np.arange(len(slot))
        if self._rows is not None:
            X = sp.vstack([self._rows, X], format="csr")
        self._rows = X[source]


def count_violators(S_pos, S_neg):
    """Count, for every positive and for every negative, the violators it is part of.

    ``S_pos`` (lanes x p) and ``S_neg`` (lanes x q) are scores; a pair violates where ``S_pos - S_neg < 1``.
    Returns the counts in the shapes of the two.
    """
    p, q = S_pos.shape[1], S_neg.shape[1]
    bar = S_pos - 1
    if p * q <= COMPARE_AT_MOST:
        violates = S_neg[:, None, :] > bar[:, :, None]
        return violates.sum(axis=2), violates.sum(axis=1)
    # One sort of both: a positive violates with every negative behind it, a negative with every positive before it.
    order = np.concatenate([S_neg, bar], axis=1).argsort(axis=1, kind="stable")
    is_neg = order < q
    negatives = is_neg.cumsum(axis=1)
    sorted_counts = np.where(is_neg, np.arange(1, p + q + 1) - negatives, q - negatives)
    counts = np.empty_like(sorted_counts)
    np.put_along_axis(counts, order, sorted_counts, axis=1)
    return counts[:, q:], counts[:, :q]


class PairLearner:
    """The learning itself: reservoirs, steps and weights of all lanes, for rows whose ``y`` is +1 or -1."""

    def __init__(self, n_features, C, buffer, update, block, dtype, rng):
        self.C = np.atleast_1d(np.asarray(C, dtype=dtype))
        self.buffer = buffer
        self.update = update
        self.block = block if update == "gradient" else 1
        self.rng = rng
        self.P, self.N = Reservoir(buffer), Reservoir(buffer)
        self.W = np.zeros((len(self.C), n_features), dtype)
        self.W_mean = self.W.copy()
        self.n_steps = 0
        self._waiting = None

    def learn(self, X, y):
        """Learn from the rows of X in order, a block at a time; rows of an incomplete block wait for those to come."""
        uniform = self.rng.random_sample(len(y))
        if self._waiting is not None:
            X0, y0, uniform0 = self._waiting
            X = sp.vstack([X0, X], format="csr") if sp.issparse(X) else np.concatenate([X0, X])
            y, uniform = np.concatenate([y0, y]), np.concatenate([uniform0, uniform])
        whole = len(y) - len(y) % self.block
        for i in range(0, whole, self.block):
            rows = slice(i, i + self.block)
            self._learn_block(X[rows], y[rows], uniform[rows])
        self._waiting = (X[whole:].copy(), y[whole:], uniform[whole:]) if whole < len(y) else None

    def result(self):
        """This learner, or a copy that has taken the rows that still wait as a last, shorter block."""
        if self._waiting is None:
            return self
        ended = copy.deepcopy(self)
        ended._learn_block(*ended._waiting)
        return ended

    def _learn_block(self, X, y, uniform):
        """The block enters the reservoirs of its classes, then is paired with the opposite ones."""
        pos, neg = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
        self.P.add(X, pos, uniform)
        self.N.add(X, neg, uniform)
        if self.P.seen and self.N.seen:
            if self.update == "gradient":
                self._gradient_step(X, pos, neg)
            else:
                self._sequential_step(X, y)
        # An average over all steps in which step t weighs as t^3: the last half has 94 % of it (Shamir, Zhang 2013).
        self.n_steps += 1
        self.W_mean += (self.W - self.W_mean) * (4 / (self.n_steps + 3))

    def _gradient_step(self, X, pos, neg):
        """``W += C_t/2 * (sum of y * (x - b) over the violators)``, with ``W`` the same for the whole block.

        A row enters that sum as often as it violates, so counts are all that is needed.
        """
        S = score(self.W, X)
        weight = np.empty_like(S)
        step = np.zeros_like(self.W)
        if len(pos):
            N = self.N.rows
            row, col = count_violators(S[:, pos], score(self.W, N))
            weight[:, pos] = self._half_C_t(self.N) * row
            step -= weighted_sum(self._half_C_t(self.N) * col, N)
        if len(neg):
            P = self.P.rows
            col, row = count_violators(score(self.W, P), S[:, neg])
            weight[:, neg] = -self._half_C_t(self.P) * row
            step += weighted_sum(self._half_C_t(self.P) * col, P)
        step += weighted_sum(weight, X)
        self.W += step

    def _sequential_step(self, X, y):
        """For each ``b`` in B, in order: ``w += tau * y * (x - b)``, ``tau = min(C_t/2, loss / |x - b|^2)``.

        With the Gram matrix of the differences at hand, a step on one pair moves the margins of all others at once.
        """
        B = self.N if y[0] > 0 else self.P
        D = y[0] * (dense(X) - dense(B.rows))
        gram = D @ D.T
        for w, half_C_t in zip(self.W, self._half_C_t(B)[:, 0]):
            margin = D @ w
            tau = np.zeros_like(margin)
            for k, squared_norm in enumerate(gram.diagonal()):
                loss = 1 - margin[k]
                if loss > 0 and squared_norm > 0:
                    tau[k] = min(half_C_t, loss / squared_norm)
                    margin += tau[k] * gram[k]
            w += tau @ D

    def _half_C_t(self, B):
        return self.C[:, None] * (0.5 * max(1.0, B.seen / self.buffer))


def score(W, X):
    """``W @ X.T``, lanes x rows, as a dense array."""
    return np.ascontiguousarray((X @ W.T).T) if sp.issparse(X) else W @ X.T


def weighted_sum(weight, X):
    """``weight @ X``, lanes x features, as a dense array."""
    return (X.T @ weight.T).T if sp.issparse(X) else weight @ X


def dense(X):
    return X.toarray() if sp.issparse(X) else X


class OnlineAUC(ClassifierMixin, BaseEstimator):
    """Linear scores that rank the positives of two classes above the negatives, learned online.

    Rows are taken in the order given: shuffle them first if they are sorted.

    Parameters
    ----------
    C : float, default=3e-5
        Weight of one pair's loss. It wants to be small: a full buffer speaks for all rows it has seen, so the steps
        grow with their number.
    buffer : int, default=500
        Rows kept of each class.
    update : {"gradient", "sequential"}, default="gradient"
        "gradient" moves by all violators of a row at once, "sequential" passively-aggressively by one pair at a time.
    block : int, default=64
        Rows that share one gradient step: 1 is the published algorithm, more is much faster. "sequential" takes 1.
    passes : int, default=1
        How often ``fit`` goes over the rows.
    average : bool, default=True
        Whether ``coef_`` is a mean of the weights after each step that favours the late ones, or the last weights.
    random_state : int, RandomState instance or None, default=None
        Decides which rows the reservoirs keep.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels; the second is the positive class.
    coef_ : ndarray of shape (1, n_features_in_)
        The weights.
    intercept_ : ndarray of shape (1,)
        Minus the score half-way between the mean positive and the mean negative in the buffers. A ranking does not
        depend on it; ``predict`` does.
    n_features_in_ : int
        Number of features.

    References
    ----------
    P. Zhao, S. C. H. Hoi, R. Jin, T. Yang. Online AUC Maximization. ICML 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from oam import OnlineAUC
    >>> X = np.array([[0.0, 1.0], [0.2, 0.8], [0.9, 0.3], [1.0, 0.0]])
    >>> OnlineAUC(C=1, random_state=0).fit(X, [0, 0, 1, 1]).predict([[0.1, 0.9], [0.8, 0.1]])
    array([0, 1])
    """

    def __init__(self, C=3e-5, *, buffer=500, update="gradient", block=64, passes=1, average=True, random_state=None):
        self.C = C
        self.buffer = buffer
        self.update = update
        self.block = block
        self.passes = passes
        self.average = average
        self.random_state = random_state

    def fit(self, X, y):
        """Learn from the rows of X, ``passes`` times in their order, forgetting what was learned before."""
        return self._learn(X, y, None, self.passes, restart=True)

    def partial_fit(self, X, y, classes=None):
        """Learn from the rows of X once, on top of what was learned before.

        ``classes`` lists the two labels; it is needed on the first call only, and only if ``y`` lacks one of them.
        """
        return self._learn(X, y, classes, 1, restart=not hasattr(self, "_learner"))

    def _learn(self, X, y, classes, passes, restart):
        if restart:
            self._check_parameters()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], reset=restart)
        check_classification_targets(y)
        if restart:
            self.classes_ = two_classes(y if classes is None else classes)
            rng = check_random_state(self.random_state)
            self._learner = PairLearner(X.shape[1], self.C, self.buffer, self.update, self.block, X.dtype, rng)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y holds the label {unknown[0]!r}, expected one of {self.classes_.tolist()}")
        signs = np.where(y == self.classes_[1], 1, -1)
        X = X.astype(self._learner.W.dtype, copy=False)
        for _ in range(passes):
            self._learner.learn(X, signs)
        learner = self._learner.result()
        self.coef_ = (learner.W_mean if self.average else learner.W).copy()
        means = [score(self.coef_, B.rows).mean() for B in (learner.P, learner.N) if B.seen]
        self.intercept_ = np.array([-np.mean(means)], self.coef_.dtype)
        return self

    def decision_function(self, X):
        """Scores of the rows of X: the higher, the likelier the second class."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return score(self.coef_, X)[0] + self.intercept_[0]

    def predict(self, X):
        """The second class where the score is above 0, the first elsewhere."""
        above = self.decision_function(X) > 0
        return self.classes_[above.astype(int)]

    def _check_parameters(self):
        if not isinstance(self.C, Real) or not 0 < self.C < np.inf:
            raise ValueError(f"C is {self.C!r}, expected a finite number above 0")
        for name in ("buffer", "block", "passes"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name} is {value!r}, expected a whole number of at least 1")
        if self.update not in UPDATES:
            raise ValueError(f"update is {self.update!r}, expected one of {UPDATES}")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags


def two_classes(y):
    classes = np.unique(y)
    if len(classes) > 2:
        raise ValueError(f"Only binary classification is supported. The labels hold {len(classes)} classes, expected 2")
    if len(classes) < 2:
        raise ValueError(f"The labels hold {len(classes)} class, expected 2")
    return classes
