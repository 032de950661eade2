"""What the command does beside the AUC, where it is asked to: a comparison, decisions, a model, scores, figures."""

import numpy as np
from scipy.special import expit
from sklearn.base import clone

from tenfold.calibration import log_odds
from tenfold.comparison import compare, table_head, table_row
from tenfold.decisions import decide, decide_by_folds
from tenfold.figures import draw, draw_decisions
from tenfold.writing import print_result, write_scores


def do_extras(options, terminal, data, experiment, cost, estimator, folds, results):
    """Do all that the options ask for, once the AUC is known.

    ``data`` is that of the training file, without rows; ``cost`` (test rows x 2) is None if there is nothing to decide;
    ``estimator`` is for a model to save, and ``results`` are those of the comparison.
    """
    scores, decisions = experiment.in_file_order([fold.scores for fold in folds]), None
    y = experiment.y_test
    if cost is not None:
        by_folds = len(folds) > 1
        decisions = decide_by_folds(experiment, scores, cost) if by_folds else decide(y, scores, expit(scores), cost)
        terminal.decisions(decisions)
    if options.save:
        save_model(options.save, data, experiment, estimator, scores)
        terminal.say(f"the model, learned from all {len(experiment.y)} rows, is in {options.save}")
    if options.scores:
        known = (decisions.probability, decisions.acted["Bayes minimum risk"]) if decisions else ()
        write_scores(options.scores, scores, *known)
        terminal.say(f"scores of rows not learned from are in {options.scores}")
    if options.plots:
        draw_figures(options.plots, experiment, folds, results, decisions)
        terminal.say(f"figures are in {options.plots}")


def print_comparison(options, terminal, experiment, folds, cost):
    """Print a table of ours and the baselines, a line as soon as it is known, and return what it shows."""
    print_result(table_head())
    settings = {"jobs": options.jobs, "seconds": options.compare_seconds, "report": terminal.comparing}
    shown = []
    for result in compare(experiment, folds, cost, options.seed, **settings):
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
    if not model.score_function_.is_calibrated and len(experiment.splits) > 1:
        model.score_function_.calibrate(*log_odds(scores, experiment.y, np.ones(len(scores))))
    model.save(path)


def draw_figures(directory, experiment, folds, results, decisions):
    """All figures that there is something to draw of."""

    def of_folds(scores):
        return [(experiment.y_test[test], of_fold) for (_, test), of_fold in zip(experiment.splits, scores)]

    learners = {result.name: of_folds(result.scores) for result in results if not result.trouble}
    draw(directory, of_folds([fold.scores for fold in folds]), [fold.curve for fold in folds], learners)
    if decisions:
        draw_decisions(directory, experiment.y_test, decisions)
