"""Folds: the splits of the rows, and what a learner gives on each of them."""

import time
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import auc, roc_curve
from sklearn.model_selection import StratifiedKFold

from preprocess import InputError
from tenfold.columns.category import FEW
from tenfold.plan import draw_rows

MOST_ROWS = 500_000  # that folds are made of; the AUC of so many rows is known to .001
MOST_CELLS = 1e8  # the same, of dense rows
MOST_CHARACTERS = 4e6  # and of text
CELLS_AT_A_TIME = 2**22  # of test rows, to copy and score


@dataclass(frozen=True)
class Experiment:
    """What there is to do: for each split ``(train, test)`` learn from these rows of X and test on those of X_test.

    ``y`` and ``y_test`` are +1 or -1; ``rows`` are the numbers of the test rows in their file,
    and ``weight`` is how many rows of it each of them stands for. ``categories`` are as of `AUCRanker`.
    """

    X: object
    y: object
    X_test: object
    y_test: object
    splits: list
    rows: object = None
    weight: object = 1.0
    categories: object = None

    @classmethod
    def cross_validation(cls, X, y, n_folds, seed, rows=None, counts=None, categories=None):
        """Stratified, shuffled folds of the same rows, which are all of a file, or have these numbers in it.

        ``counts`` is how many rows of each sign there are in the file.
        """
        rows = np.arange(len(y)) if rows is None else rows
        weight = np.ones(len(y))
        for sign in (1, -1) if counts else ():
            weight[y == sign] = counts[sign] / np.count_nonzero(y == sign)
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        return cls(X, y, X, y, list(folds.split(np.zeros(len(y)), y)), rows, weight, categories)

    @classmethod
    def train_and_test(cls, X, y, X_test, y_test, name, categories=None):
        """One fold: all rows of one file, and all of another, which has this name."""
        if len(set(y_test)) < 2:
            raise InputError(
                f"{name}: all labels are of the {'positive' if y_test[0] > 0 else 'negative'} class, expected both"
            )
        rows = np.arange(len(y_test))
        return cls(X, y, X_test, y_test, [(np.arange(len(y)), rows)], rows, np.ones(len(rows)), categories)

    def test_rows(self, fold):
        """The test rows of a fold, and their labels."""
        _, test = self.splits[fold]
        return self.X_test[test], self.y_test[test]

    def test_scores(self, fold, estimator):
        """The scores of the test rows of a fold; dense rows are copied some at a time: new memory may cost much."""
        _, test = self.splits[fold]
        n = len(test) if sp.issparse(self.X_test) else max(CELLS_AT_A_TIME // self.X_test.shape[1], 1)
        parts = (test[i : i + n] for i in range(0, len(test), n))
        return np.concatenate([estimator.decision_function(self.X_test[part]) for part in parts])

    def in_file_order(self, of_folds):
        """One array with what each fold has for its test rows, in the order of their file."""
        ordered = np.empty(len(self.y_test))
        for (_, test), of_fold in zip(self.splits, of_folds):
            ordered[test] = of_fold
        return ordered


def count_folds(y, asked, name):
    """As many folds as were asked for, or as the rarer class has rows."""
    rarer = min(np.count_nonzero(y > 0), np.count_nonzero(y < 0))
    if rarer < 2:
        raise InputError(f"{name}: one class has a single row, expected at least 2 to cross-validate")
    return min(asked, rarer)


def rows_to_use(X, y, categories=None):
    """The numbers of the rows to use, in order: all of them, or of very many a random sample.

    The sample has all rows of the rarer class, or as many as make up half of it.
    """
    most = MOST_ROWS if sp.issparse(X) else min(MOST_ROWS, int(MOST_CELLS / X.shape[1]))
    text = [values for values in (categories or {}).values() if len(values) > FEW]
    length = sum(sum(map(len, values)) / len(values) for values in text)  # characters of text in a row
    most = min(most, int(MOST_CHARACTERS / max(length, 1)))
    if len(y) <= most:
        return np.arange(len(y))
    return np.sort(draw_rows(y, most, np.random.RandomState(0), rarest=1 / 2))


@dataclass
class Fold:
    """What one fold, or one pair of files, has given.

    ``changes``, ``rows``, ``done`` and ``shares`` are as of `AUCRanker`. Of its ``seconds``, those that are ``fixed``
    do not grow with the effort. ``model`` is its `ScoreFunction`, if that was to be kept.
    """

    auc: float
    scores: object = field(compare=False)
    seconds: float = field(compare=False)
    fixed: float = field(compare=False)
    rows: int
    changes: dict
    done: float
    shares: dict
    model: object = field(default=None, compare=False)


def run_fold(fold, experiment, estimator, with_model=False, end=None, jobs=1):
    """Learn from the training rows of a fold and measure the AUC on its test rows.

    If there is an ``end``, a moment of the monotonic clock, learning stops in time for the folds behind this one, of
    which so many run at a time.
    """
    begun = time.monotonic()
    deadline = np.inf
    if end is not None:
        behind = -(-(len(experiment.splits) - fold) // jobs)
        deadline = begun + (end - begun) / behind
    train, test = experiment.splits[fold]
    estimator = clone(estimator)
    estimator.fit(experiment.X, experiment.y, rows=train, stop=lambda: time.monotonic() > deadline)
    learned = time.monotonic()
    scores = experiment.test_scores(fold, estimator)
    fpr, tpr, _ = roc_curve(experiment.y_test[test], scores)
    return Fold(
        auc(fpr, tpr),
        scores,
        time.monotonic() - begun,
        estimator.preparing_ + time.monotonic() - learned,
        estimator.rows_,
        estimator.changes_,
        estimator.done_,
        estimator.shares_,
        estimator.score_function_ if with_model else None,
    )
