"""Learning from one part of a stream, and merging what several parts have learned."""

import copy
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from oam import Reservoir, merge_reservoirs
from tenfold.features import Versions
from tenfold.heads import hold_out, signs_of
from tenfold.models import ScoreFunction, one_thread
from tenfold.readers.base import Data
from tenfold.readers.text import CannotCut

AT_A_TIME = 4096  # rows whose similarities to landmarks are in memory


@dataclass(frozen=True)
class Setup:
    """What is the same for all parts of a stream.

    ``function`` scales rows and has the sets of features; ``held_out`` are the shares of each sign that are not learned
    from, half of them to choose by if ``is_choice``; ``learned`` are the shares of each sign of which the similarities
    to landmarks are learned from. ``wanted`` is as of `Wanted`.
    """

    like: Data
    function: ScoreFunction
    held_out: dict
    is_choice: bool
    learned: dict
    seed: int
    wanted: dict


class Samples:
    """A uniform sample of rows, of each class apart: an AUC minds no class's size."""

    def __init__(self, size):
        self.reservoirs = {1: Reservoir(size), -1: Reservoir(size)}

    def add(self, Z, y, rng):
        uniform = rng.random_sample(len(y))
        for sign, reservoir in self.reservoirs.items():
            (which,) = np.nonzero(y == sign)
            if len(which):
                reservoir.add(Z, None, which, reservoir.slots(uniform[which]))

    def sizes(self):
        return [len(reservoir) for reservoir in self.reservoirs.values()]

    def rows(self):
        """All rows, and their signs."""
        parts = [reservoir.rows for reservoir in self.reservoirs.values()]
        return (sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)), self.signs()

    def signs(self):
        return np.repeat(list(self.reservoirs), self.sizes())

    def trim(self, rng):
        """Give back the room for rows to come, which would have to be sent from worker to worker."""
        for sign, reservoir in self.reservoirs.items():
            self.reservoirs[sign] = merge_reservoirs([reservoir], len(reservoir), rng)

    def merge(self, others, size, rng):
        """The same for all rows that were added to this one and the others."""
        merged = Samples(size)
        for sign in self.reservoirs:
            merged.reservoirs[sign] = merge_reservoirs(
                [samples.reservoirs[sign] for samples in (self, *others)], size, rng
            )
        return merged


@dataclass
class State:
    """What has been learned, and what was held out, of some parts of a stream, or of none yet.

    ``learners`` are those of each set of features; ``notes`` are what there is to say about the files.
    """

    learners: dict
    to_choose: Samples
    to_test: Samples
    n_rows: int = 0
    n_learned: int = 0
    notes: list = field(default_factory=list)

    def merge(self, parts, size, rng):
        """The state after these parts, which have gone on from this one, and say what was new to them."""
        learners = {}
        for name, base in self.learners.items():
            first, *others = (part.learners[name] for part in parts)
            first.rng = rng
            merged = first.merge(others)
            for B in "PN":
                both = [getattr(base, B), getattr(merged, B)]
                setattr(merged, B, merge_reservoirs(both, getattr(base, B).size, rng))
            learners[name] = merged
        samples = [
            getattr(self, name).merge([getattr(part, name) for part in parts], size, rng)
            for name in ("to_choose", "to_test")
        ]
        counts = [sum(getattr(state, name) for state in (self, *parts)) for name in ("n_rows", "n_learned")]
        return State(learners, *samples, *counts, [note for state in (self, *parts) for note in state.notes])


def learn_part(number, setup, learners, size, key, parts, report=lambda n_rows, size: None):
    """Go on with these learners on the pieces of part ``number``; `State` of what is new, None if they cannot be cut.

    ``key`` is the number of the round. At most ``size`` rows of a class are kept of those held out.
    """
    rng = np.random.RandomState([setup.seed, 1, key, number])
    state = State({}, Samples(size), Samples(size))
    own = {}
    for name, learner in learners.items():
        state.learners[name] = copy.deepcopy(learner)
        state.learners[name].rng = rng
        own[name] = Samples(learner.P.size)
    try:
        with one_thread(), np.errstate(invalid="ignore"):
            size_before = 0
            for piece in parts[number]:
                for share in _learn_piece(piece, setup, state, own, rng):
                    report(state.n_rows, size_before + share * piece.size)
                size_before += piece.size
    except CannotCut:
        return None
    for name, learner in state.learners.items():
        learner.end()
        learner.P, learner.N = own[name].reservoirs[1], own[name].reservoirs[-1]
    for samples in (state.to_choose, state.to_test):
        samples.trim(rng)
    return state


def _learn_piece(piece, setup, state, own, rng):
    """Learn from the rows of a piece that are not held out, and yield the share of it that is done."""
    held_out_rng, n_out = piece.random(setup.seed), {1: 0, -1: 0}
    for data, share in piece.read(like=setup.like, **setup.wanted):
        y = signs_of(piece, data, setup.like.y)
        out = hold_out(held_out_rng, y, setup.held_out)
        to_test = out.copy()
        if setup.is_choice:  # every other of each class
            for sign in (1, -1):
                held_out = np.flatnonzero(out & (y == sign))
                to_test[held_out[n_out[sign] % 2 :: 2]] = False
                n_out[sign] += len(held_out)
        Z = setup.function.scale(data.X)
        state.to_test.add(Z[to_test], y[to_test], rng)
        state.to_choose.add(Z[out & ~to_test], y[out & ~to_test], rng)
        (learned,) = np.nonzero(~out)
        n = len(y) if setup.function.feature_sets.are_scaled_columns else AT_A_TIME
        for i in range(0, len(learned), n):
            rows = learned[i : i + n]
            state.n_learned += _learn_rows(setup, state, own, Z[rows], y[rows], rng)
        state.n_rows += len(y)
        state.notes += data.notes
        yield share


def _learn_rows(setup, state, own, Z, y, rng):
    """Learn from scaled rows, in every set of features; from how many."""
    feature_sets = setup.function.feature_sets
    if not feature_sets.are_scaled_columns:
        few = rng.random_sample(len(y)) < np.where(y > 0, setup.learned[1], setup.learned[-1])
        Z, y = Z[few], y[few]
    if not len(y):
        return 0
    versions = Versions(feature_sets.columns, Z, feature_sets.landmarks_)
    for name, feature_set in feature_sets.sets.items():
        F = feature_set.features(versions)
        own[name].add(F, y, rng)
        state.learners[name].learn(F, y)
    return len(y)
