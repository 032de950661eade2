"""What the tests share: where the code and the data sets are, a small data set, and ways to run the command."""

import contextlib
import csv
import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import exp  # noqa: E402
from tenfold.folds import Experiment  # noqa: E402

RESULT = re.compile(r"AUC Score: (0\.\d{4}|1\.0000)\n")
EFFORT = ("--effort", "1/16")  # one round, and a short one, for tests of all that is around the learning
QUICK = ("--folds", 2, "--jobs", 1, "--passes", 1)
FEW = ("--folds", 3, "--jobs", 1, *EFFORT)
FIGURES = ["auc_steps.png", "auc_time.png", "roc.png", "scores.png"]

linux = pytest.mark.skipif(
    sys.platform != "linux", reason="workers that are forked know what the test has put in place"
)


def make_rows(n=60, d=4, n_pos=15, seed=0):
    """Rows, and labels of which ``n_pos``, evenly spread, are 1, the others -1; positives lie a little higher."""
    rng = np.random.RandomState(seed)
    y = np.where(np.arange(n) % (n // n_pos) == 0, 1, -1)
    return rng.randn(n, d) + (y[:, None] > 0), y


def one_split(X, y, train, test):
    """An experiment of one fold: these training rows and these test rows."""
    return Experiment(X, y, X, y, [(train, test)], np.arange(len(y)), np.ones(len(y)))


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """The rows here are too few for more."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def undrawn(monkeypatch):
    """Figures are made, marked and written, but all of them are one black dot, for tests of what is around them."""
    from matplotlib.figure import Figure
    from matplotlib.image import imsave

    monkeypatch.setattr(
        Figure, "savefig", lambda self, path, dpi, metadata: imsave(path, np.zeros((1, 1)), metadata=metadata)
    )


@pytest.fixture
def rows():
    return make_rows()


@pytest.fixture
def rng():
    return np.random.RandomState(0)


@pytest.fixture
def Z(rng):
    """Scaled rows as the `Preprocessor` gives them: many values, a heavy tail, ties, two values, and the bias."""
    n = 90
    Z = np.column_stack([rng.rand(n), rng.rand(n) ** 30, rng.randint(0, 4, n) / 3, rng.rand(n) < 0.1, np.ones(n)])
    Z[0], Z[1, :4] = [1, 1, 1, 1, 1], 0
    return Z.astype(np.float32)


@pytest.fixture
def assignment():
    """The assignment's file, if it is at hand."""
    path = Path(os.environ.get("OAM_DATA", ROOT.parent / "shared" / "data")) / "train.mat"
    if not path.exists():
        pytest.skip(f"{path} is not here; the environment variable OAM_DATA names its directory")
    return path


@pytest.fixture
def save(tmp_path):
    def save(name="train.mat", x_name="x_tr", y_name="y_tr", *, x, y):
        savemat(tmp_path / name, {x_name: x, y_name: y})
        return tmp_path / name

    return save


@pytest.fixture
def train(save, rows):
    return save(x=rows[0], y=rows[1])


@pytest.fixture
def model(train, tmp_path):
    """A model that the command has saved after folds."""
    path = tmp_path / "model.npz"
    assert call(train, *FEW, "--save", path)[0] == 0
    return path


def command(*argv, **kwargs):
    """Start the command in a process of its own, which minds Ctrl-C even if a shell in the background does not."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    if os.name != "nt":
        kwargs.setdefault("preexec_fn", lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    return subprocess.Popen([sys.executable, str(ROOT / "exp.py"), *map(str, argv)], **pipes, **kwargs)


def wait_for_workers(process, n):
    """Wait until a process has started so many others and they have begun; some seconds where that cannot be seen."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    begun = time.monotonic()
    while time.monotonic() - begun < (20 if children.exists() else 4):
        if children.exists() and len(children.read_text().split()) >= n:
            break
        time.sleep(0.05)
    time.sleep(0.5)


def call(*argv, stderr=None):
    """Run the command in this process: its exit code, standard output and standard error."""
    out, err = io.StringIO(), stderr or io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = exp.main([str(arg) for arg in argv])
        except SystemExit as leave:
            code = leave.code
    return code, out.getvalue(), err.getvalue()


def score(*argv):
    """The AUC that the command prints."""
    code, out, err = call(*argv, "-q")
    assert (code, err) == (0, "")
    return float(RESULT.fullmatch(out)[1])


def refused(message, *argv):
    code, out, err = call(*argv)
    errors = [line for line in err.splitlines() if "error:" in line]
    assert (code, out) == (2, "")
    assert errors == err.splitlines()[-1:] and message in errors[0]
    return err


def fold_aucs(*argv):
    """The AUC of each fold, as the command says them."""
    code, _, err = call(*argv)
    assert code == 0, err
    return said_aucs(err)


def said_aucs(err):
    """The AUC of each fold, as standard error has them."""
    return re.search(r"AUC of each fold: (.*)", err)[1]


def read_scores(path):
    """The columns of a file of scores, by name."""
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["row"] for line in lines] == [str(i) for i in range(1, len(lines) + 1)]
    return {name: np.array([line[name] for line in lines], float) for name in lines[0] if name != "row"}


def outcome(err, name):
    """TP, FP, FN, TN, precision, recall, F1, cost, savings in percent, as the table of decisions has them."""
    return np.array(re.search(rf"^{name} +(.*)%$", err, re.M)[1].split(), float)


class Screen(io.StringIO):
    """A terminal to write to."""

    def __init__(self, encoding="utf-8"):
        super().__init__()
        self.written_as = encoding

    encoding = property(lambda self: self.written_as)

    def isatty(self):
        return True


def frames(text):
    """What a terminal shows after each write of a live line, colours aside."""
    shown, line = [], ""
    for frame in re.sub("\x1b\\[\\d+m", "", text).split("\r")[1:]:
        frame = frame.split("\n")[0]
        line = frame + line[len(frame) :]
        shown.append(line.rstrip())
    return shown
