"""Scoring files of any size with a saved model: some rows at a time, written as they come."""

from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from preprocess import InputError, show, signs
from tenfold.decisions import add_outcomes, decide, find_costs
from tenfold.metrics import RunningAUC
from tenfold.parallel import workers
from tenfold.pieces import find_pieces
from tenfold.ranker import load_model
from tenfold.readers import is_stream, load
from tenfold.readers.text import CannotCut
from tenfold.writing import ScoreFile


@dataclass
class Scored:
    """Some rows of a file: how many and of how many columns, their scores, signs and costs if there are any, notes."""

    shape: tuple
    scores: np.ndarray
    y: "np.ndarray | None"
    cost: "np.ndarray | None"
    notes: list


def score_data(ranker, model_name, path, data):
    """The `Scored` rows of a `Data` of the file at this path."""
    try:
        y = None if data.y is None else signs(data.y, ranker.classes_)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    with np.errstate(all="ignore"):
        scores = ranker.decision_function(data.X, data.new_values)
    if not np.isfinite(scores).all():
        raise InputError(f"{model_name} gives scores that are not finite, expected numbers: it may be damaged")
    return Scored(data.X.shape, scores, y, data.cost, data.notes)


def score_piece(number, pieces, ranker, model_name, wanted):
    """A list of the `Scored` rows of a piece, or None if it cannot be read without those before it."""
    piece = pieces[number]
    how = ranker, model_name, piece.paths[-1]
    try:
        return [score_data(*how, data) for data, _ in piece.read(like=ranker.data_, **wanted)]
    except CannotCut:
        return None


def score_files(names, model_name, ranker, jobs, report=lambda n_rows, share: None, *, can_be_cut=True, **wanted):
    """Yield the `Scored` rows of files, directories or patterns, in order; raise CannotCut if they cannot be cut."""
    if not is_stream(names):
        yield score_data(ranker, model_name, names[0], load(names[0], like=ranker.data_, **wanted))
        return
    pieces, notes = find_pieces(names, can_be_cut)
    yield Scored((0, ranker.n_features_in_), np.empty(0), None, None, notes)
    total, done, n_rows = max(sum(piece.size for piece in pieces), 1), 0, 0
    jobs = min(jobs, len(pieces))
    with workers(jobs, None, pieces, ranker, model_name, wanted) as at_work:
        for start in range(0, len(pieces), 2 * jobs):
            some = range(start, min(start + 2 * jobs, len(pieces)))
            results = at_work.run(some, score_piece)
            if None in results.values():
                raise CannotCut
            for i in some:
                yield from results[i]
                n_rows += sum(len(scored.scores) for scored in results[i])
                done += pieces[i].size
                report(n_rows, done / total)


def use_model(options, terminal, wanted, print_auc):
    """Score files with a saved model, and print the AUC, if they have labels of both classes."""
    ranker = load_model(options.model)
    if options.cost is not None and not ranker.score_function_.is_calibrated:
        raise InputError(f"{options.model} has no probabilities to decide by, expected a model saved after folds")
    said = set()
    # What has gone into a pipe cannot be taken back, so that nothing may have to be read once more.
    is_file = not options.scores or options.scores.is_file() or not options.scores.exists()
    try:
        _use_model(options, terminal, wanted, print_auc, ranker, said, can_be_cut=is_file)
    except CannotCut:  # once more, each file from its beginning
        _use_model(options, terminal, wanted, print_auc, ranker, said, can_be_cut=False)


def _use_model(options, terminal, wanted, print_auc, ranker, said, can_be_cut):
    name, is_calibrated = " ".join(map(str, options.files)), ranker.score_function_.is_calibrated
    auc, outcomes, n_rows = RunningAUC(), {}, 0
    how = {"report": terminal.streaming, "can_be_cut": can_be_cut, "labelled": False}
    with ExitStack() as stack:
        file = stack.enter_context(ScoreFile(options.scores)) if options.scores else None
        for scored in score_files(options.files, options.model, ranker, options.jobs, **how, **wanted):
            terminal.notes([note for note in scored.notes if note not in said])
            said.update(scored.notes)
            if not len(scored.scores):
                continue
            n_rows += len(scored.scores)
            auc.add(scored.y, scored.scores)
            probability, acted = expit(scored.scores) if is_calibrated else None, None
            if options.cost is not None:
                if scored.cost is None and not (options.cost or options.cost_name):
                    raise InputError(f"{name} has no costs of each row, expected --cost FN,FP")
                n = len(scored.scores)
                cost = find_costs(name, scored.cost, n, scored.y, options.cost, options.cost_name)
                decisions = decide(scored.y, scored.scores, probability, cost)
                acted = decisions.acted["Bayes minimum risk"]
                outcomes = add_outcomes(outcomes, decisions.outcomes)
            if file:
                file.add(scored.scores, probability, acted)
        terminal.clear()
        if not n_rows:
            raise InputError(f"{name} has no rows, expected some")
        value = auc.value()
        if not options.scores and value is None:
            raise InputError(
                f"{name} {auc.found()}, so there is no AUC; expected both classes, or --scores to write scores"
            )
    of = f"{n_rows} rows x {ranker.n_features_in_} features; label {show(ranker.classes_[1])} is positive"
    terminal.say(f"{name}: {of}")
    if outcomes and not auc.lacks_some:
        terminal.outcomes(outcomes)
    if options.scores:
        terminal.say(f"scores are in {options.scores}")
    if value is not None:
        print_auc(value)
