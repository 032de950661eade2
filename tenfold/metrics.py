"""The AUC, its standard error, and intervals: of many columns of scores, of one, of scores that come some at a time.

Reference: E. DeLong, D. DeLong, D. Clarke-Pearson. Comparing the Areas under Two or More Correlated Receiver Operating
Characteristic Curves. Biometrics 44, 1988.
"""

import numpy as np
from scipy.special import stdtrit
from sklearn.metrics import roc_auc_score

MOST_KEPT = 5_000_000  # rows of which an AUC is exact
MOST_EDGES = 100_000  # scores that the histogram beyond is made of


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


def auc_and_error(y, scores):
    """The AUC of these scores, and its standard error.

    For the error, each class has one row more, whose place among the others is open: without it, a few rows that happen
    to be ranked without fault would seem to leave no doubt.
    """
    parts = _shares_of_pairs(y, scores)
    error = np.sqrt(sum(np.append(part, 0.5).var(ddof=1) / (len(part) + 1) for part in parts))
    return float(parts[0].mean()), float(error)


def _shares_of_pairs(y, scores):
    """For each positive the share of the negatives that it scores above, and for each negative the other way round."""
    pos, neg = scores[y > 0], scores[y < 0]
    return _share_below(pos, neg), 1 - _share_below(neg, pos)


def _share_below(scores, others):
    others = np.sort(others)
    return (others.searchsorted(scores, "left") + others.searchsorted(scores, "right")) / (2 * len(others))


class RunningAUC:
    """The AUC of scores that come some at a time: exact for some million rows, by a fine histogram beyond.

    A place of the histogram is a score of those first rows, or what is between two of them.
    """

    def __init__(self):
        self.kept, self.labels, self.n_rows = [], set(), 0
        self.edges, self.histogram, self.lacks_some = None, None, False

    def add(self, y, scores):
        """Take the signs of the next rows, or None if they have no labels, and their scores."""
        if y is None:
            self.lacks_some = True
            return
        self.labels.update(np.unique(y).tolist())
        self.n_rows += len(y)
        self.kept.append((y > 0, scores))
        if self.histogram is None and self.n_rows > MOST_KEPT:
            known = np.sort(np.concatenate([of_rows for _, of_rows in self.kept]))
            self.edges = np.unique(known[:: -(-len(known) // MOST_EDGES)])
            self.histogram = np.zeros((2, 2 * len(self.edges) + 1))
        if self.histogram is not None:
            for is_positive, of_rows in self.kept:
                places = self.edges.searchsorted(of_rows, "left") + self.edges.searchsorted(of_rows, "right")
                for k in (0, 1):
                    self.histogram[k] += np.bincount(places[is_positive == k], minlength=self.histogram.shape[1])
            self.kept = []

    def value(self):
        """The AUC so far, None as long as there is one class only, or if some rows lack a label."""
        if len(self.labels) < 2 or self.lacks_some:
            return None
        if self.histogram is None:
            is_positive, scores = (np.concatenate(parts) for parts in zip(*self.kept))
            return float(roc_auc_score(is_positive, scores))
        negative, positive = self.histogram
        below = np.cumsum(negative) - negative / 2  # half of those in the same place
        return float(positive @ below / (positive.sum() * negative.sum()))

    def found(self):
        """What there is instead of both classes, in words."""
        if self.labels and self.lacks_some:
            return "has labels for some rows only"
        return "has one label only" if self.labels else "has no labels"


def interval(values):
    """The 95 % interval of the mean over the folds, of AUCs or of values, by Student's t.

    The variance is corrected for the training rows that folds share.

    Reference: C. Nadeau, Y. Bengio. Inference for the generalization error. Machine Learning 52, 2003.
    """
    n = len(values)
    half = stdtrit(n - 1, 0.975) * values.std(ddof=1) * np.sqrt(1 / n + 1 / (n - 1))
    return values.mean() - half, values.mean() + half
