"""Figures of all that there is something to draw of."""

from importlib.util import find_spec

from preprocess import InputError
from tenfold.figures import draw, draw_decisions, draw_explanation
from tenfold.reports.base import Report
from tenfold.writing import check_directory


class Figures(Report):
    option = "plots"

    def check(self, inputs, force):
        if find_spec("matplotlib") is None:
            raise InputError("--plots needs matplotlib, which is not installed: python -m pip install matplotlib")
        check_directory(self.value, force)

    def write(self, result, terminal):
        experiment = result.experiment
        self.value.mkdir(parents=True, exist_ok=True)

        def of_folds(scores):
            return [(experiment.y_test[test], of_fold) for (_, test), of_fold in zip(experiment.splits, scores)]

        learners = {one.name: of_folds(one.scores) for one in result.comparison if not one.trouble}
        draw(self.value, of_folds([fold.scores for fold in result.folds]), result.rounds, learners)
        if result.decisions:
            draw_decisions(self.value, experiment.y_test, result.decisions)
        if result.explanation:
            draw_explanation(self.value, result.explanation)
        terminal.say(f"figures are in {self.value}")
