"""A model of all training rows, of the effort that the folds had."""

import numpy as np
from sklearn.base import clone

from tenfold.calibration import log_odds
from tenfold.models import check_name
from tenfold.reports.base import Report
from tenfold.writing import check_output


class Model(Report):
    option = "save"

    def check(self, inputs, force):
        check_name(self.value)
        check_output("--save", self.value, inputs, force)

    def write(self, result, terminal):
        save_model(self.value, result)
        terminal.say(f"the model, learned from all {len(result.experiment.y)} rows, is in {self.value}")


def save_model(path, result):
    """Learn from all training rows and save the model.

    If it has no probabilities of its own, it is calibrated by the scores that folds gave to rows not learned from.
    """
    experiment, by_folds = result.experiment, len(result.folds) > 1
    model = clone(result.estimator).fit(experiment.X, experiment.y)
    model.classes_, model.data_ = result.like.y, result.like
    function = model.score_function_
    if not function.is_calibrated and by_folds:
        function.calibrate(*log_odds(result.scores, experiment.y, experiment.weight))
    elif function.is_calibrated and by_folds:  # of a sample, positives may be more frequent than in the file
        of_class = [experiment.weight[experiment.y == sign][0] for sign in (1, -1)]
        function.offset += np.log(of_class[0] / of_class[1])
    model.save(path)
