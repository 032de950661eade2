"""Work in other processes, on a Dask cluster, of whose two workers one is killed, or where joblib is told to run."""

import io
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from zipfile import ZipFile

import joblib
import numpy as np
import pytest
from conftest import ROOT, call, linux, make_rows, refused
from threadpoolctl import threadpool_info, threadpool_limits

from tenfold import parallel, parts
from tenfold.parallel import in_processes, joblib_runs_elsewhere, through_joblib

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


def sigint(i):
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@pytest.mark.parametrize("jobs, seconds", [(1, None), (1, 30), (2, None), (3, 30)])
def test_each_piece_of_work_is_done_once_and_has_its_number(jobs, seconds):
    assert dict(in_processes(jobs, range(7), power, 2, 5, seconds=seconds)) == {i: 2**i + 5 for i in range(7)}
    assert list(in_processes(jobs, range(0), power, 2, 5, seconds=seconds)) == []


def test_one_job_needs_no_process_and_more_have_one_thread_each():
    assert {pid for _, (pid, _) in in_processes(1, range(3), where)} == {os.getpid()}
    with threadpool_limits(2):
        found = [result for _, result in in_processes(2, range(4), where)]
    assert os.getpid() not in {pid for pid, _ in found} and len({pid for pid, _ in found}) <= 2
    assert {n for _, threads in found for n in threads} == {1}


@linux
def test_what_takes_too_long_is_ended():
    done, begun = [], time.monotonic()
    with pytest.raises(TimeoutError):
        done.extend(i for i, _ in in_processes(2, range(2), wait, 30, seconds=1))
    assert time.monotonic() - begun < 10
    assert done in ([], [0])


@linux
def test_a_failure_is_passed_on_and_ends_the_others():
    begun = time.monotonic()
    with pytest.raises(ValueError, match="not this one"):
        list(in_processes(2, range(2), fail))
    assert time.monotonic() - begun < 10


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize("start", ["in_processes", "processes"])
def test_ctrl_c_while_processes_start_comes_once_they_have_started(monkeypatch, start):
    """In those that are half made it would be lost. It comes with each that is made."""
    made, submit = [], ProcessPoolExecutor.submit

    def slow(self, *work):
        os.kill(os.getpid(), signal.SIGINT)
        made.append(submit(self, *work))
        return made[-1]

    monkeypatch.setattr(ProcessPoolExecutor, "submit", slow)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        if start == "in_processes":
            list(in_processes(2, range(3), power, 2, 5))
        else:
            with parallel.processes(2) as run:
                list(run(3, power, 2, 5))
    assert len(made) == 3
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_workers_leave_ctrl_c_to_the_first_process():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    assert all(ignored for _, ignored in in_processes(2, range(2), sigint))
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


# --- joblib ----------------------------------------------------------------------------------------------------------


def test_whether_joblib_has_been_told_where_to_run():
    assert not joblib_runs_elsewhere()
    with joblib.parallel_config(backend="threading"):
        assert joblib_runs_elsewhere()
    assert not joblib_runs_elsewhere()


@pytest.mark.parametrize("seconds", [None, 30])
def test_joblib_does_each_piece_of_work_once(seconds):
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert dict(through_joblib(7, power, 2, 5, seconds=seconds)) == {i: 2**i + 5 for i in range(7)}


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

FOLDS = ("--folds", 4, "--budget", 1)


@pytest.fixture
def endless(monkeypatch):
    """The clock stops nothing, however busy the machine is."""
    monkeypatch.setattr("tenfold.folds.RESERVE", -999.0)


def aucs(err):
    return re.search(r"AUC of each fold: (.*)", err)[1]


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


def test_a_cluster_gives_the_same_digits(cluster, train, endless):
    here, there = (call(train, *FOLDS, *argv) for argv in ((), ("--scheduler", cluster[0])))
    assert here[:2] == there[:2] and here[0] == 0
    assert "all planned work was done" in here[2] and "all planned work was done" in there[2]
    assert aucs(here[2]) == aucs(there[2])


def test_what_is_wrong_with_the_data_is_said_from_a_cluster_too(cluster, save):
    path = save(x=np.ones((40, 3)), y=np.arange(40) % 2)
    assert refused("no feature varies", path, "--scheduler", cluster[0], "-q").count("\n") == 1


class Killer(io.StringIO):
    """Standard error that kills a process as soon as some words are written to it."""

    def __init__(self, pid, words):
        super().__init__()
        self.pid, self.words, self.has_killed = pid, words, False

    def write(self, text):
        if not self.has_killed and self.words in text:
            os.kill(self.pid, signal.SIGKILL)
            self.has_killed = True
        return super().write(text)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_a_worker_that_is_killed_changes_no_digit(cluster, save):
    X, y = make_rows(400, 5, 80)
    argv = [save(x=X, y=y), "--folds", 4, "--budget", 100, "--update", "sequential", "--passes", 3]
    expected, killer = call(*argv), Killer(cluster[1].pop(), "fold 1/")
    code, out, err = call(*argv, "--scheduler", cluster[0], stderr=killer)
    assert code == 0 and killer.has_killed, err
    assert out == expected[1] and aucs(err) == aucs(expected[2])


DYING = """
import os, signal, sys
from multiprocessing.connection import Connection
sys.path.insert(0, sys.argv[1])
import exp
from tenfold import folds, parallel

parallel.LOOK_AGAIN = 0.3
run_fold = folds.run_fold

def die_while_sending(i, *work):
    def send_half(self, content, write=os.write):
        write(self._handle, content[: len(content) // 2])
        os.kill(os.getpid(), signal.SIGKILL)

    if i == 1:
        Connection._send = send_half
    return run_fold(i, *work)

folds.run_fold = die_while_sending
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
from contextlib import closing
import numpy as np
from tenfold.parallel import in_processes
for n in range(3):
    with closing(in_processes(2, range(1_000_000, 1_000_006), np.ones)) as results:
        print(len(next(results)[1]), flush=True)
"""


def test_work_that_is_broken_off_while_results_are_sent_does_not_keep_the_process():
    """Workers are killed then, and the pool would wait for the rest of the last result for ever."""
    argv = [sys.executable, "-c", BROKEN_OFF]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.split()) == 3


@pytest.fixture
def days(tmp_path, monkeypatch):
    """A stream of five files that is learned from in several parts, without a header."""
    monkeypatch.setattr("tenfold.streams.STEPS_OF_A_PART", 100)
    X, y = make_rows(20_000, 3, 5_000)
    for i, rows in enumerate(np.array_split(np.arange(len(y)), 5)):
        np.savetxt(tmp_path / f"day-{i}.csv", np.column_stack([X[rows], y[rows]]), fmt="%.3f", delimiter=",")
    return tmp_path


def test_a_stream_on_a_cluster_gives_the_same_digits(cluster, days, monkeypatch):
    monkeypatch.chdir(days)  # the workers are elsewhere
    argv = "--stream", "day-*.csv", "--features", "linear"
    here, there = (call(*argv, *how) for how in (("--jobs", 2), ("--scheduler", cluster[0])))
    assert here[:2] == there[:2] and here[0] == 0
    assert "parts at a time" in here[2] and "parts at a time" in there[2]
    assert re.findall(r"AUC .*", here[2]) == re.findall(r"AUC .*", there[2])


def test_a_damaged_part_is_named_from_a_cluster_too(cluster, days):
    with (days / "day-3.csv").open("a") as file:
        file.write("1,2,3,maybe\n")
    err = refused("day-3.csv: ", "--stream", days, "--features", "linear", "--scheduler", cluster[0], "-q")
    assert err.count("\n") == 1 and ("the label maybe is not one of" in err or "two classes" in err)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_a_worker_that_is_killed_changes_no_digit_of_a_stream(cluster, days, monkeypatch):
    argv = ["--stream", days, "--update", "sequential", "--C", "1e-9", "--buffer", 4]
    expected, killed, merge = call(*argv, "--jobs", 2), [], parts.State.merge

    def merge_and_kill(*arguments):
        if not killed:  # after the first round of several
            killed.append(cluster[1].pop())
            os.kill(killed[0], signal.SIGKILL)
        return merge(*arguments)

    monkeypatch.setattr(parts.State, "merge", merge_and_kill)
    code, out, err = call(*argv, "--scheduler", cluster[0])
    assert code == 0 and killed, err
    assert "parts at a time" in err
    assert out == expected[1] and re.findall(r"AUC .*", err) == re.findall(r"AUC .*", expected[2])


def test_where_there_is_no_cluster(train, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(parallel, "CONNECT_SECONDS", 1)
    assert refused("cannot be reached", train, "--scheduler", "tcp://127.0.0.1:9", "-q").count("\n") == 1
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert refused("--scheduler needs Dask, which is not installed", train, "--scheduler", "x", "-q").count("\n") == 1


def test_folds_run_where_joblib_is_told(train, endless):
    here = call(train, *FOLDS)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        there = call(train, *FOLDS)
    assert (here[:2], aucs(here[2])) == (there[:2], aucs(there[2]))


PROGRAM = """
import sys, time
sys.path.insert(0, sys.argv[1])
from tenfold.parallel import in_processes

print("ready", flush=True)
list(in_processes(3, range(6), lambda i: time.sleep(60)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="what is called is not sent to other processes as it is here")
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_workers_end_with_a_process_that_is_killed_and_hold_no_pipe(name):
    argv = [sys.executable, "-c", PROGRAM, str(ROOT)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(1)
        process.send_signal(getattr(signal, name))
        process.communicate(timeout=20)  # returns when the last process that holds the pipes has ended
