"""Folds that run elsewhere: on a Dask cluster, of whose two workers one is killed, or where joblib is told to run."""

import os
import re
import signal
import subprocess
import sys

import joblib
import numpy as np
import pytest
from conftest import call, command, make_rows, refused

import exp

FOLDS = ("--folds", 4)


def aucs(err):
    return re.search(r"AUC of each fold: (.*)", err)[1]


CLUSTER = """
import sys
from distributed import LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        print(cluster.scheduler_address, *(worker.pid for worker in cluster.workers.values()), flush=True)
        sys.stdin.read()
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The address of a scheduler, and the workers' process numbers, all in processes of their own."""
    pytest.importorskip("distributed", reason="needs Dask: python -m pip install distributed")
    program = tmp_path_factory.mktemp("cluster") / "cluster.py"
    program.write_text(CLUSTER)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, program], text=True, **pipes) as process:
        address, *pids = process.stdout.readline().split()
        yield address, [int(pid) for pid in pids]
        process.stdin.close()


def test_a_cluster_gives_the_same_digits(cluster, train):
    here, there = (call(train, *FOLDS, *argv) for argv in ((), ("--scheduler", cluster[0])))
    assert here[:2] == there[:2] and here[0] == 0
    assert aucs(here[2]) == aucs(there[2])


def test_what_is_wrong_with_the_data_is_said_from_a_cluster_too(cluster, save):
    path = save(x=np.ones((40, 3)), y=np.arange(40) % 2)
    assert refused("no feature varies", path, "--scheduler", cluster[0], "-q").count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_a_worker_that_is_killed_changes_no_digit(cluster, save):
    X, y = make_rows(400, 5, 80)
    argv = [save(x=X, y=y), *FOLDS, "--update", "sequential", "--passes", 3, "--budget", 100]
    expected = call(*argv)
    process = command(*argv, "--scheduler", cluster[0])
    lines = iter(process.stderr.readline, "")
    said = [next(line for line in lines if line.startswith("fold 1/"))]
    os.kill(cluster[1][0], signal.SIGKILL)
    said += lines
    out = process.stdout.read()
    assert process.wait() == 0, said
    assert out == expected[1] and aucs("".join(said)) == aucs(expected[2])


def test_where_there_is_no_cluster(train, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(exp, "CONNECT_SECONDS", 1)
    assert refused("cannot be reached", train, "--scheduler", "tcp://127.0.0.1:9", "-q").count("\n") == 1
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert refused("--scheduler needs Dask, which is not installed", train, "--scheduler", "x", "-q").count("\n") == 1


def test_folds_run_where_joblib_is_told(train):
    here = call(train, *FOLDS)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        there = call(train, *FOLDS)
    assert (here[:2], aucs(here[2])) == (there[:2], aucs(there[2]))
