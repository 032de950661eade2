"""Run the command end to end on hard shapes and print the seconds that each takes by the wall clock.

    python bench/budget.py                every shape, on all cores, on one, and beside a busy process on that one
    python bench/budget.py 40x10 wide     only shapes whose names hold one of these words

Every run must print one line and end within ten seconds, imports and loading included; where reading alone by the
library (scipy.io.loadmat or pandas.read_csv), on the same cores, takes over five, within twice the reading. "read" is
that on all cores and on the busy one, "memory" the greatest of any one process on all cores, beside the size of the
array. The mark of 2,000 rows or more is a linear model, on 90 % of them and without a clock: ridge regression, or
logistic regression of sparse rows, at the best of three penalties by the rows that it is tested on.
"""

import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from common import measure
from scipy.io import savemat
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score

LIMIT = 10.0
READ = """
import sys, time
path = sys.argv[1]
if path.endswith(".csv"):
    import pandas
    read = pandas.read_csv
else:
    from scipy.io import loadmat as read
begun = time.perf_counter()
read(path)
print(time.perf_counter() - begun)
"""


def labels(score, positives, rng):
    """+1 for the given share of rows with the highest noisy score."""
    score = (score - score.mean()) / score.std() + rng.standard_normal(len(score))
    return np.where(score > np.quantile(score, 1 - positives), 1, -1)


def dense(n, d, positives, dtype, rng):
    X = rng.random((n, d), dtype=np.float32)
    y = labels(X[:, : min(d, 10)].sum(axis=1), positives, rng)
    return (X * 255 if dtype == np.uint8 else X).astype(dtype), y


def linear(n, d, positives, dtype, rng):
    """All columns matter."""
    X = rng.standard_normal((n, d), dtype=np.float32)
    return X.astype(dtype), labels(X @ rng.standard_normal(d, dtype=np.float32), positives, rng)


def sparse(n, d, per_row, positives, rng):
    """Rows of a few ones, rare columns last, as in text and web data."""
    columns = (d * rng.random(n * per_row) ** 3).astype(int)
    X = sp.csr_array((np.ones(n * per_row), (np.repeat(np.arange(n), per_row), columns)), shape=(n, d))
    return X, labels(X @ rng.standard_normal(d), positives, rng)


SHAPES = {
    "500000x300 sparse": lambda rng: sparse(500_000, 300, 12, 0.03, rng),
    "2000x20000 sparse": lambda rng: sparse(2_000, 20_000, 100, 0.1, rng),
    "20000x1000000 sparse": lambda rng: sparse(20_000, 1_000_000, 50, 0.1, rng),
    "60000x784 uint8": lambda rng: dense(60_000, 784, 0.1, np.uint8, rng),
    "1000000x30 float64": lambda rng: dense(1_000_000, 30, 0.01, np.float64, rng),
    "5000000x10 float64": lambda rng: dense(5_000_000, 10, 0.01, np.float64, rng),
    "300x5000 float64": lambda rng: dense(300, 5_000, 0.1, np.float64, rng),
    "40x10, 4 positives": lambda rng: dense(40, 10, 0.1, np.float64, rng),
    "8x100000 linear": lambda rng: linear(8, 100_000, 0.375, np.float64, rng),
    "50x20000 linear": lambda rng: linear(50, 20_000, 0.2, np.float64, rng),
    "1000x20000 linear float32": lambda rng: linear(1_000, 20_000, 0.1, np.float32, rng),
    "2000x10000 linear": lambda rng: linear(2_000, 10_000, 0.1, np.float64, rng),
    "10000x3000 linear": lambda rng: linear(10_000, 3_000, 0.1, np.float64, rng),
    "20000x2000 linear": lambda rng: linear(20_000, 2_000, 0.1, np.float64, rng),
    "60000x1000 float64": lambda rng: dense(60_000, 1_000, 0.1, np.float64, rng),
    "20000x10000 float32": lambda rng: linear(20_000, 10_000, 0.1, np.float32, rng),
    "100000x5000 uint8": lambda rng: dense(100_000, 5_000, 0.1, np.uint8, rng),
    "200000x400 packed": lambda rng: dense(200_000, 400, 0.1, np.float32, rng),
    "1000000x30 csv": lambda rng: dense(1_000_000, 30, 0.05, np.float64, rng),
}


def save(name, X, y, folder):
    if "csv" in name:
        path = folder / "data.csv"
        names = [f"x{j}" for j in range(X.shape[1])] + ["label"]
        np.savetxt(path, np.column_stack([X, y]), "%.7g", ",", header=",".join(names), comments="")
    else:
        path = folder / "data.mat"
        savemat(path, {"x_tr": X, "y_tr": y[:, None]}, do_compression="packed" in name)
    return path


def linear_model(X, y):
    """The AUC of a linear model on a tenth of the rows."""
    rows = np.random.default_rng(0).permutation(len(y))
    train, test = rows[len(y) // 10 :], rows[: len(y) // 10]
    if sp.issparse(X):
        models = (LogisticRegression(C=C, max_iter=50).fit(X[train], y[train]) for C in (0.01, 0.1, 1))
        return max(roc_auc_score(y[test], model.decision_function(X[test])) for model in models)
    X = X.astype(np.float32, copy=False)
    variance = X[:1000].var(axis=0).mean()
    penalties = (0.3, 3, 30) if X.size < 1e8 else (3,)
    models = (Ridge(p * variance * X.shape[1], solver="cholesky").fit(X[train], y[train]) for p in penalties)
    return max(roc_auc_score(y[test], model.predict(X[test])) for model in models)


def pinned(cores):
    """What a process has to do before it starts, to run on these cores only."""
    return (lambda: os.sched_setaffinity(0, cores)) if cores else None


def seconds_to_read(path, cores):
    command = [sys.executable, "-c", READ, path]
    return float(subprocess.run(command, capture_output=True, text=True, preexec_fn=pinned(cores)).stdout)


@contextlib.contextmanager
def busy(cores):
    """These cores have something else to do, too."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=pinned(cores))
    try:
        yield
    finally:
        process.kill()
        process.wait()


def run(path, read, cores=None):
    """Seconds of one run, what it says, what is wrong with it if anything is, and its memory.

    ``read`` are the seconds that the library takes to read the file, in the same circumstances.
    """
    limit = max(LIMIT, 2 * read if read > 5 else 0)
    done, seconds, memory = measure(path, before=pinned(cores))
    score = re.fullmatch(r"AUC Score: (\d\.\d{4})\n", done.stdout)
    if not score:
        return seconds, "", f"exit {done.returncode}: {done.stderr.strip()[-200:]}", memory
    effort = re.search(r"--effort (\S+) repeats", done.stderr)
    cut = re.search(r"stopped at (\d+%)", done.stderr)
    said = " ".join([score[1], f"effort {effort[1]}", *([cut[1]] if cut else [])])
    return seconds, said, f"{seconds:.1f} s, limit {limit:.1f} s" if seconds > limit else "", memory


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", help="words that the names of the shapes to run hold")
    chosen = parser.parse_args().shapes
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    wrong = 0
    print(f"{'shape':26s} {'read':>11s} {'all cores':>27s} {'one core':>27s} {'one busy core':>27s}   memory, array")
    with tempfile.TemporaryDirectory() as folder:
        for name, make in SHAPES.items():
            if chosen and not any(word in name for word in chosen):
                continue
            X, y = make(np.random.default_rng(0))
            path = save(name, X, y, Path(folder))
            size = (X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes) / 1e6
            mark = f"  linear {linear_model(X, y):.4f}" if len(y) >= 2_000 else ""
            del X, y
            reads = [seconds_to_read(path, None)]
            results = [run(path, reads[0])]
            if cores:
                results.append(run(path, reads[0], cores[:1]))
                with busy(cores[:1]):
                    reads.append(seconds_to_read(path, cores[:1]))
                    results.append(run(path, reads[1], cores[:1]))
            path.unlink()
            shown = "".join(f" {s:6.1f} s {said:>18s}" for s, said, *_ in results)
            read = ", ".join(f"{seconds:.1f}" for seconds in reads)
            print(f"{name:26s} {read:>9s} s{shown}   {results[0][3]:.0f} MB, {size:.0f} MB{mark}", flush=True)
            for _, _, problem, _ in results:
                if problem:
                    wrong += 1
                    print(f"  {problem}")
    print(f"{wrong} of the runs late or wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
