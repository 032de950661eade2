"""Work in other processes, on a Dask cluster, of whose two workers one is killed, or where joblib is told to run."""

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from zipfile import ZipFile

import joblib
import numpy as np
import pytest
from conftest import EFFORT, ROOT, Screen, call, linux, make_rows, refused, said_aucs, wait_for_workers
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


@pytest.fixture
def elsewhere():
    """Joblib, told to run two pieces of work at a time, in threads."""
    with joblib.parallel_config(backend="threading", n_jobs=2):
        yield


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_joblib_does_each_piece_of_work_once(backend):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        for seconds in (None, 30):
            assert Joblib(2).run(range(7), power, 5, seconds=seconds) == {i: 2**i + 5 for i in range(7)}
        with pytest.raises(ValueError, match="not this one"):
            Joblib().run([1], fail)


@pytest.mark.filterwarnings("error")
def test_joblib_ends_where_a_watch_says_so(elsewhere):
    seen, begun = [], time.monotonic()
    assert len(Joblib(2).run(range(4), power, 5, watch=lambda results: seen.append(len(results)))) == 4
    assert [n for n in seen if n] == [1, 2, 3, 4]
    assert len(Joblib().run([0, 1, 2, 9, 9, 9], wait, 0.3, watch=lambda results: len(results) == 2)) == 2
    assert time.monotonic() - begun < 5


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("pieces, seconds_each", [([0, 9, 9], 1.0), ([1] * 12, 0.5)])
def test_joblib_gives_up_what_takes_too_long(elsewhere, pieces, seconds_each):
    """One piece of work, or all of them together."""
    begun = time.monotonic()
    done = Joblib().run(pieces, wait, seconds_each, seconds=0.8)
    assert 0.5 < time.monotonic() - begun < 2
    assert len(done) < 6


def test_the_program_that_is_sent_away_is_whole(tmp_path):
    """Python imports it from the file alone, and finds all modules there."""
    path = parallel._pack_program(tmp_path / "program.zip")
    with ZipFile(path) as file:
        names = set(file.namelist())
    modules = {module.relative_to(ROOT).as_posix() for module in (ROOT / "tenfold").rglob("*.py")}
    assert names == modules | {"oam.py", "preprocess.py"} and "tenfold/readers/__init__.py" in names
    program = f"import sys; sys.path.insert(0, {str(path)!r}); import tenfold.folds as it; print(it.__file__)"
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.startswith(str(path)), done.stderr


# --- the command -----------------------------------------------------------------------------------------------------

FOLDS = ("--folds", 4, *EFFORT)


@pytest.fixture
def here(train):
    """What the command prints if one worker does all."""
    code, out, err = call(train, *FOLDS, "--jobs", 1)
    assert code == 0
    return out, said_aucs(err)


def test_the_digits_are_the_same_for_any_number_of_jobs(train, here):
    for jobs in (2, 64):
        code, out, err = call(train, *FOLDS, "--jobs", jobs)
        assert (code, out, said_aucs(err)) == (0, *here)


ELSEWHERE = """
import sys
import joblib

sys.path.insert(0, sys.argv.pop(1))
import exp

with joblib.parallel_config(backend=sys.argv.pop(1), n_jobs=2):
    joblib.Parallel()(joblib.delayed(abs)(i) for i in range(3))  # it has started what it needs
    sys.exit(exp.main())
"""


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_the_digits_are_the_same_where_joblib_is_told_to_run(train, here, backend):
    argv = [sys.executable, "-c", ELSEWHERE, str(ROOT), backend, str(train), *map(str, FOLDS)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(argv, **pipes, start_new_session=True) as process:
        try:
            out, err = process.communicate(timeout=30)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # also what joblib has started
    assert (process.returncode, out, said_aucs(err)) == (0, *here)


CLUSTER = """
import sys
from distributed import LocalCluster
from distributed.utils import get_mp_context

if __name__ == "__main__":
    if sys.argv[1] == "forkserver":
        get_mp_context().set_forkserver_preload(["distributed", "pandas", "sklearn.calibration", "sklearn.ensemble"])
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        first, last = cluster.workers.values()
        first.auto_restart = False  # which is killed after the last one, with which the tests end
        print(cluster.scheduler_address, first.pid, last.pid, flush=True)
        sys.stdin.read()
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The address of a scheduler, and the workers' process numbers, all in processes of their own."""
    pytest.importorskip("distributed", reason="needs Dask: python -m pip install distributed")
    program = tmp_path_factory.mktemp("cluster") / "cluster.py"
    program.write_text(CLUSTER)
    start = "spawn" if os.name == "nt" else "forkserver"  # which imports for all workers
    settings = {"MULTIPROCESSING_METHOD": start, "PROFILE__ENABLED": "False"}
    env = {**os.environ, **{f"DASK_DISTRIBUTED__WORKER__{name}": value for name, value in settings.items()}}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, program, start], text=True, env=env, **pipes) as process:
        address, *pids = process.stdout.readline().split()
        yield address, [int(pid) for pid in pids]
        process.stdin.close()


def test_a_cluster_gives_the_same_digits(cluster, train, here):
    code, out, err = call(train, *FOLDS, "--scheduler", cluster[0])
    assert (code, out, said_aucs(err)) == (0, *here)


def test_a_cluster_has_rounds_too(cluster, train):
    """Whose last one can be repeated here."""
    code, out, err = call(train, "--folds", 4, "--budget", 5, "--scheduler", cluster[0])
    assert code == 0 and err.count("mean AUC") > 1
    effort = re.search(r"\(--effort (\S+) repeats it\)", err)[1]
    again = call(train, "--folds", 4, "--effort", effort)
    assert again[:2] == (0, out) and said_aucs(again[2]) == said_aucs(err)


def test_what_is_wrong_with_the_data_is_said_from_a_cluster_too(cluster, save):
    path = save(x=np.ones((40, 3)), y=np.arange(40) % 2)
    assert refused("no feature varies", path, "--scheduler", cluster[0], "-q").count("\n") == 1


class Killer(Screen):
    """A terminal that kills a process as soon as some words are written to it."""

    def __init__(self, pid, words):
        super().__init__()
        self.pid, self.words, self.has_killed = pid, words, False

    def write(self, text):
        if not self.has_killed and self.words in text:
            os.kill(self.pid, signal.SIGKILL)
            self.has_killed = True
        return super().write(text)


@posix
def test_a_worker_that_is_killed_changes_no_digit(cluster, save):
    X, y = make_rows(400, 5, 80)
    argv = [save(x=X, y=y), "--folds", 4, "--budget", 100, "--update", "sequential", "--passes", 3]
    expected, killer = call(*argv), Killer(cluster[1].pop(), "fold 1/")
    code, out, err = call(*argv, "--scheduler", cluster[0], stderr=killer)
    assert code == 0 and killer.has_killed, err
    assert out == expected[1] and said_aucs(err) == said_aucs(expected[2])


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


@pytest.fixture
def days(tmp_path, monkeypatch):
    """A stream of five files that is learned from in several parts, without a header."""
    monkeypatch.setattr("tenfold.streams.STEPS_OF_A_PART", 100)
    X, y = make_rows(20_000, 3, 5_000)
    for i, rows in enumerate(np.array_split(np.arange(len(y)), 5)):
        np.savetxt(tmp_path / f"day-{i}.csv", np.column_stack([X[rows], y[rows]]), fmt="%.3f", delimiter=",")
    return tmp_path


def test_a_damaged_part_is_named_from_a_cluster_too(cluster, days):
    with (days / "day-3.csv").open("a") as file:
        file.write("1,2,3,maybe\n")
    err = refused("day-3.csv: ", "--stream", days, "--features", "linear", "--scheduler", cluster[0], "-q")
    assert err.count("\n") == 1 and ("the label maybe is not one of" in err or "two classes" in err)


def test_where_there_is_no_cluster(train, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(parallel, "CONNECT_SECONDS", 1)
    assert refused("cannot be reached", train, "--scheduler", "tcp://127.0.0.1:9", "-q").count("\n") == 1
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert refused("--scheduler needs Dask, which is not installed", train, "--scheduler", "x", "-q").count("\n") == 1


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
        wait_for_workers(process, 3)
        process.send_signal(getattr(signal, name))
        process.communicate(timeout=20)  # returns when the last process that holds the pipes has ended
