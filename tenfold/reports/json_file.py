"""The AUC and what it rests on, for programs to read."""

import json
import platform

import numpy
import scipy
import sklearn

from tenfold import __version__
from tenfold.reports.base import Report
from tenfold.writing import check_output, write_whole


class Json(Report):
    option = "json"

    def check(self, inputs, force):
        check_output("--json", self.value, inputs, force)

    def write(self, result, terminal):
        text = json.dumps(content(result), indent=1, allow_nan=False) + "\n"
        write_whole(self.value, lambda file: file.write(text.encode()))
        terminal.say(f"the result is in {self.value}")


def content(result):
    """What JSON can hold of a result."""
    last, y = result.last, result.experiment.y_test
    return {
        "auc": last.auc,
        "folds": [fold.auc for fold in last.folds],
        "effort": last.effort,
        "done": last.done,
        "rounds": [{"effort": one.effort, "auc": one.auc, "seconds": one.seconds} for one in result.rounds],
        "shares": [fold.shares for fold in last.folds],
        "settings": result.settings | {"seed": result.seed, "budget": result.budget},
        "files": [str(name) for name in result.files],
        "rows": len(y),
        "positives": int((y > 0).sum()),
        "seconds": result.seconds,
        "versions": {
            "tenfold": __version__,
            "python": platform.python_version(),
            **{module.__name__: module.__version__ for module in (numpy, scipy, sklearn)},
        },
    }
