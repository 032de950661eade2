"""AUC against budget: what more seconds buy.

    python bench/dial.py FILES --figure figures/budget.png
    python bench/dial.py FILES --budgets 10 60 --folds 3
    python bench/dial.py FILES --budgets 10 80

Each line has the mean AUC over the folds of a file, planned for each budget and not cut by the clock. The gain
is that over the first budget, with its standard error over all folds of all files. A model of two files, or of --save,
is planned for 0.8 of the budget, a fold for 0.1: the last example is what that gives.
"""

import argparse
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from common import fold_aucs

from tenfold import AUCRanker


def aucs_of(job):
    path, budget, n_folds = job
    return fold_aucs(path, AUCRanker(budget=budget / 10), n_folds)


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
    aucs, gains = {}, []
    with Pool(options.jobs) as pool:
        for path in options.files:
            jobs = [(path, budget, options.folds) for budget in reversed(options.budgets)]
            of_folds = np.array(pool.map(aucs_of, jobs, chunksize=1)[::-1])
            aucs[path.stem] = of_folds.mean(axis=1)
            gains.append(of_folds - of_folds[0])
            print(f"{path.stem:24s}" + "".join(f"{auc:8.4f}" for auc in aucs[path.stem]), flush=True)
    print(f"{'mean':24s}" + "".join(f"{auc:8.4f}" for auc in np.mean(list(aucs.values()), axis=0)))
    gains = np.concatenate(gains, axis=1)
    errors = gains.std(axis=1, ddof=1) / gains.shape[1] ** 0.5
    print(f"{'gain':24s}" + "".join(f"{gain:+8.4f}" for gain in gains.mean(axis=1)))
    print(f"{'  +/-':24s}" + "".join(f"{error:8.4f}" for error in errors))
    if options.figure:
        draw(aucs, options.budgets, options.figure)


if __name__ == "__main__":
    main()
