"""The AUC, its standard error, and intervals. Oracles: scikit-learn, the spread over many samples, a hand's sum."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tenfold import metrics
from tenfold.metrics import RunningAUC, auc_and_error, auc_of_columns, interval

pytestmark = pytest.mark.filterwarnings("error")


def sample(rng, n_pos, n_neg, lead=1.0):
    y = np.repeat([1, -1], [n_pos, n_neg])
    return y, rng.normal(size=len(y)) + lead * (y > 0)


# --- many columns of scores ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_values", [2, 5, 10**6])
def test_auc_of_columns_counts_ties_half(rng, dtype, n_values):
    y = np.where(rng.rand(80) < 0.3, 1, -1)
    S = rng.randint(0, n_values, (80, 7)).astype(dtype)
    S[:, 0] = 1
    np.testing.assert_allclose(auc_of_columns(S, y), [roc_auc_score(y, s) for s in S.T], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_auc_of_columns_of_any_size_and_sign(rng, dtype):
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
def test_auc_of_columns_leaves_the_scores_as_they_are(rng, make):
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


# --- one column, and its error ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_pos, n_neg", [(40, 400), (200, 60)])
def test_the_error_is_the_spread_over_samples(rng, n_pos, n_neg):
    found = np.array([auc_and_error(*sample(rng, n_pos, n_neg)) for _ in range(400)])
    assert np.sqrt(np.mean(found[:, 1] ** 2)) == pytest.approx(found[:, 0].std(), rel=0.15)


def test_the_auc_is_that_of_scikit_learn_ties_included(rng):
    y, scores = sample(rng, 30, 70)
    scores = scores.round(1)
    assert auc_and_error(y, scores)[0] == pytest.approx(roc_auc_score(y, scores), abs=1e-12)


@pytest.mark.parametrize("n_pos, least", [(1, 0.2), (5, 0.05), (100, 0.004)])
def test_few_rows_without_fault_leave_doubt(n_pos, least):
    y = np.repeat([1, -1], [n_pos, 1000])
    auc, error = auc_and_error(y, y.astype(float))
    assert auc == 1 and least < error < 0.3


# --- scores that come some at a time ---------------------------------------------------------------------------------


def running(y, scores, n=70):
    """The AUC of scores that come so many at a time."""
    auc = RunningAUC()
    for i in range(0, len(y), n):
        auc.add(y[i : i + n], scores[i : i + n])
    return auc


@pytest.mark.parametrize("digits", [0, 1, 9])
def test_a_running_auc_is_that_of_all_scores(rng, digits):
    y, scores = sample(rng, 150, 850)
    order = rng.permutation(1000)
    y, scores = y[order], scores[order].round(digits)
    assert running(y, scores).value() == pytest.approx(roc_auc_score(y, scores), abs=1e-12)


@pytest.mark.parametrize("scale, shift", [(1, 0), (1e-20, 0), (1, 1e6)])
@pytest.mark.parametrize("most, edges", [(0, 10**6), (500, 10**6), (500, 40), (2_000, 100)])
def test_beyond_some_rows_a_running_auc_is_nearly_that_of_all_scores(rng, monkeypatch, most, edges, scale, shift):
    """As near as pairs can be that lie between the same two of the first scores; of any size and place."""
    monkeypatch.setattr(metrics, "MOST_KEPT", most)
    monkeypatch.setattr(metrics, "MOST_EDGES", edges)
    y, scores = sample(rng, 400, 2000)
    order = rng.permutation(len(y))
    y, scores = y[order], scale * scores[order] + shift
    auc = running(y, scores)
    assert auc.histogram is not None and auc.kept == []
    n_first = -(-(most + 1) // 70) * 70
    assert auc.value() == pytest.approx(roc_auc_score(y, scores), abs=1 / min(n_first, edges))


def test_of_scores_that_have_been_among_the_first_a_running_auc_is_exact(rng, monkeypatch):
    monkeypatch.setattr(metrics, "MOST_KEPT", 100)
    y, scores = sample(rng, 400, 2000)
    order = rng.permutation(len(y))
    y, scores = y[order], scores[order].round(0).clip(-1, 2)
    assert set(scores[:100]) == set(scores)
    assert running(y, scores).value() == pytest.approx(roc_auc_score(y, scores), abs=1e-12)


def test_scores_in_one_place_of_the_histogram_are_ties(monkeypatch):
    monkeypatch.setattr(metrics, "MOST_KEPT", 0)
    y = np.array([1, -1, -1, 1])
    assert running(y, np.array([0.0, -0.0, 1e9, 2e9])).value() == 0.625
    assert running(y, np.zeros(4)).value() == 0.5
    assert running(y, np.array([2.0, -1, -2, 2])).value() == 1
    assert running(y, np.array([5.0, 6, 3, 4]), n=2).value() == 0.375  # 3 and 4 are both below all that came before


def test_without_both_classes_or_all_labels_there_is_no_running_auc():
    auc = RunningAUC()
    assert auc.value() is None and auc.found() == "has no labels"
    auc.add(np.ones(3, int), np.arange(3.0))
    assert auc.value() is None and auc.found() == "has one label only"
    auc.add(-np.ones(2, int), np.array([0.5, -1]))
    assert auc.value() == pytest.approx(5 / 6)
    auc.add(None, np.ones(2))
    assert auc.value() is None and auc.found() == "has labels for some rows only"


# --- intervals -------------------------------------------------------------------------------------------------------


def test_the_interval_is_corrected_for_shared_rows():
    leads = np.array([0.01, 0.03, 0.02, 0.04, 0.0])
    half = 2.776445 * np.sqrt(leads.var(ddof=1) * (1 / 5 + 1 / 4))  # Student's t with 4 degrees of freedom
    np.testing.assert_allclose(interval(leads), [0.02 - half, 0.02 + half], rtol=1e-6)
