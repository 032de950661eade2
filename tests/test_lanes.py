"""Many lanes and what is chosen among them. Oracles: the truth behind made-up rows, and rows that teach nothing."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import roc_auc_score

from tenfold import lanes
from tenfold.lanes import SetResult, choose, inner_folds, learn, shares_of
from tenfold.plan import Shape, make_plan

pytestmark = pytest.mark.filterwarnings("error")

VISITS = 6000
PLAN = make_plan(Shape(2_000, 500, 5, 5, 5.0))  # how many rows there are to a step, and to a reservoir


def never():
    return False


def stop_after(calls):
    """A ``stop`` that is true from the call with this number on."""
    answers = iter([False] * (calls - 1))
    return lambda: next(answers, True)


def learn_from(F, y, seed=0, visits=VISITS, folds=3, stop=never):
    """The results of the sets of features F, all of which have all rows, and the inner folds."""
    rng = np.random.RandomState(seed)
    fold = inner_folds(y, folds, rng)
    return [learn(A.astype(np.float32), np.arange(len(y)), y, fold, visits, PLAN, rng, stop) for A in F], fold


def rank(F, y, **settings):
    """The choice among the lanes of the sets of features F."""
    return choose(learn_from(F, y, **settings)[0], y)


def two_normals(n, d=5, n_pos=None, seed=0):
    """Rows whose best score is the sum of their columns, and labels of which ``n_pos`` are 1."""
    rng = np.random.RandomState(seed)
    y = rng.permutation(np.where(np.arange(n) < (n_pos or n // 4), 1, -1))
    return rng.standard_normal((n, d)) / np.sqrt(d) + 0.25 * y[:, None], y


# --- learning --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_pos", [30, 1000])
def test_lanes_rank_nearly_as_well_as_the_truth(n_pos):
    X, y = two_normals(2000, n_pos=n_pos)
    X_test, y_test = two_normals(5000, seed=1)
    (result,), _ = learn_from([X], y)
    choice = choose([result], y)
    found = roc_auc_score(y_test, X_test @ choice.weights[0])
    best = roc_auc_score(y_test, X_test.sum(axis=1))
    assert best - 0.02 < found < best + 0.005
    assert choice.shares.sum() == pytest.approx(1) and result.done == 1


def test_a_lane_is_judged_by_the_rows_it_held_out_fold_by_fold():
    """Within a fold, scores are those of one lane; the mean over the folds is that of the AUC."""
    X, y = two_normals(700)
    (result,), fold = learn_from([X + 3], y)
    for step, auc in enumerate(result.auc):
        of_fold = [result.scores[fold == k, step] for k in range(3)]
        expected = [roc_auc_score(y[fold == k], scores) for k, scores in enumerate(of_fold)]
        assert auc == pytest.approx(np.mean(expected), abs=1e-6)
        assert_allclose([scores.mean() for scores in of_fold], 0, atol=1e-4)
        assert_allclose([scores.std() for scores in of_fold], 3, rtol=1e-3)  # as a sum over three folds would have


@pytest.mark.parametrize("folds", [2, 5])
def test_what_a_row_is_judged_by_has_not_learned_from_it(folds):
    """A column for each row lets a lane remember the rows it has seen; of those held out it then knows nothing."""
    _, y = two_normals(60)
    with np.errstate(over="ignore", invalid="ignore"):
        (result,), _ = learn_from([np.eye(60)], y, folds=folds)
    assert_array_equal(result.auc, 0.5)
    assert_array_equal(result.scores, 0)
    assert roc_auc_score(y, choose([result], y).weights[0]) == 1  # which it would know by heart


def test_noise_that_can_be_learned_by_heart_looks_like_noise():
    """With more columns than rows any labels can be ranked without error; held out, the AUC is 1/2 on average."""
    n, d, aucs, held_out = 100, 300, [], []
    for seed in range(12):
        rng = np.random.RandomState(seed)
        X, y = rng.standard_normal((n, d)) / np.sqrt(d), np.where(np.arange(n) % 2, 1, -1)
        (result,), _ = learn_from([X], y, seed=seed, visits=2000)
        choice = choose([result], y)
        assert roc_auc_score(y, X @ choice.weights[0]) > 0.95
        aucs.append(result.auc)
        held_out.append(roc_auc_score(y[choice.rows], choice.scores))
    error = np.sqrt((n + 1) / (12 * (n / 2) ** 2) / len(aucs))  # of the mean of as many AUCs of random scores
    assert np.mean(aucs) == pytest.approx(0.5, abs=4 * error)
    assert np.mean(held_out) == pytest.approx(0.5, abs=4 * error)


def test_learning_depends_on_its_generator_alone():
    X, y = two_normals(300)
    first, again, other = (rank([X, X**2], y, seed=seed, visits=1000).weights for seed in (3, 3, 4))
    for a, b, c in zip(first, again, other):
        assert_array_equal(a, b)
        assert (a != c).any()


def test_of_some_of_the_rows_only_these_are_learned_from():
    """As if there were no others, but for the folds."""
    X, y = two_normals(600)
    X, rows = X.astype(np.float32), np.flatnonzero(np.random.RandomState(1).rand(600) < 0.3)
    fold = inner_folds(y, 3, np.random.RandomState(0))
    found = learn(X[rows], rows, y, fold, 900, PLAN, np.random.RandomState(5), never)
    every = np.arange(len(rows))
    expected = learn(X[rows], every, y[rows], fold[rows], 900, PLAN, np.random.RandomState(5), never)
    assert_array_equal(found.rows, rows)
    for name in ("weights", "auc", "scores"):
        assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize(
    "n_columns, visits, expected", [(1, 900, 900), (1, 9_000, 2_000), (2, 900, 2_000), (2, 9_000, 9_000)]
)
def test_all_rows_are_learned_from_at_least_once_unless_there_is_one_feature(monkeypatch, n_columns, visits, expected):
    """Of which only the sign is to be learned: then it is at most once, and may be some of the rows."""
    X, y = two_normals(2_000, n_columns)
    visited, spied = [], lanes.PairLearner.learn
    monkeypatch.setattr(
        lanes.PairLearner, "learn", lambda self, F, *a, **b: visited.append(F.shape) or spied(self, F, *a, **b)
    )
    (result,), _ = learn_from([X], y, visits=visits)
    assert sum(n for n, _ in visited) == expected and {d for _, d in visited} == {n_columns}
    assert result.done == 1 and (result.weights > 0).all()


def test_rows_that_come_again_are_not_offered_to_the_reservoirs_again(monkeypatch):
    X, y = two_normals(500)
    learners, end = [], lanes.PairLearner.end
    monkeypatch.setattr(lanes.PairLearner, "end", lambda self: learners.append(self) or end(self))
    learn_from([X], y, visits=1_700)
    learner = learners[-1]
    assert (learner.P.seen, learner.N.seen) == (125, 375)
    assert_array_equal(np.sort(learner.P.rows, axis=0), np.sort(X[y > 0].astype(np.float32), axis=0))


def test_learning_that_is_stopped_at_once_has_learned_something():
    X, y = two_normals(2000)
    (result,), _ = learn_from([X], y, stop=stop_after(1))
    assert 0 < result.done < 0.5
    assert roc_auc_score(y, X @ choose([result], y).weights[0]) > 0.7


def test_learning_that_is_stopped_says_how_far_it_came():
    X, y = two_normals(2000)
    done = [learn_from([X], y, stop=stop_after(calls))[0][0].done for calls in (1, 3, 5, 10**6)]
    assert 0 < done[0] and all(a < b for a, b in pairwise(done)) and done[-1] == 1


def test_it_is_asked_often_and_what_is_not_stopped_is_the_same():
    """At least once in a tenth of the rows."""
    X, y = two_normals(2000)
    asked = []
    plain, watched = learn_from([X], y)[0][0], learn_from([X], y, stop=lambda: asked.append(1))[0][0]
    assert len(asked) >= 10 and watched.done == 1
    for name in ("weights", "mean", "auc", "scores"):
        assert_array_equal(getattr(plain, name), getattr(watched, name))


@pytest.mark.parametrize("sign", [1, -1])
def test_one_row_of_a_class_is_enough(sign):
    """There is nothing to choose by then, so all step sizes count alike."""
    X, y = two_normals(50, n_pos=1)
    y = sign * y
    X[y == sign] = sign
    choice = rank([X, X], y, visits=500)
    assert_allclose(choice.shares, 1 / choice.shares.size)
    assert roc_auc_score(y, X @ choice.weights[0]) > 0.9


def test_equal_scores_of_held_out_rows_do_no_harm():
    y = np.where(np.arange(12) % 2, 1, -1)
    choice = rank([np.eye(12)], y)
    assert np.isfinite(choice.weights[0]).all() and np.isfinite(choice.scores).all() and np.isfinite(choice.intercept)


# --- choosing among lanes --------------------------------------------------------------------------------------------


def made_up(rng, rows, n_steps=3, d=4):
    """A result of some rows, as it might be."""
    parts = rng.rand(d, n_steps), rng.rand(n_steps), 0.5 + rng.rand(n_steps) / 20, rng.randn(len(rows), n_steps)
    return SetResult(*parts, rows, 1.0)


def test_a_choice_is_the_mean_of_all_lanes_by_their_shares(rng):
    """Lane after lane; of the rows, by those that all sets have held out."""
    y = np.where(np.arange(60) % 4, -1, 1)
    few = np.arange(0, 60, 6)
    results = [made_up(rng, np.arange(60)), made_up(rng, few, d=1), made_up(rng, np.arange(0, 60, 3), d=7)]
    choice = choose(results, y)
    assert_array_equal(choice.rows, few)
    assert_array_equal(choice.shares, shares_of(np.array([result.auc for result in results]), 15))
    scores, intercept = np.zeros(len(few)), 0
    for result, shares, weights in zip(results, choice.shares, choice.weights, strict=True):
        assert_allclose(weights, sum(share * w for share, w in zip(shares, result.weights.T)))
        for step, share in enumerate(shares):
            intercept -= share * result.mean[step]
            scores += share * np.array([result.scores[list(result.rows).index(i), step] for i in few])
    assert choice.intercept == pytest.approx(intercept)
    assert_allclose(choice.scores, scores)


def test_scores_held_out_are_centred_and_nearly_as_good_as_those_of_other_rows():
    (X, y), (X_test, y_test) = two_normals(2000), two_normals(5000, seed=1)
    choice = rank([X, X], y)
    assert_array_equal(choice.rows, np.arange(2000))
    scores = X_test @ sum(choice.weights) + choice.intercept
    assert choice.scores.mean() == pytest.approx(0, abs=0.01)
    assert choice.scores.std() == pytest.approx(scores.std(), rel=0.1)
    assert scores.mean() == pytest.approx(0, abs=4 * scores.std() / np.sqrt(2000))
    assert roc_auc_score(y, choice.scores) == pytest.approx(roc_auc_score(y_test, scores), abs=0.03)


def test_the_set_that_ranks_unseen_rows_better_has_nearly_all_of_the_say():
    X, y = two_normals(300)
    noise = np.random.RandomState(5).standard_normal((300, 400)) / 20
    for sets, best in [([X, noise], 0), ([noise, X], 1)]:
        assert rank(sets, y, visits=2000).shares[best].sum() > 0.95


def test_shares_are_the_greater_the_better_a_lane_and_the_more_so_the_more_positives_there_are():
    aucs = np.array([[0.7, 0.75], [0.74, 0.6]])
    shares = [shares_of(aucs, n_pos) for n_pos in (1, 10, 100, 1000)]
    for s in shares:
        assert s.shape == aucs.shape and s.sum() == pytest.approx(1)
        assert_array_equal(np.argsort(s, axis=None), np.argsort(aucs, axis=None))
    assert all(less[0, 1] < more[0, 1] for less, more in pairwise(shares))


@pytest.mark.parametrize("auc", [0.0, 0.3, 0.5, 1.0])
def test_lanes_that_are_equally_good_have_equal_shares(auc):
    assert_allclose(shares_of(np.full((3, 2), auc), 20), 1 / 6)


# --- inner folds -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_folds", [2, 3, 6])
@pytest.mark.parametrize("n_pos, n_neg", [(2, 2), (2, 50), (50, 3), (100, 37), (6, 6)])
def test_inner_folds_spread_the_classes_evenly(n_folds, n_pos, n_neg):
    rng = np.random.RandomState(0)
    y = rng.permutation([1] * n_pos + [-1] * n_neg)
    fold, other = inner_folds(y, n_folds, rng), inner_folds(y, n_folds, rng)
    n_folds = min(n_folds, n_pos, n_neg)
    assert_array_equal(np.unique(fold), np.arange(n_folds))
    for sign in (1, -1):
        counts = np.bincount(fold[y == sign], minlength=n_folds)
        assert counts.min() >= 1 and np.ptp(counts) <= 1
    assert len(y) < 20 or (fold != other).any()


@pytest.mark.parametrize("n_pos, n_neg", [(1, 1), (1, 30), (30, 1)])
def test_there_is_no_inner_fold_if_a_class_has_one_row(n_pos, n_neg):
    y = np.array([1] * n_pos + [-1] * n_neg)
    assert_array_equal(inner_folds(y, 6, np.random.RandomState(0)), -1)
