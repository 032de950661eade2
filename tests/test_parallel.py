"""Work in other processes of this machine, or where joblib is told to run; other engines are in `test_engines`."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise

import joblib
import pytest
from conftest import EFFORT, ROOT, call, linux, said_aucs
from threadpoolctl import threadpool_info, threadpool_limits

from tenfold import parallel
from tenfold.parallel import Joblib, Workers, joblib_runs_elsewhere, workers

posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")

# --- processes -------------------------------------------------------------------------------------------------------


def power(i, base, add):
    return base**i + add


def where(i):
    return os.getpid(), [pool["num_threads"] for pool in threadpool_info()]


def wait(i, seconds):
    time.sleep(seconds * i)
    return i


def fail(i):
    if i == 1:
        raise ValueError("not this one")
    time.sleep(30)


def die(i):
    os.kill(os.getpid(), signal.SIGKILL)


def ignores_ctrl_c(i):
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@pytest.mark.parametrize("jobs, seconds", [(1, None), (1, 30), (2, None), (3, 30)])
def test_each_piece_of_work_is_done_once_and_has_its_number(jobs, seconds):
    with Workers(jobs, 2) as at_work:  # which know the base
        assert at_work.run(range(7), power, 5, seconds=seconds) == {i: 2**i + 5 for i in range(7)}
        assert at_work.run(range(7, 3, -2), power, -1, seconds=seconds) == {7: 127, 5: 31}
        assert at_work.run(range(0), power, 5, seconds=seconds) == {}


@pytest.mark.parametrize("jobs", [1, 2])
def test_work_is_done_by_other_processes_of_one_thread_each_which_stay(jobs):
    with threadpool_limits(2), Workers(jobs) as at_work:
        first, more = (at_work.run(range(6), where).values() for _ in range(2))
        pids = {pid for pid, _ in [*first, *more]}
        assert os.getpid() not in pids and len(pids) <= jobs
        assert {n for _, threads in first for n in threads} == {1}
        assert {pool["num_threads"] for pool in threadpool_info()} == {2}  # here they are as before
    assert all(not alive(pid) for pid in pids)


def alive(pid, patience=5.0):
    """Whether a process still runs after some time to end."""
    begun = time.monotonic()
    while time.monotonic() - begun < patience:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.02)
    return True


def test_what_takes_too_long_is_given_up_and_the_workers_are_new():
    begun = time.monotonic()
    with Workers(2) as at_work:
        old = {pid for pid, _ in at_work.run(range(4), where).values()}
        done = at_work.run(range(3), wait, 30, seconds=1)
        assert done in ({}, {0: 0}) and time.monotonic() - begun < 10
        assert all(not alive(pid) for pid in old)
        assert at_work.run(range(2), power, 3, 1) == {0: 2, 1: 4}


def test_a_watch_sees_each_result_and_may_end_the_work():
    seen, begun = [], time.monotonic()
    with Workers(1) as at_work:
        assert len(at_work.run(range(4), power, 2, 5, watch=lambda results: seen.append(dict(results)))) == 4
        assert seen[0] == {} and seen[-1] == {0: 6, 1: 7, 2: 9, 3: 13}
        assert all(before.items() <= after.items() for before, after in pairwise(seen))
        done = at_work.run(range(9), wait, 15, watch=lambda results: len(results) == 1)
    assert done == {0: 0} and time.monotonic() - begun < 10


def test_a_failure_is_passed_on_and_ends_the_others():
    begun = time.monotonic()
    with Workers(2) as at_work:
        with pytest.raises(ValueError, match="not this one"):
            at_work.run(range(2), fail)
        assert time.monotonic() - begun < 10
        assert at_work.run(range(2), power, 3, 1) == {0: 2, 1: 4}


@posix
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_worker_that_is_killed_is_an_error_and_there_are_new_ones(jobs):
    with Workers(jobs) as at_work:
        with pytest.raises(parallel.BrokenProcessPool):
            at_work.run(range(3), die)
        assert at_work.run(range(2), power, 3, 1) == {0: 2, 1: 4}


@posix
def test_ctrl_c_while_processes_start_comes_once_they_have_started(monkeypatch):
    """In those that are half made it would be lost. It comes with each that is made."""
    made, submit = [], ProcessPoolExecutor.submit

    def slow(self, *work):
        os.kill(os.getpid(), signal.SIGINT)
        made.append(submit(self, *work))
        return made[-1]

    monkeypatch.setattr(ProcessPoolExecutor, "submit", slow)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt), Workers(2) as at_work:
        at_work.run(range(3), power, 2, 5)
    assert len(made) == 3
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    signal.signal(signal.SIGINT, before)


@posix
def test_workers_leave_ctrl_c_to_the_first_process():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with Workers(2) as at_work:
        assert at_work.run(range(2), ignores_ctrl_c) == {0: True, 1: True}
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


# --- joblib ----------------------------------------------------------------------------------------------------------


def test_whether_joblib_has_been_told_where_to_run():
    assert not joblib_runs_elsewhere()
    with workers(1, None, "data") as here:
        assert isinstance(here, Workers) and here.data == ("data",)
    with joblib.parallel_config(backend="threading", n_jobs=3):
        assert joblib_runs_elsewhere()
        with workers(1, None, "data") as there:
            assert isinstance(there, Joblib) and there.data == ("data",)
    assert not joblib_runs_elsewhere()


@pytest.fixture(params=["threading", "loky", "multiprocessing"])
def elsewhere(request):
    """Joblib, told to run two pieces of work at a time; only the last of these ways has no results one by one."""
    with joblib.parallel_config(backend=request.param, n_jobs=2):
        Joblib().run(range(2), power, 2, 5)  # processes take long to start
        yield request.param


def test_joblib_does_each_piece_of_work_once(elsewhere):
    with Joblib(2) as at_work:
        assert at_work.jobs == 2
        for seconds in (None, 30):
            assert at_work.run(range(7), power, 5, seconds=seconds) == {i: 2**i + 5 for i in range(7)}
        assert at_work.run(range(0), power, 5) == {}
    with pytest.raises(ValueError, match="not this one"), Joblib() as at_work:
        at_work.run([1], fail)


@pytest.mark.filterwarnings("error")
def test_joblib_ends_where_a_watch_says_so(elsewhere):
    seen, begun = [], time.monotonic()
    with Joblib(2) as at_work:
        at_work.run(range(4), power, 5, watch=lambda results: seen.append(len(results)))
    assert seen == ([2, 4] if elsewhere == "multiprocessing" else [1, 2, 3, 4])
    with Joblib() as at_work:
        assert len(at_work.run([0, 1, 2, 9, 9, 9], wait, 0.3, watch=lambda results: len(results) == 2)) == 2
        assert time.monotonic() - begun < 5
        assert at_work.run(range(5), wait, 0) == {i: i for i in range(5)}  # there is more to come


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("pieces, seconds_each", [([0, 9, 9], 1.0), ([1] * 12, 0.5)])
def test_joblib_gives_up_what_takes_too_long(elsewhere, pieces, seconds_each):
    """One piece of work, or all of them together."""
    with Joblib() as at_work:
        begun = time.monotonic()
        done = at_work.run(pieces, wait, seconds_each, seconds=0.8)
        assert 0.5 < time.monotonic() - begun < 2
        assert len(done) < 6
        assert at_work.run(range(5), wait, 0) == {i: i for i in range(5)}


# --- the command -----------------------------------------------------------------------------------------------------

FOLDS = ("--folds", 4, *EFFORT)


@pytest.fixture
def here(train):
    """What the command prints if one worker does all."""
    code, out, err = call(train, *FOLDS, "--jobs", 1)
    assert code == 0
    return out, said_aucs(err)


def test_the_digits_are_the_same_for_any_number_of_jobs(train, here):
    for jobs in ([], ["--jobs", 2], ["--jobs", 64]):
        code, out, err = call(train, *FOLDS, *jobs)
        assert (code, out, said_aucs(err)) == (0, *here)


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_the_digits_are_the_same_where_joblib_is_told_to_run(train, here, backend):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        code, out, err = call(train, *FOLDS)
    assert (code, out, said_aucs(err)) == (0, *here)


DYING = """
import os, signal, sys
from multiprocessing.connection import Connection
sys.path.insert(0, sys.argv[1])
import exp
from tenfold import parallel, rounds

parallel.LOOK_AGAIN = 0.3
run_fold = rounds.run_fold

def die_while_sending(i, *work):
    def send_half(self, content, write=os.write):
        write(self._handle, content[: len(content) // 2])
        os.kill(os.getpid(), signal.SIGKILL)

    if i == 1:
        Connection._send = send_half
    return run_fold(i, *work)

rounds.run_fold = die_while_sending
sys.argv[1:] = [sys.argv[2], "--folds", "4", "--jobs", "2", "-q", "--update", "gradient"]
exec(compile(open(exp.__file__).read(), exp.__file__, "exec"), {"__name__": "__main__", "__file__": exp.__file__})
"""


@linux
def test_a_worker_that_is_killed_while_it_sends_a_result_is_one_line(train):
    """Python's pool would wait for the rest of the result for ever, and so would the end of the process."""
    argv = [sys.executable, "-c", DYING, str(ROOT), str(train)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("exp.py: error: a worker process was killed") and done.stderr.count("\n") == 1


BROKEN_OFF = """
import numpy as np
from tenfold.parallel import Workers
for n in range(3):
    with Workers(2) as at_work:
        results = at_work.run(range(1_000_000, 1_000_006), np.ones, watch=len)
        print(len(results), flush=True)
"""


def test_work_that_is_broken_off_while_results_are_sent_does_not_keep_the_process():
    """Workers are killed then, and the pool would wait for the rest of the last result for ever."""
    argv = [sys.executable, "-c", BROKEN_OFF]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.split()) == 3 and all(0 < int(n) < 6 for n in done.stdout.split())


PROGRAM = """
import sys, time
sys.path.insert(0, sys.argv[1])
from tenfold.parallel import Workers

print("ready", flush=True)
Workers(3).run(range(60, 66), time.sleep)
"""


@posix
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_workers_end_with_a_process_that_is_killed_and_hold_no_pipe(name):
    argv = [sys.executable, "-c", PROGRAM, str(ROOT)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(1)
        process.send_signal(getattr(signal, name))
        process.communicate(timeout=20)  # returns when the last process that holds the pipes has ended
