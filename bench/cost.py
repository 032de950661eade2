"""Set the seconds that the price list of ``tenfold/plan.py`` expects beside those that fits take on one core.

    python bench/cost.py              twenty shapes
    python bench/cost.py --budget 4   with another budget

A row is a fit of AUCRanker and the scores of a ninth as many rows. The exit code is 1 if the ratio of expected to
measured seconds lies beyond 1.5 either way, once divided by its median: a machine may be slower or quicker than the one
that prices were measured on.
"""

import argparse
import sys
import time

import numpy as np
import scipy.sparse as sp
from common import ROOT  # noqa: F401
from threadpoolctl import threadpool_limits

from tenfold import AUCRanker
from tenfold.plan import make_plan
from tenfold.ranker import shape_of

BOUND = 1.5
SHAPES = [
    (60, 5, 0.2),
    (300, 20, 0.1),
    (300, 5_000, 0.1),
    (50, 20_000, 0.2),
    (1_000, 20, 0.3),
    (1_000, 1_000, 0.1),
    (1_000, 20_000, 0.1),
    (3_000, 60, 0.05),
    (5_000, 5, 0.3),
    (5_000, 200, 0.1),
    (10_000, 3_000, 0.1),
    (20_000, 10, 0.35),
    (20_000, 100, 0.05),
    (20_000, 2_000, 0.1),
    (50_000, 20, 0.01),
    (50_000, 300, 0.03),
    (200_000, 30, 0.01),
    (1_000_000, 10, 0.01),
    (20_000, 10_000, 0.1, "sparse"),
    (20_000, 122, 0.01, "two values"),
]


def make(n, d, positives, kind="numbers", seed=0):
    """Rows of which the first columns matter, and labels."""
    rng = np.random.default_rng(seed)
    if kind == "sparse":
        X = sp.random_array((n, d), density=50 / d, format="csr", rng=rng)
    else:
        X = rng.random((n, d), dtype=np.float32)
        X = (X < 0.2).astype(np.uint8) if kind == "two values" else X
    score = np.asarray(X[:, :5].sum(axis=1)).ravel() + rng.standard_normal(n)
    return X, np.where(score > np.quantile(score, 1 - positives), 1, -1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=1.0)
    budget = parser.parse_args().budget
    threadpool_limits(1)
    AUCRanker(budget=0.1, random_state=0).fit(*make(100, 5, 0.2))  # what is loaded late is loaded now
    print(f"{'shape':>16s} {'kind':11s} {'rows':>7s} landmarks expected s measured s  ratio")
    ratios = []
    for n, d, positives, *kind in SHAPES:
        X, y = make(n, d, positives, *kind)
        ranker = AUCRanker(budget=budget, random_state=0)
        expected = ranker.expected_seconds(X, y, np.arange(n))
        plan = make_plan(shape_of(X, y, np.arange(n)), budget)
        test = X[: max(n // 9, 1)]
        begun = time.process_time()
        ranker.fit(X, y).decision_function(test)
        measured = time.process_time() - begun
        ratios.append(expected / measured)
        numbers = f"{plan.rows:7d} {plan.landmarks:9d} {expected:10.2f} {measured:10.2f} {ratios[-1]:6.2f}"
        print(f"{n:>8d} x {d:<5d} {kind[0] if kind else 'numbers':11s} {numbers}", flush=True)
    typical = np.median(ratios)
    beyond = sum(not 1 / BOUND <= ratio / typical <= BOUND for ratio in ratios)
    print(f"median ratio {typical:.2f}; {beyond} of {len(ratios)} beyond a factor of {BOUND} of it")
    return int(beyond > 0)


if __name__ == "__main__":
    sys.exit(main())
