"""What a report has to offer, and what it is about. One report is one module of this folder, and one line in the list.

A report is what the command says, writes or draws beside the AUC, once that is known. It never changes the AUC.
"""

from dataclasses import dataclass
from functools import cached_property

from scipy.special import expit

from tenfold.decisions import decide, decide_by_folds
from tenfold.explain import explain, find_columns


@dataclass
class Result:
    """What a run has given."""

    files: list  # names of the files, the training file first
    like: object  # the `Data` of the training file, without rows, and with the two classes for labels
    experiment: object
    rounds: list
    estimator: object  # what has learned in each fold, unfitted
    costs: object  # rows x 2, or None if there is nothing to decide
    comparison: list  # a `LearnerResult` of each learner
    warning: str
    seconds: float
    budget: float
    seed: int
    jobs: int
    command: str
    drawn: bool  # whether there are to be figures

    @property
    def last(self):
        """The round that counts."""
        return self.rounds[-1]

    @property
    def folds(self):
        return self.last.folds

    @property
    def name(self):
        """What to call the rows that were tested on."""
        return self.files[-1]

    @property
    def settings(self):
        """The parameters of what has learned, but for the seed, and without cells of files."""
        given = self.estimator.get_params()
        return {name: given[name] for name in given if name not in ("random_state", "categories")}

    @cached_property
    def scores(self):
        """The scores of the test rows, in the order of their file."""
        return self.experiment.in_file_order([fold.scores for fold in self.folds])

    @cached_property
    def decisions(self):
        """The `Decisions` at the given costs, or None."""
        if self.costs is None:
            return None
        if len(self.folds) > 1:
            return decide_by_folds(self.experiment, self.scores, self.costs)
        return decide(self.experiment.y_test, self.scores, expit(self.scores), self.costs)

    explanation = None

    def explain(self, report):
        """Find the `Explanation` of the scores; ``report`` is called with how far it is."""
        how = {"jobs": self.jobs, "with_dependence": self.drawn, "report": report}
        self.explanation = explain(self.experiment, self.folds, find_columns(self.like), self.seed, **how)
        return self.explanation


class Report:
    """Made with the value of its ``option`` if that was given; ``needs`` may be "models", to be kept by the folds."""

    option, needs = "", frozenset()

    def __init__(self, value):
        self.value = value

    def check(self, inputs, force):
        """Refuse, before the run, what could not be written after it."""

    def write(self, result, terminal):
        """Say, write or draw what this report is about."""
        raise NotImplementedError
