"""What is said on standard error: lines, a table, and on a terminal a line that is live."""

import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import EFFORT, QUICK, RESULT, Screen, call, fold_aucs, frames, said_aucs

from tenfold.decisions import Outcome
from tenfold.folds import Fold
from tenfold.rounds import Round
from tenfold.terminal import Terminal

pytestmark = pytest.mark.filterwarnings("error")


def test_summary_on_stderr(save, rows):
    X, y = rows
    X = np.column_stack([X, X[:, 0], np.ones(len(X))])
    X[0, 1] = np.nan
    code, out, err = call(save(x=X, y=y), "--folds", 3, *EFFORT)
    assert code == 0 and RESULT.fullmatch(out)
    assert "60 rows x 6 features, 15 positive (label 1), 45 negative (label -1)" in err
    assert "constant columns dropped: 1; copies of other columns dropped: 1\n" in err
    assert "missing values replaced" in err
    aucs = np.array(said_aucs(err).split(), float)
    mean, deviation = map(float, re.search(r"mean (\S+) \+/- (\S+)", err).groups())
    assert len(aucs) == 3
    assert mean == pytest.approx(aucs.mean(), abs=1e-4) == float(out.split()[-1])
    assert deviation == pytest.approx(aucs.std(ddof=1), abs=2e-4)
    (said,) = re.findall(r"^effort 1/16: mean AUC (\S+), \d+\.\d s$", err, re.M)
    assert float(said) == mean
    assert re.fullmatch(r"\d\.\d s of 10 s; effort 1/16 \(--effort 1/16 repeats it\)", err.splitlines()[-1])


def test_quiet_says_nothing_on_stderr(train):
    for argv in (QUICK, EFFORT):
        code, out, err = call(train, "-q", *argv)
        assert (code, err) == (0, "") and RESULT.fullmatch(out)


def test_progress_is_one_live_line_on_a_terminal_and_a_plain_line_elsewhere(train):
    plain = call(train, *QUICK)[2]
    assert "\r" not in plain and "fold 1/2" not in plain
    (said,) = re.findall(r"^mean AUC (\S+), \d+\.\d s$", plain, re.M)
    live = call(train, *QUICK, stderr=Screen())[2]
    assert re.search(r"\r[^\n]*fold 0/2[^\n]*\r[^\n]*fold 2/2[^\n]*\r +\rmean AUC " + said, live)


def test_the_live_line_shows_a_bar_the_effort_the_fold_the_mean_and_the_seconds_left(train):
    argv = train, "--folds", 4, "--jobs", 1, *EFFORT
    aucs = np.array(fold_aucs(*argv).split(), float)
    live = [line for line in frames(call(*argv, stderr=Screen())[2]) if " fold " in line]
    assert live[0].endswith("fold 0/4") and len(live) > 2
    for line in live:
        bar, text = line.split(" ", 1)
        k = int(re.match(r"effort 1/16: fold (\d)/4", text)[1])
        assert (bar.count("█"), bar.count("░")) == (5 * k, 20 - 5 * k)
        if k > 0:
            mean, left = map(float, re.search(r"mean AUC (\S+), (\d+\.\d) s left$", text).groups())
            assert mean == pytest.approx(aucs[:k].mean(), abs=1e-4) and (k < 4 or left == 0)


@pytest.mark.parametrize("columns", ["200", "30", "5"])
def test_the_live_line_never_wraps(train, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    shown = frames(call(train, *QUICK, stderr=Screen())[2])
    *live, blank, rest = shown
    assert len(live) > 1 and max(map(len, live)) < int(columns)
    assert blank == "" and rest.startswith("mean AUC")  # nothing of it is left


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
    assert live.isascii() and frames(live)[0].startswith("." * 20 + " fold 0/2")
    assert any(frame.startswith("#" * 20 + " fold 2/2") for frame in frames(live))


# --- what is said, word by word --------------------------------------------------------------------------------------


@pytest.fixture
def terminal(monkeypatch):
    """A terminal whose clock stands 3 seconds after the start."""
    monkeypatch.setattr("tenfold.terminal.time", SimpleNamespace(monotonic=lambda: 103.0))
    return Terminal(quiet=False, started=100.0, budget=10.0)


def fold_of(auc=0.75, missing=0, constant=0, duplicated=0, done=1.0, **shares):
    changes = {"missing": missing, "constant": constant, "duplicated": duplicated}
    return Fold(auc, None, 1.0, 0.0, 50, changes, done, shares or {"linear": 1.0})


def rounds_of(*folds, effort=1.0, seconds=2.0):
    """A round of other folds, and one of these."""
    return [Round(1 / 4, [fold_of(0.6)] * len(folds), 0.5), Round(effort, list(folds), seconds)]


def test_the_data_in_a_line(terminal, capsys):
    terminal.data("a.mat", np.zeros((5, 3)), np.array([1, -1, -1, 1, -1]), np.array([0.0, 2.0]))
    assert capsys.readouterr() == ("", "a.mat: 5 rows x 3 features, 2 positive (label 2), 3 negative (label 0)\n")


def test_a_summary_is_of_the_folds_of_the_last_round(terminal, capsys):
    terminal.summary(rounds_of(fold_of(0.75, 3, 1), fold_of(0.85, 5, 1), effort=1.5), 2)
    assert capsys.readouterr().err.splitlines() == [
        "preprocessing: columns scaled, bias column added; missing values replaced by column means: 3 to 5; "
        "constant columns dropped: 1",
        "AUC of each fold: 0.7500 0.8500",
        "mean 0.8000 +/- 0.0707 (standard deviation over 2 folds)",
        "3.0 s of 10 s; effort 1.5 (--effort 1.5 repeats it)",
    ]
    assert terminal.taken == 3


def test_a_summary_has_the_shares_of_the_sets_of_features_and_no_warning_where_all_is_well(terminal, capsys):
    folds = fold_of(mixed=0.5, smooth=0.06, linear=0.44), fold_of(mixed=0.5, smooth=0.06, linear=0.44)
    assert terminal.summary(rounds_of(*folds), 2) == ""
    assert "shares in the score: similarities to landmarks 56%, columns 44%" in capsys.readouterr().err.splitlines()


def test_fewer_folds_than_asked_for_are_warned_of_but_not_on_a_page(terminal, capsys):
    assert terminal.summary(rounds_of(fold_of(), fold_of()), 10) == ""
    assert capsys.readouterr().err.splitlines()[-1] == "warning: 2 folds instead of 10: one class has only 2 rows"
    terminal.summary(rounds_of(fold_of(), effort=None), 10)  # of two files
    assert "instead of" not in capsys.readouterr().err


def test_what_is_live_is_gone_when_an_error_is_said(monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    with pytest.raises(ValueError, match="an error"), Terminal(False, 0.0, 10.0) as terminal:
        terminal.streaming(123, 0.5)
        assert frames(screen.getvalue())[-1].endswith("123 rows")
        raise ValueError("an error")
    assert frames(screen.getvalue())[-1] == "" and screen.getvalue().endswith("\r")


@pytest.mark.parametrize(
    "done, percent", [((0.5, 1.0), 75), ((0.999, 1.0), 99), ((0.9999, 0.9999), 99), ((0.001, 0.001), 0)]
)
@pytest.mark.parametrize("effort", [1 / 4, None])
def test_a_summary_of_folds_that_the_clock_has_stopped_warns_and_never_says_all(
    terminal, capsys, done, percent, effort
):
    returned = terminal.summary(rounds_of(*(fold_of(done=share) for share in done), effort=effort), 2)
    *_, time_used, warning = capsys.readouterr().err.splitlines()
    assert returned == warning
    assert time_used.startswith("3.0 s of 10 s")
    assert warning == (f"warning: time ran out, learning stopped at {percent}% of the plan; --budget 30 gives more")


def test_quiet_keeps_warnings_only(terminal, capsys):
    terminal.quiet = True
    terminal.summary(rounds_of(fold_of()), 1)
    assert capsys.readouterr().err == ""
    terminal.summary(rounds_of(fold_of(done=0.5)), 1)
    assert capsys.readouterr().err.count("\n") == 1
    terminal.summary(rounds_of(fold_of(), effort=1 / 4), 1)
    assert re.fullmatch(
        r"warning: learned with effort 1/4, .* --effort 1 takes about \d+ s .*\n", capsys.readouterr().err
    )


def test_an_effort_that_was_given_is_no_reason_to_warn(terminal, capsys):
    terminal.pinned = True
    terminal.summary(rounds_of(fold_of(), effort=1 / 4), 1)
    assert capsys.readouterr().err.splitlines()[-1] == "3.0 s of 10 s; effort 1/4 (--effort 1/4 repeats it)"


def test_it_is_said_where_the_budget_was_not_enough(terminal, capsys):
    terminal.budget = 2.5
    terminal.summary(rounds_of(fold_of()), 1)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "3.0 s of 2.5 s, which is over the budget; effort 1 (--effort 1 repeats it)"


def test_a_summary_of_one_fold_has_no_deviation(terminal, capsys):
    terminal.summary(rounds_of(fold_of(), effort=None), 1)
    assert capsys.readouterr().err.splitlines() == [
        "preprocessing: columns scaled, bias column added",
        "3.0 s of 10 s",
    ]


def test_a_sample_of_the_rows_is_told_of(terminal, capsys):
    terminal.rows_used(70, 70)
    assert capsys.readouterr().err == ""
    terminal.rows_used(500_000, 600_000)
    assert capsys.readouterr().err.startswith("500000 of 600000 rows are used, ")


OUTCOMES = {"Bayes minimum risk": Outcome(18, 36, 2, 944, 134.0, 980.0, 980.0)}


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
    counts = {"n_rows": 6000, "n_learned": 5400, "n_choices": n_choices, "auc": 0.912, "error": 0.0123}
    terminal.stream(SimpleNamespace(**counts, to_choose=[30, 270], to_test=[n_pos, 269]))
    rows = f"{n_pos} positive and 269 negative rows"
    chosen = "C chosen among 4 values by 30 positive and 270 negative rows held out"
    warning = f"warning: the AUC rests on {rows} only, expected 30 of each; its standard error is 0.0123"
    assert capsys.readouterr().err.splitlines() == [
        "6,000 rows in 3.0 s; learned online from 5,400 of them, row by row",
        *[chosen] * (n_choices > 1),
        f"AUC 0.9120 +/- 0.0123 (standard error), on {rows} held out of the stream",
        *[warning] * (n_pos < 30),
    ]


def test_the_sample_of_a_stream_is_told_of(terminal, capsys):
    terminal.sampled({-1.0: 1_234_000, 1.0: 567}, 2345)
    labels = "1,234,000 with label -1, 567 with label 1"
    assert capsys.readouterr().err == f"1,234,567 rows read in 3.0 s: {labels}; 2,345 of them are used\n"


def test_an_auc_that_rests_on_few_rows_is_warned_of_even_where_all_is_quiet(capsys):
    counts = {"n_rows": 60, "n_learned": 54, "n_choices": 1, "auc": 1.0, "error": 0.25}
    Terminal(True, 0, 10).stream(SimpleNamespace(**counts, to_choose=[0, 0], to_test=[1, 5]))
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
    report, folds = terminal.progress(2), [fold_of(0.75), fold_of(0.85)]
    for n in range(3):
        report(1 / 4, folds[:n], None)
    assert capsys.readouterr() == ("", "")
    report(1 / 4, folds, Round(1 / 4, folds, 2.0))
    assert capsys.readouterr() == ("", "effort 1/4: mean AUC 0.8000, 3.0 s\n")


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
