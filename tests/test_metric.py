"""By how much columns matter. Oracles: columns made to matter, and derivatives by small differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tenfold import metric
from tenfold.columns import Columns
from tenfold.features import LandmarkFeatures, Versions, euclidean
from tenfold.metric import column_weights

pytestmark = pytest.mark.filterwarnings("error")


def weights_of(X, y, seed=0):
    """The weights of columns of any range, behind which the bias stands."""
    Z = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    Z = np.column_stack([Z, np.ones(len(Z))]).astype(np.float32)
    columns = Columns().fit(Z, np.count_nonzero(y > 0))
    return column_weights(columns, Z, y, np.random.RandomState(seed))


def made_up(seed=0, n=1200):
    """Columns of many values that matter much (by a curve), less, and not at all, and of two that do and do not."""
    rng = np.random.RandomState(seed)
    X = rng.randn(n, 6)
    X[:, 3:5] = X[:, 3:5] > 0.3
    score = 3 * np.cos(1.5 * X[:, 0]) + 0.7 * X[:, 1] + 1.2 * X[:, 3] + 0.3 * rng.randn(n)
    return X, np.where(score > np.quantile(score, 0.7), 1, -1)


MATTER, DO_NOT = [0, 1, 3], [2, 4, 5]


@pytest.mark.parametrize("seed", range(3))
def test_columns_that_matter_have_the_greater_weights(seed):
    weights = weights_of(*made_up(seed))
    assert weights.shape == (6,) and weights.dtype == np.float32
    assert weights.argmax() == 0
    assert weights[MATTER].min() > 1.2 * weights[DO_NOT].max()
    assert np.mean(weights**2) == pytest.approx(1, abs=1e-5)


def test_the_second_round_tells_them_apart_better(monkeypatch):
    X, y = made_up()
    ratio = []
    for rounds in (1, 2):
        monkeypatch.setattr(metric, "ROUNDS", rounds)
        weights = weights_of(X, y)
        ratio.append(weights[0] / weights[DO_NOT].max())
    assert ratio[0] < ratio[1]


def test_weights_follow_their_columns():
    """But for chance, and not exactly even with the same: sums are taken in another order."""
    X, y = made_up()
    order = np.array([5, 3, 0, 1, 4, 2])
    assert_allclose(weights_of(X[:, order], y), weights_of(X, y)[order], rtol=0.05)


def test_weights_depend_on_the_generator_alone():
    X, y = made_up()
    assert_array_equal(weights_of(X, y, 3), weights_of(X, y, 3))
    assert (weights_of(X, y, 3) != weights_of(X, y, 4)).any()


def test_rows_beyond_those_looked_at_change_nothing(monkeypatch):
    monkeypatch.setattr(metric, "ROWS", 300)
    X, y = made_up()
    Z = np.random.RandomState(0).rand(*X.shape).astype(np.float32)
    columns = Columns().fit(Z, 300)
    rows = metric.thin(y, 300)
    weights = column_weights(columns, Z, y, np.random.RandomState(0))
    assert_array_equal(column_weights(columns, Z[rows], y[rows], np.random.RandomState(0)), weights)


def test_of_one_column_there_is_one_weight():
    X, y = made_up()
    assert_allclose(weights_of(X[:, :1], y), [1], rtol=1e-6)


def test_where_nothing_is_learned_all_columns_weigh_the_same(monkeypatch):
    monkeypatch.setattr(metric, "_learn", lambda F, y, rng: np.zeros(F.shape[1], np.float32))
    assert_allclose(weights_of(*made_up()), 1, rtol=1e-6)


@pytest.mark.parametrize("slope, least, greatest", [([1, 0, 1, 1, 1, 1], 0.05, None), ([1e9, 0, 0, 0, 0, 0], 0.05, 6)])
def test_no_weight_is_so_small_that_its_column_is_lost(monkeypatch, slope, least, greatest):
    """Before their mean square becomes 1, weights are at least a twentieth of the mean slope."""
    monkeypatch.setattr(metric, "ROUNDS", 1)
    monkeypatch.setattr(metric, "_slopes", lambda X, y, rng: np.array(slope, np.float32))
    expected = np.clip(np.array(slope) / np.mean(slope), least, greatest)
    assert_allclose(weights_of(*made_up()), expected / np.sqrt(np.mean(expected**2)), rtol=1e-5)


@pytest.mark.parametrize("n", [60, metric.LANDMARKS + 50])
def test_slopes_are_derivatives(monkeypatch, n):
    """By differences to both sides: of a row that is a landmark, its own similarity has none."""
    rng = np.random.RandomState(0)
    X, y = rng.randn(n, 3).astype(np.float32), np.where(np.arange(n) % 2, 1, -1)
    m = min(n, metric.LANDMARKS)
    w = rng.randn(m).astype(np.float32)
    monkeypatch.setattr(metric, "_learn", lambda F, y, rng: w)
    found = metric._slopes(X, y, np.random.RandomState(7))
    chosen = np.random.RandomState(7).choice(n, m, replace=False)
    landmarks = Versions(None, X[chosen])
    features = LandmarkFeatures(("scaled", euclidean, 1, 1)).fit(landmarks)
    coefficients, (median,) = features.coefficients(w).astype(float), features.median_

    def model(rows):
        distances = np.sqrt(((rows[:, None] - X[chosen].astype(float)) ** 2).sum(axis=2))
        return np.exp(-distances / float(median)) @ coefficients

    for j in range(3):
        h = 1e-6 * np.eye(3)[j]
        slopes = (model(X + h) - model(X - h)) / 2e-6
        assert found[j] == pytest.approx(np.sqrt(np.mean(slopes**2)), rel=5e-3)
