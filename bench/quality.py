"""Set the AUC of the command beside that of scikit-learn's classifiers, which have no time limit, on the same folds.

    python bench/quality.py train.mat other.csv
    python bench/quality.py train.mat --seeds 0 1 2 --peers LR,RF

Our seconds are those of the whole command, a peer's those of its ten fits and scores alone; both of one seed.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from common import read, run_exp
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, SGDClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

from preprocess import Preprocessor

PEERS = [
    ("LR", lambda seed: LogisticRegression(max_iter=300)),
    ("LRCV", lambda seed: LogisticRegressionCV(scoring="roc_auc", max_iter=300)),
    ("SGDlog", lambda seed: SGDClassifier(loss="log_loss", random_state=seed)),
    ("SGDhinge", lambda seed: SGDClassifier(loss="hinge", random_state=seed)),
    ("LSVM", lambda seed: LinearSVC(random_state=seed)),
    ("LDA", lambda seed: LinearDiscriminantAnalysis()),
    ("Ada", lambda seed: AdaBoostClassifier(random_state=seed)),
    ("RF", lambda seed: RandomForestClassifier(300, min_samples_leaf=3, n_jobs=-1, random_state=seed)),
    ("ET", lambda seed: ExtraTreesClassifier(300, min_samples_leaf=3, n_jobs=-1, random_state=seed)),
    ("HGB", lambda seed: HistGradientBoostingClassifier(random_state=seed)),
]
NEED_DENSE = {"LDA", "HGB"}
MOST_BYTES = 2e9  # what dense rows may take


def folds(X, y, seed):
    """The command's folds: scaled training rows, their labels, scaled test rows, theirs."""
    n_folds = min(10, np.count_nonzero(y > 0))
    for train, test in StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(np.zeros(len(y)), y):
        preprocessor = Preprocessor().fit(X[train])
        yield preprocessor.transform(X[train]), y[train], preprocessor.transform(X[test]), y[test]


def auc_of(peer, dense, Z, y, Z_test, y_test):
    if dense and sp.issparse(Z):
        Z, Z_test = Z.toarray(), Z_test.toarray()
    peer.fit(Z, y)
    if hasattr(peer, "decision_function"):
        return roc_auc_score(y_test, peer.decision_function(Z_test))
    return roc_auc_score(y_test, peer.predict_proba(Z_test)[:, 1])


def run_peers(X, y, names, seed):
    """For each peer the mean AUC over the folds and the seconds of all of them."""
    aucs, seconds = {name: [] for name in names}, dict.fromkeys(names, 0.0)
    for fold in folds(X, y, seed):
        for name, make in PEERS:
            if name in names:
                start = time.perf_counter()
                aucs[name].append(auc_of(make(seed), name in NEED_DENSE, *fold))
                seconds[name] += time.perf_counter() - start
    return {name: (np.mean(aucs[name]), seconds[name]) for name in names}


def compare(path, names, seeds):
    """Print the table of one file and return our lead over each peer."""
    X, y = read(path)
    n_pos = np.count_nonzero(y > 0)
    print(f"\n{Path(path).name}: {X.shape[0]} rows x {X.shape[1]} features, {n_pos} positive, seeds {seeds}")
    print(f"{'learner':9s} {'AUC':>7s} {'seconds':>8s} {'our lead':>9s}", flush=True)
    ours = np.mean([run_exp(path, "--seed", seed) for seed in seeds], axis=0)
    print(f"{'ours':9s} {ours[0]:7.4f} {ours[1]:8.1f}", flush=True)
    too_large = sp.issparse(X) and 4 * X.shape[0] * X.shape[1] > MOST_BYTES
    able = [name for name in names if not (too_large and name in NEED_DENSE)]
    runs = [run_peers(X, y, able, seed) for seed in seeds]
    leads = {}
    for name in names:
        if name not in able:
            print(f"{name:9s} skipped")
            continue
        auc, seconds = np.mean([run[name] for run in runs], axis=0)
        leads[name] = ours[0] - auc
        print(f"{name:9s} {auc:7.4f} {seconds:8.1f} {leads[name]:+9.4f}")
    return leads


def peer_names(text):
    known = [name for name, _ in PEERS]
    chosen = text.split(",")
    for name in chosen:
        if name not in known:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {','.join(known)}")
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = ",".join(name for name, _ in PEERS)
    parser.add_argument("files", nargs="+", metavar="FILE", help="data files, as the command takes them")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], metavar="N", help="fold seeds (default: 0)")
    parser.add_argument("--peers", type=peer_names, default=every, help=f"some of {every} (default: all)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # peers that have not converged say so in every fold
    leads = [compare(path, options.peers, options.seeds) for path in options.files]
    print("\nmean lead over each peer, and files ahead")
    for name in options.peers:
        lead = [of_file[name] for of_file in leads if name in of_file]
        if lead:
            print(f"{name:9s} {np.mean(lead):+7.4f} {sum(x > 0 for x in lead):4d} of {len(lead)}")


if __name__ == "__main__":
    sys.exit(main())
