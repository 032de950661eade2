"""Check that the AUC which the command prints is not too good to be true.

    python bench/honesty.py german.mat magic04.mat
    python bench/honesty.py magic04.mat --shuffles 20 --draws 5

Shuffled labels can't be learned, so their mean AUC must lie within two standard errors of 0.5. And the AUC that is
printed for 4,500 random rows must be, but for 0.005 on average, that of a model which was learned from them, with the
same effort, on the other rows of the file. The exit code is 1 if either fails.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from common import read, run_exp
from scipy.io import savemat
from sklearn.metrics import roc_auc_score

from tenfold import load_model

SAMPLE = 4_500  # rows of a large file to learn from: enough for all kinds of features
REST = 30_000  # most rows to test on
FEW = 20  # positives that a sample with shuffled labels has at least
LARGE = 9_000
BOUND = 0.005


def save(path, X, y):
    savemat(path, {"x_tr": X, "y_tr": y[:, None]})
    return path


def sample(y, rng):
    """Numbers of at most ``SAMPLE`` random rows, the classes in proportion, but with ``FEW`` positives if there are."""
    if len(y) <= SAMPLE:
        return np.arange(len(y))
    pos, neg = rng.permutation(np.flatnonzero(y > 0)), rng.permutation(np.flatnonzero(y < 0))
    n_pos = min(len(pos), max(FEW, SAMPLE * len(pos) // len(y)))
    return np.concatenate([pos[:n_pos], neg[: SAMPLE - n_pos]])


def standard_error(values):
    return np.std(values, ddof=1) / np.sqrt(len(values))


def shuffled_aucs(X, y, shuffles, folder):
    """The AUCs printed for the same rows with labels in other random orders."""
    rows = sample(y, np.random.default_rng(0))
    return [
        run_exp(
            save(folder / "shuffled.mat", X[rows], np.random.default_rng(seed).permutation(y[rows])), "--seed", seed
        )[0]
        for seed in range(shuffles)
    ]


def draw_aucs(X, y, seed, folder):
    """The AUC printed for random rows, and that of a model of them on others."""
    rows = np.random.default_rng(seed).permutation(len(y))
    train, test = rows[:SAMPLE], rows[SAMPLE : SAMPLE + REST]
    path, saved = save(folder / "sample.mat", X[train], y[train]), folder / "model.npz"
    printed = run_exp(path, "--seed", seed, "--save", saved, "--force")[0]
    return printed, roc_auc_score(y[test], load_model(saved).decision_function(X[test]))


def check_shuffled(files, shuffles, folder):
    print(
        f"labels shuffled, {shuffles} times\n{'file':26s} {'mean AUC':>9s} {'std. error':>10s} {'errors off 0.5':>15s}"
    )

    def line(name, aucs):
        off = (np.mean(aucs) - 0.5) / standard_error(aucs)
        print(f"{name:26s} {np.mean(aucs):9.4f} {standard_error(aucs):10.4f} {off:+15.1f}", flush=True)
        return abs(off) <= 2

    every = []
    for path in files:
        aucs = shuffled_aucs(*read(path), shuffles, folder)
        line(path.name, aucs)
        every += aucs
    ok = line("all", every)
    print("ok" if ok else "MISSED: more than two standard errors from 0.5")
    return ok


def check_draws(files, draws, folder):
    print(
        f"\n{SAMPLE} random rows, {draws} times\n{'file':26s} {'printed':>9s} {'other rows':>10s} {'difference':>15s}"
    )
    differences = []
    for path in files:
        X, y = read(path)
        if len(y) <= LARGE:
            print(f"{path.name:26s} skipped: {len(y)} rows, expected more than {LARGE}")
            continue
        for seed in range(draws):
            printed, true = draw_aucs(X, y, seed, folder)
            differences.append(printed - true)
            print(f"{path.name:26s} {printed:9.4f} {true:10.4f} {printed - true:+15.4f}", flush=True)
    if not differences:
        return True
    ok = abs(np.mean(differences)) < BOUND
    print(f"{'mean':26s} {'':9s} {'':10s} {np.mean(differences):+15.4f}")
    print("ok" if ok else f"MISSED: {BOUND} or more")
    return ok


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="data files, as the command takes them")
    parser.add_argument("--shuffles", type=int, default=10, metavar="N", help="at least 2, or 0 for none (default: 10)")
    parser.add_argument("--draws", type=int, default=3, metavar="N", help="samples of each large file (default: 3)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ok = [options.shuffles < 2 or check_shuffled(options.files, options.shuffles, folder)]
        ok.append(options.draws < 1 or check_draws(options.files, options.draws, folder))
    return int(not all(ok))


if __name__ == "__main__":
    sys.exit(main())
