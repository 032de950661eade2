"""How much of the planned work this machine has time for.

An effort is a share of the budget that a fold is planned with: 1, 1/2, 1/4 and so on. All folds have the same, so that
a slow or busy machine prints one of a few numbers that can be had again.
"""

import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from joblib import cpu_count
from sklearn.base import clone

EFFORTS = (1, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32)
SURE = 0.85  # share of the time left that folds to come may be expected to take
HOPE = 1.2  # the same at first, when that is known less well and there is still time to start again with less
LITTLE = 1.05  # times the seconds left that folds may take while there are many to come, some of which may take less
BUSY = 1.4  # below that, a process may have waited for files rather than for others
CROWD = 1.6  # how many times as long it may take beside others, who may become more
PROBE_SECONDS = 0.0080  # that the fixed piece of work takes on a core like those that the price list was measured on
IMPORT_SECONDS = 0.88  # that a process has been given there until now, nearly all of them for imports
IMPORTED = time.process_time()  # the same here
SCHEDSTAT = Path("/proc/self/schedstat")  # where Linux says how long this process ran, and waited for others


@dataclass(frozen=True)
class Change:
    """Go on with another effort; ``start_again`` if there is time to do all folds with it, those done included."""

    effort: float
    start_again: bool


def with_effort(estimator, effort):
    """The estimator, planned with this share of its budget."""
    return clone(estimator).set_params(budget=effort * estimator.budget) if effort < 1 else estimator


def measure_slowness(started, jobs):
    """How many times as long as planned work takes here and now, in so many processes.

    That is by how much a fixed piece of work takes longer on this core than it should, times the number of processes
    to a core. How many others there are is told by the seconds that this one would have run, over those that it could.
    """
    cores, shared = cpu_count(), _share_of_others(started)
    if shared <= BUSY:
        return _core_slowness()
    return _core_slowness() * CROWD * max((shared * cores - 1 + min(jobs, cores)) / cores, 1)


def _share_of_others(started):
    """How many times as long as its work this process took so far, because others ran on the same cores.

    Linux counts the time that it was ready to run and had to wait. Elsewhere all time since the start counts, with that
    in which files were read.
    """
    try:
        ran, waited, _ = map(int, SCHEDSTAT.read_text().split())
    except (OSError, ValueError):
        ran = waited = 0
    if ran:
        return (ran + waited) / ran
    return (time.monotonic() - started) / max(time.process_time(), 1e-3)


@cache
def _core_slowness():
    """The least of some tries and of what imports took: it is the core that is measured, not what else runs on it."""
    A = np.random.RandomState(0).random_sample((400, 400)).astype(np.float32)
    seconds = []
    for _ in range(5):
        begun = time.process_time()
        for _ in range(5):
            np.sort(np.exp(A @ A * np.float32(1e-3)), axis=1)
        seconds.append(time.process_time() - begun)
    return max(min(min(seconds) / PROBE_SECONDS, IMPORTED / IMPORT_SECONDS), 0.5)


def first_effort(expected, slowness, n_folds, jobs, seconds):
    """The greatest effort with which so many folds can be expected to end in so many seconds.

    ``expected`` has the seconds of a fold with each effort, on a core that is not slow.
    """
    seconds *= HOPE if n_folds > jobs else SURE
    fitting = (e for e in EFFORTS if can_be_done(expected[e], slowness, n_folds, jobs, seconds))
    return next(fitting, EFFORTS[-1])


def can_be_done(expected, slowness, n_folds, jobs, seconds):
    """Whether so many folds, of so many expected seconds each, can be expected to end in so many seconds."""
    return -(-n_folds // jobs) * slowness * expected <= seconds


def less_effort(done, expected, n_to_do, n_folds, jobs, seconds):
    """The `Change` that is needed to end within so many seconds, or None.

    ``done`` are the folds done with the present effort, out of ``n_to_do`` to do with it and ``n_folds`` in all;
    ``expected`` is as of `first_effort`: now only its ratios count, for it is known what a fold takes.
    """
    effort = done[0].effort
    taken = sum((fold.seconds - fold.warm_up) / fold.done for fold in done) / len(done)
    rest = n_to_do - len(done)
    running = min(jobs - 1, rest)  # beside the one just done, and taken to be half done
    rounds = max((rest - running / 2) / jobs, 0.5 * bool(running))
    late = taken * rounds > seconds * (LITTLE if rounds > 3 else 1)
    if not rest or (not late and done[-1].done == 1):
        return None
    smaller = [e for e in EFFORTS if e < effort]
    for least in effort / 4, 0:  # folds that are alike are worth a quarter of the effort, but no more
        for start_again, n in (True, n_folds), (False, rest):
            for e in smaller:
                if e >= least and taken * expected[e] / expected[effort] * -(-n // jobs) <= SURE * seconds:
                    return Change(e, start_again)
    if smaller and expected[EFFORTS[-1]] / expected[effort] * -(-rest // jobs) < rounds:
        return Change(EFFORTS[-1], False)
    return None  # what runs now would be lost, for no gain
