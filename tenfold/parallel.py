"""Numbered pieces of work, done in processes of this machine, or elsewhere as `tenfold.engines` has it."""

import os
import signal
import sys
import time
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from threading import Thread, current_thread, main_thread

from threadpoolctl import threadpool_limits

from tenfold.engines import Joblib, cluster, joblib_runs_elsewhere

LOOK_AGAIN = 2.0  # seconds until it is checked that all workers are alive


class Workers:
    """So many processes of this machine that know some ``data``; they start with the first work and stay for more.

    Threads would wait for each other: the steps of learning are short.
    """

    share_our_clock = True

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
    """Let Ctrl-C wait while processes start: in one that is half made it would be lost, or end in a traceback.

    It may come through another thread, such as one of a matrix library, so that to block it here is not enough.
    """
    if not hasattr(signal, "pthread_sigmask") or current_thread() is not main_thread():
        yield
        return
    waiting = []
    handler = signal.signal(signal.SIGINT, lambda *_: waiting.append(True))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGINT, handler or signal.SIG_DFL)
        if waiting:
            signal.raise_signal(signal.SIGINT)


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


@contextmanager
def workers(jobs, scheduler, *data, warn=print):
    """`Workers` here, or others like them if there is a ``scheduler``, or joblib has been told where to run.

    ``warn`` is called with what is not there as it is here.
    """
    if scheduler:
        with cluster(scheduler, *data, warn=warn) as there:
            yield there
    elif joblib_runs_elsewhere():
        with Joblib(*data, warn=warn) as there:
            yield there
    else:
        with Workers(jobs, *data) as here:
            yield here
