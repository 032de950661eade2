"""Standard errors of an AUC, held against the spread over many samples."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tenfold.reliability import auc_and_error, compare_aucs


def sample(rng, n_pos, n_neg, lead=1.0):
    y = np.repeat([1, -1], [n_pos, n_neg])
    return y, rng.normal(size=len(y)) + lead * (y > 0)


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


def test_the_error_of_a_difference_is_its_spread_over_samples(rng):
    leads, errors = [], []
    for _ in range(300):
        y, scores = sample(rng, 50, 200)
        lead, error = compare_aucs(y, scores, scores + rng.normal(size=len(y)) / 2)
        leads.append(lead)
        errors.append(error)
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(leads), rel=0.15)
    assert np.mean(leads) < 0
    assert compare_aucs(y, scores, scores) == (0, 0)
