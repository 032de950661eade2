"""Learning from several sets of features, each in many lanes, and choosing among the lanes by rows they held out."""

from dataclasses import dataclass

import numpy as np

from oam import PairLearner
from tenfold.plan import MANY_ROWS, VISITS_OF_ONE

STEP_SIZES = (200.0, 2_500.0, 30_000.0)
SHARPNESS = 0.25  # from 0.125 to 0.5 the mean AUC over 26 data sets stays within .0006
MOST_TAKEN = 30  # lanes that a greedy choice takes; five or so are usual


@dataclass
class SetResult:
    """What one set of features has come to, for every step size.

    ``weights`` (features x steps) give the sum, over the inner folds, of standardised scores, and ``mean`` is the mean
    of these; ``auc`` and ``scores`` (rows x steps) are of rows held out. ``rows`` are the numbers of these rows.
    """

    weights: np.ndarray
    mean: np.ndarray
    auc: np.ndarray
    scores: np.ndarray
    rows: np.ndarray


class LaneEnsemble:
    """A mean of linear rankers on several sets of features, by shares that follow from their AUC on unseen rows.

    A set is learned from in one go of many lanes: every step size times every inner fold, whose rows that lane holds
    out. The score is linear in the features, so all lanes of a set end in one vector of weights.

    A step size is the length of the way that all steps together may go if every pair violates and the rows lie at a
    mean squared distance of 1 from their mean: ``C = step size / (pairs * passes)``. So one grid suits all data.

    Attributes
    ----------
    weights_ : list of the weights of each set of features
    intercept_ : float, which brings the mean score of rows not learned from to 0; a ranking does not depend on it
    shares_ : list of the share of each set in the mean, by step size
    done_ : float, the share of the planned rows that was learned from before ``stop`` made an end
    held_out_rows_, held_out_scores_ : numbers of rows, and the scores that lanes which held them out gave to them
    """

    def __init__(self, visits, rng, *, block=32, draw=64, buffer=2000, step_sizes=STEP_SIZES):
        self.visits = visits
        self.rng = rng
        self.step_sizes = step_sizes
        self.buffer = buffer
        self.draw = draw
        self.block = block

    def fit(self, feature_sets, y, fold, stop=lambda: False):
        """Learn from ``(F, rows)`` pairs: features of the rows ``y[rows]``, in random order, for each set in turn.

        ``fold`` has the inner fold of each row, as of `inner_folds`. Learning ends as soon as ``stop()`` is true.
        """
        lane_step, lane_fold = (A.ravel() for A in np.meshgrid(self.step_sizes, np.unique(fold), indexing="ij"))
        results, learned, planned = [], 0, 0
        for F, rows in feature_sets:
            visits = max(self.visits, len(rows)) if F.shape[1] > 1 else min(VISITS_OF_ONE, len(rows))
            learner, visited = self._learn(F, y[rows], fold[rows], lane_step, lane_fold, visits, stop)
            results.append(self._evaluate(F, y[rows], fold[rows], lane_fold, rows, learner.W_mean))
            learned, planned = learned + visited, planned + visits
            if stop():
                break
        self.done_ = learned / planned
        self._combine(results, y)
        return self

    def _combine(self, results, y):
        """Set the attributes to the mean of the results, by shares."""
        n_pos = np.count_nonzero(y > 0)
        self.held_out_rows_ = min((result.rows for result in results), key=len)
        scores = np.stack([r.scores[np.isin(r.rows, self.held_out_rows_)] for r in results], axis=1)
        if min(n_pos, len(y) - n_pos) >= MANY_ROWS:
            self.shares_ = greedy_choice(scores, y[self.held_out_rows_])
        else:
            self.shares_ = soft_choice(np.array([result.auc for result in results]), n_pos)
        self.weights_ = [r.weights @ share.astype(r.weights.dtype) for r, share in zip(results, self.shares_)]
        self.intercept_ = -float(sum(share @ r.mean for r, share in zip(results, self.shares_)))
        self.held_out_scores_ = np.einsum("ijk,jk->i", scores, self.shares_)

    def _learn(self, F, y, fold, lane_step, lane_fold, visits, stop):
        """Learn in all lanes: the learner, and the number of rows that it has learned from."""
        held_out = (fold[:, None] == lane_fold) & (lane_fold >= 0)
        n_pos = np.count_nonzero(y > 0)
        pairs = n_pos * (len(y) - n_pos) * (1 - held_out.mean(axis=0)) ** 2
        C = lane_step / (pairs * visits / len(y))
        learner = PairLearner(F.shape[1], C, self.buffer, "gradient", self.block, F.dtype, self.rng, self.draw)
        visited, chunk = 0, 16 * self.block
        while visited < visits:
            start = visited % len(y)
            rows = slice(start, min(start + chunk, len(y), start + visits - visited))
            learner.learn(F[rows], y[rows], held_out[rows], new=visited < len(y))
            visited += rows.stop - rows.start
            if stop():
                break
        return learner.end(), visited

    def _evaluate(self, F, y, fold, lane_fold, rows, W):
        """The `SetResult` of the weights W of all lanes, by the rows that each of them held out."""
        folds = np.unique(lane_fold)
        weights, mean, auc, scores = 0, 0, 0, np.empty((len(y), W.shape[1] // len(folds)))
        of_all_lanes = F @ W  # also of rows that a lane has learned from, lest the others be copied
        for k in folds:
            lanes = W[:, lane_fold == k]
            S = of_all_lanes[np.ix_(fold == k, lane_fold == k)]
            least = 1e-3 * np.linalg.norm(lanes, axis=0) + np.finfo(S.dtype).tiny  # equal scores do not deviate at all
            deviation = np.maximum(S.std(axis=0), least)
            weights += lanes / deviation
            centre = S.mean(axis=0, dtype=np.float64)
            mean += centre / deviation
            auc += auc_of_columns(S, y[fold == k]) if k >= 0 else np.full(S.shape[1], 0.5)
            scores[fold == k] = (S - centre) / (deviation / len(folds))
        return SetResult(weights, mean, auc / len(folds), scores, rows)


def inner_folds(y, n_folds, rng):
    """The number of the fold of each row, the classes spread evenly; -1 if a class has one row only."""
    n_folds = min(n_folds, np.count_nonzero(y > 0), np.count_nonzero(y < 0))
    fold = np.full(len(y), -1)
    if n_folds > 1:
        for sign in (1, -1):
            rows = rng.permutation(np.flatnonzero(y == sign))
            fold[rows] = np.arange(len(rows)) % n_folds
    return fold


def soft_choice(aucs, n_pos):
    """Shares that fall off with the distance from the best AUC, measured in its standard error; their sum is 1."""
    best = aucs.max()
    noise = np.sqrt(max(best * (1 - best), 1e-6) / n_pos)
    shares = np.exp((aucs - best) / (SHARPNESS * noise))
    return shares / shares.sum()


def greedy_choice(scores, y):
    """Shares that come from taking, again and again, the lane that raises the AUC of the sum most, until none does.

    ``scores`` (rows x sets x steps) are of rows held out.

    Reference: R. Caruana, A. Niculescu-Mizil, G. Crew, A. Ksikes. Ensemble Selection from Libraries of Models. ICML
    2004.
    """
    lanes = scores.reshape(len(y), -1)
    taken, total, best = np.zeros(lanes.shape[1]), 0, 0
    for _ in range(MOST_TAKEN):
        aucs = auc_of_columns(total + lanes, y)
        lane = aucs.argmax()
        if aucs[lane] <= best and taken.any():
            break
        taken[lane] += 1
        total, best = total + lanes[:, [lane]], aucs[lane]
    return (taken / taken.sum()).reshape(scores.shape[1:])


def auc_of_columns(S, y):
    """The AUC of each column of scores; ties count half.

    The scores are sorted as whole numbers whose last bit says whose score it was: once with positives behind negatives
    of the same score, once before them.
    """
    bits = np.add(S.T, 0, dtype=np.float32, order="C").view(np.int32)  # of a copy, in which no zero is negative
    bits ^= (bits >> 31) & 0x7FFFFFFF
    bits &= -2
    index, is_pos = np.arange(len(y)), y > 0
    n_pos = np.count_nonzero(is_pos)
    n_neg = len(y) - n_pos
    positives_above = (np.sort(bits | is_pos) & 1) @ index - n_pos * (n_pos - 1) / 2
    negatives_above = (np.sort(bits | ~is_pos) & 1) @ index - n_neg * (n_neg - 1) / 2
    return 0.5 + (positives_above - negatives_above) / (2 * n_pos * n_neg)
