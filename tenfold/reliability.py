"""How far an AUC can be trusted: its standard error, and that of the difference of two.

Reference: E. DeLong, D. DeLong, D. Clarke-Pearson. Comparing the Areas under Two or More Correlated Receiver Operating
Characteristic Curves. Biometrics 44, 1988.
"""

import numpy as np


def auc_and_error(y, scores):
    """The AUC of these scores, and its standard error.

    For the error, each class has one row more, whose place among the others is open: without it, a few rows that happen
    to be ranked without fault would seem to leave no doubt.
    """
    parts = _shares_of_pairs(y, scores)
    error = np.sqrt(sum(np.append(part, 0.5).var(ddof=1) / (len(part) + 1) for part in parts))
    return float(parts[0].mean()), float(error)


def compare_aucs(y, scores, others):
    """By how much the AUC of ``others`` is above that of ``scores``, of the same rows, and the standard error of it."""
    differences = [b - a for a, b in zip(_shares_of_pairs(y, scores), _shares_of_pairs(y, others))]
    error = np.sqrt(sum(part.var(ddof=1) / len(part) for part in differences if len(part) > 1))
    return float(differences[0].mean()), float(error)


def _shares_of_pairs(y, scores):
    """For each positive the share of the negatives that it scores above, and for each negative the other way round."""
    pos, neg = scores[y > 0], scores[y < 0]
    return _share_below(pos, neg), 1 - _share_below(neg, pos)


def _share_below(scores, others):
    others = np.sort(others)
    return (others.searchsorted(scores, "left") + others.searchsorted(scores, "right")) / (2 * len(others))
