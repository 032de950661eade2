"""The score of each row, by a model that has not learned from it."""

from tenfold.reports.base import Report
from tenfold.writing import ScoreFile, check_output


class Scores(Report):
    option = "scores"

    def check(self, inputs, force):
        check_output("--scores", self.value, inputs, force)

    def write(self, result, terminal):
        decisions = result.decisions
        known = (decisions.probability, decisions.acted["Bayes minimum risk"]) if decisions else ()
        with ScoreFile(self.value) as file:
            file.add(result.scores, *known, rows=result.experiment.rows)
        terminal.say(f"scores of rows not learned from are in {self.value}")
