"""AUC against effort: what more work gives.

    python bench/dial.py FILES --figure figures/effort.png
    python bench/dial.py FILES --efforts 1 4 --folds 3

Each line has the mean AUC over the folds of a file with each effort. The gain is that over the first effort, with its
standard error over all folds of all files.
"""

import argparse
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from common import fold_aucs

from tenfold import AUCRanker


def aucs_of(job):
    path, effort, n_folds = job
    return fold_aucs(path, AUCRanker(effort=effort), n_folds)


def draw(aucs, efforts, path):
    """The gain of each file over its AUC with the least effort."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for name, of_file in aucs.items():
        axes.plot(efforts, of_file - of_file[0], marker="o", label=name)
    axes.set(xscale="log", xlabel="effort", ylabel=f"AUC above that of effort {efforts[0]:g}", xticks=efforts)
    axes.set_xticklabels([f"{effort:g}" for effort in efforts])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper", frameon=False)
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--efforts", nargs="+", type=float, default=[0.25, 1, 4, 16], metavar="E")
    parser.add_argument("--folds", type=int, default=10, metavar="N", help="folds of ten (default: 10)")
    parser.add_argument("--figure", type=Path, metavar="PNG", help="draw it (default: do not)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="fits at a time (default: 2)")
    options = parser.parse_args()
    print(f"{'file':24s}" + "".join(f"{effort:8g}" for effort in options.efforts))
    aucs, gains = {}, []
    with Pool(options.jobs) as pool:
        for path in options.files:
            jobs = [(path, effort, options.folds) for effort in reversed(options.efforts)]
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
        draw(aucs, options.efforts, options.figure)


if __name__ == "__main__":
    main()
