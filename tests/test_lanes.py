"""Many lanes and what is chosen among them. Oracles: the truth behind made-up rows, and rows that teach nothing."""

from itertools import count, pairwise

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import roc_auc_score

from tenfold import lanes
from tenfold.lanes import LaneEnsemble, auc_of_columns, greedy_choice, inner_folds, soft_choice

pytestmark = pytest.mark.filterwarnings("error")

VISITS = 6000


def rank(F, y, seed=0, visits=VISITS, folds=3, **kwargs):
    """A `LaneEnsemble` fitted on each of the feature sets F, all of which have all rows."""
    sets, rng = [(A.astype(np.float32), np.arange(len(y))) for A in F], np.random.RandomState(seed)
    return LaneEnsemble(visits=visits, rng=rng).fit(sets, y, inner_folds(y, folds, rng), **kwargs)


@pytest.fixture
def inner_aucs(monkeypatch):
    """The AUCs, held out, by which ensembles choose: an array (sets x step sizes) for each fit."""
    calls = []

    def spy(aucs, n_pos):
        calls.append(aucs)
        return soft_choice(aucs, n_pos)

    monkeypatch.setattr(lanes, "soft_choice", spy)
    return calls


def two_normals(n, d=5, n_pos=None, seed=0):
    """Rows whose best score is the sum of their columns, and labels of which ``n_pos`` are 1."""
    rng = np.random.RandomState(seed)
    y = rng.permutation(np.where(np.arange(n) < (n_pos or n // 4), 1, -1))
    return rng.standard_normal((n, d)) / np.sqrt(d) + 0.25 * y[:, None], y


@pytest.mark.parametrize("n_pos", [30, 1000])
def test_an_ensemble_ranks_nearly_as_well_as_the_truth(n_pos):
    X, y = two_normals(2000, n_pos=n_pos)
    X_test, y_test = two_normals(5000, seed=1)
    ensemble = rank([X], y)
    found = roc_auc_score(y_test, X_test @ ensemble.weights_[0])
    best = roc_auc_score(y_test, X_test.sum(axis=1))
    assert best - 0.02 < found < best + 0.005
    assert np.sum(ensemble.shares_) == pytest.approx(1)
    assert ensemble.done_ == 1


@pytest.mark.parametrize("folds", [2, 5])
def test_what_a_row_is_judged_by_has_not_learned_from_it(inner_aucs, folds):
    """A column for each row lets a lane remember the rows it has seen; of those held out it then knows nothing."""
    _, y = two_normals(60)
    with np.errstate(over="ignore", invalid="ignore"):
        ensemble = rank([np.eye(60)], y, folds=folds)
    np.testing.assert_array_equal(inner_aucs[0], 0.5)
    np.testing.assert_array_equal(ensemble.held_out_scores_, 0)


def test_noise_that_can_be_learned_by_heart_looks_like_noise(inner_aucs):
    """With more columns than rows any labels can be ranked without error; held out, the AUC is 1/2 on average."""
    n, d, held_out = 100, 300, []
    for seed in range(12):
        rng = np.random.RandomState(seed)
        X, y = rng.standard_normal((n, d)) / np.sqrt(d), np.where(np.arange(n) % 2, 1, -1)
        ensemble = rank([X], y, seed, visits=2000)
        assert roc_auc_score(y, X @ ensemble.weights_[0]) > 0.95
        held_out.append(roc_auc_score(y[ensemble.held_out_rows_], ensemble.held_out_scores_))
    error = np.sqrt((n + 1) / (12 * (n / 2) ** 2) / len(inner_aucs))  # of the mean of as many AUCs of random scores
    assert np.mean(inner_aucs) == pytest.approx(0.5, abs=4 * error)
    assert np.mean(held_out) == pytest.approx(0.5, abs=4 * error)


def test_held_out_scores_are_centred_and_nearly_as_good_as_those_of_other_rows():
    (X, y), (X_test, y_test) = two_normals(2000), two_normals(5000, seed=1)
    ensemble = rank([X, X], y)
    np.testing.assert_array_equal(ensemble.held_out_rows_, np.arange(2000))
    held_out, scores = ensemble.held_out_scores_, X_test @ sum(ensemble.weights_) + ensemble.intercept_
    assert held_out.mean() == pytest.approx(0, abs=0.01) and held_out.std() == pytest.approx(scores.std(), rel=0.1)
    assert roc_auc_score(y, held_out) == pytest.approx(roc_auc_score(y_test, scores), abs=0.03)


def test_held_out_scores_are_of_the_rows_that_all_sets_share():
    X, y = two_normals(300)
    sample = np.arange(0, 300, 3)
    X, rng = X.astype(np.float32), np.random.RandomState(0)
    fold = inner_folds(y, 3, rng)
    more = np.union1d(sample, np.arange(0, 300, 2))
    sets = [(X[rows], rows) for rows in (np.arange(300), sample, more)]
    ensemble = LaneEnsemble(1000, rng).fit(sets, y, fold)
    np.testing.assert_array_equal(ensemble.held_out_rows_, sample)
    assert ensemble.held_out_scores_.shape == (100,)
    assert roc_auc_score(y[sample], ensemble.held_out_scores_) > 0.6


def test_the_set_that_ranks_unseen_rows_better_has_nearly_all_of_the_say():
    X, y = two_normals(300)
    noise = np.random.RandomState(5).standard_normal((300, 400)) / 20
    for sets, best in [([X, noise], 0), ([noise, X], 1)]:
        assert np.sum(rank(sets, y, visits=2000).shares_[best]) > 0.95


def stop_after(calls):
    """A ``stop`` that is true from the call with this number on."""
    answers = iter([False] * (calls - 1))
    return lambda: next(answers, True)


@pytest.mark.parametrize("n_sets", [1, 3])
def test_an_ensemble_that_is_stopped_at_once_has_learned_something(n_sets):
    X, y = two_normals(2000)
    ensemble = rank([X] * n_sets, y, stop=stop_after(1))
    assert 0 < ensemble.done_ < 1
    assert len(ensemble.weights_) == len(ensemble.shares_) == 1
    assert roc_auc_score(y, X @ ensemble.weights_[0]) > 0.7


def test_an_ensemble_stopped_on_the_way_says_how_far_it_came():
    X, y = two_normals(2000)
    done = []
    for asked in (1, 3, 5, 10**9):
        numbers = count(1)
        done.append(rank([X], y, stop=lambda numbers=numbers, asked=asked: next(numbers) >= asked).done_)
    assert 0 < done[0] and all(a < b for a, b in pairwise(done)) and done[-1] == 1


def test_it_is_asked_often_and_what_is_not_stopped_is_the_same():
    """At least once in a tenth of the rows."""
    X, y = two_normals(2000)
    asked = []
    plain, watched = rank([X, X**2], y), rank([X, X**2], y, stop=lambda: asked.append(1))
    assert len(asked) > 20 and plain.done_ == watched.done_ == 1
    for a, b in zip(plain.weights_, watched.weights_):
        np.testing.assert_array_equal(a, b)
    assert plain.intercept_ == watched.intercept_
    np.testing.assert_array_equal(plain.held_out_scores_, watched.held_out_scores_)


def test_an_ensemble_stopped_in_its_second_set_has_two():
    X, y = two_normals(2000)
    of_one = []
    rank([X], y, stop=lambda: of_one.append(1))
    numbers = count(1)
    ensemble = rank([X, X**2, X], y, stop=lambda: next(numbers) >= len(of_one) + 2)
    assert len(ensemble.weights_) == len(ensemble.shares_) == 2
    assert 1 / 3 < ensemble.done_ < 2 / 3
    assert roc_auc_score(y, X @ ensemble.weights_[0]) > 0.7


@pytest.mark.parametrize("sign", [1, -1])
def test_one_row_of_a_class_is_enough(sign):
    """There is nothing to choose by then, so all step sizes have the same say."""
    X, y = two_normals(50, n_pos=1)
    y = sign * y
    X[y == sign] = sign
    ensemble = rank([X, X], y, visits=500)
    np.testing.assert_allclose(ensemble.shares_, 1 / np.size(ensemble.shares_))
    assert roc_auc_score(y, X @ ensemble.weights_[0]) > 0.9


def test_an_ensemble_depends_on_its_generator_alone():
    X, y = two_normals(300)
    first, again, other = (rank([X, X**2], y, seed, visits=1000).weights_ for seed in (3, 3, 4))
    for a, b, c in zip(first, again, other):
        np.testing.assert_array_equal(a, b)
        assert (a != c).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_values", [2, 5, 10**6])
def test_auc_of_columns_counts_ties_half(dtype, n_values):
    rng = np.random.RandomState(0)
    y = np.where(rng.rand(80) < 0.3, 1, -1)
    S = rng.randint(0, n_values, (80, 7)).astype(dtype)
    S[:, 0] = 1
    np.testing.assert_allclose(auc_of_columns(S, y), [roc_auc_score(y, s) for s in S.T], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_auc_of_columns_of_any_size_and_sign(dtype):
    rng = np.random.RandomState(0)
    y = np.where(rng.rand(300) < 0.1, 1, -1)
    size = np.array([1e-30, 1e-9, 1, 1e9, 1e30])
    S = (np.round(50 * rng.standard_normal((300, 5)) + y[:, None]) * size).astype(dtype)
    np.testing.assert_allclose(auc_of_columns(S, y), [roc_auc_score(y, s) for s in S.T], rtol=1e-12)
    assert auc_of_columns(S, y).shape == (5,) and len(np.unique(S[:, 0])) < 300


def test_zeros_of_either_sign_are_ties():
    y = np.array([1, -1, 1, -1])
    S = np.array([[-0.0, 0.0, -0.0], [0.0, -0.0, 0.0], [-0.0, 0.0, 1.0], [0.0, -0.0, -1.0]])
    for dtype in (np.float32, np.float64):
        np.testing.assert_array_equal(auc_of_columns(S.astype(dtype), y), [0.5, 0.5, 0.875])


@pytest.mark.parametrize(
    "make", [np.ascontiguousarray, np.asfortranarray, lambda S: S[:, :1].copy(), lambda S: S[:, ::2]]
)
def test_auc_of_columns_leaves_the_scores_as_they_are(make):
    rng = np.random.RandomState(0)
    S, y = make(rng.standard_normal((40, 3)).astype(np.float32)), np.where(np.arange(40) % 3, 1, -1)
    before = S.copy()
    np.testing.assert_allclose(auc_of_columns(S, y), [roc_auc_score(y, s) for s in S.T], rtol=1e-12)
    np.testing.assert_array_equal(S, before)


def test_scores_that_differ_in_the_last_bit_may_be_ties_and_others_are_not():
    y = np.array([1, -1] * 50)
    one = np.float32(1)
    apart = [np.where(y > 0, one + k * np.finfo(np.float32).eps, one) for k in (0, 1, 2)]
    found = auc_of_columns(np.stack(apart, axis=1), y)
    assert found[0] == 0.5 and found[1] in (0.5, 1.0) and found[2] == 1


def test_a_set_of_one_feature_is_learned_from_on_as_many_rows_as_planned(monkeypatch):
    rng = np.random.RandomState(0)
    n, visited = 5_000, []
    y = np.where(np.arange(n) % 9, -1, 1)
    fold = lanes.inner_folds(y, 3, rng)
    learn = lanes.PairLearner.learn
    monkeypatch.setattr(
        lanes.PairLearner, "learn", lambda self, F, *a, **b: visited.append(F.shape) or learn(self, F, *a, **b)
    )
    for rows in (np.arange(n), np.arange(300)):
        F = (y + rng.randn(n)).astype(np.float32)[rows, None]
        ensemble = lanes.LaneEnsemble(9_000, rng).fit([(F, rows)], y, fold)
        assert sum(shape[0] for shape in visited) == min(lanes.VISITS_OF_ONE, len(rows))
        assert ensemble.done_ == 1 and ensemble.weights_[0] > 0
        visited.clear()


# --- choosing among lanes --------------------------------------------------------------------------------------------


def naive_greedy(scores, y):
    """Lane after lane, each tried in full."""
    lanes, taken, best = scores.reshape(len(y), -1), [], 0
    while len(taken) < 30:
        aucs = [round(roc_auc_score(y, lanes[:, [*taken, k]].sum(axis=1)), 12) for k in range(lanes.shape[1])]
        if taken and max(aucs) <= best:
            break
        taken.append(int(np.argmax(aucs)))
        best = max(aucs)
    return np.bincount(taken, minlength=lanes.shape[1]).reshape(scores.shape[1:]) / len(taken)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n_sets, n_steps", [(1, 3), (2, 3), (4, 2)])
def test_a_greedy_choice_takes_what_raises_the_auc_most(seed, n_sets, n_steps):
    """Scores are whole numbers, so that sums of them are exact."""
    rng = np.random.RandomState(seed)
    y = np.where(rng.rand(150) < 0.3, 1, -1)
    truth = y[:, None, None] * rng.randint(0, 30_000, (n_sets, n_steps))
    scores = (truth + rng.randint(-100_000, 100_000, (150, n_sets, n_steps))).astype(float)
    shares = greedy_choice(scores, y)
    np.testing.assert_allclose(shares, naive_greedy(scores, y), atol=1e-12)
    assert shares.shape == (n_sets, n_steps) and shares.sum() == pytest.approx(1)
    assert n_sets == 1 or np.count_nonzero(shares) > 1
    combined = roc_auc_score(y, np.einsum("ijk,jk->i", scores, shares))
    assert combined >= auc_of_columns(scores.reshape(150, -1), y).max() - 1e-6


def test_a_greedy_choice_ends_and_takes_one_if_none_helps():
    y = np.array([1, -1, -1, 1])
    perfect = np.stack([y, -y], axis=1)[:, None, :].astype(float)
    np.testing.assert_array_equal(greedy_choice(perfect, y), [[1, 0]])
    np.testing.assert_array_equal(greedy_choice(0 * perfect, y), [[1, 0]])
    np.testing.assert_array_equal(greedy_choice(perfect[:, :, 1:], y), [[1]])


@pytest.mark.parametrize("n_pos, n_neg, greedy", [(300, 300, True), (299, 400, False), (400, 299, False)])
def test_a_choice_is_greedy_where_both_classes_have_many_rows(monkeypatch, n_pos, n_neg, greedy):
    called = []
    for name in ("greedy_choice", "soft_choice"):
        choice = getattr(lanes, name)
        monkeypatch.setattr(lanes, name, lambda *args, name=name, choice=choice: called.append(name) or choice(*args))
    X, y = two_normals(n_pos + n_neg, n_pos=n_pos)
    ensemble = rank([X, X**2], y, visits=700)
    assert called == ["greedy_choice" if greedy else "soft_choice"]
    assert np.sum(ensemble.shares_) == pytest.approx(1) and np.shape(ensemble.shares_) == (2, 3)
    if greedy:
        assert ensemble.shares_[0].sum() > 0.5  # of which the truth is a sum


def test_held_out_scores_are_centred_by_fold_and_their_sum_follows_the_shares():
    for n_pos in (100, 320):
        X, y = two_normals(700, n_pos=n_pos)
        ensemble = rank([X + 3, X**2], y, visits=1500)
        fold = inner_folds(y, 3, np.random.RandomState(0))  # as `rank` has them
        for k in range(3):
            assert ensemble.held_out_scores_[fold == k].mean() == pytest.approx(0, abs=1e-4)
        assert 0.5 < ensemble.held_out_scores_.std() < 6


def test_a_soft_choice_prefers_the_best_and_the_more_so_the_more_positives_there_are():
    aucs = np.array([[0.7, 0.75], [0.74, 0.6]])
    shares = [soft_choice(aucs, n_pos) for n_pos in (1, 10, 100, 1000)]
    for s in shares:
        assert s.shape == aucs.shape and s.sum() == pytest.approx(1)
        np.testing.assert_array_equal(np.argsort(s, axis=None), np.argsort(aucs, axis=None))
    assert all(less[0, 1] < more[0, 1] for less, more in pairwise(shares))


@pytest.mark.parametrize("auc", [0.0, 0.3, 0.5, 1.0])
def test_a_soft_choice_among_equals_is_none(auc):
    np.testing.assert_allclose(soft_choice(np.full((3, 2), auc), 20), 1 / 6)


def test_equal_scores_of_held_out_rows_do_no_harm():
    y = np.where(np.arange(12) % 2, 1, -1)
    assert np.isfinite(rank([np.eye(12)], y).weights_[0]).all()


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
