"""Run the command end to end on hard shapes and print the seconds that each takes by the wall clock.

    python bench/budget.py                every shape, on all cores, on one, and beside a busy process
    python bench/budget.py 40x10 wide     only these shapes

Every run must print one line and end within ten seconds, imports and loading included.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.io import savemat

EXP = Path(__file__).resolve().parent.parent / "exp.py"
LIMIT = 10.0


def labels(score, positives, rng):
    """+1 for the given share of rows with the highest noisy score."""
    score = (score - score.mean()) / score.std() + rng.standard_normal(len(score))
    return np.where(score > np.quantile(score, 1 - positives), 1, -1)


def dense(n, d, positives, dtype, rng):
    X = rng.random((n, d), dtype=np.float32)
    y = labels(X[:, : min(d, 10)].sum(axis=1), positives, rng)
    return (X * 255 if dtype == np.uint8 else X).astype(dtype), y


def sparse(n, d, per_row, positives, rng):
    """Rows of a few ones, rare columns last, as in text and web data."""
    columns = (d * rng.random(n * per_row) ** 3).astype(int)
    X = sp.csr_array((np.ones(n * per_row), (np.repeat(np.arange(n), per_row), columns)), shape=(n, d))
    return X, labels(X @ rng.standard_normal(d), positives, rng)


SHAPES = {
    "500000x300 sparse": lambda rng: sparse(500_000, 300, 12, 0.03, rng),
    "60000x784 uint8": lambda rng: dense(60_000, 784, 0.1, np.uint8, rng),
    "1000000x30 float64": lambda rng: dense(1_000_000, 30, 0.01, np.float64, rng),
    "2000x20000 sparse": lambda rng: sparse(2_000, 20_000, 100, 0.1, rng),
    "300x5000 dense": lambda rng: dense(300, 5_000, 0.1, np.float64, rng),
    "40x10, 4 positives": lambda rng: dense(40, 10, 0.1, np.float64, rng),
}


def run(path, cores=None):
    """Seconds of one run, and what is wrong with it if anything is."""
    pin = (lambda: os.sched_setaffinity(0, cores)) if cores else None
    start = time.perf_counter()
    done = subprocess.run([sys.executable, EXP, path], capture_output=True, text=True, preexec_fn=pin)
    seconds = time.perf_counter() - start
    score = re.fullmatch(r"AUC Score: (\d\.\d{4})\n", done.stdout)
    if not score:
        return seconds, "", f"exit {done.returncode}: {done.stderr.strip()[-200:]}"
    cut = re.search(r"the clock cut learning to (\d+%)", done.stderr)
    return seconds, f"{score[1]}{' ' + cut[1] if cut else ''}", "late" if seconds > LIMIT else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", help="words that the names of the shapes to run start with or hold")
    chosen = parser.parse_args().shapes
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    wrong = 0
    print(f"{'shape':20s} {'all cores':>24s} {'one core':>24s} {'beside a busy process':>24s}")
    with tempfile.TemporaryDirectory() as folder:
        for name, make in SHAPES.items():
            if chosen and not any(word in name for word in chosen):
                continue
            X, y = make(np.random.default_rng(0))
            path = Path(folder) / "data.mat"
            savemat(path, {"x_tr": X, "y_tr": y[:, None]})
            del X, y
            results = [run(path)]
            if cores:
                results.append(run(path, cores[:1]))
                busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
                try:
                    results.append(run(path))
                finally:
                    busy.kill()
                    busy.wait()
            print(f"{name:20s}" + "".join(f" {s:6.1f} s {score:>15s}" for s, score, _ in results), flush=True)
            for _, _, problem in results:
                if problem:
                    wrong += 1
                    print(f"  {problem}")
    print(f"{wrong} of the runs late or wrong (limit {LIMIT:g} s)")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
