"""Which columns matter."""

from tenfold.reports.base import Report


class Explanation(Report):
    option, needs = "explain", frozenset(["models"])

    def write(self, result, terminal):
        terminal.columns(result.explain(terminal.explaining()))
