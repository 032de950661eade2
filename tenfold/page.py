"""A page on which to choose a threshold: one file of HTML, in which ``page.html`` finds the numbers as JSON."""

import json
from pathlib import Path

import numpy as np
from scipy.special import ndtri
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from tenfold.comparison import table_cells
from tenfold.decisions import cost_by_threshold, first_least
from tenfold.metrics import auc_and_error, interval
from tenfold.words import (
    OUTCOME_HEAD,
    column_cells,
    data_line,
    decision_lines,
    explanation_lines,
    outcome_cells,
)
from tenfold.writing import write_whole

TEMPLATE = Path(__file__).with_suffix(".html")
MOST_POINTS = 3000  # thresholds to choose from
BARS = 60  # of the histogram
GRID = np.unique(np.concatenate([np.linspace(0, 0.1, 101), np.linspace(0, 1, 101)]))  # of the mean ROC curve


def write_page(path, content):
    """Write a page with this content, which JSON can hold."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    for character in "<>&":  # nothing in it may end the script that it is in
        text = text.replace(character, f"\\u{ord(character):04x}")
    page = TEMPLATE.read_text(encoding="utf-8").replace("{{DATA}}", text)
    write_whole(path, lambda file: file.write(page.encode("utf-8")))


def make_content(
    name, classes, settings, command, warning, experiment, folds, decisions=None, explanation=None, results=()
):
    """What the page shows; ``settings`` are pairs of words, and ``results`` those of the comparison."""
    y, scores = experiment.y_test, experiment.in_file_order([fold.scores for fold in folds])
    of_folds = [(y[test], fold.scores) for (_, test), fold in zip(experiment.splits, folds)]
    weight = np.broadcast_to(experiment.weight, len(y))  # a sample stands for all rows of its file
    n_pos, n_neg = (round(weight[y == sign].sum()) for sign in (1, -1))
    points, costs = make_points(y, scores, weight), _costs(decisions, n_neg / n_pos)
    totals = (n_pos - np.array(points["tp"])) * costs[0] + np.array(points["fp"]) * costs[1]
    average, share = average_precision_score(y > 0, scores, sample_weight=weight), n_pos / (n_pos + n_neg)
    return {
        "name": name,
        "auc": f"{sum(fold.auc for fold in folds) / len(folds):.4f}",
        "interval": interval_words(of_folds, folds),
        "about": data_line(name, experiment.X_test, y, classes),
        "warnings": [warning] if warning else [],
        "n_positive": n_pos,
        "n_negative": n_neg,
        "points": points,
        "start": first_least(totals),
        "costs": costs,
        "histogram": make_histogram(y, scores),
        "mean_roc": _mean_roc(of_folds) if len(folds) > 1 else None,
        "roc_caption": _roc_caption(y, scores, folds),
        "precision_caption": f"Solid: average precision {average:.4f}. Dotted: share of positives {share:.4f}.",
        "decisions": _decision_content(decisions),
        "columns": _column_content(explanation),
        "comparison": _comparison_content(results),
        "facts": [[what, str(value)] for what, value in settings],
        "command": command,
    }


# --- thresholds ------------------------------------------------------------------------------------------------------


def make_points(y, scores, weight=1.0):
    """Thresholds, from acting on no row down to acting on all, and the true and false positives above each.

    Each row stands for so many as its ``weight`` says. Of very many thresholds, those are kept that can be the cheapest
    at some costs, and others that lie evenly among them.
    """
    weight = np.broadcast_to(weight, len(y))[:, None]
    thresholds, fp = cost_by_threshold(scores, y, weight * [0.0, 1.0])
    _, missed = cost_by_threshold(scores, y, weight * [1.0, 0.0])
    fp, tp = fp.round().astype(int), (missed[0] - missed).round().astype(int)
    keep = np.arange(len(thresholds))
    if len(keep) > MOST_POINTS:
        part = MOST_POINTS // 4
        even = [_evenly(values, part) for values in (keep, tp, -np.clip(thresholds, scores.min(), scores.max()))]
        keep = np.unique(np.concatenate([hull(fp, tp), *even]))
    return {
        "thresholds": [float(t) if np.isfinite(t) else None for t in thresholds[keep]],
        "tp": tp[keep].tolist(),
        "fp": fp[keep].tolist(),
        "left_out": len(thresholds) - len(keep),
    }


def _evenly(values, n):
    """Positions at which ascending values reach evenly spaced ones."""
    return np.searchsorted(values, np.linspace(values[0], values[-1], n))


def hull(fp, tp):
    """The positions, in order, of the corners of the curve's convex hull: whatever errors cost, one is cheapest."""
    corners = []
    (candidates,) = np.nonzero(np.concatenate([[True], np.diff(tp) > 0]))  # but for the end, only finds are worth it
    for k in [*candidates.tolist(), len(tp) - 1]:
        while len(corners) > 1:
            a, b = corners[-2:]
            if (fp[b] - fp[a]) * (tp[k] - tp[a]) < (fp[k] - fp[a]) * (tp[b] - tp[a]):
                break
            corners.pop()
        corners.append(k)
    return np.unique(corners)


def _costs(decisions, rarity):
    """Those of the decisions, in the mean; without any, a positive is worth as many negatives as there are to it."""
    if decisions:
        return decisions.cost.mean(axis=0).tolist()
    return [float(f"{rarity:.3g}"), 1.0]


def make_histogram(y, scores):
    """How many rows of each class have which score."""
    edges = np.histogram_bin_edges(scores, BARS)
    counts = {name: np.histogram(scores[y == sign], edges)[0] for name, sign in (("positive", 1), ("negative", -1))}
    return {
        "low": float(edges[0]),
        "high": float(edges[-1]),
        **{name: count.tolist() for name, count in counts.items()},
    }


# --- the AUC ---------------------------------------------------------------------------------------------------------


def interval_words(of_folds, folds):
    """The 95 % interval of the AUC, in words."""
    aucs = np.array([fold.auc for fold in folds])
    if len(aucs) > 1:
        low, high = interval(aucs)
        over = f"mean over {len(aucs)} folds, standard deviation {aucs.std(ddof=1):.4f}"
    else:
        _, error = auc_and_error(*of_folds[0])
        half = ndtri(0.975) * error
        low, high, over = aucs[0] - half, aucs[0] + half, "on the rows of a test file"
    return f"95 % interval {max(low, 0):.4f} to {min(high, 1):.4f}; {over}"


def _mean_roc(of_folds):
    tprs = [np.interp(GRID, *roc_curve(y, s)[:2]) for y, s in of_folds]
    return np.column_stack([GRID, np.mean(tprs, axis=0)]).round(4).tolist()


def _roc_caption(y, scores, folds):
    area = roc_auc_score(y, scores)
    if len(folds) == 1:
        return f"Solid: the test rows, AUC {area:.4f}. Dotted: chance."
    mean = sum(fold.auc for fold in folds) / len(folds)
    return (
        f"Dashed: mean of the {len(folds)} folds, AUC {mean:.4f}. Solid: the test rows of all folds together, "
        f"AUC {area:.4f}. Dotted: chance."
    )


# --- tables ----------------------------------------------------------------------------------------------------------


def _decision_content(decisions):
    if not decisions:
        return None
    about, rule = decision_lines(decisions)
    note = "So the counts differ a little from those above, which are at one threshold for all rows."
    rows = [outcome_cells(*item) for item in decisions.outcomes.items()]
    by_folds = decisions.threshold is not None
    return {"about": about, "note": note * by_folds, "rule": rule, "head": OUTCOME_HEAD, "rows": rows}


def _column_content(explanation):
    if not explanation:
        return None
    about, rest = explanation_lines(explanation)
    rows = column_cells(explanation)
    return {"about": about, "rest": rest, "rows": rows, "means": explanation.means[: len(rows)].tolist()}


def _comparison_content(results):
    """The learners, the best first; those that gave no result are in the end."""
    if not results:
        return None
    ours = results[0]
    order = sorted(results, key=lambda result: -np.mean(result.aucs) if result.aucs else 1)
    rows = [table_cells(result, ours) for result in order]
    return {
        "about": "lead of ours: the mean over the folds and its 95 % interval; +/-: standard deviation over the folds",
        "head": ["learner", "AUC", "+/-", "seconds", "lead of ours"],
        "rows": rows,
        "ours": order.index(ours),
    }
