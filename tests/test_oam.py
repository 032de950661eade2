"""The online learner. Oracles: scikit-learn's checks, and the published algorithm as a double loop."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import oam
from oam import OnlineAUC, PairLearner, Reservoir, count_violators, merge_reservoirs


def stream(n=150, d=4, positives=0.3, seed=0):
    rng = np.random.RandomState(seed)
    y = np.where(rng.random_sample(n) < positives, 1, -1)
    X = rng.standard_normal((n, d)) + 0.7 * y[:, None]
    X[rng.random_sample(n) < 0.2] = 1.0  # some rows are the same in both classes
    return X, y


def naive(X, y, C, buffer, update, seed):
    """The published algorithm as a double loop over rows and buffered rows; returns the weights after each row."""
    uniform = np.random.RandomState(seed).random_sample(len(y))
    w, history = np.zeros(X.shape[1]), []
    kept, seen = {1: [], -1: []}, {1: 0, -1: 0}
    for x, label, u in zip(X, y, uniform):
        seen[label] += 1
        if len(kept[label]) < buffer:
            kept[label].append(x)
        else:
            slot = int(u * seen[label])
            if slot < buffer:
                kept[label][slot] = x
        C_t = C * max(1, seen[-label] / buffer)
        frozen = w.copy()
        for b in kept[-label]:
            if update == "gradient":
                if 1 - label * ((x - b) @ frozen) > 0:
                    w = w + C_t / 2 * label * (x - b)
            else:
                loss = max(0, 1 - label * ((x - b) @ w))
                if (x != b).any():
                    w = w + min(C_t / 2, loss / ((x - b) @ (x - b))) * label * (x - b)
        history.append(w)
    return np.array(history)


@parametrize_with_checks([OnlineAUC(), OnlineAUC(update="sequential", buffer=20)])
def test_scikit_learn_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("update", ["gradient", "sequential"])
@pytest.mark.parametrize("C, buffer", [(1e-3, 10), (0.05, 25), (1.0, 1000)])
def test_updates_equal_the_double_loop(make, update, C, buffer):
    X, y = stream()
    model = OnlineAUC(C, buffer=buffer, update=update, block=1, average=False, random_state=3).fit(make(X), y)
    np.testing.assert_allclose(model.coef_[0], naive(X, y, C, buffer, update, 3)[-1], rtol=1e-9, atol=1e-12)


def test_sparse_rows_of_many_columns_learn_the_same(monkeypatch):
    X, y = stream()
    models = []
    for few_columns in (oam.FEW_COLUMNS, 0):
        monkeypatch.setattr(oam, "FEW_COLUMNS", few_columns)
        models.append(OnlineAUC(1e-3, buffer=10, block=7, random_state=0).fit(sp.csr_array(X), y))
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-9)


def test_average_weighs_step_t_by_its_cube():
    X, y = stream()
    model = OnlineAUC(1e-3, buffer=10, block=1, random_state=0).fit(X, y)
    t = np.arange(1, len(y) + 1)
    cube = t * (t + 1) * (t + 2)  # the rising factorial that the recursion gives
    expected = np.average(naive(X, y, 1e-3, 10, "gradient", 0), axis=0, weights=cube)
    np.testing.assert_allclose(model.coef_[0], expected, rtol=1e-9)
    assert cube[len(t) // 2 :].sum() / cube.sum() > 0.93


def test_a_block_sums_its_pairs_at_frozen_weights():
    X, y = stream()
    C, block = 1e-3, 32
    model = OnlineAUC(C, block=block, draw=1000, buffer=1000, average=False, random_state=0).fit(X, y)
    w = np.zeros(X.shape[1])
    for end in [*range(block, len(y), block), len(y)]:
        start, step = (end - 1) // block * block, 0
        for i in range(start, end):
            for j in range(end):
                if y[i] != y[j] and y[i] * ((X[i] - X[j]) @ w) < 1:
                    step = step + C / 2 * y[i] * (X[i] - X[j])
        w = w + step
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-9)


@pytest.mark.parametrize("update, block", [("gradient", 1), ("gradient", 64), ("sequential", 1)])
def test_partial_fit_equals_one_pass_of_fit(update, block):
    X, y = stream(500)
    model = OnlineAUC(1e-3, buffer=30, update=update, block=block, random_state=1)
    whole, parts = clone(model).fit(X, y), clone(model)
    for rows in np.split(np.arange(len(y)), [1, 2, 60, 64, 65, 200, 330]):
        parts.partial_fit(X[rows], y[rows], classes=[-1, 1])
    np.testing.assert_array_equal(whole.coef_, parts.coef_)
    np.testing.assert_array_equal(whole.intercept_, parts.intercept_)


def test_bias_weight_stays_zero():
    """But for rounding: the sums over the positives and over the negatives are taken apart."""
    X, y = stream()
    X = np.column_stack([X, np.ones(len(y))])
    for update in ("gradient", "sequential"):
        coef = OnlineAUC(0.1, update=update, buffer=20, passes=3, random_state=0).fit(X, y).coef_[0]
        assert abs(coef[-1]) < 1e-12 * np.abs(coef).max()
        assert (np.abs(coef[:-1]) > 1e-3 * np.abs(coef).max()).all()


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_reservoir_is_uniform(chunk):
    """Each of n rows is kept with chance size/n: counts over many seeds stay within five standard deviations."""
    n, size, seeds = 60, 10, 2000
    kept = np.zeros(n)
    for seed in range(seeds):
        rows, uniform = np.arange(n)[:, None], np.random.RandomState(seed).random_sample(n)
        reservoir = Reservoir(size)
        for i in range(0, n, chunk):
            part = slice(i, i + chunk)
            reservoir.add(rows[part], None, np.arange(len(rows[part])), reservoir.slots(uniform[part]))
        assert len(set(reservoir.rows.ravel())) == size
        kept[reservoir.rows.ravel()] += 1
    p = size / n
    assert np.abs(kept - seeds * p).max() < 5 * math.sqrt(seeds * p * (1 - p))


def test_reservoir_in_chunks_equals_one_by_one():
    X = np.random.RandomState(0).standard_normal((300, 3))
    uniform = np.random.RandomState(1).random_sample(300)
    reservoirs = [Reservoir(20) for _ in range(3)]
    for i, row in enumerate(X):
        reservoirs[0].add(row[None], None, np.array([0]), reservoirs[0].slots(uniform[i : i + 1]))
    for make, reservoir in zip((np.asarray, sp.csr_array), reservoirs[1:]):
        for i in range(0, 300, 70):
            part = slice(i, i + 70)
            reservoir.add(make(X[part]), None, np.arange(len(X[part])), reservoir.slots(uniform[part]))
    np.testing.assert_array_equal(reservoirs[0].rows, reservoirs[1].rows)
    np.testing.assert_array_equal(reservoirs[0].rows, reservoirs[2].rows.toarray())


@pytest.mark.parametrize("few", [0, 10**9], ids=["sorting", "comparing"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_counts_of_violators(few, dtype, monkeypatch):
    monkeypatch.setattr(oam, "FEW_PAIRS", few)
    rng = np.random.RandomState(0)
    for _ in range(100):
        lanes, m, q = rng.randint(1, 6), rng.randint(1, 90), rng.randint(1, 90, 2)
        y = rng.choice([-1, 1], m, p=[0.7, 0.3]).astype(dtype)
        scores = [np.round(rng.standard_normal((lanes, n)) * 4).astype(dtype) / 4 for n in (m, *q)]  # many ties
        above, below = scores[0], scores[1:]
        above[rng.random_sample(above.shape) < 0.1] = np.inf
        for B in below:
            B[rng.random_sample(B.shape) < 0.1] = -np.inf
        *in_below, in_above = count_violators(above, y, (y > 0).sum(), below, (2, -3))
        for sign, B, weight, in_B in zip((1, -1), below, (2, -3), in_below):
            violates = B[:, None, :] > above[:, y == sign, None] - 1
            np.testing.assert_array_equal(in_above[:, y == sign], weight * violates.sum(axis=2))
            np.testing.assert_array_equal(in_B, weight * violates.sum(axis=1))
            assert in_above.dtype == in_B.dtype == dtype


def learn_lanes(X, y, C, held_out=None, **settings):
    learner = PairLearner(X.shape[1], C, 30, "gradient", 16, np.float64, np.random.RandomState(0), **settings)
    learner.learn(X, y, held_out)
    return learner.end().W_mean


def test_lanes_learn_as_if_alone():
    X, y = stream(400)
    Cs = [1e-4, 1e-3, 1e-2]
    W = learn_lanes(X, y, Cs)
    for lane, C in enumerate(Cs):
        np.testing.assert_allclose(W[:, lane], learn_lanes(X, y, C)[:, 0], rtol=1e-9)


def test_a_lane_learns_nothing_from_the_rows_it_holds_out():
    X, y = stream(400)
    held_out = np.column_stack([np.zeros(len(y), bool), np.arange(len(y)) % 3 == 0])
    W = learn_lanes(X, y, [1e-3, 1e-3], held_out, draw=10)
    other = X.copy()
    other[::3] = np.random.RandomState(9).standard_normal(other[::3].shape)
    V = learn_lanes(other, y, [1e-3, 1e-3], held_out, draw=10)
    np.testing.assert_allclose(W[:, 1], V[:, 1], rtol=1e-12)
    assert not np.allclose(W[:, 0], V[:, 0])
    np.testing.assert_allclose(W[:, 0], learn_lanes(X, y, [1e-3], draw=10)[:, 0], rtol=1e-9)


def test_rows_that_come_again_do_not_enter_the_reservoirs():
    X, y = stream(100)
    learner = PairLearner(X.shape[1], 1e-3, 10, "gradient", 16, np.float64, np.random.RandomState(0))
    learner.learn(X, y)
    kept = learner.end().P.rows.copy()
    learner.learn(X, y, new=False)
    np.testing.assert_array_equal(learner.end().P.rows, kept)
    assert learner.P.seen + learner.N.seen == 100


def test_drawn_rows_go_round_the_reservoir():
    reservoir = Reservoir(10)
    reservoir.add(np.arange(10)[:, None], None, np.arange(10), np.arange(10))
    drawn = [reservoir.draw(4)[0].ravel().tolist() for _ in range(3)]
    assert drawn == [[0, 1, 2, 3], [4, 5, 6, 7], [0, 1, 2, 3]]
    assert reservoir.draw(99)[0].ravel().tolist() == list(range(10))


@pytest.mark.parametrize("block", [16, 64])
def test_a_block_is_paired_with_the_next_rows_of_each_buffer(block):
    """Each of them stands for as many rows as were seen for one drawn. Oracle: a loop over pairs."""
    X, y = stream(256)
    C, draw = 1e-4, 10
    model = OnlineAUC(C, block=block, draw=draw, buffer=256, average=False, random_state=0).fit(X, y)
    w, begin = np.zeros(X.shape[1]), {1: 0, -1: 0}
    for end in range(block, len(y) + 1, block):
        seen = {sign: X[:end][y[:end] == sign] for sign in (1, -1)}
        step = np.zeros_like(w)
        for sign, drawn in [(1, seen[-1]), (-1, seen[1])]:  # the class in the block, and what it is paired with
            first = begin[-sign] if begin[-sign] + draw <= len(drawn) else 0
            begin[-sign] = min(first + draw, len(drawn))
            part = drawn[first : begin[-sign]]
            for i in range(end - block, end):
                for b in part if y[i] == sign else []:
                    if sign * ((X[i] - b) @ w) < 1:
                        step += C / 2 * len(drawn) / len(part) * sign * (X[i] - b)
        w = w + step
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-9)


def test_a_single_row_is_paired_with_all_of_a_buffer():
    X, y = stream(300)
    few, many = (OnlineAUC(block=1, draw=draw, buffer=50, random_state=0).fit(X, y).coef_ for draw in (1, 50))
    np.testing.assert_array_equal(few, many)


def test_learns_to_rank_nearly_as_well_as_the_truth():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((4000, 5))
    y = np.where(X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(4000) > 2, 1, -1)
    train, test = slice(0, 3000), slice(3000, None)
    model = OnlineAUC(random_state=0).fit(X[train], y[train])
    best = roc_auc_score(y[test], X[test, 0] - X[test, 1])
    assert best - 0.01 < roc_auc_score(y[test], model.decision_function(X[test])) <= best + 0.01


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"C": 0}, "C is 0, expected"),
        ({"C": math.inf}, "C is inf, expected"),
        ({"buffer": 0}, "buffer is 0, expected"),
        ({"block": 1.5}, "block is 1.5, expected"),
        ({"draw": 0}, "draw is 0, expected"),
        ({"passes": 0}, "passes is 0, expected"),
        ({"update": "adam"}, "update is 'adam', expected"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        OnlineAUC(**parameters).fit([[0.0], [1.0]], [0, 1])


def test_bad_labels():
    X = np.eye(3)
    with pytest.raises(ValueError, match="3 classes, expected 2"):
        OnlineAUC().fit(X, [0, 1, 2])
    with pytest.raises(ValueError, match="1 class, expected 2"):
        OnlineAUC().fit(X, [1, 1, 1])
    with pytest.raises(ValueError, match="label 2, expected one of"):
        OnlineAUC().partial_fit(X, [0, 1, 1]).partial_fit(X, [0, 2, 1])


# --- merging ---------------------------------------------------------------------------------------------------------


def test_merged_reservoirs_are_as_one_over_all_rows():
    """How many rows of the first of two parts are kept: mean and spread as of one reservoir over both."""
    counts = {"merged": [], "one": []}
    for seed in range(1500):
        rng = np.random.RandomState(seed)
        X = np.arange(90.0)[:, None]
        parts = [Reservoir(12), Reservoir(12)]
        for part, which in zip(parts, (np.arange(30), np.arange(30, 90))):
            part.add(X, None, which, part.slots(rng.random_sample(90)[which]))
        one = Reservoir(12)
        one.add(X, None, np.arange(90), one.slots(rng.random_sample(90)))
        merged = merge_reservoirs(parts, 12, rng)
        assert (merged.seen, len(merged), len(set(merged.rows[:, 0]))) == (90, 12, 12)
        counts["merged"].append((merged.rows < 30).sum())
        counts["one"].append((one.rows < 30).sum())
    for found in counts.values():  # 12 of 90 rows, of which 30 are of the first part: a hypergeometric number
        assert np.mean(found) == pytest.approx(4, abs=4 * np.sqrt(2.34 / 1500))
        assert np.var(found) == pytest.approx(12 * (1 / 3) * (2 / 3) * 78 / 89, rel=0.15)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_reservoirs_that_hold_less_than_their_size_keep_all(make):
    rng, X = np.random.RandomState(0), make(np.arange(1.0, 9)[:, None])
    parts = [Reservoir(20) for _ in range(3)]
    for part, which in zip(parts, (np.arange(3), np.arange(3, 8), np.arange(0))):
        if len(which):
            part.add(X, None, which, part.slots(rng.random_sample(8)[which]))
    merged = merge_reservoirs(parts, 20, rng)
    rows = merged.rows.toarray() if sp.issparse(merged.rows) else merged.rows
    assert sorted(rows[:, 0]) == list(range(1, 9)) and merged.seen == 8
    assert merge_reservoirs([Reservoir(5)], 5, rng).seen == 0


def test_a_reservoir_that_holds_less_than_its_share_makes_the_sample_smaller():
    """There are no rows in it that were never added, and those of each part are as many as they should be."""
    rng = np.random.RandomState(0)
    for small, large in ((10, 50), (50, 10), (1, 50)):
        parts = [Reservoir(large), Reservoir(small)]
        for part, n, value in zip(parts, (100, 900), (1.0, 2.0)):
            part.add(np.full((n, 1), value), None, np.arange(n), part.slots(rng.random_sample(n)))
        merged = merge_reservoirs(parts, 50, rng)
        assert merged.seen == 1000 and len(merged) == len(merged.rows) <= 50
        assert set(merged.rows[:, 0]) <= {1, 2} and (merged.rows == 2).sum() <= small
        assert (merged.rows == 1).sum() <= 15
        again = merge_reservoirs([merged, parts[0]], 50, rng)
        assert set(again.rows[:, 0]) <= {1, 2} and len(again) == len(again.rows)


def test_merged_learners_go_on():
    X, y = stream(3000, seed=1)
    parts = [OnlineAUC(1e-4, random_state=i).fit(X[i::4], y[i::4]) for i in range(4)]
    weights = np.mean([part.coef_ for part in parts], axis=0)
    merged = parts[0].merge(parts[1:])
    np.testing.assert_allclose(merged.coef_, weights, rtol=1e-9)
    learner = merged._learner
    assert (learner.P.seen, learner.N.seen) == ((y > 0).sum(), (y <= 0).sum())
    assert {len(learner.P), len(learner.N)} == {500}
    whole = OnlineAUC(1e-4, random_state=0).fit(X, y)
    aucs = [roc_auc_score(y, learner.decision_function(X)) for learner in (merged, whole)]
    assert aucs[0] == pytest.approx(aucs[1], abs=0.01)
    assert merged.partial_fit(X[:64], y[:64])._learner.P.seen == (y > 0).sum() + (y[:64] > 0).sum()


def test_a_merged_learner_that_waits_for_rows_leaves_the_others_as_they_were():
    X, y = stream(100)
    one, other = (
        OnlineAUC(block=64, random_state=0).partial_fit(X[rows], y[rows]) for rows in (slice(50), slice(50, 100))
    )
    before = other.decision_function(X)
    one.merge([other])
    np.testing.assert_array_equal(other.decision_function(X), before)
    assert one._learner.P.seen + one._learner.N.seen == 100
    np.testing.assert_allclose(OnlineAUC(random_state=0).fit(X, y).merge([]).coef_.shape, (1, X.shape[1]))


def test_learners_that_cannot_be_merged():
    X, y = stream()
    learner = OnlineAUC(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"a learner of 2 features .* cannot be merged, expected 4 features"):
        learner.merge([OnlineAUC(random_state=0).fit(X[:, :2], y)])
    with pytest.raises(ValueError, match="cannot be merged"):
        learner.merge([OnlineAUC(random_state=0).fit(X, y + 5)])
    with pytest.raises(NotFittedError):
        learner.merge([OnlineAUC()])
