"""Online AUC maximization with buffers of positives and negatives.

A linear score ``x @ w`` is learned from a stream of rows so that positives score above negatives. Each arriving row is
compared with a uniform sample (a reservoir) of the other class, and every pair whose margin is below 1 moves ``w``:

    minimise   1/2 |w|^2 + C * sum over pairs (p, n) of  max(0, 1 - (p - n) @ w)

===========  =========================================================================================
``x, y``     the row that has just arrived, and its class, +1 or -1
``P, N``     reservoir buffers of positives and negatives, at most ``buffer`` rows each
``B``        the buffer of the class opposite to ``y``
``W``        weights, one column a lane (a lane is one value of ``C``); the scores of ``x`` are ``x @ W``
``C_t``      ``C * opposite rows seen / rows of B``: a full buffer stands for all it has seen
violators    pairs whose positive does not score at least 1 above their negative
===========  =========================================================================================

Reference: P. Zhao, S. C. H. Hoi, R. Jin, T. Yang. Online AUC Maximization. ICML 2011.
"""

import copy
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

UPDATES = ("gradient", "sequential")

# Comparing every pair is quicker than sorting where one side has at most so many scores, or there are so few pairs.
FEW_SCORES = 24
FEW_PAIRS = 30_000

# A block of sparse rows with at most so many columns is quicker to learn from when dense.
FEW_COLUMNS = 2_000

# The choice among lanes.
STEP_SIZES = (200.0, 2_500.0, 30_000.0)
SHARPNESS = 0.25  # from 0.125 to 0.5 the mean AUC over 26 data sets stays within .0006


class Reservoir:
    """A uniform sample, without replacement, of at most ``size`` of the rows added so far (Vitter's algorithm R)."""

    def __init__(self, size):
        self.size = size
        self.seen = 0
        self._rows = None
        self._offset = None
        self._next = 0

    def __len__(self):
        return min(self.seen, self.size)

    @property
    def rows(self):
        return self._rows[: len(self)]

    def add(self, X, offset, which, uniform):
        """Offer the rows ``X[which]`` in order; ``uniform``, in [0, 1) for each row of X, decides their slots."""
        if len(which) == 1 and self.seen >= self.size and uniform[which[0]] * (self.seen + 1) >= self.size:
            self.seen += 1  # the common case of a single row, which a full reservoir does not keep
            return
        t = np.arange(self.seen + 1, self.seen + len(which) + 1)
        self.seen += len(which)
        slot = np.where(t <= self.size, t - 1, (uniform[which] * t).astype(np.intp))
        stays = slot < self.size
        if stays.any():
            which, slot = which[stays], slot[stays]
            self._rows = self._put(self._rows, X, which, slot)
            if offset is not None:
                self._offset = self._put(self._offset, offset, which, slot)

    def _put(self, rows, X, which, slot):
        """``rows[slot] = X[which]``; of rows that fall into one slot the last stays, as it would one by one."""
        if sp.issparse(X):
            n_before = 0 if rows is None else rows.shape[0]
            source = np.arange(max(n_before, slot.max() + 1))
            source[slot] = n_before + np.arange(len(which))
            return (X[which] if rows is None else sp.vstack([rows, X[which]], format="csr"))[source]
        if rows is None:
            rows = np.empty((self.size, X.shape[1]), X.dtype)
        rows[slot] = X[which]
        return rows

    def draw(self, n):
        """The next ``n`` rows, round and round, and their offsets."""
        if self._next + n > len(self):
            self._next = 0
        drawn = slice(self._next, min(self._next + n, len(self)))
        self._next = drawn.stop
        return self._rows[drawn], None if self._offset is None else self._offset[drawn]


def count_violators(S_pos, S_neg):
    """Count, for every positive and for every negative, the violators it is part of.

    ``S_pos`` (p x lanes) and ``S_neg`` (q x lanes) are scores; a pair violates where ``S_neg > S_pos - 1``.
    Returns the counts, in the type of the scores and lanes first: lanes x p and lanes x q.
    """
    bar, neg = np.ascontiguousarray(S_pos.T) - 1, np.ascontiguousarray(S_neg.T)
    lanes, p, q = len(bar), bar.shape[1], neg.shape[1]
    if min(p, q) <= FEW_SCORES or lanes * p * q <= FEW_PAIRS:
        violates = (neg[:, None, :] > bar[:, :, None]).view(np.int8)
        return (violates.sum(axis, dtype=np.int32).astype(bar.dtype) for axis in (2, 1))
    # In the order of all scores a positive violates with every negative behind its bar, a negative with every bar
    # before it. Sorting whole numbers whose high half orders as the score and whose low half says whose score it was
    # is much quicker than an argsort, and leaves a negative that equals a bar before it.
    both = np.concatenate([neg, bar], axis=1, dtype=np.float32)
    bits = both.view(np.int32)
    bits ^= (bits >> 31) & 0x7FFFFFFF
    keys = bits.astype(np.int64)
    keys <<= 32
    index = np.arange(p + q)
    keys |= index
    keys.sort(axis=1)
    keys &= 0xFFFFFFFF
    is_neg = keys < q
    sorted_counts = is_neg * (index + (1 - q)).astype(np.int32)
    sorted_counts -= is_neg.cumsum(axis=1, dtype=np.int32)
    sorted_counts += q
    keys += (p + q) * np.arange(lanes)[:, None]
    counts = np.empty((lanes, p + q), bar.dtype)
    counts.reshape(-1)[keys] = sorted_counts
    return counts[:, q:], counts[:, :q]


class PairLearner:
    """The learning itself: reservoirs, steps and weights of all lanes, for rows whose ``y`` is +1 or -1."""

    def __init__(self, n_features, C, buffer, update, block, dtype, rng, draw=None):
        self.C = np.atleast_1d(np.asarray(C, dtype=dtype))
        self.update = update
        self.block = block if update == "gradient" else 1
        self.draw = draw or buffer
        self.rng = rng
        self.P, self.N = Reservoir(buffer), Reservoir(buffer)
        self.W = np.zeros((n_features, len(self.C)), dtype)
        self.W_mean = self.W.copy()
        self.n_steps = 0
        self._waiting, self._new = None, True

    def learn(self, X, y, held_out=None, new=True):
        """Learn from the rows of X in order, a block at a time; rows of an incomplete block wait for those to come.

        ``held_out`` (rows x lanes) says which lanes must not learn from which rows. Rows that are not ``new``, because
        they come in a second pass, are not offered to the reservoirs again.
        """
        if new != self._new:
            self.end()
            self._new = new
        uniform = self.rng.random_sample(len(y))
        offset = None
        if held_out is not None:  # with an infinite score on its own side, a row violates nothing
            offset = np.where(held_out, np.inf * y[:, None], 0).astype(self.W.dtype)
        rows = [X, y, uniform, offset]
        if self._waiting is not None:
            rows = [_stack(before, now) for before, now in zip(self._waiting, rows)]
        n = len(rows[1])
        whole = n - n % self.block
        with np.errstate(invalid="ignore"):  # products of few columns may read, and not use, what lies beyond them
            for i in range(0, whole, self.block):
                self._learn_block(*_part(rows, slice(i, i + self.block)))
        self._waiting = _part(rows, slice(whole, n)) if whole < n else None

    def end(self):
        """Take the rows that still wait as a last, shorter block."""
        if self._waiting is not None:
            self._learn_block(*self._waiting)
            self._waiting = None
        return self

    def ended(self):
        """This learner, or a copy for which the rows that still wait were the last."""
        return self if self._waiting is None else copy.deepcopy(self).end()

    def _learn_block(self, X, y, uniform, offset):
        """The block enters the reservoirs of its classes, then is paired with the opposite ones."""
        if X.shape[1] <= FEW_COLUMNS:
            X = _dense(X)
        is_pos = y > 0
        (pos,), (neg,) = is_pos.nonzero(), (~is_pos).nonzero()
        if self._new:
            for B, which in (self.P, pos), (self.N, neg):
                if len(which):
                    B.add(X, offset, which, uniform)
        if self.P.seen and self.N.seen:
            if self.update == "sequential":
                self._sequential_step(X, y)
            elif len(y) > 1 or offset is not None or sp.issparse(X):
                self._gradient_step(X, offset, pos, neg)
            else:
                self._gradient_step_of_one(X, y[0])
        # An average over all steps in which step t weighs as t^3: the last half has 94 % of it (Shamir, Zhang 2013).
        self.n_steps += 1
        self.W_mean += (self.W - self.W_mean) * (4 / (self.n_steps + 3))

    def _gradient_step(self, X, offset, pos, neg):
        """``W += C_t/2 * (sum of p - n over the violators)``, with ``W`` the same for the whole block."""
        step = 0
        if len(pos):
            N = self.N.draw(self.draw)
            step += self.N.seen / N[0].shape[0] * self._sum_violators(_part((X, offset), pos), N)
        if len(neg):
            P = self.P.draw(self.draw)
            step += self.P.seen / P[0].shape[0] * self._sum_violators(P, _part((X, offset), neg))
        self.W += self.C / 2 * step

    def _gradient_step_of_one(self, X, y):
        """`_gradient_step` for a single dense row, without the detour through counts."""
        B = self.N if y > 0 else self.P
        rows, _ = B.draw(self.draw)
        violates = (y * (X @ self.W - rows @ self.W) < 1).astype(self.W.dtype)
        step = X.T * violates.sum(axis=0) - rows.T @ violates
        self.W += self.C * (y * B.seen / len(rows) / 2) * step

    def _sum_violators(self, positives, negatives):
        """The sum of ``p - n`` over the violators of each lane: a row enters as often as it violates, so counts do."""
        (P, offset_P), (N, offset_N) = positives, negatives
        S_P, S_N = P @ self.W, N @ self.W
        if offset_P is not None:
            S_P += offset_P
            S_N += offset_N
        row, col = count_violators(S_P, S_N)
        return P.T @ row.T - N.T @ col.T

    def _sequential_step(self, X, y):
        """For each ``b`` in B, in order: ``w += tau * y * (x - b)``, ``tau = min(C_t/2, loss / |x - b|^2)``.

        With the Gram matrix of the differences at hand, a step on one pair moves the margins of all others at once.
        """
        B = self.N if y[0] > 0 else self.P
        D = y[0] * (_dense(X) - _dense(B.rows))
        gram = D @ D.T
        for w, half_C_t in zip(self.W.T, self.C * (B.seen / len(B) / 2)):
            margin = D @ w
            tau = np.zeros_like(margin)
            for k, squared_norm in enumerate(gram.diagonal()):
                loss = 1 - margin[k]
                if loss > 0 and squared_norm > 0:
                    tau[k] = min(half_C_t, loss / squared_norm)
                    margin += tau[k] * gram[k]
            w += tau @ D


def _dense(X):
    return X.toarray() if sp.issparse(X) else X


def _part(arrays, rows):
    return [None if A is None else A[rows] for A in arrays]


def _stack(A, B):
    if A is None:
        return None
    return sp.vstack([A, B], format="csr") if sp.issparse(A) else np.concatenate([A, B])


class TwoClassMixin(ClassifierMixin):
    """What estimators for two classes share: a decision where the score is 0, and that they take sparse rows."""

    def predict(self, X):
        """The second class where the score is above 0, the first elsewhere."""
        above = self.decision_function(X) > 0
        return self.classes_[above.astype(int)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags


class OnlineAUC(TwoClassMixin, BaseEstimator):
    """Linear scores that rank the positives of two classes above the negatives, learned online.

    Rows are taken in the order given: shuffle them first if they are sorted.

    Parameters
    ----------
    C : float, default=1e-3
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

    def __init__(self, C=1e-3, *, buffer=500, update="gradient", block=64, passes=1, average=True, random_state=None):
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
            raise ValueError(f"y holds the label {unknown[0]}, expected one of {self.classes_.tolist()}")
        signs = np.where(y == self.classes_[1], 1, -1)
        X = X.astype(self._learner.W.dtype, copy=False)
        for i in range(passes):
            self._learner.learn(X, signs, new=i == 0)
        learner = self._learner.ended()
        self.coef_ = (learner.W_mean if self.average else learner.W).T.copy()
        means = [(B.rows @ self.coef_[0]).mean() for B in (learner.P, learner.N) if B.seen]
        self.intercept_ = np.array([-np.mean(means)], self.coef_.dtype)
        return self

    def decision_function(self, X):
        """Scores of the rows of X: the higher, the likelier the second class."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return X @ self.coef_[0] + self.intercept_[0]

    def _check_parameters(self):
        if not isinstance(self.C, Real) or not 0 < self.C < np.inf:
            raise ValueError(f"C is {self.C!r}, expected a finite number above 0")
        for name in ("buffer", "block", "passes"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name} is {value!r}, expected a whole number of at least 1")
        if self.update not in UPDATES:
            raise ValueError(f"update is {self.update!r}, expected one of {UPDATES}")


def two_classes(y):
    classes = np.unique(y)
    if len(classes) > 2:
        raise ValueError(f"Only binary classification is supported. The labels hold {len(classes)} classes, expected 2")
    if len(classes) < 2:
        raise ValueError(f"The labels hold {len(classes)} class, expected 2")
    return classes


class Ranker:
    """A mean of linear rankers on several sets of features, each weighing by how well it ranks rows it has not seen.

    A set is learned from in one go of many lanes: every step size times every inner fold, whose rows that lane holds
    out. The score is linear in the features, so all lanes of a set end in one vector of weights.

    A step size is the length of the way that all steps together may go if every pair violates and the rows lie at a
    mean squared distance of 1 from their mean: ``C = step size / (pairs * passes)``. So one grid suits all data.

    Attributes
    ----------
    weights_ : list of the weights of each set of features
    intercept_ : float, which brings the mean score of rows not learned from to 0; a ranking does not depend on it
    shares_ : list of the share of each set in the mean, by step size
    done_ : float, the share of the planned rows that was learned from before ``stop`` said so
    """

    def __init__(self, visits, folds, rng, *, block=32, draw=64, buffer=2000, step_sizes=STEP_SIZES):
        self.visits = visits
        self.folds = folds
        self.rng = rng
        self.step_sizes = step_sizes
        self.buffer = buffer
        self.draw = draw
        self.block = block

    def fit(self, feature_sets, y, stop=lambda: False, watch=None):
        """Learn from ``(F, rows)`` pairs: features of the rows ``y[rows]``, in random order, for each set in turn.

        ``stop`` is asked now and then whether to make an end; something is always learned first. ``watch``, if given,
        is called as often with the number of rows learned from so far, and a function that sets the attributes to what
        an end at this moment would make them.
        """
        fold = self._inner_folds(y)
        n_pos = np.count_nonzero(y > 0)
        lane_step, lane_fold = (A.ravel() for A in np.meshgrid(self.step_sizes, np.unique(fold), indexing="ij"))
        judged, learned, planned = [], 0, 0
        for F, rows in feature_sets:
            judge = partial(self._judge, F, y[rows], fold[rows], lane_fold)
            visits = max(self.visits, len(rows))
            for visited, learner in self._learn(F, y[rows], fold[rows], lane_step, lane_fold, visits, stop):
                if watch is not None:
                    watch(learned + visited, partial(self._weigh, judged, judge, learner, n_pos))
            learned, planned = learned + visited, planned + visits
            judged = self._weigh(judged, judge, learner.end(), n_pos)
            if stop():
                break
        self.done_ = learned / planned
        return self

    def _weigh(self, judged, judge, learner, n_pos):
        """What is judged so far and what this learner has learned, each weighing by its AUC."""
        judged = [*judged, judge(learner.ended().W_mean)]
        ways, offsets, aucs = zip(*judged)
        self.shares_ = soft_choice(np.array(aucs), n_pos)
        self.weights_ = [way @ share.astype(way.dtype) for way, share in zip(ways, self.shares_)]
        self.intercept_ = -float(np.sum(self.shares_ * offsets))
        return judged

    def _inner_folds(self, y):
        """The number of the fold of each row, the classes spread evenly; -1 if a class has one row only."""
        n_folds = min(self.folds, np.count_nonzero(y > 0), np.count_nonzero(y < 0))
        fold = np.full(len(y), -1)
        if n_folds > 1:
            for sign in (1, -1):
                rows = self.rng.permutation(np.flatnonzero(y == sign))
                fold[rows] = np.arange(len(rows)) % n_folds
        return fold

    def _learn(self, F, y, fold, lane_step, lane_fold, visits, stop):
        """Learn in all lanes and yield, after each chunk, the number of rows learned from and the learner."""
        held_out = (fold[:, None] == lane_fold) & (lane_fold >= 0)
        n_pos = np.count_nonzero(y > 0)
        pairs = n_pos * (len(y) - n_pos) * (1 - held_out.mean(axis=0)) ** 2
        C = lane_step / (pairs * visits / len(y))
        learner = PairLearner(F.shape[1], C, self.buffer, "gradient", self.block, F.dtype, self.rng, self.draw)
        visited, chunk = 0, 16 * self.block
        while visited < visits and not (visited and stop()):
            start = visited % len(y)
            rows = slice(start, min(start + chunk, len(y), start + visits - visited))
            learner.learn(F[rows], y[rows], held_out[rows], new=visited < len(y))
            visited += rows.stop - rows.start
            yield visited, learner

    def _judge(self, F, y, fold, lane_fold, W):
        """For every step size: weights that give standardised scores, their mean, and their AUC.

        All three are of rows held out; the weights and the means are added up over the folds.
        """
        way, mean, auc = 0, 0, 0
        for k in np.unique(lane_fold):
            lanes = W[:, lane_fold == k]
            S = F[fold == k] @ lanes
            least = 1e-3 * np.linalg.norm(lanes, axis=0) + np.finfo(S.dtype).tiny  # equal scores do not deviate at all
            deviation = np.maximum(S.std(axis=0), least)
            way += lanes / deviation
            mean += S.mean(axis=0, dtype=np.float64) / deviation
            auc += auc_of_columns(S, y[fold == k]) if k >= 0 else np.full(S.shape[1], 0.5)
        return way, mean, auc / len(np.unique(lane_fold))


def soft_choice(aucs, n_pos):
    """Shares that fall off with the distance from the best AUC, measured in its standard error; their sum is 1."""
    best = aucs.max()
    noise = np.sqrt(max(best * (1 - best), 1e-6) / n_pos)
    shares = np.exp((aucs - best) / (SHARPNESS * noise))
    return shares / shares.sum()


def auc_of_columns(S, y):
    """The AUC of each column of scores, by ranks; ties count half."""
    n_pos = np.count_nonzero(y > 0)
    ranks = rankdata(S, axis=0)[y > 0].sum(axis=0)
    return (ranks - n_pos * (n_pos + 1) / 2) / (n_pos * (len(y) - n_pos))


class Calibration:
    """Probabilities from scores, by scikit-learn's calibration.

    Isotonic where each class has ``MANY`` rows, else sigmoid, which needs few. ``arrays`` holds all that was learned:
    ``a`` and ``b`` of a sigmoid, or the knots ``score`` and ``probability`` of an isotonic function.

    Reference: J. Platt. Probabilistic Outputs for Support Vector Machines. Advances in Large Margin Classifiers, 1999.
    """

    MANY = 1000

    def __init__(self, arrays=None):
        self.arrays = arrays

    def fit(self, scores, y):
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.frozen import FrozenEstimator

        few = min(np.count_nonzero(y > 0), np.count_nonzero(y < 0)) < self.MANY
        every = np.arange(len(y))
        model = CalibratedClassifierCV(
            FrozenEstimator(_Score().fit(None, y)),
            method="sigmoid" if few else "isotonic",
            cv=[(every, every)],
            ensemble=False,
        )
        (of_scores,) = model.fit(scores[:, None], y).calibrated_classifiers_[0].calibrators
        if few:
            self.arrays = {"a": np.float64(of_scores.a_), "b": np.float64(of_scores.b_)}
        else:
            self.arrays = {"score": of_scores.X_thresholds_, "probability": of_scores.y_thresholds_}
        return self

    def probability(self, scores):
        if "a" in self.arrays:
            return expit(-(self.arrays["a"] * scores + self.arrays["b"]))
        return np.interp(scores, self.arrays["score"], self.arrays["probability"])


class _Score(TwoClassMixin, BaseEstimator):
    """A classifier of rows that consist of nothing but a score."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0]


def least_risk(probability, cost):
    """Bayes minimum risk: act on a row where missing it is expected to cost more than a false alarm.

    ``cost`` (rows x 2) is what it costs to miss a row that is positive, and to act on one that is not.
    """
    return probability * cost[:, 0] > (1 - probability) * cost[:, 1]


def cost_by_threshold(scores, y, cost):
    """Thresholds, from acting on no row down to acting on all, and what acting on all scores above each costs."""
    order = np.argsort(-scores, kind="stable")
    s, y, cost = scores[order], y[order], cost[order]
    step = np.where(y > 0, -cost[:, 0], cost[:, 1])  # what acting on one row more adds to the cost
    total = np.concatenate([[0], np.cumsum(step)]) + cost[y > 0, 0].sum()
    thresholds = np.concatenate([[np.inf], (s[1:] + s[:-1]) / 2, [-np.inf]])
    apart = np.concatenate([[True], s[1:] < s[:-1], [True]])
    return thresholds[apart], total[apart]


def best_threshold(scores, y, cost):
    """The threshold above which acting costs the least."""
    thresholds, total = cost_by_threshold(scores, y, cost)
    return thresholds[total.argmin()]


@dataclass
class Outcome:
    """What decisions have led to. ``savings`` is relative to the cheaper of acting on no row and acting on all."""

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int
    precision: float
    recall: float
    f1: float
    cost: float
    savings: float

    @classmethod
    def of(cls, acted, y, cost):
        from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

        (tn, fp), (fn, tp) = confusion_matrix(y > 0, acted, labels=[False, True])
        precision, recall, f1, _ = precision_recall_fscore_support(y > 0, acted, average="binary", zero_division=0)
        total, constant = cost_of(acted, y, cost), min(cost_of(every, y, cost) for every in (False, True))
        savings = (constant - total) / constant if constant else 0.0
        return cls(tp, fp, fn, tn, precision, recall, f1, total, savings)


def cost_of(acted, y, cost):
    """The sum of the costs of all positives missed and of all false alarms."""
    acted = np.broadcast_to(acted, y.shape)
    return cost[(y > 0) & ~acted, 0].sum() + cost[(y < 0) & acted, 1].sum()
