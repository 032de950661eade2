"""Sentences and table cells that standard error and the page share, so that both show the same numbers."""

import math
from fractions import Fraction

import numpy as np

from preprocess import show
from tenfold.features import SETS

OUTCOME_HEAD = ["decisions", "TP", "FP", "FN", "TN", "precision", "recall", "F1", "cost", "savings"]
COLUMN_HEAD = ["column", "AUC lost", "+/-"]
MOST_COLUMNS = 15  # of those that matter


def data_line(name, X, y, classes):
    """What was found in a file."""
    n_pos = np.count_nonzero(y > 0)
    return (
        f"{name}: {X.shape[0]} rows x {X.shape[1]} features, "
        f"{n_pos} positive (label {show(classes[1])}), {len(y) - n_pos} negative (label {show(classes[0])})"
    )


def changes_line(folds):
    """What the training rows of the folds had to be cleaned of."""
    counts = {key: _range([fold.changes[key] for fold in folds]) for key in folds[0].changes}
    found = {
        "missing": "missing values replaced by column means",
        "constant": "constant columns dropped",
        "duplicated": "copies of other columns dropped",
    }
    parts = [f"{words}: {counts[key]}" for key, words in found.items() if counts[key] != "0"]
    return "; ".join(["preprocessing: columns scaled, bias column added", *parts])


def shares_line(shares):
    """What makes up how much of the score, in the mean of the folds."""
    total = {}
    for share in shares:
        for name, part in share.items():
            total[SETS[name].words] = total.get(SETS[name].words, 0) + part / len(shares)
    parts = [
        f"{words} {total[words]:.0%}" for words in sorted(total, key=total.get, reverse=True) if total[words] >= 0.005
    ]
    return f"shares in the score: {', '.join(parts)}"


def effort_name(effort):
    """An effort as a person would write it: 4, 1.5 or 1/4."""
    fraction = Fraction(effort).limit_denominator(64)
    return str(fraction) if effort < 1 and fraction == effort else f"{effort:.6g}"


def round_line(last, seconds):
    """What a round of learning has given, so many seconds after the start."""
    what = "" if last.effort is None else f"effort {effort_name(last.effort)}: "
    return f"{what}mean AUC {last.auc:.4f}, {seconds:.1f} s"


def warning_line(last, budget, pinned):
    """What to say if the time was too short for an ordinary fold, though the effort was not given by the user."""
    if last.done < 1:
        done = math.floor(100 * last.done)
        return f"warning: time ran out, learning stopped at {done}% of the plan; --budget {3 * budget:g} gives more"
    if pinned or last.effort is None or last.effort >= 1:
        return ""
    return (
        f"warning: learned with effort {effort_name(last.effort)}, because this machine is busy or the data is large; "
        f"--effort 1 takes about {last.expected(1):.0f} s and usually ranks better"
    )


def outcome_cells(name, outcome):
    """What a rule to decide by has led to."""
    counts = outcome.true_positives, outcome.false_positives, outcome.false_negatives, outcome.true_negatives
    rates = outcome.precision, outcome.recall, outcome.f1
    return [
        name,
        *(f"{count:.0f}" for count in counts),
        *(f"{rate:.4f}" for rate in rates),
        f"{outcome.cost:.6g}",
        f"{outcome.savings:.1%}",
    ]


def decision_lines(decisions):
    """By what costs the decisions were made, and what to go by for rows to come."""
    missed, false_alarm = decisions.cost.min(axis=0)
    alike = np.ptp(decisions.cost, axis=0).max() == 0
    costs = f"{missed:g} for a missed positive, {false_alarm:g} for a false alarm" if alike else "those of each row"
    by_folds = decisions.threshold is not None
    how = "; decisions on the rows of a fold use the scores of the other folds" if by_folds else ""
    level = (
        f"{false_alarm / (missed + false_alarm):.4g}" if alike else "false alarm / (missed + false alarm) of the row"
    )
    moved = f", or the score above {decisions.threshold:.6g} (moved threshold)" if by_folds else ""
    rule = f"for new rows: act where the probability is above {level} (Bayes minimum risk){moved}"
    return f"costs: {costs}{how}", rule


def explanation_lines(explanation):
    """What the loss of AUC is, and how much of it the columns have that are not in the table."""
    over = f"{explanation.n_folds} folds" if explanation.n_folds > 1 else "the shuffles"
    about = f"AUC lost when the values of a column are shuffled among the test rows (+/-: standard error over {over})"
    rest, n_weak = explanation.means[MOST_COLUMNS:], explanation.n_weak
    lines = [f"{len(rest)} other columns: {_four(max(rest))} or less each"] if len(rest) else []
    lines += [f"{n_weak} more were not shuffled: no score depends on them, or hardly any"] if n_weak else []
    return about, "; ".join(lines)


def column_cells(explanation):
    """The columns that matter most."""
    found = zip(explanation.columns, explanation.means, explanation.errors)
    return [[column.name, _four(mean), _four(error)] for column, mean, error in found][:MOST_COLUMNS]


def _four(x):
    """Four decimals, without a sign before zero."""
    return f"{round(x, 4) + 0.0:.4f}"


def shorten(name, most=40):
    """A name that fits into a line, without what a terminal would not show."""
    name = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    return name if len(name) <= most else f"{name[: most - 3]}..."


def _range(counts):
    return " to ".join(str(n) for n in sorted({min(counts), max(counts)}))
