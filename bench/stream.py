"""Learn from files larger than memory should hold, and print how long it took and how much memory.

    python bench/stream.py                              10,000,000 rows x 50 columns of .npy, CSV and LIBSVM text
    python bench/stream.py --rows 1000000 --kinds npy   less of it

The files are written into a temporary directory, in blocks of 100,000 rows; text repeats the first block. Beside each
time is the least that it could be: that of reading the file's bytes once.
"""

import argparse
import io
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import common
import numpy as np
from sklearn.datasets import dump_svmlight_file

BLOCK = 100_000


def make_block(rng, weights):
    """Rows of which some seven in a hundred are positive, by a logistic model."""
    X = rng.normal(size=(BLOCK, len(weights))).astype(np.float32)
    chance = 1 / (1 + np.exp(5.5 - 0.5 * X @ weights))
    return X, (rng.random(BLOCK) < chance).astype(np.int8)


def write_npy(directory, n_blocks, rng, weights):
    paths = [directory / "x.npy", directory / "y.npy"]
    with paths[0].open("wb") as x_file, paths[1].open("wb") as y_file:
        for block in range(n_blocks):
            for file, A in zip((x_file, y_file), make_block(rng, weights)):
                if block == 0:
                    shape = n_blocks * BLOCK, *A.shape[1:]
                    header = {"descr": A.dtype.str, "fortran_order": False, "shape": shape}
                    np.lib.format.write_array_header_1_0(file, header)
                file.write(A.data)
    return paths


def write_csv(directory, n_blocks, rng, weights):
    X, y = make_block(rng, weights)
    text = io.BytesIO()
    np.savetxt(text, np.column_stack([X, y]), fmt=["%.4f"] * len(weights) + ["%d"], delimiter=",")
    return repeat(text, directory / "rows.csv", n_blocks)


def write_svm(directory, n_blocks, rng, weights):
    X, y = make_block(rng, weights)
    text = io.BytesIO()
    dump_svmlight_file(X.round(4), y, text, zero_based=False)
    return repeat(text, directory / "rows.svm", n_blocks)


def repeat(text, path, n_blocks):
    with path.open("wb") as file:
        for _ in range(n_blocks):
            file.write(text.getvalue())
    return [path]


WRITERS = {"npy": write_npy, "csv": write_csv, "svm": write_svm}


PROGRAM = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import common, exp
exp.main(["--stream", "-q", *sys.argv[1:]])
print(common.peak_megabytes())
"""


def run(paths):
    """The seconds of the command, its greatest memory in MB, and the AUC."""
    start = time.perf_counter()
    argv = [sys.executable, "-c", PROGRAM, str(common.ROOT / "bench"), *map(str, paths)]
    done = subprocess.run(argv, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    found = re.fullmatch(r"AUC Score: (\d\.\d{4})\n(\S+)\n", done.stdout)
    if not found:
        sys.exit(done.stderr.strip() or f"exp.py printed {done.stdout!r}, expected one score")
    return seconds, float(found[2]), float(found[1])


def read_bytes(paths):
    start = time.perf_counter()
    for path in paths:
        with path.open("rb") as file:
            while file.read(2**24):
                pass
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, metavar="N", help="rows (default: 10000000)")
    parser.add_argument("--columns", type=int, default=50, metavar="N", help="columns (default: 50)")
    parser.add_argument("--kinds", nargs="+", choices=WRITERS, default=list(WRITERS), help="files (default: all)")
    options = parser.parse_args()
    n_blocks = max(options.rows // BLOCK, 1)
    print(f"{n_blocks * BLOCK} rows x {options.columns} columns")
    print(f"{'file':5s} {'GB':>6s} {'reading s':>10s} {'learning s':>11s} {'memory MB':>10s} {'AUC':>7s}")
    for kind in options.kinds:
        with tempfile.TemporaryDirectory() as directory:
            rng = np.random.default_rng(0)
            paths = WRITERS[kind](Path(directory), n_blocks, rng, rng.normal(size=options.columns))
            size = sum(path.stat().st_size for path in paths) / 1e9
            seconds, megabytes, auc = run(paths)
            print(
                f"{kind:5s} {size:6.2f} {read_bytes(paths):10.1f} {seconds:11.1f} {megabytes:10.0f} {auc:7.4f}",
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(main())
