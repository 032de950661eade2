"""Rounds of learning: which efforts are chosen, what is given up, and what the result is.

Most tests see a clock that only the folds move, with workers that know how long each of them takes.
"""

import os
import re
import signal
import time
from concurrent.futures.process import BrokenProcessPool
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from conftest import RESULT, call, linux, make_rows, refused, said_aucs
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from tenfold import rounds
from tenfold.folds import Experiment, Fold, run_fold
from tenfold.parallel import Joblib, Workers
from tenfold.ranker import AUCRanker, PublishedRanker
from tenfold.rounds import Round, first_effort, next_effort, run_round, run_rounds

pytestmark = pytest.mark.filterwarnings("error")


def fold_of(auc=0.75, seconds=1.0, fixed=0.0, done=1.0, effort=None):
    return Fold(auc, np.zeros(3), seconds, fixed, 50, {}, done, {"effort": effort})


class Clocked:
    """Workers for which time passes as they say: a fold takes ``fixed`` seconds, and ``of_effort(effort)``.

    They do what `Workers.run` promises, and note the effort of each round. Folds rank the better the greater the effort
    is, but none above ``enough``.
    """

    def __init__(self, jobs, fixed, of_effort, enough=np.inf):
        self.share_our_clock = True
        self.jobs, self.fixed, self.of_effort, self.enough = jobs, fixed, of_effort, enough
        self.now, self.begun = 0.0, []

    def run(self, numbers, function, estimator, with_models, cut, jobs, *, seconds=None, watch=lambda results: False):
        assert function is run_fold and jobs == self.jobs
        self.begun.append(estimator.effort)
        end, free, ends, results = self.now + (seconds or np.inf), [self.now] * jobs, [], {}
        for fold in numbers:
            core = int(np.argmin(free))
            planned = self.of_effort(estimator.effort)
            left = np.inf if cut is None else (cut - free[core]) / -(-(len(numbers) - fold) // jobs) - self.fixed
            learned = max(min(planned, left), 0.01 * planned)
            free[core] += self.fixed + learned
            auc = 1 - 0.1 / min(estimator.effort, self.enough)
            found = fold_of(auc, self.fixed + learned, self.fixed, learned / planned, estimator.effort)
            ends.append((free[core], fold, found))
        for at, fold, found in sorted(ends, key=lambda item: item[:2]):
            if watch(results):
                return results
            if at >= end:
                self.now = end
                return results
            self.now, results[fold] = at, found
        watch(results)
        return results


def say_nothing(effort, folds, last):
    """A report that nobody reads."""


@pytest.fixture
def run(monkeypatch):
    """`run_rounds` by such a clock: the rounds, and the workers, which know when it was over."""

    def run(jobs, fixed, of_effort, end, n_folds=10, report=say_nothing, **settings):
        at_work = Clocked(jobs, fixed, of_effort, **settings)
        monkeypatch.setattr(rounds, "time", SimpleNamespace(monotonic=lambda: at_work.now))
        experiment = SimpleNamespace(X=np.ones((60, 4)), splits=[None] * n_folds)
        return run_rounds(at_work, experiment, AUCRanker(), end, report), at_work

    return run


# --- the efforts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_efforts_grow_until_the_time_is_used(run, jobs):
    """Where a fold takes as long as its effort says, half as much again would not fit in the end."""
    found, at_work = run(jobs, 0.01, lambda effort: 0.02 * effort, 10.0)
    efforts = [one.effort for one in found]
    assert efforts == at_work.begun and len(efforts) > 2
    assert all(a < b <= 4 * a for a, b in pairwise(efforts))
    assert 4 < at_work.now < 10 and 1.5 * found[-1].seconds > 0.8 * (10 - at_work.now)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.integers(1, 4),
    st.integers(1, 12),
    st.floats(0, 0.5),
    st.floats(-4, 2),
    st.floats(0.3, 1.6),
    st.floats(0.5, 100),
)
def test_whatever_folds_take_the_last_whole_round_is_in_time(jobs, n_folds, fixed, size, pace, end):
    """Work grows as any power of the effort, from a ten-thousandth of a second to minutes."""
    with pytest.MonkeyPatch.context() as patch:
        at_work = Clocked(jobs, fixed, lambda effort: 10**size * effort**pace)
        patch.setattr(rounds, "time", SimpleNamespace(monotonic=lambda: at_work.now))
        experiment = SimpleNamespace(X=np.ones((60, 4)), splits=[None] * n_folds)
        found = run_rounds(at_work, experiment, AUCRanker(), end, say_nothing)
    efforts = [one.effort for one in found]
    assert all(a < b <= 4 * a for a, b in pairwise(efforts))
    assert [effort for effort in at_work.begun if effort in efforts] == efforts
    for a, b in pairwise(at_work.begun):  # less than what was given up, more than what was whole
        assert b > a if a in efforts else efforts[0] < b < a
    for one in found:
        assert len(one.folds) == n_folds
        assert {fold.shares["effort"] for fold in one.folds} == {one.effort}  # the same for all folds
    assert all(one.done == 1 for one in found[1:])  # only the first may be cut
    begun_late = n_folds * (fixed + 0.01 * 10**size) / jobs  # what even the least folds take
    assert at_work.now <= end + max(begun_late, 1e-6) * 1.5
    assert len(found) == 1 or sum(one.seconds for one in found) <= end


def test_there_is_no_other_round_once_more_effort_changes_nothing(run):
    found, at_work = run(1, 0.01, lambda effort: 0.001 * effort, 1e4, enough=1)
    assert [one.effort for one in found] == at_work.begun == [1 / 4, 1, 4]
    assert found[1].auc == found[2].auc > found[0].auc


def test_no_effort_is_chosen_that_could_not_be_given(run):
    found, _ = run(1, 0.0001, lambda effort: 1e-7 * effort, 1e6)
    assert len(found) > 3 and found[-1].effort <= rounds.MOST_EFFORT


def test_the_first_effort_is_small_and_of_large_data_smaller():
    small, large = first_effort(np.empty((1000, 10), np.int8)), first_effort(np.empty((12_000, 1000), np.int8))
    assert 0 < large < small < 1
    assert first_effort(sp.csr_array((12_000, 1000), dtype=np.int8)) == small  # which has few cells
    assert first_effort(sp.csr_array(np.ones((12_000, 1000), np.int8))) == large


def test_a_round_is_expected_to_take_what_is_fixed_and_more_for_more_effort():
    last = Round(1 / 4, [fold_of(seconds=2.0, fixed=0.5) for _ in range(10)], 10.0)
    assert last.expected(1 / 4) == pytest.approx(10)
    assert 2.5 + 4 * 7.5 <= last.expected(1) < 2.5 + 5 * 7.5
    assert Round(1.0, [fold_of(seconds=2.0, fixed=2.0)], 10.0).expected(64) == pytest.approx(10)


def test_the_next_effort_is_the_greatest_that_fits_if_any_does():
    last = Round(1.0, [fold_of() for _ in range(4)], 1.0)
    efforts = [next_effort(last, last, seconds) for seconds in (100, 4.5, 3, 2, 1, 0.1, -1)]
    assert efforts[0] == 4 and efforts[-3:] == [None, None, None]
    chosen = [effort for effort in efforts if effort]
    assert chosen == sorted(chosen, reverse=True) and len(set(chosen)) > 2 and min(chosen) > 1
    for seconds, effort in zip((100, 4.5, 3, 2), efforts):
        assert effort is None or last.expected(effort) < seconds


def test_after_a_round_that_was_given_up_the_next_is_smaller_and_judged_by_it():
    whole, large = Round(1.0, [fold_of()], 1.0), Round(4.0, [fold_of()], 20.0, whole=False)
    assert next_effort(whole, large, 1e9) == 3
    found = next_effort(whole, large, 10.0)
    assert 1 < found < 3 and large.expected(found) < 10 < large.expected(3)
    assert next_effort(whole, large, 1.0) is None
    assert next_effort(whole, Round(1.5, [], 20.0, whole=False), 1e9) is None


def test_after_a_round_that_was_cut_there_is_no_other(run):
    found, at_work = run(1, 0.0, lambda effort: 1.0 if effort <= 1 / 4 else 0.001, 9.9)
    assert found[0].done < 1 and at_work.begun == [1 / 4]


def test_the_auc_of_a_round_is_the_mean_over_its_folds():
    found = Round(1.0, [fold_of(0.5, done=0.5), fold_of(1.0)], 1.0)
    assert (found.auc, found.done) == (0.75, 0.75)


# --- what is given up ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_a_round_that_turns_out_to_be_late_is_given_up_early(run, jobs):
    """Four times the effort takes a hundred times as long: it is seen once each worker has done a fold."""
    _, at_work = run(jobs, 0.0, lambda effort: 0.1 if effort <= 1 / 4 else 10.0 * jobs, 60.0)
    at_work.now, experiment = 0.0, SimpleNamespace(splits=[None] * 10)
    found = run_round(at_work, experiment, AUCRanker(effort=1), say_nothing, end=60.0)
    assert at_work.now == 10 * jobs and not found.whole and len(found.folds) == jobs
    assert found.seconds == pytest.approx(100, rel=0.6)  # what ten folds would have taken
    found, at_work = run(1, 0.0, lambda effort: 0.1 if effort <= 1 / 4 else 60.0, 9.0)
    assert [one.effort for one in found] == [1 / 4] and at_work.now <= 9


def test_less_is_tried_after_a_round_that_was_given_up(run):
    found, at_work = run(1, 0.0, lambda effort: 0.1 if effort <= 1 / 4 else 1.2 * effort, 9.0)
    assert at_work.begun[:2] == [1 / 4, 1] and 1 / 4 < at_work.begun[2] < 1
    assert [one.effort for one in found] == [1 / 4, at_work.begun[2]] and at_work.now <= 9


def test_a_round_that_is_a_little_late_is_given_up_at_the_end(run):
    found, at_work = run(1, 0.0, lambda effort: 0.1 if effort <= 1 / 4 else 0.85, 9.0)
    assert [one.effort for one in found] == [1 / 4] and at_work.begun == [1 / 4, 1]
    assert 8.5 <= at_work.now <= 9


def test_a_round_that_is_in_time_after_all_is_the_result(run):
    found, at_work = run(2, 0.0, lambda effort: 0.1 if effort <= 1 / 4 else 1.6, 9.0)
    assert [one.effort for one in found] == [1 / 4, 1] and at_work.now == pytest.approx(8.5)


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_a_first_round_that_is_late_is_cut_and_whole(run, jobs):
    ((one,), at_work) = run(jobs, 0.0, lambda effort: 30.0, 9.0)
    assert len(one.folds) == 10 and one.effort == 1 / 4
    assert one.done == pytest.approx(9 * jobs / (10 * 30), rel=0.25) and at_work.now == pytest.approx(9, abs=1.5)
    assert all(0 < fold.done < 1 for fold in one.folds)


@pytest.mark.parametrize("error", [BrokenProcessPool("killed"), MemoryError()])
def test_what_goes_wrong_in_a_later_round_costs_that_round_only(run, monkeypatch, error):
    go_on = Clocked.run

    def fail(self, numbers, function, estimator, *args, **settings):
        if estimator.effort > at_most:
            raise error
        return go_on(self, numbers, function, estimator, *args, **settings)

    monkeypatch.setattr(Clocked, "run", fail)
    at_most = 1
    found, _ = run(1, 0.0, lambda effort: 0.001 * effort, 9.0)
    assert [one.effort for one in found] == [1 / 4, 1]
    at_most = 0
    with pytest.raises(type(error)):
        run(1, 0.0, lambda effort: 0.001 * effort, 9.0)


def test_it_is_told_what_is_done_and_when_a_round_is_whole(run):
    told = []
    found, _ = run(1, 0.0, lambda effort: 0.1 if effort <= 1 / 4 else 0.5, 9.0, 4, report=lambda *a: told.append(a))
    assert [(effort, len(folds), last) for effort, folds, last in told] == [
        (one.effort, n, one if whole else None)
        for one in found
        for n, whole in [*((n, False) for n in range(5)), (4, True)]
    ]


# --- in processes ----------------------------------------------------------------------------------------------------


@pytest.fixture
def experiment(rows):
    return Experiment.cross_validation(*rows, 4, 0)


@pytest.mark.parametrize("jobs", [1, 2, 9])
def test_a_round_has_its_folds_in_order_whoever_has_done_them(experiment, jobs):
    for estimator in (AUCRanker(effort=1 / 16, random_state=0), PublishedRanker(passes=2, random_state=0)):
        expected = [run_fold(fold, experiment, estimator) for fold in range(4)]
        with Workers(jobs, experiment) as at_work:
            found = run_round(at_work, experiment, estimator, say_nothing)
        assert found.folds == expected and found.effort == getattr(estimator, "effort", None)
        for one, other in zip(found.folds, expected):
            np.testing.assert_array_equal(one.scores, other.scores)


def test_models_are_kept_where_they_are_asked_for(experiment):
    with Workers(1, experiment) as at_work:
        plain, kept = (run_round(at_work, experiment, PublishedRanker(), say_nothing, keep) for keep in (False, True))
    assert {fold.model for fold in plain.folds} == {None}
    for fold, (_, test) in zip(kept.folds, experiment.splits):
        np.testing.assert_array_equal(fold.model(experiment.X[test]), fold.scores)


def test_the_clock_of_another_machine_may_tell_another_time(experiment, monkeypatch):
    """It counts from when that machine was started: ours does not cut what is learned there."""
    for ahead in (1e6, -1e6):
        elsewhere = SimpleNamespace(monotonic=lambda ahead=ahead: time.monotonic() + ahead)
        monkeypatch.setattr("tenfold.folds.time", elsewhere)
        with joblib.parallel_config(backend="threading", n_jobs=1):
            at_work, ranker = Joblib(experiment), AUCRanker(effort=1 / 4, random_state=0)
            whole = run_round(at_work, experiment, ranker, say_nothing, cut=time.monotonic() + 60)
        assert whole.whole and whole.done == 1


class Sleepy(AUCRanker):
    """With an effort above a quarter it sleeps for a minute."""

    def _fit(self, *args):
        time.sleep(60 * (self.effort > 1 / 4))
        super()._fit(*args)


@linux
def test_workers_of_a_round_that_is_given_up_are_ended(experiment):
    with Workers(2, experiment) as at_work:
        begun = time.monotonic()
        (one,) = run_rounds(at_work, experiment, Sleepy(random_state=0), begun + 2.5, say_nothing)
        assert time.monotonic() - begun < 5
        again = run_round(at_work, experiment, Sleepy(effort=1 / 4, random_state=0), say_nothing)  # by new ones
    assert one.folds == again.folds and one.effort == again.effort == 1 / 4


# --- as the command is met -------------------------------------------------------------------------------------------


def efforts_said(err):
    """The effort of each round, and the one of the result, as standard error has them."""
    return re.findall(r"^effort (\S+): mean AUC", err, re.M), re.search(r"\(--effort (\S+) repeats it\)", err)[1]


def test_the_effort_that_is_said_repeats_every_digit(train, rows):
    code, out, err = call(train, "--budget", 2, "--folds", 4)
    assert code == 0
    said, last = efforts_said(err)
    assert said[-1] == last and len(said) > 1
    code, again, err_again = call(train, "--folds", 4, "--effort", last)
    assert (code, again) == (0, out) and said_aucs(err_again) == said_aucs(err)
    assert efforts_said(err_again) == ([last], last)


@linux
@pytest.mark.parametrize("what", ["slow", "killed", "without memory"])
def test_a_later_round_that_fails_leaves_the_result_of_the_one_before(train, monkeypatch, what):
    fit = AUCRanker._fit

    def fail(self, *args):
        if self.effort > 1 / 4 and what == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.effort > 1 / 4 and what == "without memory":
            raise MemoryError
        time.sleep(60 * (self.effort > 1 / 4))
        fit(self, *args)

    expected = call(train, "--folds", 4, "--effort", "1/4")
    monkeypatch.setattr(AUCRanker, "_fit", fail)
    begun = time.monotonic()
    code, out, err = call(train, "--folds", 4, "--budget", 2.5, "--jobs", 2)
    assert time.monotonic() - begun < 5
    assert (code, out) == expected[:2] and said_aucs(err) == said_aucs(expected[2])
    assert efforts_said(err) == (["1/4"], "1/4")
    assert err.splitlines()[-1].startswith("warning: learned with effort 1/4,")


@linux
def test_a_worker_that_is_killed_in_the_first_round_is_one_line(train, monkeypatch):
    monkeypatch.setattr(AUCRanker, "_fit", lambda self, *args: os.kill(os.getpid(), signal.SIGKILL))
    assert refused("a worker process was killed", train, "-q").count("\n") == 1


@linux
def test_a_first_round_that_is_late_is_cut_and_says_what_helps(save, monkeypatch):
    X, y = make_rows(3000, 10, 300)
    path = save(x=X, y=y)
    for quiet in ([], ["-q"]):
        code, out, err = call(path, "--budget", 0.2, *quiet)
        assert code == 0 and RESULT.fullmatch(out)
        warning = err.splitlines()[-1]
        assert re.fullmatch(
            r"warning: time ran out, learning stopped at \d\d?% of the plan; --budget 0\.6 gives more", warning
        )
        assert err.count("\n") == 1 if quiet else len(said_aucs(err).split()) == 10


def test_a_pinned_effort_is_one_round_that_no_budget_cuts(train):
    expected = call(train, "--folds", 4, "--effort", "1/4")
    code, out, err = call(train, "--folds", 4, "--effort", 0.25, "--budget", 0.001)
    assert (code, out) == expected[:2] and said_aucs(err) == said_aucs(expected[2])
    assert efforts_said(err) == (["1/4"], "1/4")
    assert re.search(r"s of 0\.001 s, which is over the budget; effort 1/4", err)
    assert "warning" not in err and "over the budget" not in expected[2]
    assert call(train, "--folds", 4, "--effort", 0.25, "--budget", 0.001, "-q")[2] == ""


def test_two_files_are_rounds_of_one_fold(train, save):
    X, y = make_rows(seed=1)
    test = save("test.mat", x=X, y=y)
    code, out, err = call(train, test, "--budget", 2.5)
    said, last = efforts_said(err)
    assert code == 0 and len(said) > 1 and said[-1] == last
    model = AUCRanker(effort=float(Fraction(last)), random_state=0).fit(*make_rows())
    assert out == f"AUC Score: {roc_auc_score(y, model.decision_function(X)):.4f}\n"
