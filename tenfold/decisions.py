"""From scores to decisions: on which rows to act, given what a missed positive and a false alarm cost."""

from dataclasses import astuple, dataclass

import numpy as np
from scipy.special import expit
from sklearn.metrics import confusion_matrix

from preprocess import InputError
from tenfold.calibration import log_odds


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
    """The threshold above which acting costs the least; of equally good ones that which acts on the fewest rows."""
    thresholds, total = cost_by_threshold(scores, y, cost)
    return thresholds[first_least(total)]


def first_least(costs):
    """The position of the least cost, or the first of those that are equal to it but for rounding."""
    return int(np.argmax(costs <= costs.min() * (1 + 1e-12)))


@dataclass
class Outcome:
    """What decisions have led to. ``savings`` is relative to the cheaper of acting on no row and acting on all.

    Where the rows are a sample, each counts as many times as it stands for rows of the file.
    """

    true_positives: float
    false_positives: float
    false_negatives: float
    true_negatives: float
    cost: float
    cost_of_none: float  # of acting on no row
    cost_of_all: float

    @classmethod
    def of(cls, acted, y, cost, weight=None):
        (tn, fp), (fn, tp) = confusion_matrix(y > 0, acted, labels=[False, True], sample_weight=weight)
        cost = cost if weight is None else cost * weight[:, None]
        none, every = (cost_of(all_rows, y, cost) for all_rows in (False, True))
        return cls(tp, fp, fn, tn, cost_of(acted, y, cost), none, every)

    def __add__(self, other):
        """What both have led to."""
        return Outcome(*(a + b for a, b in zip(astuple(self), astuple(other))))

    @property
    def precision(self):
        return _ratio(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self):
        return _ratio(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def f1(self):
        return _ratio(2 * self.true_positives, 2 * self.true_positives + self.false_positives + self.false_negatives)

    @property
    def savings(self):
        constant = min(self.cost_of_none, self.cost_of_all)
        return _ratio(constant - self.cost, constant)


def _ratio(a, b):
    return a / b if b else 0.0


def add_outcomes(before, more):
    """The `Outcome` of each rule, on the rows of both."""
    return {name: before[name] + outcome if name in before else outcome for name, outcome in more.items()}


def cost_of(acted, y, cost):
    """The sum of the costs of all positives missed and of all false alarms."""
    acted = np.broadcast_to(acted, y.shape)
    return cost[(y > 0) & ~acted, 0].sum() + cost[(y < 0) & acted, 1].sum()


@dataclass
class Decisions:
    """Which rows to act on at given costs, and what came of it, by each rule.

    ``threshold`` is that of the moved threshold for new rows, or None if there are no folds to find it by.
    """

    cost: object
    scores: object
    probability: object
    acted: dict
    outcomes: dict
    threshold: "float | None"
    weight: object = 1.0  # how many rows each of them stands for


def decide_by_folds(experiment, scores, cost):
    """`Decisions` on the rows of a cross-validation; on those of each fold by the scores of all other folds."""
    y = experiment.y_test
    weight = np.broadcast_to(experiment.weight, len(y))
    weighted = cost * weight[:, None]
    probability, moved = np.empty(len(y)), np.empty(len(y), bool)
    for train, test in experiment.splits:
        probability[test] = calibrated(scores[train], y[train], weight[train], scores[test])
        moved[test] = scores[test] > best_threshold(scores[train], y[train], weighted[train])
    rules = {"Bayes minimum risk": least_risk(probability, cost), "moved threshold": moved}
    return _decisions(y, cost, scores, probability, rules, best_threshold(scores, y, weighted), weight)


def decide(y, scores, probability, cost):
    """`Decisions` on rows that have probabilities; ``y`` may be None."""
    rules = {"Bayes minimum risk": least_risk(probability, cost)}
    return _decisions(y, cost, scores, probability, rules, None)


def _decisions(y, cost, scores, probability, rules, threshold, weight=None):
    n = len(scores)
    acted = {**rules, "act on no row": np.zeros(n, bool), "act on every row": np.ones(n, bool)}
    outcomes = {} if y is None else {name: Outcome.of(rows, y, cost, weight) for name, rows in acted.items()}
    weight = np.ones(n) if weight is None else weight
    return Decisions(cost, scores, probability, acted, outcomes, threshold, weight)


def calibrated(scores, y, weight, new_scores):
    """Probabilities for new scores, by the scores of other rows, what these were, and how many each stands for."""
    slope, offset = log_odds(scores, y, weight)
    return expit(slope * new_scores + offset)


def find_costs(name, cost, n_rows, y, pair, cost_name):
    """What missing each row of a file, were it positive, and what a false alarm on it would cost: rows x 2.

    These are the ``cost`` that the file has, or else the ``pair`` for all rows. If that is empty, missing a positive
    costs as many false alarms as there are negatives to a positive among the labels ``y``.
    """
    if cost is not None:
        return cost
    if cost_name:
        raise InputError(f"{name} holds no {cost_name}, expected a variable with two costs for each row")
    if not pair:
        if y is None or len(set(y)) < 2:
            raise InputError(f"{name} has neither labels of both classes nor costs for each row, expected --cost FN,FP")
        pair = np.count_nonzero(y < 0) / np.count_nonzero(y > 0), 1.0
    return np.tile(np.array(pair, float), (n_rows, 1))
