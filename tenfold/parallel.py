"""Numbered pieces of work, done in processes of this machine or wherever joblib sends them, a Dask cluster included."""

import os
import signal
import sys
import time
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from zipfile import ZipFile

import joblib
from joblib.parallel import BACKENDS, DEFAULT_BACKEND, get_active_backend
from threadpoolctl import threadpool_limits

from preprocess import InputError

ROOT = Path(__file__).resolve().parent.parent
LOOK_AGAIN = 2.0  # seconds until it is seen to that all workers are alive
CONNECT_SECONDS = 10  # to wait for a scheduler


def in_processes(jobs, numbers, function, *arguments, seconds=None):
    """Yield i and ``function(i, *arguments)`` for each of the numbers i as it ends, from so many processes.

    TimeoutError ends it after ``seconds``. Threads would wait for each other: the steps of learning are short.
    """
    _start_worker(function, *arguments)
    if jobs == 1 and seconds is None:
        yield from map(_run_numbered, numbers)
        return
    fork = sys.platform == "linux"  # workers then share the data and what is imported
    context = get_context("fork" if fork else "spawn")
    pool = ProcessPoolExecutor(jobs, context, _start_process, (function, *arguments))
    try:
        yield from _as_they_end(pool, [(_run_numbered, i) for i in numbers], seconds)
        pool.shutdown()
    except BaseException:
        _end(pool)
        raise


@contextmanager
def processes(jobs):
    """A function that yields i and ``function(i, *arguments)`` for each i below n as it ends, from so many processes.

    Unlike `in_processes`, which may be quicker to start, the processes stay for all calls of that function.
    """
    context = get_context("fork" if sys.platform == "linux" else "spawn")
    pool = ProcessPoolExecutor(jobs, context, _start_process)

    def run(n, function, *arguments):
        yield from _as_they_end(pool, [(_run, i, function, *arguments) for i in range(n)])

    try:
        yield run
        pool.shutdown()
    except BaseException:
        _end(pool)
        raise


def _as_they_end(pool, calls, seconds=None):
    """Yield the results of these calls, or raise TimeoutError after ``seconds``, or BrokenProcessPool.

    A call is a function with its arguments. The pool itself finds out that a worker was killed, but not if that was
    while it sent a result.
    """
    with _no_ctrl_c():
        pending = [pool.submit(*call) for call in calls]
    end = time.monotonic() + (float("inf") if seconds is None else seconds)
    while pending:
        gone = [worker for worker in list(pool._processes.values()) if not worker.is_alive()]
        left = max(end - time.monotonic(), 0)
        done, pending = wait(pending, min(LOOK_AGAIN, left), FIRST_COMPLETED)
        for future in done:
            yield future.result()
        if gone and not done:
            raise BrokenProcessPool("a worker was killed while it sent a result")
        if pending and time.monotonic() >= end:
            raise TimeoutError


def _end(pool):
    """Kill the workers, and let the pool know that no more will come: it might wait for the rest of a result."""
    for worker in active_children():
        worker.kill()
    pool._result_queue._writer.close()


@contextmanager
def _no_ctrl_c():
    """Let Ctrl-C wait while processes start: in one that is half made it would be lost, or told by a traceback."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_process(*work):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one ends the others
    Thread(target=_end_with_parent, daemon=True).start()
    threadpool_limits(1)
    _start_worker(*work)


def _end_with_parent():
    """Wait until the process that started this one is gone, however it went, and then go too."""
    parent_process().join()
    os._exit(1)


def _start_worker(*work):
    global _work
    _work = work


def _run_numbered(i):
    function, *arguments = _work
    return i, function(i, *arguments)


def joblib_runs_elsewhere():
    """Whether we are called within joblib's ``parallel_config`` or ``parallel_backend``."""
    return type(get_active_backend()[0]) is not BACKENDS[DEFAULT_BACKEND]


def through_joblib(n, function, *arguments, seconds=None):
    """Yield i and ``function(i, *arguments)`` for each i below n as it ends, from wherever joblib's backend runs it.

    A cluster that gives no answer for so many ``seconds`` has failed.
    """
    settings = {} if seconds is None else {"timeout": seconds}
    parallel = joblib.Parallel(n_jobs=-1, return_as="generator_unordered", batch_size=1, **settings)
    return parallel(joblib.delayed(_run_elsewhere)(i, function, *arguments) for i in range(n))


def _run_elsewhere(i, function, *arguments):
    threadpool_limits(1)
    return _run(i, function, *arguments)


def _run(i, function, *arguments):
    return i, function(i, *arguments)


@contextmanager
def cluster(address, *data):
    """Let joblib run on the Dask cluster whose scheduler is at this address; program and data are sent there."""
    try:
        from distributed import Client
    except ImportError:
        raise InputError("--scheduler needs Dask, which is not installed: python -m pip install distributed") from None
    try:
        with Client(address, timeout=CONNECT_SECONDS) as client, TemporaryDirectory() as folder:
            client.upload_file(str(_pack_program(Path(folder) / "tenfold.zip")))
            with joblib.parallel_config(backend="dask", scatter=list(data) or None):
                yield
    except (InputError, MemoryError):
        raise
    except Exception as error:  # there are many ways for a cluster to fail
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(
            f"--scheduler {address}: the Dask cluster cannot be reached, or has failed: {reason}"
        ) from error


def _pack_program(path):
    """A .zip file of all modules, which Python can import from."""
    with ZipFile(path, "w") as file:
        for module in [ROOT / "oam.py", ROOT / "preprocess.py", *sorted((ROOT / "tenfold").rglob("*.py"))]:
            file.write(module, module.relative_to(ROOT).as_posix())
    return path
