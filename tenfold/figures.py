"""Figures of a run, drawn without a display. No other module imports matplotlib, and this one only to draw.

Below, ``results`` is a list with a pair ``(y, scores)`` for each fold: labels, +1 or -1, and scores of its test rows.
"""

import numpy as np
from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_curve

from tenfold.decisions import cost_by_threshold
from tenfold.metrics import interval
from tenfold.words import MOST_COLUMNS, effort_name, shorten
from tenfold.writing import FIGURE_MARK

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


def draw(directory, results, rounds, learners):
    """Write roc.png, scores.png, auc_time.png, auc_steps.png and, with ``learners``, compare.png into the directory.

    ``rounds`` are those of learning, ``learners`` has the results of each learner, ours first.
    """
    from matplotlib import rc_context

    with rc_context(STYLE):
        figures = {
            "roc": roc(results, learners),
            "scores": scores(results),
            "auc_time": auc_over(rounds, lambda fold: fold.seconds, "seconds of a fold", "AUC over the time of a fold"),
            "auc_steps": auc_over(rounds, lambda fold: fold.rows, "rows learned from", "AUC over rows learned from"),
        }
        if learners:
            figures["compare"] = compare(learners)
        _save(figures, directory)


def draw_explanation(directory, explanation):
    """Write columns.png and dependence.png: which columns matter, and how the score depends on the first of them."""
    from matplotlib import rc_context

    with rc_context(STYLE):
        _save({"columns": columns(explanation), "dependence": dependence(explanation)}, directory)


def draw_decisions(directory, y, decisions):
    """Write precision_recall.png and cost.png, in which the chosen thresholds are marked."""
    from matplotlib import rc_context

    with rc_context(STYLE):
        figures = {"precision_recall": precision_recall(y, decisions), "cost": cost(y, decisions)}
        _save(figures, directory)


def _save(figures, directory):
    for name, figure in figures.items():
        figure.savefig(directory / f"{name}.png", dpi=150, metadata={"Software": FIGURE_MARK.decode()})


def roc(results, learners=None):
    """The ROC curve of each fold, thin, their mean with a band, and the means of the best three other learners.

    A second plot has the left tenth, where false alarms are few.
    """
    figure, both = _axes("ROC curve", 9.4, 5.2, 2)
    both[1].set_title("its left tenth, enlarged")
    aucs, tprs = _aucs(results), _tprs(results)
    mean = tprs.mean(axis=0)
    others = dict(list((learners or {}).items())[1:])
    best = sorted(others, key=lambda name: -_aucs(others[name]).mean())[:3]
    for axes in both:
        if len(results) > 1:
            for k, (y, s) in enumerate(results):
                label = None if k else f"{len(results)} test folds"
                axes.plot(*roc_curve(y, s)[:2], color=BLUE, alpha=0.4, linewidth=0.8, label=label)
            deviation = tprs.std(axis=0, ddof=1)
            low, high = np.maximum(mean - deviation, 0), np.minimum(mean + deviation, 1)
            axes.fill_between(GRID, low, high, color=BLUE, alpha=0.15, linewidth=0, label="± 1 standard deviation")
            who = "ours, mean" if best else "mean"
            label = f"{who}, AUC {aucs.mean():.4f} ± {aucs.std(ddof=1):.4f}"
        else:
            label = f"test rows, AUC {aucs[0]:.4f}"
        axes.plot(GRID, mean, color=BLUE, linewidth=2.4, label=label, zorder=4)
        for name, colour, dashes in zip(best, OTHERS, DASHES[1:]):
            label = f"{name}, AUC {_aucs(others[name]).mean():.4f}"
            axes.plot(GRID, _tprs(others[name]).mean(axis=0), color=colour, linestyle=dashes, label=label, zorder=3)
        axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=(0, (2, 2)), label="chance")
        axes.set(ylim=(0, 1.01), xlabel="false positive rate", ylabel="true positive rate")
    both[0].set_xlim(-0.01, 1)
    both[1].set_xlim(-0.001, 0.1)
    _legend(figure, both[0])
    return figure


def compare(learners):
    """A row for each learner, the best on top: its AUC, those of its folds as faint dots, and the lead of ours."""
    aucs = {name: _aucs(results) for name, results in learners.items()}
    ours = next(iter(aucs))
    names = sorted(aucs, key=lambda name: aucs[name].mean())
    figure, (left, right) = _axes("AUC of each learner", 9.4, 1.6 + 0.3 * len(names), 2, sharey=True)
    right.set_title("lead of ours, 95 % interval")
    for row, name in enumerate(names):
        colour = BLUE if name == ours else INK
        left.plot(
            aucs[name], np.full(len(aucs[name]), row), "o", color=colour, alpha=0.2, markersize=5, markeredgewidth=0
        )
        left.plot(aucs[name].mean(), row, "D", color=colour, markersize=7)
        left.annotate(
            f"{aucs[name].mean():.4f}", (1.01, row), xycoords=("axes fraction", "data"), va="center", color=colour
        )
        if name != ours:
            leads = aucs[ours] - aucs[name]
            if len(leads) > 1:
                right.plot(interval(leads), [row, row], color=colour, linewidth=1.6)
            right.plot(leads.mean(), row, "o", color=colour, markersize=6)
    right.axvline(0, color=BLUE, linewidth=1.6)
    left.set_yticks(range(len(names)), names)
    left.get_yticklabels()[names.index(ours)].set(color=BLUE, fontweight="bold")
    left.set(xlabel="AUC (diamond: mean, dots: folds)", ylim=(-0.6, len(names) - 0.4))
    right.set_xlabel("AUC of ours minus that of the learner")
    right.tick_params(labelleft=False)
    return figure


def auc_over(rounds, value, what, title):
    """The AUC on the test rows against a ``value`` of each fold, for all rounds, with a line through their means."""
    figure, axes = _axes(title)
    x = np.array([[value(fold) for fold in one.folds] for one in rounds], float)
    aucs = np.array([[fold.auc for fold in one.folds] for one in rounds])
    x = np.maximum(x, 1e-3)  # no zero on a logarithmic axis
    if x.shape[1] > 1:
        axes.plot(x, aucs, "o", color=BLUE, alpha=0.35, markersize=4, markeredgewidth=0)
        axes.lines[0].set_label(f"{x.shape[1]} test folds")
    label = f"mean, in the end {aucs[-1].mean():.4f}"
    axes.plot(x.mean(axis=1), aucs.mean(axis=1), "D-", color=BLUE, linewidth=2.4, markersize=7, label=label)
    for one, at, auc_of_round in zip(rounds, x.mean(axis=1), aucs.mean(axis=1)):
        if one.effort is not None:
            name = f"effort {effort_name(one.effort)}"
            axes.annotate(name, (at, auc_of_round), xytext=(0, 9), textcoords="offset points", ha="center", fontsize=9)
    if x.max() > 5 * x.min():
        axes.set_xscale("log")
        _plain_numbers(axes.xaxis)
    axes.margins(0.1)
    axes.set_xlabel(what)
    axes.set_ylabel("AUC on the test rows")
    _legend(figure, axes)
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
    _legend(figure, axes)
    return figure


def precision_recall(y, decisions):
    """Precision against recall over all thresholds, and where the decisions lie."""
    figure, axes = _axes("Precision and recall of rows not learned from", 5.2, 4.6)
    weight = decisions.weight
    precision, recall, _ = precision_recall_curve(y, decisions.scores, sample_weight=weight)
    area = average_precision_score(y > 0, decisions.scores, sample_weight=weight)
    axes.plot(recall, precision, color=BLUE, linewidth=2, drawstyle="steps-post", label=f"average precision {area:.4f}")
    share = weight @ (y > 0) / weight.sum()
    axes.axhline(share, color=GREY, linewidth=1, linestyle=(0, (2, 2)), label=f"share of positives {share:.4f}")
    for name, marker, colour in ("Bayes minimum risk", "D", OTHERS[0]), ("moved threshold", "o", OTHERS[1]):
        if name in decisions.outcomes:
            recall, precision = decisions.outcomes[name].recall, decisions.outcomes[name].precision
            axes.plot(recall, precision, marker, color=colour, markersize=9, label=name, zorder=3, clip_on=False)
    axes.set(xlim=(0, 1.01), ylim=(0, 1.02), xlabel="recall", ylabel="precision")
    _legend(figure, axes)
    return figure


def cost(y, decisions):
    """The cost per row against the threshold of the score, and what the chosen one, or none at all, costs."""
    figure, axes = _axes("Cost of acting on all scores above a threshold")
    weight = decisions.weight
    thresholds, total = cost_by_threshold(decisions.scores, y, decisions.cost * weight[:, None])
    inside = np.isfinite(thresholds)
    axes.step(thresholds[inside], total[inside] / weight.sum(), color=BLUE, linewidth=1.6, where="post")
    for name, dashes in ("act on no row", (0, (5, 2))), ("act on every row", (0, (1, 1.5))):
        height = decisions.outcomes[name].cost / weight.sum()
        axes.axhline(height, color=GREY, linewidth=1.2, linestyle=dashes, label=f"{name}: {height:.4g}")
    if decisions.threshold is not None and np.isfinite(decisions.threshold):
        least = total.min() / weight.sum()
        label = f"threshold {decisions.threshold:.4g}: {least:.4g}"
        axes.plot(decisions.threshold, least, "o", color=OTHERS[0], markersize=9, label=label, zorder=3)
    axes.set(xlabel="threshold of the score", ylabel="cost per row", ylim=(0, None))
    _legend(figure, axes)
    return figure


def columns(explanation):
    """The AUC that is lost when a column is shuffled, with its standard error, the strongest on top."""
    found = list(zip(explanation.columns, explanation.means, explanation.errors))[:MOST_COLUMNS][::-1]
    over = "folds" if explanation.n_folds > 1 else "shuffles"
    figure, axes = _axes("Columns that matter", 7.0, 1.4 + 0.3 * len(found))
    rows = range(len(found))
    names = [shorten(column.name) for column, _, _ in found]
    axes.barh(rows, [mean for _, mean, _ in found], color=BLUE, alpha=0.75, height=0.7)
    errors = [error for _, _, error in found]
    axes.errorbar([mean for _, mean, _ in found], rows, xerr=errors, fmt="none", ecolor=INK, elinewidth=1.2, capsize=3)
    axes.axvline(0, color=GREY, linewidth=1)
    axes.set_yticks(rows, [_plain(name) for name in names])
    axes.set_xlabel(f"AUC lost when its values are shuffled (bars: ± standard error over {over})")
    axes.grid(axis="y", visible=False)
    return figure


def dependence(explanation):
    """The mean score over the values of the strongest columns, with a band of one standard error over the folds."""
    shown = explanation.dependences
    n_rows = -(-len(shown) // 3)
    figure, all_axes = _axes("", 9.4, 0.6 + 2.7 * n_rows, (n_rows, min(len(shown), 3)))
    figure.suptitle("Mean score if all rows had this value", x=0.01, ha="left", fontsize=11, fontweight="bold")
    for axes, one in zip(all_axes, shown):
        mean, n_folds = one.scores.mean(axis=1), one.scores.shape[1]
        error = one.scores.std(axis=1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.zeros(len(mean))
        if one.column.values is None:
            axes.fill_between(one.values, mean - error, mean + error, color=BLUE, alpha=0.2, linewidth=0)
            axes.plot(one.values, mean, "o-" if len(mean) <= 5 else "-", color=BLUE, linewidth=1.8, markersize=5)
        else:
            axes.errorbar(mean, range(len(mean)), xerr=error, fmt="o", color=BLUE, elinewidth=1.2, capsize=3)
            axes.set_yticks(range(len(mean)), [_plain(shorten(str(value), 16)) for value in one.values])
        axes.set_title(_plain(shorten(one.column.name, 32)), fontsize=10)
        (axes.set_ylabel if one.column.values is None else axes.set_xlabel)("mean score")
        if one.column.values is None and len(one.column.features) > 1:
            axes.set_xlabel("days since the first date")
    for axes in all_axes[len(shown) :]:
        axes.remove()
    return figure


def _axes(title, width=6.0, height=4.4, n=1, **settings):
    """A figure and its axes: one, or a row of n, or n rows and columns of them."""
    from matplotlib.figure import Figure

    figure = Figure((width, height), layout="constrained")
    shape = n if isinstance(n, tuple) else (1, n)
    axes = figure.subplots(*shape, squeeze=False, **settings).ravel()
    axes[0].set_title(title)
    return figure, axes[0] if n == 1 else axes


def _legend(figure, axes):
    """Below the axes, where it covers nothing."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2 if len(labels) < 5 else 3)


def _plain(text):
    """Text without the signs that matplotlib would take for a formula."""
    return text.replace("$", r"\$")


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
