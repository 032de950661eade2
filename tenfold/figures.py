"""Figures of a run, drawn without a display. No other module imports matplotlib, and this one only to draw.

Below, ``results`` is a list with a pair ``(y, scores)`` for each fold: labels, +1 or -1, and scores of its test rows.
"""

import numpy as np
from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_curve

from tenfold.decisions import cost_by_threshold

# Okabe and Ito's colours, which colour-blind readers can tell apart; lines also differ by dashes.
BLUE, GREY, INK = "#0072B2", "#5F5F5F", "#222222"
OTHERS = ("#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (6, 1, 1, 1)))
STYLE = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.7,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "hatch.linewidth": 0.6,
}
GRID = np.linspace(0, 1, 1001)  # false positive rates at which curves are averaged


def draw(directory, results, curves, learners):
    """Write roc.png, scores.png, auc_time.png, auc_steps.png and, with ``learners``, compare.png into the directory.

    ``curves`` has the points (seconds, rows, AUC) of each fold, ``learners`` the results of each learner, ours first.
    """
    from matplotlib import rc_context

    with rc_context(STYLE):
        figures = {
            "roc": roc(results),
            "scores": scores(results),
            "auc_time": auc_over(curves, 0, "training seconds", "AUC over training time"),
            "auc_steps": auc_over(curves, 1, "rows learned from", "AUC over rows learned from"),
        }
        if learners:
            figures["compare"] = compare(learners)
        _save(figures, directory)


def draw_decisions(directory, y, decisions):
    """Write precision_recall.png and cost.png, in which the chosen thresholds are marked."""
    from matplotlib import rc_context

    with rc_context(STYLE):
        figures = {"precision_recall": precision_recall(y, decisions), "cost": cost(y, decisions)}
        _save(figures, directory)


def _save(figures, directory):
    for name, figure in figures.items():
        figure.savefig(directory / f"{name}.png", dpi=150)


def roc(results):
    """The ROC curve of each fold, thin, and their mean with a band of one standard deviation."""
    figure, axes = _axes("ROC curve", 5.2, 4.8)
    aucs = _aucs(results)
    tprs = _tprs(results)
    mean = tprs.mean(axis=0)
    if len(results) > 1:
        for k, (y, s) in enumerate(results):
            fpr, tpr, _ = roc_curve(y, s)
            axes.plot(fpr, tpr, color=BLUE, alpha=0.4, linewidth=0.8, label=None if k else f"{len(results)} test folds")
        deviation = tprs.std(axis=0, ddof=1)
        low, high = np.maximum(mean - deviation, 0), np.minimum(mean + deviation, 1)
        axes.fill_between(GRID, low, high, color=BLUE, alpha=0.15, linewidth=0, label="± 1 standard deviation")
        label = f"mean, AUC {aucs.mean():.4f} ± {aucs.std(ddof=1):.4f}"
    else:
        label = f"test rows, AUC {aucs[0]:.4f}"
    axes.plot(GRID, mean, color=BLUE, linewidth=2.4, label=label)
    _dress_roc(axes)
    axes.legend(loc="lower right")
    return figure


def compare(learners):
    """The mean ROC curve of each learner, the legend in the order of their AUC."""
    figure, axes = _axes("Mean ROC curve of each learner", 7.9, 4.8)
    means = {name: _aucs(results).mean() for name, results in learners.items()}
    ours = next(iter(learners))
    looks = [(dashes, colour) for dashes in DASHES for colour in OTHERS]
    rank = 0
    for name in sorted(learners, key=means.get, reverse=True):
        dashes, colour = ("-", BLUE) if name == ours else looks[rank % len(looks)]
        rank += name != ours
        axes.plot(
            GRID,
            _tprs(learners[name]).mean(axis=0),
            color=colour,
            linestyle=dashes,
            linewidth=2.8 if name == ours else 1.1,
            zorder=3 if name == ours else 2,
            label=f"{means[name]:.4f}  {name}",
        )
    _dress_roc(axes)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title="AUC", alignment="left")
    return figure


def auc_over(curves, column, what, title):
    """The AUC on the test rows against a column of the curves' points, for each fold and in the mean."""
    figure, axes = _axes(title)
    curves = [np.maximum(curve, 1e-3) for curve in curves]  # no zero on a logarithmic axis
    first, last = min(curve[0, column] for curve in curves), max(curve[-1, column] for curve in curves)
    grid = np.geomspace(max(curve[0, column] for curve in curves), last, 400)
    # A fold that has ended stays where it was.
    mean = np.mean([np.interp(grid, curve[:, column], curve[:, 2]) for curve in curves], axis=0)
    if len(curves) > 1:
        for k, curve in enumerate(curves):
            label = None if k else f"{len(curves)} test folds"
            axes.plot(curve[:, column], curve[:, 2], color=BLUE, alpha=0.4, linewidth=0.8, label=label)
    axes.plot(grid, mean, color=BLUE, linewidth=2.4, label=f"mean, in the end {mean[-1]:.4f}")
    if last > 5 * first:
        axes.set_xscale("log")
        _plain_numbers(axes.xaxis)
    axes.set_xlabel(what)
    axes.set_ylabel("AUC on the test rows")
    axes.legend(loc="lower right")
    return figure


def scores(results):
    """The scores of both classes, with logarithmic counts, so that rare positives can be seen."""
    figure, axes = _axes("Scores of rows not learned from")
    y, s = (np.concatenate(parts) for parts in zip(*results))
    edges = np.histogram_bin_edges(s, 40)
    for sign, colour, name, hatch in (-1, GREY, "negative", None), (1, OTHERS[0], "positive", "////"):
        of_class = s[y == sign]
        filled = {"histtype": "stepfilled", "alpha": 0.35, "linewidth": 0, "hatch": hatch}
        axes.hist(of_class, edges, color=colour, label=f"{len(of_class):,} {name}", **filled)
        axes.hist(of_class, edges, color=colour, histtype="step", linewidth=1.4)
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.7)
    _plain_numbers(axes.yaxis)
    axes.set_xlabel("score")
    axes.set_ylabel("rows")
    axes.legend(loc="upper right")
    return figure


def precision_recall(y, decisions):
    """Precision against recall over all thresholds, and where the decisions lie."""
    figure, axes = _axes("Precision and recall of rows not learned from", 5.2, 4.6)
    precision, recall, _ = precision_recall_curve(y, decisions.scores)
    area = average_precision_score(y > 0, decisions.scores)
    axes.plot(recall, precision, color=BLUE, linewidth=2, drawstyle="steps-post", label=f"mean precision {area:.4f}")
    share = np.mean(y > 0)
    axes.axhline(share, color=GREY, linewidth=1, linestyle=(0, (2, 2)), label=f"share of positives {share:.4f}")
    for name, marker, colour in ("Bayes minimum risk", "D", OTHERS[0]), ("moved threshold", "o", OTHERS[1]):
        if name in decisions.outcomes:
            recall, precision = decisions.outcomes[name].recall, decisions.outcomes[name].precision
            axes.plot(recall, precision, marker, color=colour, markersize=9, label=name, zorder=3, clip_on=False)
    axes.set(xlim=(0, 1.01), ylim=(0, 1.02), xlabel="recall", ylabel="precision")
    axes.legend(loc="best")
    return figure


def cost(y, decisions):
    """The cost per row against the threshold of the score, and what the chosen one, or none at all, costs."""
    figure, axes = _axes("Cost of acting on all scores above a threshold")
    thresholds, total = cost_by_threshold(decisions.scores, y, decisions.cost)
    inside = np.isfinite(thresholds)
    axes.step(thresholds[inside], total[inside] / len(y), color=BLUE, linewidth=1.6, where="post")
    for name, dashes in ("act on no row", (0, (5, 2))), ("act on every row", (0, (1, 1.5))):
        height = decisions.outcomes[name].cost / len(y)
        axes.axhline(height, color=GREY, linewidth=1.2, linestyle=dashes, label=f"{name}: {height:.4g}")
    if decisions.threshold is not None and np.isfinite(decisions.threshold):
        least = total.min() / len(y)
        label = f"threshold {decisions.threshold:.4g}: {least:.4g}"
        axes.plot(decisions.threshold, least, "o", color=OTHERS[0], markersize=9, label=label, zorder=3)
    axes.set(xlabel="threshold of the score", ylabel="cost per row", ylim=(0, None))
    axes.legend(loc="best")
    return figure


def _axes(title, width=6.0, height=4.2):
    from matplotlib.figure import Figure

    figure = Figure((width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title)
    return figure, axes


def _dress_roc(axes):
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=(0, (2, 2)), label="chance")
    axes.set(xlim=(-0.01, 1), ylim=(0, 1.01), aspect="equal")
    axes.set_xlabel("false positive rate")
    axes.set_ylabel("true positive rate")


def _plain_numbers(axis):
    """Numbers as people write them at the ticks of a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())


def _aucs(results):
    return np.array([auc(*roc_curve(y, s)[:2]) for y, s in results])


def _tprs(results):
    """The true positive rate of each fold at the false positive rates of the grid."""
    tprs = []
    for y, s in results:
        fpr, tpr, _ = roc_curve(y, s)
        tprs.append(np.interp(GRID, fpr, tpr))
    return np.array(tprs)
