"""How much of the planned work a slow or busy machine does."""

import numpy as np
import pytest
from conftest import call, make_rows
from scipy.io import savemat

from tenfold import AUCRanker
from tenfold.efforts import EFFORTS, Change, less_effort, with_effort
from tenfold.folds import Fold
from tenfold.ranker import PublishedRanker


def folds(n, seconds, effort=1, done=1.0):
    return [Fold(0.9, None, seconds, [], {}, done, {}, effort) for _ in range(n)]


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_there_is_no_change_while_the_rest_fits(jobs):
    for n_done in range(1, 11):
        assert less_effort(folds(n_done, 0.5), 10, 10, jobs, seconds=0.5 * (10 - n_done) / jobs + 0.26) is None


def test_all_folds_start_again_with_the_greatest_effort_that_fits():
    assert less_effort(folds(1, 2.0), 10, 10, 1, seconds=12) == Change(1 / 2, True)
    assert less_effort(folds(1, 2.0), 10, 10, 1, seconds=6) == Change(1 / 4, True)
    assert less_effort(folds(1, 2.0), 10, 10, 2, seconds=6) == Change(1 / 2, True)


def test_late_in_a_run_only_the_rest_takes_less():
    change = less_effort(folds(8, 2.0), 10, 10, 1, seconds=1.2)
    assert change == Change(1 / 4, False)
    assert less_effort(folds(8, 2.0), 10, 10, 1, seconds=0.01) == Change(EFFORTS[-1], False)


def test_a_fold_that_the_clock_cut_costs_what_it_would_have_cost():
    assert less_effort(folds(1, 1.0, done=0.1), 10, 10, 1, seconds=9) == Change(1 / 16, True)


def test_there_is_no_less_than_the_least():
    assert less_effort(folds(1, 5.0, EFFORTS[-1]), 10, 10, 1, seconds=1) is None


def test_an_effort_is_a_share_of_the_budget():
    ranker = AUCRanker(budget=3.0, random_state=0)
    assert with_effort(ranker, 1 / 4).get_params() == {**ranker.get_params(), "budget": 0.75}
    assert with_effort(ranker, 1) is ranker
    published = PublishedRanker()
    assert with_effort(published, 1) is published


def test_a_run_on_a_slow_machine_gives_the_number_of_a_smaller_effort_and_says_so(tmp_path, monkeypatch):
    """The first fold seems to take so long that all have to start again with half of the effort."""
    import tenfold.folds

    X, y = make_rows(300, 5, 60)
    savemat(tmp_path / "data.mat", {"x_tr": X, "y_tr": y[:, None]})
    expected = []
    for seed_fold in tenfold.folds.Experiment.cross_validation(X, y, 4, 0).splits:
        train, test = seed_fold
        scores = AUCRanker(budget=0.5, random_state=0).fit(X[train], y[train]).decision_function(X[test])
        pairs = np.subtract.outer(scores[y[test] > 0], scores[y[test] < 0])
        expected.append(np.mean(pairs > 0) + np.mean(pairs == 0) / 2)
    monkeypatch.setattr(
        tenfold.folds, "less_effort", lambda done, *_: Change(1 / 2, True) if done[0].effort == 1 else None
    )
    for quiet in ([], ["-q"]):
        code, out, err = call(tmp_path / "data.mat", "--folds", 4, "--jobs", 1, *quiet)
        assert (code, out) == (0, f"AUC Score: {np.mean(expected):.4f}\n")
        assert "this machine is slow or busy: learned with half of the usual effort\n" in err
    assert err.count("\n") == 1
