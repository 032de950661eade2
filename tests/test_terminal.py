"""What is said on standard error: lines, a table, and on a terminal a line that is live."""

import re
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import QUICK, RESULT, Screen, call, fold_aucs, frames

from tenfold.decisions import Outcome
from tenfold.folds import Fold
from tenfold.terminal import Terminal

pytestmark = [pytest.mark.filterwarnings("error"), pytest.mark.usefixtures("quick_plans")]


def test_summary_on_stderr(save, rows):
    X, y = rows
    X = np.column_stack([X, X[:, 0], np.ones(len(X))])
    X[0, 1] = np.nan
    code, out, err = call(save(x=X, y=y), "--folds", 3)
    assert code == 0 and RESULT.fullmatch(out)
    assert "60 rows x 6 features, 15 positive (label 1), 45 negative (label -1)" in err
    assert "constant columns dropped: 1; copies of other columns dropped: 1\n" in err
    assert "missing values replaced" in err
    aucs = np.array(re.search(r"AUC of each fold: (.*)", err)[1].split(), float)
    mean, deviation = map(float, re.search(r"mean (\S+) \+/- (\S+)", err).groups())
    assert len(aucs) == 3
    assert mean == pytest.approx(aucs.mean(), abs=1e-4) == float(out.split()[-1])
    assert deviation == pytest.approx(aucs.std(ddof=1), abs=2e-4)
    assert re.search(r"\d s of 10 s; all planned work was done", err)


def test_quiet_says_nothing_on_stderr(train):
    code, out, err = call(train, "-q", *QUICK)
    assert (code, err) == (0, "") and RESULT.fullmatch(out)


def test_progress_is_one_live_line_on_a_terminal_and_plain_lines_elsewhere(train):
    assert "\r" not in call(train, *QUICK)[2]
    live = call(train, *QUICK, stderr=Screen())[2]
    assert re.search(r"\r[^\n]*fold 1/2[^\n]*\r[^\n]*fold 2/2[^\n]*\n", live)


def test_the_live_line_shows_a_bar_the_fold_the_mean_and_the_seconds_left(train):
    aucs = np.array(fold_aucs(train, "--folds", 4, "--jobs", 1, "--passes", 1).split(), float)
    live = frames(call(train, "--folds", 4, "--jobs", 1, "--passes", 1, stderr=Screen())[2])
    assert len(live) == 5
    for k, line in enumerate(live):
        bar, text = line.split(" ", 1)
        assert (bar.count("█"), bar.count("░")) == (5 * k, 20 - 5 * k)
        assert text.startswith(f"fold {k}/4")
        assert re.search(r"\d\.\d s left$" if k < 4 else r"\d\.\d s$", text)
        if k > 1:
            mean, deviation = map(float, re.search(r"mean AUC (\S+) \+/- (\S+),", text).groups())
            assert mean == pytest.approx(aucs[:k].mean(), abs=1e-4)
            assert deviation == pytest.approx(aucs[:k].std(ddof=1), abs=1e-4)


@pytest.mark.parametrize("columns", ["200", "30", "5"])
def test_the_live_line_never_wraps(train, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    live = call(train, *QUICK, stderr=Screen())[2]
    assert max(map(len, frames(live))) < int(columns)
    assert live.count("\r") == 3


@pytest.mark.parametrize("variable, value", [("NO_COLOR", "1"), ("TERM", "dumb"), (None, None)])
def test_colour_only_where_it_is_welcome(train, monkeypatch, variable, value):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("WT_SESSION", "1")
    if variable:
        monkeypatch.setenv(variable, value)
    live = call(train, *QUICK, stderr=Screen())[2]
    assert ("\x1b[" in live) == (variable is None)
    assert "\x1b" not in call(train, *QUICK)[2]


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", None, "no such encoding"])
def test_a_terminal_that_knows_few_characters_gets_a_plain_bar(train, encoding):
    live = call(train, *QUICK, stderr=Screen(encoding))[2]
    assert live.isascii() and "#" * 10 + "." * 10 in live


# --- what is said, word by word --------------------------------------------------------------------------------------


@pytest.fixture
def terminal(monkeypatch):
    """A terminal whose clock stands 3 seconds after the start."""
    monkeypatch.setattr("tenfold.terminal.time", SimpleNamespace(monotonic=lambda: 103.0))
    return Terminal(quiet=False, started=100.0, budget=10.0)


def fold_of(auc=0.75, missing=0, constant=0, duplicated=0, done=1.0, **shares):
    changes = {"missing": missing, "constant": constant, "duplicated": duplicated}
    return Fold(auc, None, 1.0, [], changes, done, shares or {"linear": 1.0})


def test_the_data_in_a_line(terminal, capsys):
    terminal.data("a.mat", np.zeros((5, 3)), np.array([1, -1, -1, 1, -1]), np.array([0.0, 2.0]))
    assert capsys.readouterr() == ("", "a.mat: 5 rows x 3 features, 2 positive (label 2), 3 negative (label 0)\n")


def test_a_summary_of_folds(terminal, capsys):
    terminal.summary([fold_of(0.75, 3, 1), fold_of(0.85, 5, 1)], with_curves=False)
    assert capsys.readouterr().err.splitlines() == [
        "preprocessing: columns scaled, bias column added; missing values replaced by column means: 3 to 5; "
        "constant columns dropped: 1",
        "AUC of each fold: 0.7500 0.8500",
        "mean 0.8000 +/- 0.0707 (standard deviation over 2 folds)",
        "3.0 s of 10 s; all planned work was done",
    ]


@pytest.mark.parametrize(
    "done, percent", [((0.5, 1.0), 75), ((0.999, 1.0), 99), ((0.9999, 0.9999), 99), ((0.001, 0.001), 0)]
)
def test_a_summary_of_folds_that_the_clock_has_stopped_never_says_all(terminal, capsys, done, percent):
    terminal.summary([fold_of(done=share) for share in done], with_curves=True)
    last = capsys.readouterr().err.splitlines()[-1]
    ending = f"time ran out, learning stopped at {percent}% of the plan"
    assert last == f"3.0 s of 10 s, and more for the points of curves; {ending}"


def test_quiet_keeps_a_warning_that_the_plan_was_not_done(terminal, capsys):
    terminal.quiet = True
    terminal.summary([fold_of()], with_curves=False)
    assert capsys.readouterr().err == ""
    terminal.summary([fold_of(done=0.5)], with_curves=False)
    assert capsys.readouterr().err == "warning: time ran out, learning stopped at 50% of the plan\n"
    terminal.summary([replace(fold_of(done=0.5), effort=0.25)], with_curves=False)
    slow = "this machine is slow or busy: learned with a quarter of the usual effort"
    assert capsys.readouterr().err == f"{slow}\n"
    terminal.quiet = False
    terminal.summary([replace(fold_of(), effort=0.25)], with_curves=False)
    assert capsys.readouterr().err.splitlines()[-2:] == ["3.0 s of 10 s; less work was planned than usual", slow]


def test_a_summary_of_one_fold_has_no_deviation(terminal, capsys):
    terminal.summary([fold_of()], with_curves=False)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and not any("fold" in line for line in lines)


OUTCOMES = {"Bayes minimum risk": Outcome(18, 36, 2, 944, 1 / 3, 0.9, 0.486486, 134.0, 846 / 980)}


def test_a_table_of_decisions(terminal, capsys):
    terminal.outcomes(OUTCOMES)
    head, row = capsys.readouterr().err.splitlines()
    assert head.split() == ["decisions", "TP", "FP", "FN", "TN", "precision", "recall", "F1", "cost", "savings"]
    numbers = ["18", "36", "2", "944", "0.3333", "0.9000", "0.4865", "134", "86.3%"]
    assert row.split() == ["Bayes", "minimum", "risk", *numbers]
    assert len(head) == len(row)


@pytest.mark.parametrize("threshold", [1.25, None])
@pytest.mark.parametrize("alike", [True, False])
def test_decisions_and_what_to_go_by(terminal, capsys, threshold, alike):
    cost = np.tile([9.0, 1.0], (4, 1))
    cost[0, 0] += not alike
    terminal.decisions(SimpleNamespace(cost=cost, outcomes=OUTCOMES, threshold=threshold))
    first, *_, last = capsys.readouterr().err.splitlines()
    costs = "9 for a missed positive, 1 for a false alarm" if alike else "those of each row"
    level = "0.1" if alike else "false alarm / (missed + false alarm) of the row"
    by_folds, moved = "", ""
    if threshold is not None:
        by_folds = "; decisions on the rows of a fold use the scores of the other folds"
        moved = ", or the score above 1.25 (moved threshold)"
    assert first == f"costs: {costs}{by_folds}"
    assert last == f"for new rows: act where the probability is above {level} (Bayes minimum risk){moved}"


@pytest.mark.parametrize("n_choices", [1, 4])
@pytest.mark.parametrize("n_pos", [29, 31])
def test_a_stream_in_a_few_lines(terminal, capsys, n_choices, n_pos):
    counts = {"n_rows": 6000, "n_learned": 5400, "n_first": 900, "n_choices": n_choices, "auc": 0.912, "error": 0.0123}
    how = {"features": ["linear", "mixed"], "n_parts": 3, "n_rounds": 8}
    terminal.stream(SimpleNamespace(**counts, **how, to_choose=[30, 270], to_test=[n_pos, 269]))
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == [
        "6000 rows in 3.0 s, 5400 of them used for learning; scaled as 900 rows that were read first",
        "3 parts at a time, in 8 rounds, merged after each",
    ]
    chosen = "features and C chosen among 4 combinations by 30 positive and 270 negative rows held out"
    assert (chosen in lines) == (n_choices > 1)
    assert "learned from the columns themselves and similarities to landmarks" in lines
    rows = f"{n_pos} positive and 269 negative rows"
    assert f"AUC 0.9120 +/- 0.0123 (standard error), on {rows} held out of the stream" in lines
    assert lines[-1].startswith("warning: the AUC rests on 29 positive") == (n_pos < 30)


def test_an_auc_that_rests_on_few_rows_is_warned_of_even_where_all_is_quiet(capsys):
    counts = {"n_rows": 60, "n_learned": 54, "n_first": 9, "n_choices": 1, "auc": 1.0, "error": 0.25}
    how = {"features": ["linear"], "n_parts": 1, "n_rounds": 1}
    Terminal(True, 0, 10).stream(SimpleNamespace(**counts, **how, to_choose=[0, 0], to_test=[1, 5]))
    assert capsys.readouterr().err.endswith("expected 30 of each; its standard error is 0.2500\n")


# --- where it is said ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", ["200", "30"])
def test_the_live_line_of_a_stream_and_of_a_comparison_is_taken_away_in_the_end(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    terminal = Terminal(False, 0.0, 10.0)
    terminal.streaming(123_456, 0.5)
    terminal.comparing("a learner with a long name", 9, 10)
    terminal.comparing("another", 1, 10)
    terminal.clear()
    shown = frames(screen.getvalue())
    assert shown[0] == (10 * "█" + 10 * "░" + " 123,456 rows")[: int(columns) - 1].rstrip()
    assert shown[2].startswith("██" + 18 * "░" + " another")
    assert shown[-1] == "" and max(map(len, shown)) < int(columns)
    terminal.clear()
    assert frames(screen.getvalue()) == shown  # there is nothing left to take away


def test_nothing_live_is_said_where_there_is_no_terminal(terminal, capsys):
    terminal.streaming(123, 0.5)
    terminal.comparing("a learner", 1, 10)
    terminal.clear()
    terminal.progress(1)([fold_of()])  # one fold has no progress
    assert capsys.readouterr() == ("", "")
    terminal.progress(2)([fold_of()])
    assert capsys.readouterr() == ("", "fold 1/2: mean AUC 0.7500, 3.0 s\n")


def test_a_standard_error_that_fails_or_is_missing_is_not_written_to_again(monkeypatch):
    class Gone(Screen):
        writes = 0

        def write(self, text):
            self.writes += 1
            raise BrokenPipeError

    gone = Gone()
    monkeypatch.setattr(sys, "stderr", gone)
    terminal = Terminal(False, 0.0, 10.0)
    terminal.say("a")
    terminal.say("b")
    assert gone.writes == 1 and terminal.quiet
    monkeypatch.setattr(sys, "stderr", None)
    Terminal(False, 0.0, 10.0).say("c")
