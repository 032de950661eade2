"""What each ingredient adds: the mean AUC over data files, with all of them and without one at a time.

    python bench/ablation.py DIR              every .mat file there, ten folds each
    python bench/ablation.py DIR --folds 3    the first three folds of ten

The folds are those of the command, and learning is not cut by the clock. It takes some minutes for each line.
"""

import argparse
import sys
from contextlib import ExitStack
from multiprocessing import Pool
from pathlib import Path
from unittest.mock import patch

import numpy as np
from common import fold_aucs

import tenfold.features.landmarks
import tenfold.lanes
import tenfold.ranker
from tenfold import AUCRanker
from tenfold.features import FEATURE_SETS, SETS
from tenfold.features.rows import Columns
from tenfold.ranker import PublishedRanker

SIMILARITIES = ("mixed", "smooth", "rough")


def without(*names):
    """No sets of features of these names."""
    return patch.object(tenfold.ranker, "FEATURE_SETS", [kind for kind in FEATURE_SETS if kind.name not in names])


def without_curves():
    """The columns themselves only, where there are curves over them."""
    return patch.object(Columns, "curves", lambda self, Z: Z[:, :0])


def without_ranks():
    return patch.object(tenfold.features.landmarks, "most_ranked", lambda shape, plan: 0)


def best_lane(aucs, n_pos):
    return (np.arange(aucs.size) == aucs.argmax()).reshape(aucs.shape) * 1.0


def equal_shares(aucs, n_pos):
    return np.full(aucs.shape, 1 / aucs.size)


def chosen_by(rule):
    """Another rule for the shares of the lanes."""
    return patch.object(tenfold.lanes, "shares_of", rule)


RANKER = AUCRanker(random_state=0)
VARIANTS = {
    "all": (RANKER, []),
    "published algorithm (C = 1e-3, one pass)": (PublishedRanker(random_state=0), []),
    "--features linear": (AUCRanker("linear", random_state=0), []),
    **{f"without the set {name}": (RANKER, [lambda name=name: without(name)]) for name in SETS if name != "linear"},
    "without similarities": (RANKER, [lambda: without(*SIMILARITIES)]),
    "without similarities and trees": (RANKER, [lambda: without(*SIMILARITIES, "trees", "forest")]),
    "without ranks and steps": (RANKER, [without_curves, without_ranks]),
    "the best lane alone": (RANKER, [lambda: chosen_by(best_lane)]),
    "all lanes alike": (RANKER, [lambda: chosen_by(equal_shares)]),
}


def auc_of(job):
    """The mean AUC over the first folds of a file, by this variant."""
    path, name, n_folds, seed = job
    ranker, changes = VARIANTS[name]
    with ExitStack() as stack:
        for change in changes:
            stack.enter_context(change())
        return fold_aucs(path, ranker, n_folds, seed).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--folds", type=int, default=10, metavar="N", help="folds of ten (default: 10)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of folds and learners (default: 0)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="files at a time (default: 2)")
    options = parser.parse_args()
    paths = sorted(options.folder.glob("*.mat"))
    if not paths:
        sys.exit(f"{options.folder} has no .mat files, expected some")
    print(f"{len(paths)} files, {options.folds} folds\n{'':42s} mean AUC  change")
    whole = None
    with Pool(options.jobs) as pool:
        for name in VARIANTS:
            jobs = [(path, name, options.folds, options.seed) for path in paths]
            auc = np.mean(list(pool.imap(auc_of, jobs)))
            whole = auc if whole is None else whole
            print(f"{name:42s} {auc:8.4f} {auc - whole:+7.4f}", flush=True)


if __name__ == "__main__":
    main()
