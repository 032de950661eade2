"""What the command does beside the AUC, where it is asked to: tables, files, figures, a page."""

import os
import shlex
import subprocess

import numpy as np
from scipy.special import expit
from sklearn.base import clone

from tenfold.calibration import log_odds
from tenfold.comparison import compare, table_head, table_row
from tenfold.decisions import decide, decide_by_folds
from tenfold.explain import explain, find_columns
from tenfold.figures import draw, draw_decisions, draw_explanation
from tenfold.models import VERSION
from tenfold.page import make_content, write_page
from tenfold.readers.sample import NAME
from tenfold.words import effort_name, warning_line
from tenfold.writing import print_result, write_scores


def do_extras(options, terminal, data, experiment, cost, estimator, rounds, results):
    """Do all that the options ask for, once the AUC is known.

    ``data`` is that of the training file, without rows; ``cost`` (test rows x 2) is None if there is nothing to decide;
    ``estimator`` is for a model to save, and ``results`` are those of the comparison.
    """
    folds = rounds[-1].folds
    scores, decisions = experiment.in_file_order([fold.scores for fold in folds]), None
    y = experiment.y_test
    if cost is not None:
        by_folds = len(folds) > 1
        decisions = decide_by_folds(experiment, scores, cost) if by_folds else decide(y, scores, expit(scores), cost)
        terminal.decisions(decisions)
    explanation = explain_columns(options, terminal, data, experiment, folds) if options.explain else None
    if options.save:
        save_model(options.save, data, experiment, estimator, scores)
        terminal.say(f"the model, learned from all {len(experiment.y)} rows, is in {options.save}")
    if options.scores:
        known = (decisions.probability, decisions.acted["Bayes minimum risk"]) if decisions else ()
        write_scores(options.scores, scores, *known, rows=experiment.rows)
        terminal.say(f"scores of rows not learned from are in {options.scores}")
    if options.page:
        name = options.files[-1] if options.files else NAME
        settings = page_settings(options, terminal, experiment, rounds[-1])
        warning = warning_line(rounds[-1], options.budget, bool(options.effort))
        about = name, data.y, settings, command_line(options.argv), warning
        write_page(options.page, make_content(*about, experiment, folds, decisions, explanation, results))
        terminal.say(f"the page is in {options.page}")
    if options.plots:
        draw_figures(options.plots, experiment, rounds, decisions, explanation, results)
        terminal.say(f"figures are in {options.plots}")


def explain_columns(options, terminal, data, experiment, folds):
    """Say which columns matter."""
    how = {"jobs": options.jobs, "with_dependence": bool(options.plots), "report": terminal.explaining()}
    explanation = explain(experiment, folds, find_columns(data), options.seed, **how)
    terminal.columns(explanation)
    return explanation


def command_line(argv):
    """The command, as one would type it."""
    words = ["python", "exp.py", *map(str, argv)]
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def page_settings(options, terminal, experiment, last):
    """What the AUC rests on, as pairs of words."""
    n_splits = len(experiment.splits)
    if n_splits > 1:
        yield "tested on", f"{n_splits} folds of the same file; each row by a model that has not learned from it"
    else:
        yield "learned from", f"{options.files[0]}, {len(experiment.y)} rows"
        yield "tested on", f"{options.files[1]}, {len(experiment.y_test)} rows"
    if last.effort is not None:
        yield "effort", effort_name(last.effort)
    yield "seconds", f"{terminal.taken:.1f} of {options.budget:g}"
    published = {name: getattr(options, name) for name in ("C", "buffer", "update", "passes")}
    chosen = [f"{name} {value}" for name, value in published.items() if value is not None]
    yield (
        "learner",
        f"the published algorithm, {', '.join(chosen)}"
        if chosen
        else "AUCRanker, its settings chosen inside the training rows of each fold",
    )
    yield "features", options.features or ("linear" if chosen else "auto")
    yield "seed", options.seed
    yield "version", VERSION


def print_comparison(options, terminal, workers, experiment, folds, cost):
    """Print a table of ours and the baselines, a line as soon as it is known, and return what it shows."""
    print_result(table_head())
    settings = {"seconds": options.compare_seconds, "report": terminal.comparing}
    shown = []
    for result in compare(workers, experiment, folds, cost, options.seed, **settings):
        terminal.clear()
        shown.append(result)
        print_result(table_row(result, shown[0]))
    terminal.clear()
    terminal.say(
        "lead of ours: the mean over the folds and its 95 % interval (paired, corrected for shared training rows); "
        "+/-: standard deviation over the folds; seconds: of all folds, one core each"
    )
    return shown


def save_model(path, data, experiment, estimator, scores):
    """Learn from all training rows and save the model.

    If it has no probabilities of its own, it is calibrated by the scores that folds gave to rows not learned from.
    """
    model = clone(estimator).fit(experiment.X, experiment.y)
    model.classes_, model.data_ = data.y, data
    if not model.score_function_.is_calibrated:
        if len(experiment.splits) > 1:
            model.score_function_.calibrate(*log_odds(scores, experiment.y, experiment.weight))
    elif len(experiment.splits) > 1:  # of a sample, positives may be more frequent than in the file
        of_class = [experiment.weight[experiment.y == sign][0] for sign in (1, -1)]
        model.score_function_.offset += np.log(of_class[0] / of_class[1])
    model.save(path)


def draw_figures(directory, experiment, rounds, decisions, explanation, results):
    """All figures that there is something to draw of."""

    def of_folds(scores):
        return [(experiment.y_test[test], of_fold) for (_, test), of_fold in zip(experiment.splits, scores)]

    learners = {result.name: of_folds(result.scores) for result in results if not result.trouble}
    draw(directory, of_folds([fold.scores for fold in rounds[-1].folds]), rounds, learners)
    if decisions:
        draw_decisions(directory, experiment.y_test, decisions)
    if explanation:
        draw_explanation(directory, explanation)
