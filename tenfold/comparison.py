"""The comparison of ours with the learners of ``baselines.py``, on the same folds: running them, and the table."""

import time
import warnings
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from preprocess import Preprocessor
from tenfold.baselines import learners
from tenfold.baselines.base import scores, takes_sparse
from tenfold.columns import TableEncoder
from tenfold.lanes import inner_folds
from tenfold.metrics import interval
from tenfold.ranker import ENCODING_FOLDS
from tenfold.writing import print_result

MOST_DENSE = 2e9  # bytes that sparse rows may take when made dense for those who need it


@dataclass
class LearnerResult:
    """How a learner has done: AUC and scores of each fold, and the seconds of all, or the trouble with it."""

    name: str
    aucs: list = field(default_factory=list)
    scores: list = field(default_factory=list)
    seconds: float = 0.0
    trouble: str = ""


def run_learner(fold, experiment, learner):
    """The AUC, the scores and the seconds of a learner in a fold, on the cleaned and scaled columns of all rows."""
    warnings.simplefilter("ignore")  # such as that a solver has not converged
    X_test, y_test = experiment.test_rows(fold)
    train, _ = experiment.splits[fold]
    X, y = experiment.X[train], experiment.y[train]
    if experiment.categories:
        encoder = TableEncoder(experiment.categories)
        X = encoder.fit_transform(X, y, inner_folds(y, ENCODING_FOLDS, np.random.RandomState(0)))
        X_test = encoder.transform(X_test)
    preprocessor = Preprocessor().fit(X)
    Z, Z_test = preprocessor.transform(X), preprocessor.transform(X_test)
    if sp.issparse(Z) and not takes_sparse(learner):
        size = Z.dtype.itemsize * Z.shape[0] * Z.shape[1]
        if size > MOST_DENSE:
            raise ValueError(f"as dense rows it takes {size / 1e9:.1f} GB, expected at most {MOST_DENSE / 1e9:g} GB")
        Z, Z_test = Z.toarray(), Z_test.toarray()
    begun = time.monotonic()
    test_scores = scores(clone(learner).fit(Z, y), Z_test)
    return roc_auc_score(y_test, test_scores), test_scores, time.monotonic() - begun


def table_head():
    return f"{'learner':<34} {'AUC':>6} {'+/-':>7} {'seconds':>8}  lead of ours"


def table_cells(result, ours):
    """The name, the mean AUC, its deviation over the folds, the seconds, and how far ours leads; or the trouble."""
    if result.trouble:
        return [result.name, result.trouble]
    deviation = f"{np.std(result.aucs, ddof=1):.4f}" if len(result.aucs) > 1 else "-"
    cells = [result.name, f"{np.mean(result.aucs):.4f}", deviation, f"{result.seconds:.1f}"]
    if result is ours:
        return cells
    leads = np.subtract(ours.aucs, result.aucs)
    over_folds = "" if len(leads) == 1 else " [{:+.4f}, {:+.4f}]".format(*interval(leads))
    return [*cells, f"{leads.mean():+.4f}{over_folds}"]


def table_row(result, ours):
    """A line for the table."""
    name, *cells = table_cells(result, ours)
    if result.trouble:
        return f"{name:<34} {cells[0]}"
    auc, deviation, seconds, *lead = cells
    return "  ".join([f"{name:<34} {auc:>6} {deviation:>7} {seconds:>8}", *lead])


def compare(workers, experiment, folds, cost, seed, *, seconds, report):
    """Yield a `LearnerResult` for ours, which ``folds`` have given, and then for each of the baselines.

    ``workers`` know the experiment. ``cost`` (test rows x 2, or None) is for those that mind costs. A learner is
    stopped after so many ``seconds``; ``report`` is called with its name, the number of its folds done, and that of
    all.
    """
    yield LearnerResult("ours", [f.auc for f in folds], [f.scores for f in folds], sum(f.seconds for f in folds))
    if cost is not None:  # learners know of one cost for each class
        cost = cost[experiment.y_test > 0, 0].mean(), cost[experiment.y_test < 0, 1].mean()
    n_folds = len(experiment.splits)
    for name, learner in learners(cost, seed).items():
        trouble = ""

        def watch(done, name=name):
            report(name, len(done), n_folds)

        try:
            done = workers.run(range(n_folds), run_learner, learner, seconds=seconds, watch=watch)
            if len(done) < n_folds:
                trouble = f"stopped after {seconds:g} s, with {len(done)} of {n_folds} folds done"
        except (MemoryError, BrokenProcessPool):
            trouble = "not enough memory, or its process was killed"
        except ValueError as error:
            trouble = f"cannot learn from this: {' '.join(str(error).split())}"
        if trouble:
            yield LearnerResult(name, trouble=trouble)
        else:
            aucs, test_scores, learner_seconds = zip(*(done[fold] for fold in range(n_folds)))
            yield LearnerResult(name, list(aucs), list(test_scores), sum(learner_seconds))


def print_comparison(terminal, *comparison, **settings):
    """Print the table of `compare`, a line as soon as it is known, and return what it shows."""
    print_result(table_head())
    shown = []
    for result in compare(*comparison, report=terminal.comparing, **settings):
        terminal.clear()
        shown.append(result)
        print_result(table_row(result, shown[0]))
    terminal.clear()
    terminal.say(
        "lead of ours: the mean over the folds and its 95 % interval (paired, corrected for shared training rows); "
        "+/-: standard deviation over the folds; seconds: of all folds, one core each"
    )
    return shown
