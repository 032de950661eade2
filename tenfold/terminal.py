"""All that is said on standard error."""

import math
import os
import shutil
import sys
import time

import numpy as np

from preprocess import show

FEATURE_SETS = {
    "linear": "the columns themselves",
    "mixed": "similarities to landmarks",
    "smooth": "wide, smooth similarities to landmarks",
    "rough": "wide, rough similarities to landmarks",
}


EFFORTS = {1: "all", 1 / 2: "half", 1 / 4: "a quarter", 1 / 8: "an eighth", 1 / 16: "a sixteenth"}


class Terminal:
    """What goes to standard error. On a terminal the last line is live: a bar that grows.

    ``started`` is the moment of the monotonic clock at which the process started, ``budget`` the seconds it may take.
    """

    BAR = 20

    def __init__(self, quiet, started, budget):
        self.quiet = quiet or sys.stderr is None
        self.live = not self.quiet and sys.stderr.isatty()
        self.started, self.budget = started, budget
        self.shown = 0  # characters of the live line

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
        n_pos = np.count_nonzero(y > 0)
        self.say(
            f"{name}: {X.shape[0]} rows x {X.shape[1]} features, "
            f"{n_pos} positive (label {show(classes[1])}), {len(y) - n_pos} negative (label {show(classes[0])})"
        )

    def progress(self, n_folds):
        """A function to call with the folds that are done: it says how many, how well, and how long it may take yet."""
        begun = time.monotonic()

        def report(folds):
            aucs = [fold.auc for fold in folds]
            text = f"fold {len(aucs)}/{n_folds}"
            if aucs:
                text += f": mean AUC {np.mean(aucs):.4f}"
            if not self.live:
                if aucs and n_folds > 1:
                    self.say(f"{text}, {self.seconds():.1f} s")
                return
            if len(aucs) > 1:
                text += f" +/- {np.std(aucs, ddof=1):.4f}"
            left = self.budget - self.seconds()
            if aucs:
                left = min(left, (time.monotonic() - begun) / len(aucs) * (n_folds - len(aucs)))
            if len(aucs) < n_folds:
                self.show(len(aucs) / n_folds, f"{text}, {max(left, 0):.1f} s left")
            else:
                self.show(1, f"{text}, {self.seconds():.1f} s", end="\n")

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

    def summary(self, folds, with_curves):
        """What the folds have given, and how."""
        counts = {key: _range([fold.changes[key] for fold in folds]) for key in folds[0].changes}
        self.say(
            f"preprocessing: {counts['missing']} missing values replaced by column means, {counts['constant']} "
            f"constant and {counts['duplicated']} duplicated columns dropped; scaled, bias column added"
        )
        aucs = np.array([fold.auc for fold in folds])
        if len(aucs) > 1:
            self.say("AUC of each fold: " + " ".join(f"{auc:.4f}" for auc in aucs))
            self.say(f"mean {aucs.mean():.4f} +/- {aucs.std(ddof=1):.4f} (standard deviation over {len(aucs)} folds)")
        if len(folds[0].shares) > 1:
            self.say("shares in the score, chosen inside the training rows: " + describe([f.shares for f in folds]))
        done = sum(fold.done for fold in folds) / len(folds)
        early = f"the clock stopped learning early, at {math.floor(100 * done)}% of the plan"
        beyond = ", and more for the points of curves" if with_curves else ""
        ending = early if done < 1 else "all planned work was done"
        self.say(f"{self.seconds():.1f} s of {self.budget:g} s{beyond}; {ending}")
        self._effort(folds)

    def _effort(self, folds):
        """Say, also to those who asked for quiet, that the machine had no time for all that was planned."""
        efforts = sorted({fold.effort for fold in folds})
        if efforts == [1]:
            return
        words = " to ".join(EFFORTS.get(effort, f"{effort:.3g}") for effort in efforts)
        self.warn(f"this machine is slow or busy: learned with {words} of the usual effort")

    def warn(self, text):
        """Write a line that matters even to those who asked for quiet."""
        quiet, self.quiet = self.quiet, sys.stderr is None
        self.say(text)
        self.quiet = quiet

    def outcomes(self, outcomes):
        """A table of what each rule to decide by has led to."""
        counts = ("true_positives", "false_positives", "false_negatives", "true_negatives")
        self.say(
            f"{'decisions':<19}{'TP':>8}{'FP':>8}{'FN':>8}{'TN':>8}  precision  recall      F1        cost  savings"
        )
        for name, outcome in outcomes.items():
            numbers = "".join(f"{getattr(outcome, count):8d}" for count in counts)
            rates = f"{outcome.precision:11.4f}{outcome.recall:8.4f}{outcome.f1:8.4f}"
            self.say(f"{name:<19}{numbers}{rates}{outcome.cost:12.6g}{outcome.savings:9.1%}")

    def decisions(self, decisions):
        """The outcomes, and the thresholds that a user can apply."""
        missed, false_alarm = decisions.cost.min(axis=0)
        alike = np.ptp(decisions.cost, axis=0).max() == 0
        costs = f"{missed:g} for a missed positive, {false_alarm:g} for a false alarm" if alike else "those of each row"
        by_folds = decisions.threshold is not None
        self.say(f"costs: {costs}" + ("; rows of each fold are decided on by the other folds" if by_folds else ""))
        self.outcomes(decisions.outcomes)
        level = (
            f"{false_alarm / (missed + false_alarm):.4g}"
            if alike
            else "false alarm / (missed + false alarm) of the row"
        )
        moved = f", or the score above {decisions.threshold:.6g} (moved threshold)" if by_folds else ""
        self.say(f"for rows to come: act where the probability is above {level} (Bayes minimum risk){moved}")

    def stream(self, result):
        """What a stream has given."""
        self.say(
            f"{result.n_rows} rows in {self.seconds():.1f} s, {result.n_learned} of them learned from, "
            f"scaled by the first {result.n_first}"
        )
        if result.n_choices > 1:
            positive, negative = result.to_choose
            self.say(
                f"C chosen among {result.n_choices} values by {positive} positive and {negative} negative rows held out"
            )
        positive, negative = result.to_test
        self.say(f"AUC on a sample of {positive} positive and {negative} negative rows held out of the stream")


def describe(shares):
    """In words: which feature sets make up how much of the score, and in how many folds the most."""
    largest = [max(share, key=share.get) for share in shares]
    mean = {name: sum(share.get(name, 0) for share in shares) / len(shares) for name in FEATURE_SETS}
    return ", ".join(
        f"{FEATURE_SETS[name]} {mean[name]:.0%} (the most in {largest.count(name)} of {len(shares)} folds)"
        for name in sorted(mean, key=mean.get, reverse=True)
        if mean[name] > 0
    )


def _range(counts):
    return " to ".join(str(n) for n in sorted({min(counts), max(counts)}))


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
