"""How much of the planned work this machine has time for.

An effort is a share of the budget that a fold is planned with: 1, 1/2, 1/4 and so on. All folds have the same, so that
a slow or busy machine prints one of a few numbers that can be had again.
"""

from dataclasses import dataclass

from sklearn.base import clone

EFFORTS = (1, 1 / 2, 1 / 4, 1 / 8, 1 / 16)
SURE = 0.9  # share of the time left that a new start may be expected to take


@dataclass(frozen=True)
class Change:
    """Go on with another effort; ``start_again`` if there is time to do all folds with it, those done included."""

    effort: float
    start_again: bool


def with_effort(estimator, effort):
    """The estimator, planned with this share of its budget."""
    return clone(estimator).set_params(budget=effort * estimator.budget) if effort < 1 else estimator


def less_effort(done, n_to_do, n_folds, jobs, seconds):
    """The `Change` that is needed to end within so many seconds, or None.

    ``done`` are the folds done with the present effort, out of ``n_to_do`` to do with it and ``n_folds`` in all.
    """
    effort = done[0].effort
    cost = sum(fold.seconds / fold.done for fold in done) / len(done)
    rest = n_to_do - len(done)
    running = min(jobs - 1, rest)  # beside the one just done, and taken to be half done
    rounds = max((rest - running / 2) / jobs, 0.5 * bool(running))
    if not rest or (cost * rounds <= seconds and done[-1].done == 1):
        return None
    smaller = [e for e in EFFORTS if e < effort]
    for start_again, n in (True, n_folds), (False, rest):
        for e in smaller:
            if cost * e / effort * -(-n // jobs) <= SURE * seconds:
                return Change(e, start_again)
    return Change(EFFORTS[-1], False) if smaller else None
