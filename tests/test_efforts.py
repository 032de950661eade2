"""How much of the planned work a slow or busy machine does."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import call, make_rows
from numpy.testing import assert_array_equal
from scipy.io import savemat
from sklearn.base import BaseEstimator

from tenfold import AUCRanker, efforts
from tenfold import folds as folds_module
from tenfold.efforts import CROWD, EFFORTS, Change, first_effort, less_effort, measure_slowness, with_effort
from tenfold.folds import Fold, rows_in_time
from tenfold.ranker import PublishedRanker

SHARES = {e: e for e in EFFORTS}  # a fold takes as much less as it is given


def folds(n, seconds, effort=1, done=1.0, warm_up=0.0):
    return [Fold(0.9, None, seconds, [], {}, done, {}, effort, warm_up) for _ in range(n)]


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_there_is_no_change_while_the_rest_fits(jobs):
    for n_done in range(1, 11):
        assert less_effort(folds(n_done, 0.5), SHARES, 10, 10, jobs, seconds=0.5 * (10 - n_done) / jobs + 0.26) is None


def test_all_folds_start_again_with_the_greatest_effort_that_fits():
    assert less_effort(folds(1, 2.0), SHARES, 10, 10, 1, seconds=12) == Change(1 / 2, True)
    assert less_effort(folds(1, 2.0), SHARES, 10, 10, 1, seconds=6) == Change(1 / 4, True)
    assert less_effort(folds(1, 2.0), SHARES, 10, 10, 2, seconds=6) == Change(1 / 2, True)


def test_what_a_process_took_to_warm_up_it_will_not_take_again():
    assert less_effort(folds(1, 5.0, warm_up=4.0), SHARES, 10, 10, 1, seconds=9.1) is None
    assert less_effort(folds(1, 6.0, warm_up=4.0), SHARES, 10, 10, 1, seconds=12) == Change(1 / 2, True)


def test_folds_go_on_if_they_are_a_little_late_and_many_are_to_come():
    for n_done, change in (1, None), (6, None), (7, Change(1 / 2, False)), (9, Change(1 / 2, False)):
        seconds = (10 - n_done) / (0.99 * efforts.LITTLE)
        assert less_effort(folds(n_done, 1.0), SHARES, 10, 10, 1, seconds) == change
    assert less_effort(folds(1, 1.0), SHARES, 10, 10, 1, 9 / (1.01 * efforts.LITTLE)) == Change(1 / 2, True)


def test_the_rest_alone_takes_less_where_all_folds_would_take_an_eighth_of_the_effort():
    expected = {1: 2.0, 1 / 2: 1.6, 1 / 4: 1.4, 1 / 8: 1.0, 1 / 16: 0.8, 1 / 32: 0.8}
    assert less_effort(folds(4, 2.0), expected, 10, 10, 1, 12 / efforts.SURE) is None
    assert less_effort(folds(4, 2.0), expected, 10, 10, 1, 9.7 / efforts.SURE) == Change(1 / 2, False)
    assert less_effort(folds(4, 2.0), expected, 10, 10, 1, 8.5 / efforts.SURE) == Change(1 / 4, False)
    assert less_effort(folds(4, 2.0), expected, 10, 10, 1, 8.3 / efforts.SURE) == Change(1 / 16, True)


def test_late_in_a_run_only_the_rest_takes_less():
    change = less_effort(folds(8, 2.0), SHARES, 10, 10, 1, seconds=1.2)
    assert change == Change(1 / 4, False)
    assert less_effort(folds(8, 2.0), SHARES, 10, 10, 1, seconds=0.01) == Change(EFFORTS[-1], False)


def test_folds_that_no_effort_makes_shorter_go_on():
    """What runs beside the one just done would be lost, and done again in as much time."""
    expected = {e: 0.5 + 0.01 * e for e in EFFORTS}
    for jobs in (1, 2, 4):
        change = less_effort(folds(1, 2.0), expected, 10, 10, jobs, seconds=1)
        assert change == (Change(EFFORTS[-1], False) if jobs == 1 else None)


def test_a_fold_that_the_clock_cut_costs_what_it_would_have_cost():
    assert less_effort(folds(1, 1.0, done=0.1), SHARES, 10, 10, 1, seconds=9) == Change(1 / 16, True)


def test_a_smaller_effort_that_saves_less_than_its_share_may_not_be_small_enough():
    """Half of the budget saves a tenth, a quarter of it little more, an eighth five sixths."""
    expected = {1: 3.0, 1 / 2: 2.7, 1 / 4: 2.6, 1 / 8: 0.5, 1 / 16: 0.4, 1 / 32: 0.3}
    assert less_effort(folds(1, 2.0), expected, 10, 10, 1, seconds=12) == Change(1 / 8, True)
    assert less_effort(folds(1, 2.0, 1 / 2), expected, 10, 10, 1, seconds=12) == Change(1 / 8, True)
    assert less_effort(folds(9, 2.0), expected, 10, 10, 1, seconds=1) == Change(1 / 8, False)
    tenth = {e: 10 * seconds for e, seconds in expected.items()}  # only ratios count
    assert less_effort(folds(1, 2.0), tenth, 10, 10, 1, seconds=12) == Change(1 / 8, True)


def test_there_is_no_less_than_the_least():
    assert less_effort(folds(1, 5.0, EFFORTS[-1]), SHARES, 10, 10, 1, seconds=1) is None


# --- the first effort ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "slowness, n_folds, jobs, seconds, effort",
    [
        (1, 10, 1, 10 / efforts.HOPE, 1),
        (1, 10, 1, 9.9 / efforts.HOPE, 1 / 2),
        (2, 10, 1, 10 / efforts.HOPE, 1 / 2),
        (2, 10, 2, 10 / efforts.HOPE, 1),
        (1, 10, 3, 4 / efforts.HOPE, 1),
        (1, 10, 3, 3.9 / efforts.HOPE, 1 / 2),
        (1, 10, 1, 1.3 / efforts.HOPE, 1 / 8),
        (1, 10, 1, 0.001, 1 / 32),
        (1, 1, 2, 1 / efforts.SURE, 1),  # which leaves no time to start again
        (1, 1, 2, 0.9 / efforts.SURE, 1 / 2),
        (1, 10, 1, -1, 1 / 32),
    ],
)
def test_the_first_effort_is_the_greatest_that_can_be_expected_to_fit(slowness, n_folds, jobs, seconds, effort):
    assert first_effort(SHARES, slowness, n_folds, jobs, seconds) == effort


def test_a_first_effort_goes_by_what_it_takes_not_by_its_share():
    expected = {1: 3.0, 1 / 2: 2.7, 1 / 4: 2.6, 1 / 8: 0.5, 1 / 16: 0.4, 1 / 32: 0.3}
    assert first_effort(expected, 1, 10, 1, 20) == 1 / 8


@pytest.mark.parametrize(
    "jobs, shared, slowness",
    [
        (1, 1.0, 1),  # alone on four cores
        (4, 1.0, 1),
        (8, 1.0, 1),  # no more processes run at a time than there are cores
        (1, 1.05, 1),  # which may be chance
        (1, 2.0, 2 * CROWD),  # eight on four cores, and one of them is this
        (4, 2.0, 11 / 4 * CROWD),
        (4, 1.5, 9 / 4 * CROWD),
        (4, 1.25, 1),  # it may have waited for files
    ],
)
@pytest.mark.parametrize("says", ["schedstat", "nothing", "of no time"])
def test_slowness_is_by_how_many_share_a_core_and_how_slow_it_is(monkeypatch, tmp_path, jobs, shared, slowness, says):
    """How many share it is what Linux says, in ns, of time run and time waited: time that files took does not count.

    Elsewhere that is not known, and all time since the start counts.
    """
    told = {"schedstat": f"{2 * 10**9} {int((shared - 1) * 2 * 10**9)} 7\n", "of no time": "0 0 0\n"}
    if says in told:
        (tmp_path / "schedstat").write_text(told[says])
    monkeypatch.setattr(efforts, "SCHEDSTAT", tmp_path / "schedstat")
    monkeypatch.setattr(efforts, "cpu_count", lambda: 4)
    wall = 100 + (9 if says == "schedstat" else shared * 2.0)
    monkeypatch.setattr(efforts, "time", SimpleNamespace(monotonic=lambda: wall, process_time=lambda: 2.0))
    for core in (1.0, 3.0):
        monkeypatch.setattr(efforts, "_core_slowness", lambda core=core: core)
        assert measure_slowness(100, jobs) == pytest.approx(core * slowness)


def test_the_slowness_of_this_machine_is_found_in_no_time():
    begun = time.monotonic()
    assert 0.5 <= measure_slowness(begun, 1) < np.inf
    assert time.monotonic() - begun < 5


# --- the run ---------------------------------------------------------------------------------------------------------


def test_an_effort_is_a_share_of_the_budget():
    ranker = AUCRanker(budget=3.0, random_state=0)
    assert with_effort(ranker, 1 / 4).get_params() == {**ranker.get_params(), "budget": 0.75}
    assert with_effort(ranker, 1) is ranker
    published = PublishedRanker()
    assert with_effort(published, 1) is published


@pytest.mark.usefixtures("quick_plans")
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
    monkeypatch.setattr(tenfold.folds, "first_effort", lambda *_: 1)
    for quiet in ([], ["-q"]):
        code, out, err = call(tmp_path / "data.mat", "--folds", 4, "--jobs", 1, *quiet)
        assert (code, out) == (0, f"AUC Score: {np.mean(expected):.4f}\n")
        assert "this machine is slow or busy: learned with half of the usual effort\n" in err
    assert err.count("\n") == 1


# --- rows ------------------------------------------------------------------------------------------------------------


class Priced(BaseEstimator):
    """An estimator that is expected to take a microsecond a row, whatever its budget."""

    def __init__(self, budget=1.0):
        self.budget = budget

    def expected_seconds(self, X, y, rows):
        assert len(y) == len(rows) and set(y) == {1, -1}
        return 1e-6 * len(rows)


@pytest.fixture
def many_rows(monkeypatch):
    monkeypatch.setattr(folds_module, "FEWEST_ROWS", 1_000)
    monkeypatch.setattr(folds_module, "measure_slowness", lambda started, jobs: 1)
    rng = np.random.RandomState(0)
    return np.arange(32_000)[:, None], np.where(rng.rand(32_000) < 0.01, 1, -1)


@pytest.mark.parametrize("seconds, share", [(1, 1), (0.3, 2), (0.16, 4), (0.02, 32), (-1, 32)])
def test_of_too_many_rows_as_many_are_used_as_there_is_time_for(many_rows, seconds, share):
    (X, y), now, told = many_rows, time.monotonic(), []
    settings = Priced(), 10, 1, now, now + seconds, lambda *numbers: told.append(numbers)
    X_used, y_used = rows_in_time(X, y, *settings)
    numbers = X_used[:, 0]
    assert len(numbers) == len(y) // share and (np.diff(numbers) > 0).all()
    assert_array_equal(y_used, y[numbers])
    assert told == ([(len(numbers), len(y))] if share > 1 else [])
    assert np.count_nonzero(y_used > 0) == min(np.count_nonzero(y > 0), len(numbers) // 3)
    assert_array_equal(rows_in_time(X, y, *settings)[0], X_used)  # the same on every machine
    if 1 < share < 32:
        assert abs(np.mean(numbers) / len(y) - 0.5) < 0.02  # drawn from all over


def test_rows_that_are_still_in_their_file_take_time_to_read(many_rows, monkeypatch):
    """As much as folds of all of them do: there is time for one of the two, or for half of both."""
    (X, y), now = many_rows, time.monotonic()
    in_file = np.asfortranarray(np.hstack([X, X]))
    monkeypatch.setattr(folds_module, "SECONDS_PER_BYTE", 0.32 / in_file.nbytes)
    settings = Priced(), 10, 1, now, now + 0.5
    assert len(rows_in_time(np.ascontiguousarray(in_file), y, *settings)[1]) == len(y)
    some, _ = rows_in_time(in_file, y, *settings)
    assert len(some) == len(y) // 2 and some.flags.c_contiguous
    assert_array_equal(some, in_file[some[:, 0]])


def test_few_rows_are_all_used_and_so_are_those_of_the_published_algorithm(many_rows):
    X, y = many_rows
    assert len(rows_in_time(X[:1_000], y[:1_000], Priced(), 10, 1, 0, -1)[1]) == 1_000
    assert rows_in_time(X, y, PublishedRanker(), 10, 1, 0, -1)[0] is X


@pytest.mark.parametrize(
    "imported, low, high", [(1e-3, 0.5, 0.5), (2 * efforts.IMPORT_SECONDS, 0.5, 2), (1e9, 0.5, 1e3)]
)
def test_a_core_is_as_slow_as_the_better_of_two_measures_says(monkeypatch, imported, low, high):
    """Either may have been disturbed, which makes it longer, never shorter."""
    monkeypatch.setattr(efforts, "IMPORTED", imported)
    assert low <= efforts._core_slowness.__wrapped__() <= high


def test_of_wide_rows_fewer_are_always_used(many_rows, monkeypatch):
    (X, y), settings = many_rows, (Priced(), 10, 1, 0, -1)
    monkeypatch.setattr(folds_module, "FEWEST_CELLS", 2_000)
    assert len(rows_in_time(X, y, *settings)[1]) == 1_000
    assert len(rows_in_time(np.repeat(X, 4, axis=1), y, *settings)[1]) == 500
    assert len(rows_in_time(sp.csr_array(np.repeat(X + 1, 4, axis=1)), y, *settings)[1]) == 500
    assert len(rows_in_time(sp.csr_array(X.shape), y, *settings)[1]) == 1_000


def test_a_run_that_uses_some_rows_says_so_unless_all_are_asked_for(monkeypatch, tmp_path):
    X, y = make_rows(600, 3, 100)
    savemat(tmp_path / "a.mat", {"x_tr": X, "y_tr": y})
    monkeypatch.setattr(folds_module, "FEWEST_ROWS", 100)
    monkeypatch.setattr(folds_module, "can_be_done", lambda *_: False)
    monkeypatch.setattr(efforts, "can_be_done", lambda *_: True)
    code, _, err = call(tmp_path / "a.mat", "-q", "--folds", 2, "--jobs", 1)
    assert code == 0 and err.startswith("no time for all rows: 75 of 600, drawn at random, are used; a larger --budget")
    for option in (["--scores", tmp_path / "s.csv"], ["--explain"], ["--cost"]):
        assert "no time for all rows" not in call(tmp_path / "a.mat", "--folds", 2, "--jobs", 1, *option)[2]
