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
from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

UPDATES = ("gradient", "sequential")

# Comparing every pair is quicker than sorting where there are at most so many pairs.
FEW_PAIRS = 40_000

# So many blocks are prepared at once: few would be slow for the calls that it takes, many for the memory.
MANY_BLOCKS = 64

# A block of sparse rows with at most so many columns is quicker to learn from when dense.
FEW_COLUMNS = 2_000


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

    def slots(self, uniform):
        """The slots of the next rows, decided by a number in [0, 1) each; from ``size`` on, a row is not kept."""
        t = np.arange(self.seen + 1, self.seen + len(uniform) + 1)
        return np.where(t <= self.size, t - 1, (uniform * t).astype(np.intp))

    def add(self, X, offset, which, slot):
        """Offer the rows ``X[which]`` in order, of which those with a slot below ``size`` are kept there."""
        self.seen += len(which)
        kept = slot < self.size
        self.keep(X, offset, which[kept], slot[kept])

    def keep(self, X, offset, which, slot):
        """``rows[slot] = X[which]``; of rows that fall into one slot the last stays, as it would one by one."""
        if len(which):
            self._rows = self._write(self._rows, X, which, slot)
            if offset is not None:
                self._offset = self._write(self._offset, offset, which, slot)

    def _write(self, rows, X, which, slot):
        if not isinstance(X, np.ndarray):
            n_before = 0 if rows is None else rows.shape[0]
            source = np.arange(max(n_before, slot.max() + 1))
            source[slot] = n_before + np.arange(len(which))
            return (X[which] if rows is None else sp.vstack([rows, X[which]], format="csr"))[source]
        if rows is None:
            rows = np.empty((self.size, X.shape[1]), X.dtype)
        rows[slot] = X.take(which, axis=0)
        return rows

    def draw(self, n):
        """The next ``n`` rows, round and round, and their offsets."""
        begin, held = self._next, len(self)
        if begin + n > held:
            begin = 0
        self._next = end = min(begin + n, held)
        return self._rows[begin:end], None if self._offset is None else self._offset[begin:end]


def merge_reservoirs(reservoirs, size, rng):
    """A reservoir that is a uniform sample of all rows that were added to these, whose rows differ.

    How many come from each is drawn as of one urn; there are fewer than ``size`` if one holds less than its share.
    """
    reservoirs, taken = [reservoir for reservoir in reservoirs if reservoir.seen], []
    merged = Reservoir(size)
    merged.seen = rest = sum(reservoir.seen for reservoir in reservoirs)
    left = min([len(merged), *(len(B) * rest // B.seen for B in reservoirs if len(B) < B.seen)])
    for reservoir in reservoirs:
        rest -= reservoir.seen
        n = rng.hypergeometric(reservoir.seen, rest, left) if left and rest else left
        taken.append(reservoir.rows[rng.permutation(len(reservoir))[:n]])
        left -= n
    if taken:
        rows = sp.vstack(taken, format="csr") if sp.issparse(taken[0]) else np.concatenate(taken)
        if rows.shape[0] < len(merged):
            merged.size = rows.shape[0]
        merged._rows = merged._write(None, rows, rng.permutation(rows.shape[0]), np.arange(rows.shape[0]))
    return merged


def count_violators(above, y, n_pos, below, weights):
    """Count, for every row of a block and for every row that it is paired with, its violators.

    ``above`` (lanes x rows) are scores times ``y``, which is 1 for ``n_pos`` rows and -1 for the others. Those of each
    class, in this order, should be above the scores in ``below`` (lanes x others); a pair violates where ``below >
    above - 1``. Returns the counts of both in ``below`` and of ``above``, in their type, times the weight of the class.
    """
    bar, q = above - 1, [scores.shape[1] for scores in below]
    lanes, m = bar.shape
    if lanes * (n_pos * q[0] + (m - n_pos) * q[1]) <= FEW_PAIRS:
        counts = [np.empty((lanes, n), bar.dtype) for n in (*q, m)]
        for sign, scores, weight, in_below in zip((1, -1), below, weights, counts):
            if scores.shape[1]:
                (which,) = (y == sign).nonzero()
                violates = (scores[:, None, :] > bar.take(which, axis=1)[:, :, None]).astype(bar.dtype)
                weight = np.full(max(violates.shape[1:]), weight, bar.dtype)
                np.matmul(weight[: len(which)], violates, out=in_below)
                counts[2][:, which] = violates @ weight[: scores.shape[1]]
        return counts
    # In the order of all scores, one class behind the other, a bar violates with all of its class that is behind it,
    # what should be below with every bar before it. Sorting whole numbers that begin with the class, order as the score
    # and end with whose score it was is much quicker than an argsort, and leaves a score that equals a bar before it.
    n_below, n, n_first = sum(q), sum(q) + m, q[0] + n_pos
    bits = np.concatenate([*below, bar], axis=1, dtype=np.float32).view(np.int32)
    bits ^= (bits >> 31) & 0x7FFFFFFF
    keys = bits.astype(np.int64)
    keys <<= 30
    whose = np.arange(n, dtype=np.int64)
    whose[q[0] : n_below] += 1 << 62
    whose[n_below:] += (y < 0) * (1 << 62)
    keys += whose
    keys.sort(axis=1)
    keys &= (1 << 30) - 1
    is_below = keys < n_below
    before, behind = np.arange(1, n + 1, dtype=np.int32), np.full(n, n_below, np.int32)
    before[n_first:] -= n_pos
    behind[:n_first] = q[0]
    times = np.where(is_below, before, behind)
    times -= np.add.accumulate(is_below, axis=1, dtype=np.int32)
    times, counts = times.astype(bar.dtype), np.empty_like(bar, shape=times.shape)
    times[:, :n_first] *= weights[0]
    times[:, n_first:] *= weights[1]
    for lane, key, count in zip(counts, keys, times):
        lane[key] = count
    return counts[:, : q[0]], counts[:, q[0] : n_below], counts[:, n_below:]


class PairLearner:
    """The learning itself: reservoirs, steps and weights of all lanes, for rows whose ``y`` is +1 or -1."""

    def __init__(self, n_features, C, buffer, update, block, dtype, rng, draw=None):
        self.C = np.atleast_1d(np.asarray(C, dtype=dtype))
        self.update = update
        self.block = block if update == "gradient" else 1
        self.draw = draw or buffer
        self.rng = rng
        self.P, self.N = Reservoir(buffer), Reservoir(buffer)
        order = "F" if n_features <= FEW_COLUMNS else "C"  # lane by lane is quicker, but not for sparse rows
        self.W, self.W_mean = (np.zeros((n_features, len(self.C)), dtype, order) for _ in range(2))
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
        whole = len(rows[1]) // self.block * self.block
        self._waiting = _part(rows, slice(whole, None)) if whole < len(rows[1]) else None
        for i in range(0, whole, MANY_BLOCKS * self.block):
            self._learn_blocks(*_part(rows, slice(i, min(i + MANY_BLOCKS * self.block, whole))))

    def end(self):
        """Take the rows that still wait as a last, shorter block."""
        if self._waiting is not None:
            self._learn_blocks(*self._waiting)
            self._waiting = None
        return self

    def ended(self):
        """This learner, or a copy for which the rows that still wait were the last."""
        return self if self._waiting is None else copy.deepcopy(self).end()

    def merge(self, others):
        """Go on as one learner of all rows: weights are a mean by rows seen, reservoirs a sample of all rows."""
        learners = [learner.end() for learner in (self, *others)]
        seen = np.array([learner.P.seen + learner.N.seen for learner in learners], float)
        share = seen / max(seen.sum(), 1)
        self.W = sum(s * learner.W for s, learner in zip(share, learners)).astype(self.W.dtype)
        self.W_mean = sum(s * learner.W_mean for s, learner in zip(share, learners)).astype(self.W.dtype)
        self.n_steps = round(share @ [learner.n_steps for learner in learners])
        self.P = merge_reservoirs([learner.P for learner in learners], self.P.size, self.rng)
        self.N = merge_reservoirs([learner.N for learner in learners], self.N.size, self.rng)
        return self

    def _learn_blocks(self, X, y, uniform, offset):
        """Find which rows the reservoirs keep, and their slots, at once; then learn from a block at a time."""
        y, slot, kept = y.astype(self.W.dtype), np.empty(len(y), np.intp), []
        bounds = np.arange(0, len(y) + self.block, self.block)
        for B, sign in (self.P, 1), (self.N, -1):
            (which,) = (y == sign).nonzero()
            slot[which] = slots = B.slots(uniform.take(which))
            kept.append(_by_block(which[slots < B.size], bounds))
        n_pos = np.diff(np.flatnonzero(y > 0).searchsorted(bounds)).tolist()
        with np.errstate(invalid="ignore"):  # products of few columns may read, and not use, what lies beyond them
            for i, *of_block in zip(bounds.tolist(), n_pos, *kept):
                self._learn_block(*_part((X, y, slot, offset), slice(i, i + self.block)), *of_block)

    def _learn_block(self, X, y, slot, offset, n_pos, kept_pos, kept_neg):
        """The block enters the reservoirs of its classes, then is paired with the opposite ones."""
        if X.shape[1] <= FEW_COLUMNS:
            X = _dense(X)
        if self._new:
            for B, n, which in (self.P, n_pos, kept_pos), (self.N, len(y) - n_pos, kept_neg):
                B.seen += n
                B.keep(X, offset, which, slot[which])
        if self.P.seen and self.N.seen:
            if self.update == "sequential":
                self._sequential_step(X, y)
            elif len(y) > 1 or offset is not None or not isinstance(X, np.ndarray):
                self._gradient_step(X, y, offset, n_pos)
            else:
                self._gradient_step_of_one(X, int(y[0]))
        # An average over all steps in which step t weighs as t^3: the last half has 94 % of it (Shamir, Zhang 2013).
        self.n_steps += 1
        self.W_mean += (self.W - self.W_mean) * (4 / (self.n_steps + 3))

    def _gradient_step(self, X, y, offset, n_pos):
        """``W += C_t/2 * (sum of p - n over the violators)``, with ``W`` the same for the whole block.

        A row enters the sum as often as it violates, so that counts are all it takes.
        """
        N, offset_N = self.N.draw(self.draw if n_pos else 0)
        P, offset_P = self.P.draw(self.draw if n_pos < len(y) else 0)
        below = self._scores(N, offset_N), -self._scores(P, offset_P)
        half = self.N.seen / max(N.shape[0], 1) / 2, -self.P.seen / max(P.shape[0], 1) / 2
        times_N, times_P, times = count_violators(y * self._scores(X, offset), y, n_pos, below, half)
        step = times @ X
        step -= times_N @ N
        step -= times_P @ P
        self.W += (self.C[:, None] * step).T

    def _scores(self, X, offset):
        """The scores of the rows of X, lanes first."""
        S = self.W.T @ X.T
        if offset is not None:
            S += offset.T
        return S

    def _gradient_step_of_one(self, X, y):
        """`_gradient_step` for a single dense row, without the detour through counts."""
        B = self.N if y > 0 else self.P
        rows, _ = B.draw(self.draw)
        bar = X @ self.W - y
        violates = rows @ self.W > bar if y > 0 else rows @ self.W < bar
        times = violates * (self.C * (y * B.seen / len(rows) / 2))
        self.W += X.T * times.sum(axis=0) - rows.T @ times

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
    return X if isinstance(X, np.ndarray) else X.toarray()


def _by_block(which, bounds):
    """The numbers ``which`` of each block, counted from its beginning."""
    ends = which.searchsorted(bounds).tolist()
    return (which[i:j] - begin for begin, i, j in zip(bounds.tolist(), ends, ends[1:]))


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
    draw : int, default=128
        Rows of a buffer that a block is paired with, other ones each time. If ``block`` is 1, it is always all of them.
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

    def __init__(
        self, C=1e-3, *, buffer=500, update="gradient", block=64, draw=128, passes=1, average=True, random_state=None
    ):
        self.C = C
        self.buffer = buffer
        self.update = update
        self.block = block
        self.draw = draw
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
            draw = self.draw if self.block > 1 else self.buffer
            self._learner = PairLearner(X.shape[1], self.C, self.buffer, self.update, self.block, X.dtype, rng, draw)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y holds the label {unknown[0]}, expected one of {self.classes_.tolist()}")
        signs = np.where(y == self.classes_[1], 1, -1)
        X = X.astype(self._learner.W.dtype, copy=False)
        for i in range(passes):
            self._learner.learn(X, signs, new=i == 0)
        return self._take_over()

    def merge(self, others):
        """Become the learner of all rows that this one and the ``others``, fitted to other rows, have seen.

        ``partial_fit`` goes on from there. The others must have the same parameters, classes and number of features.
        """
        for other in (self, *others):
            check_is_fitted(other)
            if other.classes_.tolist() != self.classes_.tolist() or other.n_features_in_ != self.n_features_in_:
                found, expected = (f"{a.n_features_in_} features and {a.classes_.tolist()}" for a in (other, self))
                raise ValueError(f"a learner of {found} cannot be merged, expected {expected}")
        self._learner.merge([other._learner.ended() for other in others])
        return self._take_over()

    def _take_over(self):
        """What was learned so far becomes the attributes."""
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
        for name in ("buffer", "block", "draw", "passes"):
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
