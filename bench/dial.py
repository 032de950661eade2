"""AUC against budget: what more seconds buy.

    python bench/dial.py FILES --figure figures/budget.png
    python bench/dial.py FILES --budgets 10 60 --folds 3

Each line has the mean AUC over the command's folds of a file, planned for each budget and not cut by the clock.
"""

import argparse
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from common import mean_auc

from tenfold import AUCRanker


def auc_of(job):
    path, budget, n_folds = job
    return mean_auc(path, AUCRanker(budget=budget / 10), n_folds)


def draw(aucs, budgets, path):
    """The gain of each file over its AUC with the least budget."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for name, of_file in aucs.items():
        axes.plot(budgets, of_file - of_file[0], marker="o", label=name)
    axes.set(xscale="log", xlabel="budget, seconds", ylabel=f"AUC above that of {budgets[0]:g} s", xticks=budgets)
    axes.set_xticklabels([f"{budget:g}" for budget in budgets])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper", frameon=False)
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--budgets", nargs="+", type=float, default=[1, 3, 10, 30, 60], metavar="S")
    parser.add_argument("--folds", type=int, default=10, metavar="N", help="folds of ten (default: 10)")
    parser.add_argument("--figure", type=Path, metavar="PNG", help="draw it (default: do not)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="fits at a time (default: 2)")
    options = parser.parse_args()
    print(f"{'file':24s}" + "".join(f"{budget:6g} s" for budget in options.budgets))
    aucs = {}
    with Pool(options.jobs) as pool:
        for path in options.files:
            jobs = [(path, budget, options.folds) for budget in reversed(options.budgets)]
            aucs[path.stem] = np.array(pool.map(auc_of, jobs, chunksize=1)[::-1])
            print(f"{path.stem:24s}" + "".join(f"{auc:8.4f}" for auc in aucs[path.stem]), flush=True)
    print(f"{'mean':24s}" + "".join(f"{auc:8.4f}" for auc in np.mean(list(aucs.values()), axis=0)))
    if options.figure:
        draw(aucs, options.budgets, options.figure)


if __name__ == "__main__":
    main()
