"""From scores to decisions: probabilities, thresholds and what they cost, against brute force and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import oam
from oam import Calibration, Outcome, best_threshold, cost_by_threshold, cost_of, least_risk

pytestmark = pytest.mark.filterwarnings("error")


def scored(n=300, n_pos=30, seed=0):
    rng = np.random.RandomState(seed)
    y = np.where(np.arange(n) < n_pos, 1, -1)
    return 3 * rng.randn(n) + 4 * (y > 0), y


@pytest.mark.parametrize("n, n_pos, method", [(300, 30, "sigmoid"), (9000, 3000, "isotonic")])
def test_probabilities_are_those_of_scikit_learn(n, n_pos, method):
    s, y = scored(n, n_pos)
    reference = LogisticRegression().fit(s[:, None], y)  # any classifier whose score is a multiple of ours
    reference.coef_, reference.intercept_ = np.array([[1.0]]), np.array([0.0])
    sklearns = CalibratedClassifierCV(FrozenEstimator(reference), method=method, ensemble=False).fit(s[:, None], y)
    ours = Calibration().fit(s, y)
    at = np.linspace(s.min() - 5, s.max() + 5, 999)
    assert_allclose(ours.probability(at), sklearns.predict_proba(at[:, None])[:, 1], atol=1e-12)
    assert (np.diff(ours.probability(at)) >= 0).all()
    assert ours.probability(s).mean() == pytest.approx(n_pos / n, abs=0.01)
    assert_array_equal(Calibration(ours.arrays).probability(at), ours.probability(at))


@pytest.mark.parametrize("s", [[0, 0, 0, 0], [1, 2, 3, 4], [4, 3, 2, 1], [1e6, -1e6, 1e300, -1e300]])
def test_few_and_odd_scores_have_probabilities_too(s):
    probability = Calibration().fit(np.array(s, float), np.array([-1, -1, -1, 1])).probability(np.array(s, float))
    assert ((probability >= 0) & (probability <= 1)).all()


COSTS = st.integers(1, 9)
ROWS = st.lists(st.tuples(st.integers(0, 6), st.booleans(), COSTS, COSTS), min_size=1, max_size=25)


def brute_force(s, y, cost, threshold):
    """What acting on all scores above a threshold costs, row by row."""
    return sum(
        (cost_i[0] if s_i <= threshold else 0) if y_i > 0 else (cost_i[1] if s_i > threshold else 0)
        for s_i, y_i, cost_i in zip(s, y, cost)
    )


@settings(max_examples=200, deadline=None, derandomize=True)
@given(ROWS)
def test_thresholds_and_their_costs_are_those_of_brute_force(rows):
    s, y, *cost = (np.array(column, float) for column in zip(*rows))
    y, cost = np.where(y > 0, 1, -1), np.column_stack(cost)
    thresholds, total = cost_by_threshold(s, y, cost)
    assert len(thresholds) == len(set(s)) + 1
    for threshold, found in zip(thresholds, total):
        assert found == brute_force(s, y, cost, threshold)
    everywhere = [-np.inf, *np.arange(-0.25, 7, 0.25)]
    best = best_threshold(s, y, cost)
    assert brute_force(s, y, cost, best) == min(brute_force(s, y, cost, t) for t in everywhere)
    assert brute_force(s, y, cost, best) == cost_of(s > best, y, cost)


@pytest.mark.parametrize("missed, false_alarm", [(1, 1), (10, 1), (1, 4), (0.3, 0.7)])
def test_bayes_minimum_risk_is_the_cheapest_threshold_of_true_probabilities(missed, false_alarm):
    """Against brute force over thresholds, in expectation: each row is positive with its probability."""
    p = np.random.RandomState(0).rand(500)
    cost = np.tile([missed, false_alarm], (len(p), 1)).astype(float)

    def expected(acted):
        return np.where(acted, (1 - p) * false_alarm, p * missed).sum()

    risks = [expected(p > threshold) for threshold in [-1, *np.sort(p)]]
    assert expected(least_risk(p, cost)) == pytest.approx(min(risks))
    assert_array_equal(least_risk(p, cost), p > false_alarm / (missed + false_alarm))


def test_bayes_minimum_risk_minds_the_costs_of_each_row():
    rng = np.random.RandomState(1)
    p, cost = rng.rand(12), rng.rand(12, 2)
    risks = [np.where(acted, (1 - p) * cost[:, 1], p * cost[:, 0]).sum() for acted in np.ndindex(*[2] * 12)]
    acted = least_risk(p, cost)
    assert np.where(acted, (1 - p) * cost[:, 1], p * cost[:, 0]).sum() == pytest.approx(min(risks))


def test_worked_example():
    """20 positives; 54 rows are detected, 18 of them true."""
    y = np.where(np.arange(1000) < 20, 1, -1)
    acted = (np.arange(1000) < 18) | (np.arange(1000) >= 1000 - 36)
    outcome = Outcome.of(acted, y, np.tile([49.0, 1.0], (1000, 1)))
    assert (outcome.true_positives, outcome.false_positives) == (18, 36)
    assert (outcome.false_negatives, outcome.true_negatives) == (2, 944)
    assert outcome.precision == pytest.approx(1 / 3) and outcome.recall == pytest.approx(9 / 10)
    assert outcome.f1 == pytest.approx(2 / (3 + 10 / 9))
    assert outcome.cost == 2 * 49 + 36
    assert outcome.savings == pytest.approx((980 - 134) / 980)  # acting on no row costs 20 * 49, on every row 980


@pytest.mark.parametrize("acted", [False, True])
def test_the_cheaper_constant_decision_saves_nothing(acted):
    y = scored()[1]
    cost = np.tile([20.0, 1.0] if acted else [2.0, 1.0], (len(y), 1))
    assert Outcome.of(np.full(len(y), acted), y, cost).savings == 0
    assert Outcome.of(np.full(len(y), not acted), y, cost).savings < 0


def test_an_outcome_without_any_act_has_no_precision_and_no_warning():
    y = scored()[1]
    outcome = Outcome.of(np.zeros(len(y), bool), y, np.ones((len(y), 2)))
    assert (outcome.precision, outcome.recall, outcome.f1) == (0, 0, 0)


def test_the_kind_of_calibration_goes_by_the_rarer_class(monkeypatch):
    s, y = scored(100, 40)
    assert set(Calibration().fit(s, y).arrays) == {"a", "b"}
    monkeypatch.setattr(oam.Calibration, "MANY", 40)
    assert set(Calibration().fit(s, y).arrays) == {"score", "probability"}


def test_where_doing_nothing_costs_nothing_nothing_can_be_saved():
    assert Outcome.of(np.array([False, True]), np.array([-1, -1]), np.ones((2, 2))).savings == 0
