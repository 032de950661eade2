"""Numbered pieces of work, done in processes of this machine or wherever joblib sends them, a Dask cluster included."""

import os
import signal
import sys
import time
import warnings
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from multiprocessing import TimeoutError as JoblibTimeoutError
from multiprocessing import get_context, parent_process
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from zipfile import ZipFile

import joblib
from joblib.parallel import BACKENDS, DEFAULT_BACKEND, get_active_backend
from threadpoolctl import threadpool_limits

from preprocess import InputError

ROOT = Path(__file__).resolve().parent.parent
LOOK_AGAIN = 2.0  # seconds until it is checked that all workers are alive
CONNECT_SECONDS = 10  # to wait for a scheduler


class Workers:
    """So many processes of this machine that know some ``data``; they start with the first work and stay for more.

    Threads would wait for each other: the steps of learning are short.
    """

    def __init__(self, jobs, *data):
        self.jobs, self.data = jobs, data
        self._pool = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.end()

    def run(self, numbers, function, *arguments, seconds=None, watch=lambda results: False):
        """``function(i, *data, *arguments)`` for each of the numbers i, as a dictionary.

        After each result ``watch`` is called with those so far. What is not done after so many ``seconds``, or when
        ``watch`` returns True, is given up, and not in the dictionary. BrokenProcessPool says that a worker was killed.
        """
        end = time.monotonic() + (float("inf") if seconds is None else seconds)
        results = {}
        try:
            pending = self._submit(numbers, function, arguments)
            while pending and not watch(results) and time.monotonic() < end:
                # The pool itself finds out that a worker was killed, but not if that was while it sent a result.
                gone = [worker for worker in list(self._pool._processes.values()) if not worker.is_alive()]
                done, pending = wait(pending, max(min(LOOK_AGAIN, end - time.monotonic()), 0), FIRST_COMPLETED)
                results.update(future.result() for future in done)
                if gone and not done:
                    raise BrokenProcessPool("a worker was killed while it sent a result")
        except BaseException:
            self.end()
            raise
        if pending:
            self.end()
        else:
            watch(results)
        return results

    def _submit(self, numbers, function, arguments):
        with _no_ctrl_c():
            if self._pool is None:
                # Workers that are forked share the data and what is imported.
                context = get_context("fork" if sys.platform == "linux" else "spawn")
                self._pool = ProcessPoolExecutor(self.jobs, context, _start_worker, self.data)
            return [self._pool.submit(_run_with_data, function, i, *arguments) for i in numbers]

    def end(self):
        """Kill the workers."""
        if self._pool is not None:
            for worker in list(self._pool._processes.values()):
                worker.kill()
            self._pool._result_queue._writer.close()  # else the pool may wait for the rest of a result for ever
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


@contextmanager
def _no_ctrl_c():
    """Let Ctrl-C wait while processes start: in one that is half made it would be lost, or end in a traceback."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker(*data):
    global _data
    _data = data
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one ends the others
    Thread(target=_end_with_parent, daemon=True).start()
    threadpool_limits(1)


def _end_with_parent():
    """Wait until the process that started this one is gone, however it went, and then go too."""
    parent_process().join()
    os._exit(1)


def _run_with_data(function, i, *arguments):
    return i, function(i, *_data, *arguments)


class Joblib:
    """As `Workers`, wherever joblib has been told to run."""

    def __init__(self, *data):
        self.jobs, self.data = joblib.effective_n_jobs(-1), data

    def run(self, numbers, function, *arguments, seconds=None, watch=lambda results: False):
        """As `Workers.run`."""
        results, end = {}, time.monotonic() + (float("inf") if seconds is None else seconds)
        parallel = joblib.Parallel(n_jobs=-1, return_as="generator_unordered", batch_size=1, timeout=seconds)
        calls = (joblib.delayed(_run_elsewhere)(function, i, *self.data, *arguments) for i in numbers)
        watch(results)
        with warnings.catch_warnings(), suppress(JoblibTimeoutError), closing(parallel(calls)) as answers:
            warnings.simplefilter("ignore")  # those given up are meant to be cancelled
            for i, result in answers:
                results[i] = result
                if watch(results) or time.monotonic() > end:
                    break
        return results


def _run_elsewhere(function, i, *arguments):
    threadpool_limits(1)
    return i, function(i, *arguments)


def joblib_runs_elsewhere():
    """Whether we are called within joblib's ``parallel_config`` or ``parallel_backend``."""
    backend, jobs = get_active_backend()
    return jobs is not None or type(backend) is not BACKENDS[DEFAULT_BACKEND]


@contextmanager
def workers(jobs, scheduler, *data):
    """`Workers` on this machine, or, if there is a ``scheduler`` or joblib has been told where to run, `Joblib`."""
    if scheduler:
        with cluster(scheduler, *data):
            yield Joblib(*data)
    elif joblib_runs_elsewhere():
        yield Joblib(*data)
    else:
        with Workers(jobs, *data) as here:
            yield here


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
