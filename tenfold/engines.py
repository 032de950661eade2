"""Work done elsewhere: on a Dask cluster, or wherever joblib has been told to run, such as Ray or Spark.

The program is sent there with the work; what ``requirements.txt`` has must be installed there.
"""

import atexit
import importlib
import logging
import os
import pickle
import platform
import shutil
import sys
import tempfile
import time
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing, contextmanager, suppress
from hashlib import sha256
from io import BytesIO
from itertools import islice
from multiprocessing import TimeoutError as JoblibTimeoutError
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import joblib
import numpy
import scipy
import sklearn
from joblib.parallel import BACKENDS, DEFAULT_BACKEND, get_active_backend
from threadpoolctl import threadpool_limits

from preprocess import InputError
from tenfold.readers.base import no_warnings

ROOT = Path(__file__).resolve().parent.parent
LOOK_AGAIN = 1.0  # seconds until it is checked that a cluster is still there
CONNECT_SECONDS = 10  # to wait for a scheduler, and for its first worker
HAVE_THE_PROGRAM = ("threading", "sequential", "multiprocessing", "loky", "dask")  # backends that are joblib's own
DIGITS_REST_ON = {"python": "Python", "numpy": "NumPy", "scipy": "SciPy", "scikit-learn": "scikit-learn"}
ENDS_OF_REASON = 150  # characters of the beginning and of the end of what an engine says, which may fill pages

# A module of the file that is sent: once it is imported there, this program can be, and nothing of another version.
LOADER = """
import sys

folder, _, name = __file__.replace("\\\\", "/").rpartition("/")
found = getattr(sys.modules.get("tenfold"), "__file__", None)
if found is None or (".zip" in found and name.removesuffix(".py") not in found):
    for module in [module for module in sys.modules if module.split(".")[0] in ("oam", "preprocess", "tenfold")]:
        del sys.modules[module]
    sys.path.insert(0, folder + "/program")
"""


class Joblib:
    """As `Workers`, wherever joblib has been told to run.

    Where results cannot come one by one, as on Ray and Spark, they come in portions, one piece of work for each worker.
    """

    share_our_clock = False

    def __init__(self, *data, warn=print):
        backend, jobs = get_active_backend()
        self.data, self.warn, self.name = data, warn, f"{type(backend).__name__} of joblib"
        self._one_by_one = getattr(backend, "supports_return_generator", False)
        how = {"return_as": "generator_unordered"} if self._one_by_one else {}
        self._parallel = joblib.Parallel(n_jobs=jobs or -1, batch_size=1, **how)
        if not backend.supports_retrieve_callback:
            mend(self._parallel, backend)
        has_program = type(backend) in map(BACKENDS.get, HAVE_THE_PROGRAM)
        self._with_program = None if has_program else with_program(*pack_program())

    def __enter__(self):
        with failures(self.name):
            self._parallel.__enter__()
        return self

    def __exit__(self, *error):
        with suppress(Exception), no_warnings():
            self._parallel.__exit__(*error)

    @property
    def jobs(self):
        return joblib.effective_n_jobs(self._parallel.n_jobs)

    def run(self, numbers, function, *arguments, seconds=None, watch=lambda results: False):
        """As `Workers.run`; InputError says that the engine has failed."""
        end = time.monotonic() + (float("inf") if seconds is None else seconds)
        answers = Answers(self.warn)
        portions = self._portions(self._pieces(numbers, function, arguments))
        with closing(portions), suppress(JoblibTimeoutError):  # which says that the time is over
            while not answers.error and (left := end - time.monotonic()) > 0:
                self._parallel.timeout = None if seconds is None else left
                with failures(self.name):
                    portion = next(portions, None)
                if portion is None or watch(answers.add(portion)):
                    break
        return answers.all()

    def _pieces(self, numbers, function, arguments):
        for i in numbers:
            work = run_elsewhere, function, i, *self.data, *arguments
            if self._with_program:
                work = self._with_program, pickle.dumps(work)
            yield joblib.delayed(work[0])(*work[1:])

    def _portions(self, pieces):
        """Lists of answers."""
        if not self._one_by_one:
            while portion := list(islice(pieces, self.jobs)):
                yield self._parallel(portion)
            return
        answers = self._parallel(pieces)
        try:
            for answer in answers:
                yield [answer]
        finally:
            with suppress(Exception), no_warnings():  # joblib warns that some work was in vain
                answers.close()


def mend(parallel, backend):
    """Let joblibspark 0.6 tell what has failed: it gives an error as if it were a result, and then misses a setting."""

    def retrieve_result(job, timeout=None):
        result = job.get()
        if hasattr(result, "exc"):
            raise result.exc
        return result

    backend.retrieve_result = retrieve_result
    parallel._backend_args = {}


def joblib_runs_elsewhere():
    """Whether we are called within joblib's ``parallel_config`` or ``parallel_backend``."""
    backend, jobs = get_active_backend()
    return jobs is not None or type(backend) is not BACKENDS[DEFAULT_BACKEND]


class Dask:
    """As `Workers`, on a Dask cluster; if a worker is lost, others do what it was to do."""

    share_our_clock = False

    def __init__(self, client, name, *data, warn=print):
        self.client, self.name, self.warn = client, name, warn
        _wait_for_a_worker(client, name)
        for worker in client.get_versions(packages=["scipy", "scikit-learn"])["workers"].values():
            warn_of_versions(worker["packages"], warn)
        self.jobs = sum(client.ncores().values())
        self._data = self._send(data)

    def _send(self, data):
        return self.client.scatter(list(data), broadcast=True, hash=False) if data else []

    def run(self, numbers, function, *arguments, seconds=None, watch=lambda results: False):
        """As `Workers.run`; InputError says that the cluster has failed."""
        from dask.utils import apply  # the scheduler, which is without this program, knows it

        end = time.monotonic() + (float("inf") if seconds is None else seconds)
        answers = Answers(self.warn)
        with failures(self.name, self._lost):
            run, function, *arguments = self._send([run_elsewhere, function, *arguments])
            known = *self._data, *arguments
            pending = [self.client.submit(apply, run, [function, i, *known], pure=False) for i in numbers]
        while pending and not (answers.error or watch(answers.results)) and (left := end - time.monotonic()) > 0:
            with failures(self.name, self._lost):
                done, pending = wait_for_some(pending, min(LOOK_AGAIN, left))
                answers.add(future.result() for future in done)
                if not done and self._lost():
                    raise OSError
        if not pending:
            watch(answers.results)
        return answers.all()

    def _lost(self):
        """What of the cluster is gone, in words, or None."""
        if self.client.status != "running":
            return "its scheduler is gone"
        with suppress(Exception):
            is_empty = not self.client.sync(self.client.scheduler.ncores, callback_timeout=CONNECT_SECONDS)
            return "all its workers are gone" if is_empty else None
        return "its scheduler does not answer"


def _wait_for_a_worker(client, name):
    """Give the cluster some work: there are some that start workers for work only."""
    from distributed import TimeoutError

    try:
        client.submit(int, pure=False).result(timeout=CONNECT_SECONDS)
    except TimeoutError:
        raise InputError(f"{name} has had no worker for {CONNECT_SECONDS} seconds, expected at least one") from None


def wait_for_some(futures, seconds):
    """Wait until some of Dask's futures are done, but not longer: those that are, and the others."""
    from distributed import TimeoutError, wait

    with suppress(TimeoutError):
        wait(futures, seconds, return_when="FIRST_COMPLETED")
    return [future for future in futures if future.done()], [future for future in futures if not future.done()]


@contextmanager
def cluster(address, *data, warn=print):
    """The `Dask` cluster whose scheduler has this address, or has written this file."""
    try:
        from distributed import Client
        from distributed.diagnostics.plugin import UploadFile
    except ImportError:
        raise InputError("--scheduler needs Dask, which is not installed: python -m pip install distributed") from None
    if address.endswith(".json") and not Path(address).exists():
        raise InputError(f"--scheduler {address}: no such file")
    name = f"--scheduler {address}: the Dask cluster"
    with ExitStack() as stack:
        stack.callback(logging.disable, logging.root.manager.disable)
        logging.disable()  # what goes wrong is said in one line
        with failures(name), no_warnings():
            where = {"scheduler_file" if Path(address).is_file() else "address": address}
            client = stack.enter_context(Client(**where, timeout=CONNECT_SECONDS))
            program, content = pack_program()
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"{program}.zip"
                path.write_bytes(content)
                client.register_plugin(UploadFile(path), name=program)  # for workers that come later, too
            there = Dask(client, name, *data, warn=warn)
        yield there
        with suppress(Exception):
            client.unregister_worker_plugin(program)


@contextmanager
def failures(engine, lost=lambda: None):
    """Say in one line that an engine has failed, which happens in many ways, and what of it is ``lost``, if known."""
    try:
        yield
    except (InputError, MemoryError, BrokenProcessPool, JoblibTimeoutError):
        raise
    except Exception as error:
        reason = lost() or " ".join(f"{type(error).__name__}: {error}".split())
        if len(reason) > 2 * ENDS_OF_REASON:
            reason = f"{reason[:ENDS_OF_REASON]} ... {reason[-ENDS_OF_REASON:]}"
        raise InputError(f"{engine} cannot be reached, or has failed: {reason}") from error


class Answers:
    """What has come back: the results, by the numbers of the pieces of work, and the first error in one of them."""

    def __init__(self, warn):
        self.results, self.error, self._warn = {}, None, warn

    def add(self, answers):
        """Take what `run_elsewhere` returns; the results so far."""
        for i, result, error, there in answers:
            warn_of_versions(there, self._warn)
            if error is None:
                self.results[i] = result
            self.error = self.error or error
        return self.results

    def all(self):
        """The results; an error is raised."""
        if self.error:
            raise self.error
        return self.results


def run_elsewhere(function, i, *arguments):
    """A piece of work: its number, its result or the error in it, which is none of the engine, and the versions."""
    threadpool_limits(1)
    try:
        return i, function(i, *arguments), None, versions()
    except Exception as error:
        return i, None, error, versions()


def versions():
    """The versions that the digits rest on."""
    packages = {"numpy": numpy, "scipy": scipy, "scikit-learn": sklearn}
    return {"python": platform.python_version()} | {name: module.__version__ for name, module in packages.items()}


def warn_of_versions(there, warn):
    """Name the versions of a worker, and those here, if they differ."""
    here, there = ({name: _version(some, name) for name in DIGITS_REST_ON} for some in (versions(), there))
    names = [name for name in DIGITS_REST_ON if here[name] != there[name]]
    if names:
        of_worker, ours = (
            " and ".join(f"{DIGITS_REST_ON[name]} {some[name]}" for name in names) for some in (there, here)
        )
        warn(f"warning: a worker has {of_worker}, here is {ours}: the digits may differ")


def _version(some, name):
    """A version; of Python, as far as it matters."""
    found = some.get(name) or "(missing)"
    return ".".join(found.split(".")[:2]) if name == "python" else found


def pack_program():
    """A name for this program, which goes by its content, and a .zip file of all its modules.

    With the file on Python's path, importing the name lets the program be imported.
    """
    modules = [ROOT / "oam.py", ROOT / "preprocess.py", *sorted((ROOT / "tenfold").rglob("*.py"))]
    contents = {module.relative_to(ROOT).as_posix(): module.read_bytes() for module in modules}
    name = f"tenfold_{sha256(repr(contents).encode()).hexdigest()[:16]}"
    packed = BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as file:
        file.writestr(f"{name}.py", LOADER)
        for path, content in contents.items():
            file.writestr(f"program/{path}", content)
    return name, packed.getvalue()


def with_program(name, content):
    """A function that does pickled work where this program is not known.

    It is sent as it stands, since it is part of another one: a function with a name would be looked up there.
    """

    def unpack(work):
        if name not in sys.modules:
            folder = tempfile.mkdtemp()
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            path = os.path.join(folder, f"{name}.zip")
            with open(path, "wb") as file:
                file.write(content)
            sys.path.insert(0, path)
            importlib.import_module(name)
        function, *arguments = pickle.loads(work)
        return function(*arguments)

    return unpack
