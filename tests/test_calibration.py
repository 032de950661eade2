"""From scores to log-odds. Oracles: scikit-learn's calibration, and rows that are there more than once."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from tenfold.calibration import LEAST_SLOPE, log_odds

pytestmark = pytest.mark.filterwarnings("error")


def scored(n=300, n_pos=30, seed=0):
    rng = np.random.RandomState(seed)
    y = np.where(np.arange(n) < n_pos, 1, -1)
    return 3 * rng.randn(n) + 4 * (y > 0), y


@pytest.mark.parametrize("n, n_pos", [(300, 30), (300, 270), (9000, 3000)])
def test_probabilities_are_those_of_scikit_learn(n, n_pos):
    s, y = scored(n, n_pos)
    reference = LogisticRegression().fit(s[:, None], y)  # any classifier whose score is a multiple of ours
    reference.coef_, reference.intercept_ = np.array([[1.0]]), np.array([0.0])
    sklearns = CalibratedClassifierCV(FrozenEstimator(reference), method="sigmoid", ensemble=False).fit(s[:, None], y)
    slope, offset = log_odds(s, y, np.ones(n))
    at = np.linspace(s.min() - 5, s.max() + 5, 999)
    probability = expit(slope * at + offset)
    assert_allclose(probability, sklearns.predict_proba(at[:, None])[:, 1], atol=1e-12)
    assert (np.diff(probability) >= 0).all()
    assert expit(slope * s + offset).mean() == pytest.approx(n_pos / n, abs=0.01)


def test_slope_and_offset_are_those_behind_the_labels():
    rng = np.random.RandomState(0)
    s = 2 * rng.randn(50_000)
    y = np.where(rng.rand(len(s)) < expit(1.5 * s - 2), 1, -1)
    assert log_odds(s, y, np.ones(len(s))) == pytest.approx((1.5, -2), abs=0.05)


def test_a_weight_is_how_often_a_row_is_there():
    s, y = scored()
    weight = np.random.RandomState(1).randint(1, 6, len(y))
    often = np.repeat(np.arange(len(y)), weight)
    found = log_odds(s, y, weight.astype(float))
    assert_allclose(found, log_odds(s[often], y[often], np.ones(len(often))), rtol=1e-4)
    assert abs(found[1] - log_odds(s, y, np.ones(len(y)))[1]) > 1e-3


def test_thinned_rows_that_weigh_for_the_others_give_nearly_the_same_probabilities():
    s, y = scored(20_000, 1000)
    kept = (y > 0) | (np.arange(len(y)) % 10 == 0)
    weight = np.where(y > 0, 1.0, 10.0)
    fits = log_odds(s, y, np.ones(len(y))), log_odds(s[kept], y[kept], weight[kept])
    whole, thinned = (expit(slope * s + offset) for slope, offset in fits)
    assert thinned.mean() == pytest.approx(0.05, abs=0.003) == whole.mean()
    assert np.abs(thinned - whole).mean() < 0.005


@pytest.mark.parametrize("s", [[0, 0, 0, 0], [1, 2, 3, 4], [4, 3, 2, 1], [1e6, -1e6, 1e300, -1e300]])
def test_few_and_odd_scores_have_probabilities_too(s):
    s = np.array(s, float)
    slope, offset = log_odds(s, np.array([-1, -1, -1, 1]), np.ones(4))
    probability = expit(slope * s + offset)
    assert ((probability >= 0) & (probability <= 1)).all()
    assert slope >= LEAST_SLOPE and np.isfinite([slope, offset]).all()


def test_scores_that_rank_the_wrong_way_say_hardly_more_than_the_classes_do():
    s, y = scored()
    weight = np.where(y > 0, 3.0, 1.0)
    slope, offset = log_odds(-s, y, weight)
    assert slope == LEAST_SLOPE
    assert offset == pytest.approx(np.log(30 * 3 / 270))
