"""All that is said on standard error."""

import os
import shutil
import sys
import time

import numpy as np

from preprocess import show
from tenfold.words import (
    COLUMN_HEAD,
    OUTCOME_HEAD,
    changes_line,
    column_cells,
    data_line,
    decision_lines,
    effort_name,
    explanation_lines,
    outcome_cells,
    round_line,
    shares_line,
    shorten,
    warning_line,
)

FEW_TESTED = 30  # rows of a class on which an AUC is uncertain


class Terminal:
    """What goes to standard error. On a terminal the last line is live: a bar that grows.

    ``started`` is the moment of the monotonic clock at which the process started, ``budget`` the seconds it may take;
    ``pinned`` says whether the effort was given.
    """

    BAR = 20

    def __init__(self, quiet, started, budget, pinned=False):
        self.quiet = quiet or sys.stderr is None
        self.live = not self.quiet and sys.stderr.isatty()
        self.started, self.budget, self.pinned = started, budget, pinned
        self.shown = 0  # characters of the live line
        self.taken = 0.0  # seconds until the folds were done
        self.warnings = []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.clear()  # what there is to say of an error begins a line

    def say(self, text, end="\n"):
        """Write a line, unless nobody wants or is able to read it."""
        if not self.quiet:
            try:
                print(text, end=end, file=sys.stderr, flush=True)
            except OSError:  # there may be a result to print all the same
                self.quiet = True

    def seconds(self):
        """The seconds since the process started."""
        return time.monotonic() - self.started

    def notes(self, notes):
        """What a reader has to say about a file."""
        for note in notes:
            self.say(note)

    def data(self, name, X, y, classes):
        """What was found in a file."""
        self.say(data_line(name, X, y, classes))

    def progress(self, n_folds):
        """A function to call with the effort of a round, its folds that are done, and the `Round` once it is whole.

        It says how many there are, how well they rank, and how long it may take yet.
        """
        begun = [time.monotonic()]

        def report(effort, folds, last):
            what = "" if effort is None else f"effort {effort_name(effort)}: "
            if last is not None:
                self.clear()
                self.say(round_line(last, self.seconds()))
                begun[0] = time.monotonic()
            elif self.live:
                text = f"{what}fold {len(folds)}/{n_folds}"
                if folds:
                    text += f": mean AUC {np.mean([fold.auc for fold in folds]):.4f}"
                    left = (time.monotonic() - begun[0]) / len(folds) * (n_folds - len(folds))
                    text += f", {max(left, 0):.1f} s left"
                self.show(len(folds) / n_folds, text)

        return report

    def comparing(self, name, done, n_folds):
        """How far a learner of the comparison has got."""
        if self.live:
            self.show(done / n_folds, f"{name}: fold {done}/{n_folds}")

    def streaming(self, n_rows, share):
        """How much of a stream has been read."""
        if self.live:
            self.show(share, f"{n_rows:,} rows")

    def show(self, share, text, end=""):
        """Write over the live line, in one go and not beyond the terminal's width."""
        full, empty = ("█", "░") if _can_write("█░") else ("#", ".")
        n_full = round(self.BAR * share)
        line = f"{full * n_full}{empty * (self.BAR - n_full)} {text}"[: shutil.get_terminal_size().columns - 1]
        blank = " " * (self.shown - len(line))
        self.shown = 0 if end else len(line)
        if _in_colour():
            line = f"\x1b[36m{line[: self.BAR]}\x1b[0m{line[self.BAR :]}"
        self.say(f"\r{line}{blank}", end=end)

    def clear(self):
        """Take the live line away."""
        if self.shown:
            self.say("\r" + " " * self.shown + "\r", end="")
            self.shown = 0

    def summary(self, rounds, n_asked):
        """What the folds of the last round have given, and how; the warning, if there is one."""
        self.clear()
        last = rounds[-1]
        folds = last.folds
        self.say(changes_line(folds))
        aucs = np.array([fold.auc for fold in folds])
        if len(aucs) > 1:
            self.say("AUC of each fold: " + " ".join(f"{auc:.4f}" for auc in aucs))
            self.say(f"mean {aucs.mean():.4f} +/- {aucs.std(ddof=1):.4f} (standard deviation over {len(aucs)} folds)")
        if len(folds[0].shares) > 1:
            self.say(shares_line([fold.shares for fold in folds]))
        self.taken = self.seconds()
        repeat = ""
        if last.effort is not None:
            repeat = f"; effort {effort_name(last.effort)} (--effort {effort_name(last.effort)} repeats it)"
        over = ", which is over the budget" if self.taken > self.budget else ""
        self.say(f"{self.taken:.1f} s of {self.budget:g} s{over}{repeat}")
        warning = warning_line(last, self.budget, self.pinned)
        if warning:
            self.warn(warning)
        if 1 < len(folds) < n_asked:
            self.warn(f"warning: {len(folds)} folds instead of {n_asked}: one class has only {len(folds)} rows")
        return warning

    def warn(self, text):
        """Write a line that matters even to those who asked for quiet, once."""
        if text in self.warnings:
            return
        self.warnings.append(text)
        quiet, self.quiet = self.quiet, sys.stderr is None
        self.say(text)
        self.quiet = quiet

    def rows_used(self, used, n_rows):
        """Very many rows are not all used."""
        if used < n_rows:
            self.say(f"{used} of {n_rows} rows are used, a random sample with as many of the rarer class as possible")

    def outcomes(self, outcomes):
        """A table of what each rule to decide by has led to."""
        for cells in [OUTCOME_HEAD, *(outcome_cells(*item) for item in outcomes.items())]:
            name, *others = cells
            widths = 8, 8, 8, 8, 11, 8, 8, 12, 9
            self.say(f"{name:<19}" + "".join(f"{cell:>{width}}" for cell, width in zip(others, widths)))

    def decisions(self, decisions):
        """The outcomes, and the thresholds that a user can apply."""
        costs, rule = decision_lines(decisions)
        self.say(costs)
        self.outcomes(decisions.outcomes)
        self.say(rule)

    def explaining(self):
        """A function to call with the number of columns and folds done and that of all: how many, and how long yet."""
        begun = time.monotonic()
        self.say("--explain: shuffling the values of each column among the test rows")

        def report(done, n):
            if self.live and (done == n or done % max(n // 500, 1) == 0):
                left = (time.monotonic() - begun) / max(done, 1) * (n - done)
                self.show(done / max(n, 1), f"--explain: {done / max(n, 1):.0%}" + f", {left:.0f} s left" * bool(done))

        return report

    def columns(self, explanation):
        """A table of the columns that matter most."""
        self.clear()
        about, rest = explanation_lines(explanation)
        self.say(about)
        rows = [COLUMN_HEAD, *column_cells(explanation)]
        wide = max(len(shorten(name)) for name, _, _ in rows)
        for name, mean, error in rows:
            self.say(f"{shorten(name):<{wide}} {mean:>8} {error:>7}")
        if rest:
            self.say(rest)

    def sampled(self, counts, n_kept):
        """How many rows of a stream were read, of each label, and how many are used."""
        self.clear()
        of_labels = ", ".join(f"{n:,} with label {show(label)}" for label, n in counts.items())
        n_rows = sum(counts.values())
        self.say(f"{n_rows:,} rows read in {self.seconds():.1f} s: {of_labels}; {n_kept:,} of them are used")

    def stream(self, result):
        """What learning online from a stream has given."""
        self.say(
            f"{result.n_rows:,} rows in {self.seconds():.1f} s; "
            f"learned online from {result.n_learned:,} of them, row by row"
        )
        if result.n_choices > 1:
            positive, negative = result.to_choose
            rows = f"{positive} positive and {negative} negative rows held out"
            self.say(f"C chosen among {result.n_choices} values by {rows}")
        positive, negative = result.to_test
        rows = f"{positive} positive and {negative} negative rows"
        self.say(f"AUC {result.auc:.4f} +/- {result.error:.4f} (standard error), on {rows} held out of the stream")
        if min(positive, negative) < FEW_TESTED:
            self.warn(
                f"warning: the AUC rests on {rows} only, expected {FEW_TESTED} of each; "
                f"its standard error is {result.error:.4f}"
            )


def _can_write(text):
    try:
        text.encode(sys.stderr.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _in_colour():
    """As https://no-color.org asks; older Windows consoles would show the codes themselves."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain and (os.name != "nt" or "WT_SESSION" in os.environ)
