"""Learn from files larger than memory should hold, and print how long it took and how much memory.

    python bench/stream.py                              10,000,000 rows x 50 columns of .npy, CSV and Parquet
    python bench/stream.py --rows 1000000 --kinds npy   less of it
    python bench/stream.py --old ../before              also by another version of this program, run in turn

The files are written into a temporary directory, in blocks of 100,000 rows; text repeats the first 20. Beside each
time is the least that it could be, that of reading the file's bytes once, and what other learners take that are fed the
same file by pandas: scikit-learn's SGDClassifier and, if it is installed, river's LogisticRegression. Memory is that of
the process that needs most, of a tenth of the rows and of all.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from shutil import copyfileobj

import common
import numpy as np
from sklearn.datasets import dump_svmlight_file

BLOCK = 100_000
DISTINCT = 20  # blocks of text, which is slow to write, until they are repeated; first rows must not be the same
CHUNK = 40_000  # rows that others are fed at a time


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
    def write(X, y, file):
        np.savetxt(file, np.column_stack([X, y]), fmt=["%.4f"] * len(weights) + ["%d"], delimiter=",")

    return write_text(write, directory / "rows.csv", n_blocks, rng, weights)


def write_svm(directory, n_blocks, rng, weights):
    def write(X, y, file):
        dump_svmlight_file(X.round(4), y, file, zero_based=False)

    return write_text(write, directory / "rows.svm", n_blocks, rng, weights)


def write_text(write, path, n_blocks, rng, weights):
    """Some blocks of text, again and again; nothing of that stays in memory, which is measured."""
    blocks = [path.with_name(f"{i}.block") for i in range(min(n_blocks, DISTINCT))]
    for block in blocks:
        with block.open("wb") as file:
            write(*make_block(rng, weights), file)
    with path.open("wb") as file:
        for i in range(n_blocks):
            with blocks[i % len(blocks)].open("rb") as block:
                copyfileobj(block, file)
    for block in blocks:
        block.unlink()
    return [path]


def write_parquet(directory, n_blocks, rng, weights):
    import pyarrow as pa
    from pyarrow import parquet

    path, writer = directory / "rows.parquet", None
    for _ in range(n_blocks):
        X, y = make_block(rng, weights)
        table = pa.table({**{f"c{j}": column for j, column in enumerate(X.T.copy())}, "label": y})
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()
    return [path]


WRITERS = {"npy": write_npy, "csv": write_csv, "parquet": write_parquet, "svm": write_svm}


def read_bytes(paths):
    start = time.perf_counter()
    for path in paths:
        with path.open("rb") as file:
            while file.read(2**24):
                pass
    return time.perf_counter() - start


# --- other learners, fed by pandas -----------------------------------------------------------------------------------


def chunks(paths, n_columns):
    """Data frames of some rows of the file at a time, and their labels."""
    import pandas as pd

    names = [f"c{j}" for j in range(n_columns)]
    if paths[0].suffix == ".npy":
        n_rows = len(np.load(paths[1], mmap_mode="r"))
        for i in range(0, n_rows, CHUNK):
            X, y = (np.array(np.load(path, mmap_mode="r")[i : i + CHUNK]) for path in paths)
            yield pd.DataFrame(X, columns=names), y
    elif paths[0].suffix == ".csv":
        for frame in pd.read_csv(paths[0], header=None, names=[*names, "label"], chunksize=CHUNK):
            yield frame[names], frame["label"].to_numpy()
    else:
        from pyarrow import parquet

        for batch in parquet.ParquetFile(paths[0]).iter_batches(CHUNK):
            frame = batch.to_pandas()
            yield frame[names], frame["label"].to_numpy()


def feed(learn, paths, n_columns, n_rows):
    """Rows a second of a learner, by as many rows as take half a minute at most."""
    done, start = 0, time.perf_counter()
    for X, y in chunks(paths, n_columns):
        learn(X, y)
        done += len(y)
        if time.perf_counter() - start > 30:
            break
    return min(done, n_rows) / (time.perf_counter() - start)


def others(paths, n_columns, n_rows):
    """Rows a second of other learners, by their names."""
    from sklearn.linear_model import SGDClassifier

    learner = SGDClassifier(random_state=0)
    rates = {"SGDClassifier": feed(lambda X, y: learner.partial_fit(X, y, classes=[0, 1]), paths, n_columns, n_rows)}
    if find_spec("river"):
        import pandas as pd
        from river import linear_model, preprocessing

        model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
        learn = lambda X, y: model.learn_many(X, pd.Series(y.astype(bool)))  # noqa: E731
        rates["river"] = feed(learn, paths, n_columns, n_rows)
    return rates


# --- tables ----------------------------------------------------------------------------------------------------------


def compare_speed(options):
    n_blocks = max(options.rows // BLOCK, 1)
    n_rows = n_blocks * BLOCK
    print(f"{n_rows} rows x {options.columns} columns, {os.cpu_count()} cores; seconds are medians of {options.times}")
    for kind in options.kinds:
        with tempfile.TemporaryDirectory() as directory:
            few, many = (
                write_rows(kind, Path(directory) / name, n, options.columns)
                for name, n in (("few", max(n_blocks // 10, 1)), ("many", n_blocks))
            )
            size = sum(path.stat().st_size for path in many) / 1e9
            print(f"\n{kind}: {size:.2f} GB, bytes read in {read_bytes(many):.1f} s")
            versions = {"--jobs 1": (common.ROOT, 1), "--jobs 2": (common.ROOT, 2)}
            if options.old and kind != "parquet":
                versions = {"before": (options.old, None), **versions}
            seconds, found = {name: [] for name in versions}, {}
            for _ in range(options.times):
                for name, (root, jobs) in versions.items():
                    how = () if jobs is None else ("--jobs", jobs)
                    auc, took, megabytes = common.run_exp("--stream", *many, *how, root=root)
                    seconds[name].append(took)
                    found[name] = megabytes, auc
            print(f"{'':10s} {'seconds':>8s} {'rows/s':>10s} {'MB, a tenth':>12s} {'MB, all':>8s} {'AUC':>7s}")
            for name, (root, jobs) in versions.items():
                how = () if jobs is None else ("--jobs", jobs)
                _, _, less = common.run_exp("--stream", *few, *how, root=root)
                took, (megabytes, auc) = statistics.median(seconds[name]), found[name]
                print(f"{name:10s} {took:8.1f} {n_rows / took:10.0f} {less:12.0f} {megabytes:8.0f} {auc:7.4f}")
            one, two = (statistics.median(seconds[f"--jobs {jobs}"]) for jobs in (1, 2))
            before = (
                f"before / --jobs 1: {statistics.median(seconds['before']) / one:.2f}; " if "before" in seconds else ""
            )
            print(f"{before}--jobs 1 / --jobs 2: {one / two:.2f}")
            if kind != "svm":
                for name, rate in others(many, options.columns, n_rows).items():
                    print(f"{name} fed by pandas: {rate:.0f} rows/s")
            sys.stdout.flush()


def write_rows(kind, directory, n_blocks, n_columns):
    directory.mkdir()
    rng = np.random.default_rng(0)
    return WRITERS[kind](directory, n_blocks, rng, rng.normal(size=n_columns))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, metavar="N", help="rows (default: 10000000)")
    parser.add_argument("--columns", type=int, default=50, metavar="N", help="columns (default: 50)")
    parser.add_argument("--times", type=int, default=1, metavar="N", help="runs of each, in turn (default: 1)")
    kinds = [kind for kind in WRITERS if kind != "svm" and (kind != "parquet" or find_spec("pyarrow"))]
    parser.add_argument("--kinds", nargs="+", choices=WRITERS, default=kinds, help="files (default: all but svm)")
    parser.add_argument("--old", type=Path, metavar="DIR", help="the folder of another version (default: none)")
    compare_speed(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
