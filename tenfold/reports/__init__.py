"""All reports, in the order in which they are written: a new one is a module of this folder, and a name in the list."""

from preprocess import InputError
from tenfold.reports.base import Result  # noqa: F401
from tenfold.reports.decisions import DecisionTable
from tenfold.reports.drawings import Figures
from tenfold.reports.explanation import Explanation
from tenfold.reports.html import Page
from tenfold.reports.json_file import Json
from tenfold.reports.model import Model
from tenfold.reports.scores import Scores

REPORTS = [DecisionTable, Explanation, Model, Scores, Page, Figures, Json]


def chosen(given, inputs, force):
    """The reports whose options were ``given`` a value; refused before the run if they could not be written."""
    reports = [kind(given[kind.option]) for kind in REPORTS if given.get(kind.option) not in (None, False)]
    for report in reports:
        report.check(inputs, force)
    paths = {report.option: report.value.resolve() for report in reports if hasattr(report.value, "resolve")}
    for option, path in paths.items():
        for other in paths:
            if other < option and paths[other] == path:
                raise InputError(f"--{other} and --{option} are both {given[option]}, expected two files")
    return reports
