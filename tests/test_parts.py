"""Samples of rows, and states of parts of a stream, merged."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from oam import PairLearner
from tenfold.parts import Samples, State


def numbered(start, stop):
    return np.arange(start, stop, dtype=np.float32)[:, None]


def test_samples_are_of_each_class_apart(rng):
    samples = Samples(40)
    for part in np.array_split(np.arange(600), 7):
        samples.add(numbered(0, 600)[part], np.where(part % 4, -1, 1), rng)
    assert samples.sizes() == [40, 40]
    rows, y = samples.rows()
    assert set(rows[y > 0, 0] % 4) == {0} and 0 not in set(rows[y < 0, 0] % 4)
    assert len(set(rows[:, 0])) == 80


def test_trimmed_samples_hold_the_same_rows_and_no_room_for_others(rng):
    samples = Samples(5_000)
    Z, y = rng.rand(120, 3), np.where(np.arange(120) < 7, 1, -1)
    samples.add(Z, y, rng)
    room = len(pickle.dumps(samples))
    samples.trim(rng)
    assert samples.sizes() == [7, 113] and [B.seen for B in samples.reservoirs.values()] == [7, 113]
    for sign, B in samples.reservoirs.items():
        assert_array_equal(np.sort(B.rows, axis=0), np.sort(Z[y == sign], axis=0))
    assert len(pickle.dumps(samples)) < Z.nbytes + 2_000 < room / 40
    few = Samples(50)
    few.add(Z, y, rng)
    few.trim(rng)
    assert few.sizes() == [7, 50] and few.reservoirs[-1].seen == 113
    merged = few.merge([samples, Samples(9)], 60, rng)
    assert merged.sizes() == [14, 60] and merged.reservoirs[-1].seen == 226


@pytest.mark.parametrize("sizes", [(90, 10), (50, 50), (5, 95)])
def test_merged_samples_are_uniform(sizes):
    """Each of 100 rows is kept as often as any other, whichever part it was in."""
    kept = np.zeros(100)
    n = 2000
    for seed in range(n):
        rng = np.random.RandomState(seed)
        parts = [Samples(20), Samples(20)]
        parts[0].add(numbered(0, sizes[0]), np.ones(sizes[0]), rng)
        parts[1].add(numbered(sizes[0], 100), np.ones(sizes[1]), rng)
        rows = parts[0].merge(parts[1:], 20, rng).reservoirs[1].rows
        kept[rows[:, 0].astype(int)] += 1
    assert kept.sum() == 20 * n
    assert np.abs(kept / n - 0.2).max() < 4.5 * np.sqrt(0.2 * 0.8 / n)


def test_a_state_counts_what_was_before_once(rng):
    """Two parts go on from one state: rows seen add up, and weights are a mean by rows that were new."""

    def learner(n_pos, n_neg, w):
        learner = PairLearner(1, [1.0], 10, "gradient", 4, np.float32, rng)
        samples = Samples(10)
        samples.add(numbered(0, n_pos + n_neg), np.repeat([1, -1], [n_pos, n_neg]), rng)
        learner.P, learner.N = samples.reservoirs[1], samples.reservoirs[-1]
        learner.W[:], learner.W_mean[:] = w, 2 * w
        return learner

    def state(*what, n_rows):
        return State({"linear": learner(*what)}, Samples(5), Samples(5), n_rows, n_rows - 1, [str(n_rows)])

    merged = state(30, 70, 9, n_rows=101).merge([state(10, 20, 1, n_rows=31), state(20, 70, 2, n_rows=91)], 5, rng)
    (found,) = merged.learners.values()
    assert (found.P.seen, found.N.seen, len(found.P)) == (60, 160, 10)
    assert found.W[0, 0] == pytest.approx((30 * 1 + 90 * 2) / 120) and found.W_mean[0, 0] == 2 * found.W[0, 0]
    assert (merged.n_rows, merged.n_learned, merged.notes) == (223, 220, ["101", "31", "91"])
