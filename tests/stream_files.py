"""Files that are read as streams, of every kind, whole or in parts, and workers that are no processes."""

import bz2
import gzip

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

KINDS = ["npy", "csv", "csv.gz", "svm", "svm.bz2", "parquet"]


class Here:
    """As `Workers`, in this process, one piece of work after the other."""

    jobs = 1

    def run(self, numbers, function, *arguments, seconds=None, watch=lambda results: False):
        results = {}
        for i in numbers:
            results[i] = function(i, *arguments)
            watch(results)
        return results


def write_stream(kind, X, y, folder, name="rows"):
    """The files of a stream of that kind, whose columns are called a, b, c and so on."""
    folder.mkdir(exist_ok=True)
    if kind == "npy":
        np.save(folder / f"x-{name}.npy", X)
        np.save(folder / f"y-{name}.npy", y)
        return [folder / f"x-{name}.npy", folder / f"y-{name}.npy"]
    path = folder / f"{name}.{kind}"
    columns = [chr(ord("a") + j) for j in range(X.shape[1])]
    if kind == "parquet":
        pytest.importorskip("pyarrow")
        pd.DataFrame({**dict(zip(columns, X.T)), "label": y}).to_parquet(path, row_group_size=500)
        return [path]
    if kind.startswith("csv"):
        lines = (f"{','.join(map(str, row))},{label}\n" for row, label in zip(X.tolist(), np.asarray(y).tolist()))
        path.write_text(",".join([*columns, "label"]) + "\n" + "".join(lines))
    else:
        dump_svmlight_file(sp.csr_array(X), y, str(path), zero_based=False)
    pack = {"gz": gzip.compress, "bz2": bz2.compress}.get(kind.split(".")[-1], bytes)
    path.write_bytes(pack(path.read_bytes()))
    return [path]


def write_parts(kind, X, y, folder, n=5):
    """The rows as ``n`` files, or pairs, of that kind in a directory."""
    for i, rows in enumerate(np.array_split(np.arange(len(y)), n)):
        write_stream(kind, X[rows], y[rows], folder, f"day-{i}")
    return folder


def dense(X):
    return X.toarray() if sp.issparse(X) else X
