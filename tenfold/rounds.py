"""Rounds: all folds at a small effort, then at greater ones, for as long as the budget lasts.

The last round that is whole is the result: every fold of it has the same effort, and none is left out.
"""

import time
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

import scipy.sparse as sp
from sklearn.base import clone

from tenfold.folds import run_fold
from tenfold.options import MOST_EFFORT

FIRST = 1 / 4  # effort of the first round,
FIRST_OF_LARGE = 1 / 16  # or of the first round of data with more cells than
LARGE = 1e7
STEPS = (4, 3, 2, 1.5)  # by how much the effort may grow from one round to the next
PACE = 1.1  # a round takes seconds that are fixed, and others that grow as this power of the effort
SURE = 0.95  # share of the time left that a round may be expected to take
LATE = 1.2  # times the time left: a round that is expected to take this is given up


@dataclass
class Round:
    """The folds of one effort, in order, and the seconds that all of them take together.

    Of a round that was given up, these are the folds that were done, and the ``seconds`` that it would have taken.
    """

    effort: "float | None"
    folds: list
    seconds: float
    whole: bool = True

    @property
    def auc(self):
        return sum(fold.auc for fold in self.folds) / len(self.folds)

    @property
    def done(self):
        """The share of the planned work that was done: below 1 if the clock has stopped the folds."""
        return sum(fold.done for fold in self.folds) / len(self.folds)

    def expected(self, effort):
        """The seconds that a round of another effort can be expected to take."""
        fixed = sum(fold.fixed for fold in self.folds) / max(sum(fold.seconds for fold in self.folds), 1e-9)
        return self.seconds * (fixed + (1 - fixed) * (effort / self.effort) ** PACE)


def run_rounds(workers, experiment, estimator, end, report, with_models=False):
    """One `Round` after the other, until the moment ``end`` of the monotonic clock; those that were whole, in order.

    Only the first, a small one, is stopped where it is if it takes too long. ``workers`` know the experiment;
    ``report`` is called with the effort, the folds done, and, once the round is whole, the `Round`.
    """
    rounds, effort = [], first_effort(experiment.X)
    while effort is not None:
        ranker, limit = clone(estimator).set_params(effort=effort), {"end" if rounds else "cut": end}
        try:
            last = run_round(workers, experiment, ranker, report, with_models, **limit)
        except (BrokenProcessPool, MemoryError):
            if not rounds:
                raise
            break
        if last.whole:
            rounds.append(last)
            if last.done < 1 or not differs(rounds):
                break
        effort = next_effort(rounds[-1], last, end - time.monotonic())
    return rounds


def run_round(workers, experiment, estimator, report, with_models=False, *, cut=None, end=None):
    """The `Round` of this estimator, given up if it would not be whole at the moment ``end``.

    Folds that would go on beyond the moment ``cut`` stop learning where they are, if workers share our clock.
    """
    effort, n, begun = getattr(estimator, "effort", None), len(experiment.splits), time.monotonic()

    def expected(n_done):
        others = max(min(workers.jobs, n - n_done) - 1, 0)  # are half done when one is
        return (time.monotonic() - begun) * n / max(n_done + others / 2, 0.5)

    def watch(results):
        report(effort, list(results.values()), None)
        return end is not None and len(results) >= workers.jobs and expected(len(results)) > LATE * (end - begun)

    seconds = None if end is None else end - begun
    cut = cut if workers.share_our_clock else None
    results = workers.run(range(n), run_fold, estimator, with_models, cut, workers.jobs, seconds=seconds, watch=watch)
    folds = [results[fold] for fold in sorted(results)]
    if len(results) < n:
        return Round(effort, folds, expected(len(results)), whole=False)
    last = Round(effort, folds, time.monotonic() - begun)
    report(effort, folds, last)
    return last


def differs(rounds):
    """Whether the last round has other AUCs than the one before: if not, there is no more to do for this data."""
    last, *before = ([fold.auc for fold in one.folds] for one in rounds[:-3:-1])
    return last not in before


def first_effort(X):
    """The effort of the first round, which is to end in time almost anywhere."""
    return FIRST if (X.nnz if sp.issparse(X) else X.size) < LARGE else FIRST_OF_LARGE


def next_effort(whole, last, seconds):
    """The greatest effort of which a round can be expected to end in so many seconds, or None.

    ``whole`` is the last round that was whole, ``last`` that round or the one given up after it, which was too large.
    """
    most = MOST_EFFORT if last.whole else 0.99 * last.effort
    efforts = [step * whole.effort for step in STEPS if step * whole.effort <= most]
    return next((effort for effort in efforts if last.expected(effort) < SURE * seconds), None)
