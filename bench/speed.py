"""Measure how fast the learner is beside others, as ratios, each from runs taken in turn.

    python bench/speed.py                       on generated data
    python bench/speed.py train.mat a9a.mat     the double loop on the first file, AUCs on all

Two columns limit BLAS to one thread and to two. The exit code is 1 if a bound is missed.
"""

import argparse
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from common import read
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from oam import OnlineAUC, PairLearner
from preprocess import Preprocessor

THREADS = (1, 2)
PAIRS = 1_000_000  # about as many as the double loop has time for; larger files are cut to random rows
BUFFER, BLOCK, DRAW = 1_000, 512, OnlineAUC().draw  # of long streams
CHUNK = 2_048
MOST_ROWS = 60_000  # of a file whose AUC is measured
STEP_SIZES = np.geomspace(20, 300_000, 9)


def generate(n, d, positives, dtype=np.float32, seed=0):
    """Random rows and labels that depend on the first ten columns, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d), dtype=dtype)
    score = X[:, :10].sum(axis=1) + rng.standard_normal(n)
    return X, np.where(score > np.quantile(score, 1 - positives), 1, -1)


def zeros_and_ones(n=14_000, d=122, positives=0.005):
    X, y = generate(n, d, positives)
    return (X > 0.7).astype(np.float32), y


def prepared(path, buffer):
    """The scaled rows of a file in random order, few enough for the double loop."""
    X, y = read(path)
    rarer = np.count_nonzero(y > 0)
    rows = np.random.default_rng(0).permutation(len(y))[: PAIRS // min(buffer, rarer)]
    return Preprocessor().fit(X[rows]).transform(X[rows]), y[rows]


def double_loop(X, y, C, buffer):
    """The published gradient update, pair by pair."""
    rng = np.random.RandomState(0)
    w = np.zeros(X.shape[1], X.dtype)
    kept, seen = {1: [], -1: []}, {1: 0, -1: 0}
    for x, label in zip(X, y.tolist()):
        seen[label] += 1
        if len(kept[label]) < buffer:
            kept[label].append(x)
        else:
            slot = rng.randint(seen[label])
            if slot < buffer:
                kept[label][slot] = x
        half_C_t = C * max(1, seen[-label] / buffer) / 2
        frozen = w.copy()
        for b in kept[-label]:
            difference = label * (x - b)
            if difference @ frozen < 1:
                w += half_C_t * difference
    return w


def ours(X, y, C, buffer, block, draw=DRAW):
    """One pass of our learner, with a lane for each C."""
    rng = np.random.RandomState(0)
    learner = PairLearner(X.shape[1], C, buffer, "gradient", block, X.dtype, rng, draw if block > 1 else None)
    learner.learn(X, y)
    return learner.end()


def floor(X, lanes, draw):
    """The products that a pass cannot do without, and nothing else: scores and sums of each block and what it meets."""
    W = np.ones((X.shape[1], lanes), X.dtype)
    counts = np.ones((lanes, max(BLOCK, draw)), X.dtype)
    drawn = X[:draw].copy(), X[-draw:].copy()
    for i in range(0, len(X), BLOCK):
        for A in (X[i : i + BLOCK], *drawn):
            A @ W
            A.T @ counts[:, : len(A)].T


def fastest(patience, **contestants):
    """The least seconds of each contestant, by name, for each number of threads, over at least two rounds."""
    seconds = {name: np.full(len(THREADS), np.inf) for name in contestants}
    began, rounds = time.perf_counter(), 0
    while rounds < 2 or (time.perf_counter() - began) * (rounds + 1) / rounds < patience:
        rounds += 1
        for k, threads in enumerate(THREADS):
            with threadpool_limits(threads):
                for name, run in contestants.items():
                    start = time.perf_counter()
                    run()
                    seconds[name][k] = min(seconds[name][k], time.perf_counter() - start)
    return seconds


class Table:
    """Prints a line for each measurement, and counts those that miss their bound."""

    def __init__(self):
        self.missed = 0
        print(f"{'':56s} {'one core':>9s} {'two cores':>9s}   bound")

    def add(self, name, values, least=None, most=None):
        values = np.atleast_1d(values)
        shown = f"{name:56s}" + "".join(f" {value:9.2f}" for value in values) + " " * 10 * (len(THREADS) - len(values))
        if least is None and most is None:
            print(shown, flush=True)
            return
        ok = (values >= least).all() if most is None else (values <= most).all()
        self.missed += not ok
        bound = f">= {least:g}" if most is None else f"<= {most:g}"
        print(f"{shown}   {bound:9s} {'ok' if ok else 'MISSED'}", flush=True)


def add_double_loop(table, name, X, y, patience):
    """The double loop on rows as they are, beside ours with the settings that it has by default."""
    C, buffer, block = (OnlineAUC().get_params()[key] for key in ("C", "buffer", "block"))
    dense = X.toarray() if sp.issparse(X) else X
    seconds = fastest(
        patience,
        loop=lambda: double_loop(dense, y, C, buffer),
        blocks=lambda: ours(X, y, C, buffer, block),
        single=lambda: ours(X, y, C, buffer, 1),
    )
    name = f"{name}, {X.shape[0]} x {X.shape[1]}"
    table.add(f"double loop / ours (blocks): {name}", seconds["loop"] / seconds["blocks"], least=40)
    table.add(f"double loop / ours (block = 1): {name}", seconds["loop"] / seconds["single"], least=3)


def add_floor_and_peer(table, patience):
    X, y = generate(100_000, 120, 0.3)
    C = OnlineAUC().C
    contestants = {"peer": lambda: SGDClassifier(loss="hinge", average=True, max_iter=1, tol=None).fit(X, y)}
    for lanes in (1, 8):
        contestants |= {
            f"ours {lanes}": lambda lanes=lanes: ours(X, y, np.full(lanes, C), BUFFER, BLOCK),
            f"whole {lanes}": lambda lanes=lanes: floor(X, lanes, BUFFER),
            f"drawn {lanes}": lambda lanes=lanes: floor(X, lanes, DRAW),
        }
    seconds = fastest(patience, **contestants)
    for lanes in (1, 8):
        ratios = [seconds[f"ours {lanes}"] / seconds[f"{floor} {lanes}"] for floor in ("whole", "drawn")]
        table.add(f"ours / floor of whole buffers, lanes: {lanes}, 100000 x 120", ratios[0], most=3)
        table.add(f"ours / floor of the drawn rows, lanes: {lanes}", ratios[1])
    table.add("SGDClassifier / ours, one pass, 1 lane", seconds["peer"] / seconds["ours 1"], least=1.3)


def add_aucs(table, path):
    """The AUC on one half of a file's rows after a pass over the other, at the best of some settings each."""
    X, y = read(path)
    train, test = np.array_split(np.random.default_rng(0).permutation(len(y))[:MOST_ROWS], 2)
    preprocessor = Preprocessor().fit(X[train])
    A, B = (preprocessor.transform(X[rows]) for rows in (train, test))
    A, B = (Z.toarray() if sp.issparse(Z) else Z for Z in (A, B))
    n_pos = np.count_nonzero(y[train] > 0)
    C = STEP_SIZES / (n_pos * (len(train) - n_pos) * A.var(axis=0).sum())

    def best(scores):
        return max(roc_auc_score(y[test], s) for s in scores)

    drawn, whole = (best((B @ ours(A, y[train], C, BUFFER, BLOCK, draw).W_mean).T) for draw in (DRAW, BUFFER))
    peers = [
        SGDClassifier(average=True, max_iter=1, tol=None, alpha=a, random_state=0) for a in 10.0 ** np.arange(-6, -1)
    ]
    peer = best(peer.fit(A, y[train]).decision_function(B) for peer in peers)
    name = f"{Path(path).name}, {A.shape[0]} x {A.shape[1]}"
    print(f"AUC, {name}: drawn rows {drawn:.4f}, whole buffers {whole:.4f}, SGDClassifier {peer:.4f}")
    table.add(
        f"1,000 * (AUC - the better of the others'): {Path(path).name}", 1000 * (drawn - max(whole, peer)), least=-2
    )


def add_growth(table, patience):
    X, y = generate(1_000_000, 30, 0.3)
    sizes = (10_000, 100_000, 1_000_000)
    seconds = fastest(patience, **{str(n): lambda n=n: ours(X[:n], y[:n], OnlineAUC().C, BUFFER, BLOCK) for n in sizes})
    per_row = np.array([seconds[str(n)] / n for n in sizes])
    for n, s in zip(sizes, per_row):
        table.add(f"microseconds per row, {n} x 30", 1e6 * s)
    table.add("growth: most / least of these", per_row.max(axis=0) / per_row.min(axis=0), most=1.3)


def learn_in_chunks():
    """Learn from 1,000,000 x 30 numbers of 8 bytes, scaled a chunk at a time; print the peak and the bound in MB."""
    import resource

    X, y = generate(1_000_000, 30, 0.3, np.float64)
    preprocessor = Preprocessor().fit(X)
    rng = np.random.RandomState(0)
    n_features, C = preprocessor.n_features_out_, OnlineAUC().C
    learner = PairLearner(n_features, C, BUFFER, "gradient", BLOCK, np.float32, rng, DRAW)
    for i in range(0, len(X), CHUNK):
        learner.learn(preprocessor.transform(X[i : i + CHUNK]), y[i : i + CHUNK])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(peak / 1e6, 1.5 * X.nbytes / 1e6 + 200)


def add_memory(table):
    if find_spec("resource") is None:  # as on Windows
        return
    printed = subprocess.check_output([sys.executable, __file__, "--learn-in-chunks"], text=True)
    peak, bound = map(float, printed.split())
    table.add("peak memory in MB, 1000000 x 30 float64", peak, most=bound)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="data for the double loop and the AUCs (default: generated 0/1)"
    )
    parser.add_argument(
        "--patience", type=float, default=25, metavar="S", help="seconds for each group of contestants (default: 25)"
    )
    parser.add_argument("--learn-in-chunks", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.learn_in_chunks:
        return learn_in_chunks()
    table = Table()
    add_memory(table)  # first, because a child's peak begins at its parent's
    add_floor_and_peer(table, options.patience)
    add_growth(table, options.patience)
    for path in options.files[:1]:
        add_double_loop(table, Path(path).name, *prepared(path, OnlineAUC().buffer), options.patience)
    for path in options.files:
        add_aucs(table, path)
    if not options.files:
        add_double_loop(table, "generated", *zeros_and_ones(), options.patience)
    print(f"{table.missed} of the bounds missed")
    return int(table.missed > 0)


if __name__ == "__main__":
    sys.exit(main())
