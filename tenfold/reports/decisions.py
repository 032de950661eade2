"""Which rows to act on, at given costs: a table of what each rule to decide by has led to."""

from tenfold.reports.base import Report


class DecisionTable(Report):
    option = "cost"

    def write(self, result, terminal):
        terminal.decisions(result.decisions)
