"""A page on which to choose a threshold."""

from tenfold import __version__
from tenfold.page import make_content, write_page
from tenfold.reports.base import Report
from tenfold.words import effort_name
from tenfold.writing import check_output


class Page(Report):
    option = "page"

    def check(self, inputs, force):
        check_output("--page", self.value, inputs, force)

    def write(self, result, terminal):
        about = result.name, result.like.y, list(facts(result)), result.command, result.warning
        of_run = result.experiment, result.folds, result.decisions, result.explanation, result.comparison
        write_page(self.value, make_content(*about, *of_run))
        terminal.say(f"the page is in {self.value}")


def facts(result):
    """What the AUC rests on, as pairs of words."""
    experiment = result.experiment
    if len(experiment.splits) > 1:
        found = f"{len(experiment.splits)} folds of the same file; each row by a model that has not learned from it"
        yield "tested on", found
    else:
        yield "learned from", f"{result.files[0]}, {len(experiment.y)} rows"
        yield "tested on", f"{result.name}, {len(experiment.y_test)} rows"
    if result.last.effort is not None:
        yield "effort", effort_name(result.last.effort)
    yield "seconds", f"{result.seconds:.1f} of {result.budget:g}"
    settings = result.settings
    if result.last.effort is None:
        yield "learner", "the published algorithm, " + ", ".join(f"{name} {value}" for name, value in settings.items())
    else:
        yield "learner", "AUCRanker, its settings chosen inside the training rows of each fold"
        yield "features", settings["features"]
    yield "seed", result.seed
    yield "version", __version__
