"""Other engines, as ``tenfold/ENGINES.md`` has them: the same digits, and one line where machines are lost.

What is started is what is printed there, word for word: a Dask scheduler with three workers, Ray, and Spark.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from zipfile import ZipFile

import numpy as np
import pytest
from conftest import EFFORT, ROOT, Screen, call, make_rows, refused, said_aucs

from tenfold import engines

posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / "tenfold" / "ENGINES.md").read_text(encoding="utf-8"), re.M | re.S)
SCHEDULER, WORKER, COMMAND = BLOCKS[0][1].splitlines()
ON_RAY, ON_SPARK = (code for language, code in BLOCKS if language == "python")

FOLDS = ("--folds", 4, *EFFORT)
LONG = ("--folds", 6, "--budget", 100, "--update", "sequential", "--passes", 8)  # a second or so for each fold


def only_line(err):
    """The one line that says what is wrong; what was shown on the way has been cleared away."""
    assert "Traceback" not in err
    return last_line(err)


def last_line(err):
    *_, line = err.replace("\r", "\n").splitlines()
    assert line.startswith("exp.py: error: ")
    return line


def test_the_program_that_is_sent_away_is_whole(tmp_path):
    """Python imports it from the file alone, and finds all modules there."""
    name, content = engines.pack_program()
    path = tmp_path / f"{name}.zip"
    path.write_bytes(content)
    with ZipFile(path) as file:
        names = set(file.namelist())
    modules = {module.relative_to(ROOT).as_posix() for module in (ROOT / "tenfold").rglob("*.py")}
    assert names == {f"program/{module}" for module in modules | {"oam.py", "preprocess.py"}} | {f"{name}.py"}
    assert engines.pack_program() == (name, content)
    program = (
        f"import sys; sys.path.insert(0, {str(path)!r}); import {name}; import tenfold.folds as it; print(it.__file__)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.startswith(str(path)), done.stderr


@pytest.mark.parametrize(
    "error, message", [(OSError("a\n  b"), "OSError: a b"), (ValueError("x" * 900), "xxx ... xxx")]
)
def test_what_an_engine_says_is_one_line(error, message):
    with pytest.raises(engines.InputError) as raised, engines.failures("the engine"):
        raise error
    assert message in str(raised.value) and len(str(raised.value)) < 400 and "\n" not in str(raised.value)
    lost = engines.failures("the engine", lambda: "its heart is gone")
    with pytest.raises(engines.InputError, match="has failed: its heart is gone"), lost:
        raise error


# --- Dask ------------------------------------------------------------------------------------------------------------


class Cluster:
    """A scheduler and workers, started by the commands that are printed, each in a group of processes of its own."""

    def __init__(self, folder, n_workers):
        self.folder, self.file = folder, folder / "scheduler.json"
        self.workers, self.scheduler = [], self._start(SCHEDULER)
        self.workers = [self._start(WORKER) for _ in range(n_workers)]
        end = time.monotonic() + 60
        while not self.file.exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        from distributed import Client

        with Client(scheduler_file=str(self.file), timeout=60, set_as_default=False) as client:
            client.wait_for_workers(n_workers, timeout=60)
            self.address = client.scheduler.address

    def _start(self, line):
        program, *words = shlex.split(line)
        assert program == "dask"
        env = os.environ | {"DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False"}
        argv = [sys.executable, "-c", "import sys; from dask.__main__ import main; sys.exit(main())", *words]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(argv, cwd=self.folder, env=env, start_new_session=True, **silent)

    def kill(self, *processes):
        for process in processes:
            if os.name == "nt":
                process.kill()
            elif process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def make_cluster(folder, n_workers):
    pytest.importorskip("distributed", reason="needs Dask: python -m pip install distributed")
    cluster = Cluster(folder, n_workers)
    try:
        yield cluster
    finally:
        cluster.kill(*cluster.workers, cluster.scheduler)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    yield from make_cluster(tmp_path_factory.mktemp("cluster"), 3)


@pytest.fixture
def lonely(tmp_path):
    """A cluster of one worker."""
    yield from make_cluster(tmp_path, 1)


@pytest.fixture
def here(train):
    """What the command prints here."""
    code, out, err = call(train, *FOLDS)
    assert code == 0
    return out, said_aucs(err)


def test_a_cluster_gives_the_same_digits_by_its_address_and_by_its_file(cluster, train, here, monkeypatch):
    assert shlex.split(COMMAND)[:2] == ["python", "exp.py"]
    monkeypatch.chdir(cluster.folder)
    for where in (cluster.address, shlex.split(COMMAND)[-1]):
        code, out, err = call(train, *FOLDS, "--scheduler", where)
        assert (code, out, said_aucs(err)) == (0, *here) and "warning" not in err


def test_a_cluster_has_rounds_too(cluster, train):
    """Whose last one can be repeated here."""
    code, out, err = call(train, "--folds", 4, "--budget", 4, "--scheduler", cluster.file)
    assert code == 0 and err.count("mean AUC") > 1
    effort = re.search(r"\(--effort (\S+) repeats it\)", err)[1]
    again = call(train, "--folds", 4, "--effort", effort)
    assert again[:2] == (0, out) and said_aucs(again[2]) == said_aucs(err)


def test_what_is_wrong_with_the_data_is_said_from_a_cluster_too(cluster, save):
    path = save(x=np.ones((40, 3)), y=np.arange(40) % 2)
    err = refused("no feature varies", path, "--scheduler", cluster.file, "-q")
    assert err.count("\n") == 1 and "cluster" not in err


OLD = {"tenfold/__init__.py": "from tenfold import folds", "tenfold/folds.py": "", "preprocess.py": ""}
FORGET = """
import sys
for name in [name for name in sys.modules if name.split(".")[0] in ("oam", "preprocess", "tenfold")]:
    del sys.modules[name]
"""


def test_an_earlier_version_of_this_program_is_forgotten(cluster, train, here, tmp_path):
    from distributed import Client
    from distributed.diagnostics.plugin import UploadFile

    with ZipFile(tmp_path / "tenfold_old.zip", "w") as file:
        for name, content in OLD.items():
            file.writestr(name, content)
    with Client(cluster.address, set_as_default=False) as client:
        client.run(exec, FORGET)
        client.register_plugin(UploadFile(tmp_path / "tenfold_old.zip"), name="old")
        assert all(client.run(eval, "not hasattr(__import__('tenfold').folds, 'run_fold')").values())
        client.unregister_worker_plugin("old")
    code, out, err = call(train, *FOLDS, "--scheduler", cluster.file)
    assert (code, out, said_aucs(err)) == (0, *here)


def test_other_versions_on_workers_are_named(cluster, train, here, monkeypatch):
    ours = engines.versions() | {"numpy": "1.0", "python": "3.1.4"}
    monkeypatch.setattr(engines, "versions", lambda: ours)
    code, out, err = call(train, *FOLDS, "--scheduler", cluster.file, "-q")
    there = f"Python {sys.version_info[0]}.{sys.version_info[1]} and NumPy {np.__version__}"
    assert (code, out) == (0, here[0])
    assert err == f"warning: a worker has {there}, here is Python 3.1 and NumPy 1.0: the digits may differ\n"


@pytest.fixture
def days(tmp_path):
    """A stream of five files."""
    X, y = make_rows(3_000, 3, 750)
    for i, rows in enumerate(np.array_split(np.arange(len(y)), 5)):
        np.savetxt(tmp_path / f"day-{i}.csv", np.column_stack([X[rows], y[rows]]), fmt="%.3f", delimiter=",")
    return tmp_path


def said(err):
    """All that is said of the AUC, but for how long it took."""
    return re.findall(r"AUC (?:of|.*\+/-).*", err)


@pytest.mark.parametrize("how", [("--features", "linear"), ("--sample-rows", 500, *FOLDS)])
def test_a_stream_on_a_cluster_gives_the_same_digits(cluster, days, monkeypatch, how):
    monkeypatch.chdir(days)  # the workers are elsewhere
    here, there = (call("--stream", "day-*.csv", *how, *where) for where in ((), ("--scheduler", cluster.file)))
    assert here[:2] == there[:2] and here[0] == 0
    assert said(here[2]) == said(there[2]) != []


def test_a_damaged_part_is_named_from_a_cluster_too(cluster, days):
    with (days / "day-3.csv").open("a") as file:
        file.write("1,2,3,maybe\n")
    for how in ((), ("--features", "linear")):
        err = refused("day-3.csv: ", "--stream", days, *how, "--scheduler", cluster.file, "-q")
        assert err.count("\n") == 1 and "maybe" in err and "cluster" not in err


class Killer(Screen):
    """A terminal that kills as soon as some words are written to it."""

    def __init__(self, words, kill, *processes):
        super().__init__()
        self.words, self.kill, self.processes, self.killed_at = words, kill, processes, None

    def write(self, text):
        if self.killed_at is None and self.words in text:
            self.killed_at = time.monotonic()
            self.kill(*self.processes)
        return super().write(text)


@posix
def test_a_worker_that_is_killed_changes_no_digit_and_without_any_there_is_one_line(cluster, save, monkeypatch):
    X, y = make_rows(400, 5, 80)
    argv = [save(x=X, y=y), *LONG]
    expected, killer = call(*argv), Killer("fold 1/", cluster.kill, cluster.workers[0])
    code, out, err = call(*argv, "--scheduler", cluster.file, stderr=killer)
    assert code == 0 and killer.killed_at, err
    assert out == expected[1] and said_aucs(err) == said_aucs(expected[2])
    killer = Killer("fold 1/", cluster.kill, *cluster.workers)
    code, out, err = call(*argv, "--scheduler", cluster.file, stderr=killer)
    assert (code, out) == (2, "") and time.monotonic() - killer.killed_at < 10
    assert "all its workers are gone" in only_line(err)
    monkeypatch.setattr(engines, "CONNECT_SECONDS", 1)
    message = "has had no worker for 1 seconds, expected at least one"
    assert refused(message, *argv, "--scheduler", cluster.file, "-q").count("\n") == 1


@posix
def test_without_its_scheduler_there_is_one_line(lonely, save, monkeypatch):
    X, y = make_rows(400, 5, 80)
    argv = [save(x=X, y=y), *LONG, "--scheduler", lonely.file]
    killer = Killer("fold 1/", lonely.kill, lonely.scheduler)
    code, out, err = call(*argv, stderr=killer)
    assert (code, out) == (2, "") and time.monotonic() - killer.killed_at < 10
    assert "its scheduler is gone" in only_line(err)
    monkeypatch.setattr(engines, "CONNECT_SECONDS", 1)
    assert refused("cannot be reached", *argv, "-q").count("\n") == 1


def test_where_there_is_no_cluster(train, tmp_path, monkeypatch):
    assert refused("--scheduler without an address", train, "--scheduler", "").count("\n") == 1
    assert refused("--scheduler without an address", train, "--scheduler", " ").count("\n") == 1
    pytest.importorskip("distributed")
    monkeypatch.setattr(engines, "CONNECT_SECONDS", 1)
    assert refused("cannot be reached", train, "--scheduler", "tcp://127.0.0.1:9", "-q").count("\n") == 1
    assert refused("none.json: no such file", train, "--scheduler", tmp_path / "none.json", "-q").count("\n") == 1
    (tmp_path / "bad.json").write_text("{")
    assert refused("cannot be reached", train, "--scheduler", tmp_path / "bad.json", "-q").count("\n") == 1
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert refused("--scheduler needs Dask, which is not installed", train, "--scheduler", "x", "-q").count("\n") == 1


# --- Ray and Spark ---------------------------------------------------------------------------------------------------

# The program that is printed, and then, on the same engine, some more runs, in which a process is killed.
PROGRAM = """
import contextlib, json, sys, threading, time
import psutil
sys.path.insert(0, {tests!r})
from conftest import call

def kill(is_victim):
    time.sleep({delay})
    while True:
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if is_victim(process):
                    killed_at.append(time.monotonic())
                    return process.kill()
        time.sleep(0.02)

try:
    exec({code!r})
except SystemExit as leave:
    print("exit code", leave.code, flush=True)
runs = []
for how in {hows!r}:
    killed_at = []
    threading.Thread(target=kill, args=[{is_victim}], daemon=True).start()
    with joblib.parallel_config(**how):
        code, out, err = call(*{argv!r})
    runs.append([code, out, err, time.monotonic() - killed_at[0]])
with open("runs.json", "w") as file:
    json.dump(runs, file)
"""


def run_on(code, folder, train, argv, **how):
    """What the program prints, for this file, and what the runs in which a process is killed give."""
    code = PROGRAM.format(code=code, tests=str(ROOT / "tests"), argv=list(map(str, argv)), **how)
    (folder / "program.py").write_text(code)
    words = [sys.executable, "program.py", str(train), *map(str, FOLDS)]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done, json.loads((folder / "runs.json").read_text())


@pytest.fixture
def long(save):
    """A file, and options with which a fold takes a second or so, and what the command prints for them."""
    X, y = make_rows(400, 5, 80)
    argv = [save("long.mat", x=X, y=y), *LONG]
    return argv, call(*argv)[1]


@posix
@pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: python -m pip install ray")
def test_ray_gives_the_same_digits_also_if_a_worker_is_lost(train, tmp_path, here, long):
    argv, expected = long
    is_victim = "lambda process: 'ray::PoolActor.run_batch' in process.cmdline()[:1]"
    hows = [{"backend": "ray", "ray_remote_args": {"max_restarts": 3, "max_task_retries": 3}}, {"backend": "ray"}]
    done, (again, lost) = run_on(ON_RAY, tmp_path, train, argv, hows=hows, is_victim=is_victim, delay=0)
    assert (here[0] + "exit code 0\n") in done.stdout and said_aucs(done.stderr) == here[1]
    assert again[0] == 0 and expected in again[1]
    assert lost[0] == 2 and "AUC" not in lost[1] and lost[3] < 20
    assert "ActorDiedError" in only_line(lost[2])


@posix
@pytest.mark.skipif(not (find_spec("joblibspark") and find_spec("pyspark")), reason="needs pyspark and joblibspark")
@pytest.mark.skipif(shutil.which("java") is None and "JAVA_HOME" not in os.environ, reason="needs Java")
def test_spark_gives_the_same_digits_and_one_line_if_it_is_lost(train, tmp_path, here, long):
    how = {"hows": [{"backend": "spark"}], "is_victim": "lambda process: process.name() == 'java'", "delay": 1.5}
    done, (lost,) = run_on(ON_SPARK, tmp_path, train, long[0], **how)
    assert (here[0] + "exit code 0\n") in done.stdout and said_aucs(done.stderr) == here[1]
    assert lost[0] == 2 and lost[1] == "" and lost[3] < 20
    assert "SparkDistributedBackend" in last_line(lost[2])  # PySpark's threads may have more to say
