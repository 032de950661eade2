"""Scoring a file with a saved model."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from preprocess import InputError, show, signs
from tenfold.decisions import decide, find_costs
from tenfold.ranker import load_model
from tenfold.readers import load
from tenfold.writing import write_scores


@dataclass
class ScoredFile:
    """A file's rows and labels (None where there are none), their scores, probabilities (or None) and AUC (or None)."""

    X: object
    y: "np.ndarray | None"
    cost: "np.ndarray | None"
    classes: np.ndarray
    scores: np.ndarray
    probability: "np.ndarray | None"
    auc: "float | None"
    notes: list


def score_file(model_path, path, *, need_auc, need_probability, **wanted):
    """The `ScoredFile` that the model makes of a file; ``wanted`` is as of `load`.

    It is an `InputError` if the AUC or the probabilities are needed, and there are none.
    """
    ranker = load_model(model_path)
    if need_probability and not ranker.score_function_.is_calibrated:
        raise InputError(f"{model_path} has no probabilities to decide by, expected a model saved after folds")
    data = load(path, like=ranker.data_, labelled=False, **wanted)
    y = None if data.y is None else signs(data.y, ranker.classes_)
    has_auc = y is not None and len(set(y)) == 2
    if need_auc and not has_auc:
        found = "no labels" if y is None else f"one label only, {show(data.y[0])}"
        raise InputError(f"{path} has {found}, so there is no AUC; expected both classes, or --scores to write scores")
    with np.errstate(all="ignore"):
        scores = ranker.decision_function(data.X)
    if not np.isfinite(scores).all():
        raise InputError(f"{model_path} gives scores that are not finite, expected numbers: it may be damaged")
    probability = expit(scores) if ranker.score_function_.is_calibrated else None
    auc = roc_auc_score(y, scores) if has_auc else None
    return ScoredFile(data.X, y, data.cost, ranker.classes_, scores, probability, auc, data.notes)


def use_model(options, terminal, wanted, print_auc):
    """Score a file with a saved model, and print the AUC, if the file has labels of both classes."""
    (name,) = options.files
    needs = {"need_auc": not options.scores, "need_probability": options.cost is not None}
    scored = score_file(options.model, name, **needs, **wanted)
    terminal.notes(scored.notes)
    n_rows, n_columns = scored.X.shape
    terminal.say(f"{name}: {n_rows} rows x {n_columns} features; label {show(scored.classes[1])} is positive")
    if scored.auc is not None:
        print_auc(scored.auc)
    acted = None
    if options.cost is not None:
        cost = find_costs(name, scored, scored.y, options.cost, options.cost_name)
        decisions = decide(scored.y, scored.scores, scored.probability, cost)
        acted = decisions.acted["Bayes minimum risk"]
        if decisions.outcomes:  # there are none without labels
            terminal.outcomes(decisions.outcomes)
    if options.scores:
        write_scores(options.scores, scored.scores, scored.probability, acted)
        terminal.say(f"scores are in {options.scores}")
