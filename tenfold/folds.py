"""Folds: the splits, the clock that guards them, and what each of them gives."""

import os
import time
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import auc, roc_auc_score, roc_curve
from sklearn.model_selection import StratifiedKFold

from preprocess import InputError
from tenfold.efforts import EFFORTS, SURE, can_be_done, first_effort, less_effort, measure_slowness, with_effort
from tenfold.parallel import cluster, in_processes, joblib_runs_elsewhere, through_joblib
from tenfold.plan import draw_rows
from tenfold.readers import in_rows, is_in_rows

RESERVE = 0.09  # share of the budget kept for scoring, printing and ending
FEWEST_ROWS = 20_000  # that are always used,
FEWEST_CELLS = 1e8  # unless they have more cells than these
SECONDS_PER_BYTE = 2e-9  # to bring rows that are still in their file into memory
PATIENCE = 2.0  # where efforts make up for folds that take longer than their share
SPACING = 1.15  # how many times as many rows until the next point of a curve
CELLS_AT_A_TIME = 2**22  # of test rows, to copy and score


@dataclass(frozen=True)
class Experiment:
    """What there is to do: for each split ``(train, test)`` learn from these rows of X and test on those of X_test.

    ``y`` and ``y_test`` are +1 or -1.
    """

    X: object
    y: object
    X_test: object
    y_test: object
    splits: list

    @classmethod
    def cross_validation(cls, X, y, n_folds, seed):
        """Stratified, shuffled folds of the same rows."""
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        return cls(X, y, X, y, list(folds.split(np.zeros(len(y)), y)))

    @classmethod
    def train_and_test(cls, X, y, X_test, y_test, name):
        """One fold: all rows of one file, and all of another, which has this name."""
        if len(set(y_test)) < 2:
            raise InputError(
                f"{name}: all labels are of the {'positive' if y_test[0] > 0 else 'negative'} class, expected both"
            )
        return cls(X, y, X_test, y_test, [(np.arange(len(y)), np.arange(len(y_test)))])

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


def rows_in_time(X, y, estimator, n_folds, jobs, started, end, report=lambda used, n_rows: None):
    """All rows and their signs, or as many of them, drawn at random, as there is time to read and cross-validate on.

    Then they are a half, a quarter, an eighth or so on of all; rows of the commoner class are the first to be left out.
    ``report`` is told how many there are, and of how many.
    """
    cells = X.nnz if sp.issparse(X) else X.size
    fewest = min(FEWEST_ROWS, int(FEWEST_CELLS * len(y) / max(cells, 1)))
    if not hasattr(estimator, "expected_seconds") or len(y) <= fewest:
        return X, y
    least, every = with_effort(estimator, EFFORTS[-1]), np.arange(len(y))
    slowness, share = measure_slowness(started, jobs), 1
    to_read = 0 if is_in_rows(X) else slowness * SECONDS_PER_BYTE * X.nbytes
    while len(y) > fewest * share:
        seconds = least.expected_seconds(X, y[::share], every[::share])
        if can_be_done(seconds, slowness, n_folds, jobs, SURE * (end - time.monotonic()) - to_read / share):
            break
        share *= 2
    if share == 1:
        return X, y
    rows = np.sort(draw_rows(y, len(y) // share, np.random.RandomState(0)))
    report(len(rows), len(y))
    return in_rows(X, rows), y[rows]


@dataclass
class Fold:
    """What one fold, or one pair of files, has given.

    ``curve`` has a row for each moment noted on the way: seconds, rows learned from, AUC if it had been the end.
    ``changes``, ``done`` and ``shares`` are as of `AUCRanker`, ``effort`` is as of ``efforts.py``. ``warm_up`` are the
    seconds that only the first fold of a process takes. ``model`` is its `ScoreFunction`, if that was to be kept.
    """

    auc: float
    scores: object = field(compare=False)
    seconds: float = field(compare=False)
    curve: list = field(compare=False)
    changes: dict
    done: float
    shares: dict
    effort: float = 1.0
    warm_up: float = field(default=0.0, compare=False)
    model: object = field(default=None, compare=False)


@dataclass
class Clock:
    """Deals out what is left of the budget: an equal share to each fold yet to begin; what is unused goes on.

    Time that passes while it is paused does not count, neither for this fold nor for those behind it.
    """

    end: float
    folds: list  # their numbers, in the order in which they begin
    jobs: int
    patience: float = 1.0  # how many times its share a fold may take
    paused: float = 0.0

    def now(self):
        return time.monotonic() - self.paused

    def start(self, fold):
        """A function that says whether this fold, which begins now and behind all before it, must stop learning."""
        now = self.now()
        rounds = -(-(len(self.folds) - self.folds.index(fold)) // self.jobs)
        deadline = now + min(self.patience / rounds, 1) * (self.end - now)
        return lambda: self.now() > deadline

    def is_first(self, fold):
        """Whether this fold is the first of its process."""
        return self.folds.index(fold) < self.jobs

    @contextmanager
    def pause(self):
        begun = time.monotonic()
        yield
        self.paused += time.monotonic() - begun


class Curve:
    """Notes how well the test rows would be ranked if learning ended at this moment, at ever longer intervals."""

    def __init__(self, clock, estimator, X_test, y_test):
        self.clock, self.estimator, self.X_test, self.y_test = clock, estimator, X_test, y_test
        self.points, self.rows, self.due = [], 0, 0
        self.begun = clock.now()

    def note(self, rows, end):
        """So many ``rows`` have been learned from; after ``end`` the estimator scores as if that were all."""
        self.rows = rows
        if rows >= self.due:
            seconds = self.clock.now() - self.begun
            with self.clock.pause():
                end()
                self.points.append((seconds, rows, roc_auc_score(self.y_test, self._scores())))
            self.due = SPACING * rows

    def _scores(self):
        return self.estimator.score_function_(self.X_test)

    def end(self, seconds, auc):
        """Learning has taken so long and come to this."""
        if self.points[-1][1] == self.rows:
            self.points.pop()
        self.points.append((seconds, self.rows, auc))


def run_fold(fold, experiment, estimator, clock, with_curve=False, with_model=False):
    """Learn from the training rows of a fold and measure the AUC on its test rows."""
    stop, begun, system = clock.start(fold), clock.now(), os.times().system
    estimator = clone(estimator)
    curve = Curve(clock, estimator, *experiment.test_rows(fold)) if with_curve else None

    def monitor(n_rows, end):
        if curve:
            curve.note(n_rows, end)
        return stop()

    train, test = experiment.splits[fold]
    estimator.fit(experiment.X, experiment.y, monitor, rows=train)
    learned = clock.now() - begun
    scores = experiment.test_scores(fold, estimator)
    fpr, tpr, _ = roc_curve(experiment.y_test[test], scores)
    area = auc(fpr, tpr)
    if curve:
        curve.end(learned, area)
    points = curve.points if curve else []
    seconds = clock.now() - begun
    return Fold(
        area,
        scores,
        seconds,
        points,
        estimator.changes_,
        estimator.done_,
        estimator.shares_,
        warm_up=os.times().system - system if clock.is_first(fold) else 0.0,  # to be handed out memory, mostly
        model=estimator.score_function_ if with_model else None,
    )


def run_folds(
    experiment,
    estimator,
    started,
    end,
    *,
    jobs=1,
    scheduler=None,
    with_curves=False,
    with_models=False,
    report=lambda folds: None,
):
    """The `Fold` of each split, in order, learned before the moment ``end`` of the monotonic clock.

    ``report`` is called with the folds done, at first and after each of them. ``scheduler`` is the address of a Dask
    cluster to run on; else folds run where joblib has been told to, or in so many processes here.
    """
    report([])
    if not scheduler and not joblib_runs_elsewhere():
        return run_here(experiment, estimator, started, end, jobs, (with_curves, with_models), report)
    n_folds, folds = len(experiment.splits), {}
    with cluster(scheduler, experiment) if scheduler else nullcontext():
        left = end - time.monotonic()
        share = left / -(-n_folds // joblib.effective_n_jobs(-1))
        patience = max(60, 10 * left) if scheduler else None
        settings = (experiment, estimator, share, with_curves, with_models)
        for fold, result in through_joblib(n_folds, run_elsewhere, *settings, seconds=patience):
            folds[fold] = result
            report(list(folds.values()))
    return [folds[fold] for fold in range(n_folds)]


def run_elsewhere(fold, experiment, estimator, seconds, *keep):
    """Clocks of other machines differ, so each fold there has its own, set to an equal share of what is left here."""
    return run_fold(fold, experiment, estimator, Clock(time.monotonic() + seconds, [fold], 1), *keep)


def run_here(experiment, estimator, started, end, jobs, keep, report):
    """The folds, in processes of this machine, with the greatest effort that it has time for.

    ``keep`` says whether to keep curves and models.
    """
    with_curves, _ = keep
    n_folds, folds, effort = len(experiment.splits), {}, 1
    adapts = hasattr(estimator, "expected_seconds") and not with_curves  # curves are not drawn against the clock
    if adapts:
        train, _ = experiment.splits[0]
        slowness, y = measure_slowness(started, jobs), experiment.y[train]
        expected = {e: with_effort(estimator, e).expected_seconds(experiment.X, y, train) for e in EFFORTS}
        effort = first_effort(expected, slowness, n_folds, jobs, end - time.monotonic())
    while len(folds) < n_folds:
        to_do = [fold for fold in range(n_folds) if fold not in folds]
        clock = Clock(end, to_do, min(jobs, len(to_do)), PATIENCE if adapts else 1)
        work = run_fold, experiment, with_effort(estimator, effort), clock, *keep
        results = in_processes(clock.jobs, to_do, *work)
        done, change = {}, None
        with closing(results):
            for fold, result in results:
                done[fold] = replace(result, effort=effort)
                report([*folds.values(), *done.values()])
                if adapts:
                    change = less_effort(
                        list(done.values()), expected, len(to_do), n_folds, jobs, end - time.monotonic()
                    )
                if change:
                    break
        if change and change.start_again:
            folds = {}
        else:
            folds |= done
        effort = change.effort if change else effort
    return [folds[fold] for fold in range(n_folds)]
