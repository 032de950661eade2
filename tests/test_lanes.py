"""Many lanes and what is chosen among them. Oracles: the truth behind made-up rows, and rows that teach nothing."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tenfold import lanes
from tenfold.lanes import LaneEnsemble, auc_of_columns, soft_choice

pytestmark = pytest.mark.filterwarnings("error")

VISITS = 6000


def rank(F, y, seed=0, visits=VISITS, folds=3, **kwargs):
    """A `LaneEnsemble` fitted on each of the feature sets F, all of which have all rows."""
    sets = [(A.astype(np.float32), np.arange(len(y))) for A in F]
    return LaneEnsemble(visits=visits, folds=folds, rng=np.random.RandomState(seed)).fit(sets, y, **kwargs)


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
    X = X.astype(np.float32)
    ensemble = LaneEnsemble(1000, 3, np.random.RandomState(0)).fit([(X, np.arange(300)), (X[sample], sample)], y)
    np.testing.assert_array_equal(ensemble.held_out_rows_, sample)
    assert ensemble.held_out_scores_.shape == (100,)
    assert roc_auc_score(y[sample], ensemble.held_out_scores_) > 0.6


def test_the_set_that_ranks_unseen_rows_better_has_nearly_all_of_the_say():
    X, y = two_normals(300)
    noise = np.random.RandomState(5).standard_normal((300, 400)) / 20
    for sets, best in [([X, noise], 0), ([noise, X], 1)]:
        assert np.sum(rank(sets, y, visits=2000).shares_[best]) > 0.95


@pytest.mark.parametrize("n_sets", [1, 3])
def test_an_ensemble_that_is_stopped_at_once_has_learned_something(n_sets):
    X, y = two_normals(2000)
    ensemble = rank([X] * n_sets, y, monitor=lambda n_rows, end: True)
    assert 0 < ensemble.done_ < 1
    assert len(ensemble.weights_) == len(ensemble.shares_) == 1
    assert roc_auc_score(y, X @ ensemble.weights_[0]) > 0.7


def test_an_ensemble_stopped_on_the_way_says_how_far_it_came():
    X, y = two_normals(2000)
    answers = iter([False] * 3 + [True] * 9)
    early, late = (
        rank([X], y, monitor=lambda n_rows, end: True),
        rank([X], y, monitor=lambda n_rows, end: next(answers)),
    )
    assert early.done_ < late.done_ < 1


def test_a_monitor_is_told_of_ever_more_rows_and_changes_nothing():
    X, y = two_normals(2000)
    seen = []

    def monitor(n_rows, end):
        seen.append(n_rows)
        end()

    unwatched, watched = rank([X, X**2], y), rank([X, X**2], y, monitor=monitor)
    assert seen == sorted(seen) and len(set(seen)) > 10 and seen[-1] == 2 * VISITS
    for a, b in zip(unwatched.weights_, watched.weights_):
        np.testing.assert_array_equal(a, b)
    assert unwatched.intercept_ == watched.intercept_
    np.testing.assert_array_equal(unwatched.held_out_scores_, watched.held_out_scores_)


@pytest.mark.parametrize("calls", [2, 7, 15])
def test_what_a_monitor_sees_is_what_an_end_at_that_moment_gives(calls):
    X, y = two_normals(2000)
    seen = []

    def see(n_rows, end):
        end()
        seen.append((n_rows, [weights.copy() for weights in ensemble.weights_], ensemble.intercept_))

    def stop(n_rows, end):
        seen.append(n_rows)
        return len(seen) == calls

    sets = [(A.astype(np.float32), np.arange(len(y))) for A in (X, X**2)]
    ensemble = LaneEnsemble(VISITS, 3, np.random.RandomState(0))
    ensemble.fit(sets, y, see)
    n_rows, weights, intercept = seen[calls - 1]
    seen = []
    stopped = rank([X, X**2], y, monitor=stop)
    assert seen[calls - 1] == n_rows and len(stopped.weights_) == len(weights)
    for a, b in zip(stopped.weights_, weights):
        np.testing.assert_array_equal(a, b)
    assert stopped.intercept_ == intercept


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
