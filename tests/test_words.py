"""Sentences and table cells that standard error and the page share."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from tenfold import words
from tenfold.options import MOST_EFFORT
from tenfold.options import effort as effort_of
from tenfold.rounds import Round


def fold(**settings):
    return SimpleNamespace(**{"done": 1.0, "effort": 1, "changes": {}, **settings})


def test_what_rows_were_cleaned_of():
    clean = {"missing": 0, "constant": 0, "duplicated": 0}
    assert words.changes_line([fold(changes=clean)]) == "preprocessing: columns scaled, bias column added"
    found = words.changes_line([fold(changes={**clean, "constant": n}) for n in (2, 0, 5)])
    assert found == "preprocessing: columns scaled, bias column added; constant columns dropped: 0 to 5"


def test_shares_are_said_largest_first_and_alike_sets_as_one():
    """In the mean over the folds, under the words for people; what has no share is not said."""
    shares = [{"trees": 0.0, "mixed": 0.8, "linear": 0.2}, {"mixed": 0.2, "rough": 0.1, "linear": 0.3, "even": 0.4}]
    assert words.shares_line(shares) == "shares in the score: similarities to landmarks 55%, columns 45%"
    shares.append({"forest": 1.0})
    expected = "shares in the score: similarities to landmarks 37%, random forest 33%, columns 30%"
    assert words.shares_line(shares) == expected
    assert words.shares_line([{"linear": 1.0, "trees": 1e-9}]) == "shares in the score: columns 100%"


@pytest.mark.parametrize(
    "effort, name", [(1 / 16, "1/16"), (0.375, "3/8"), (1, "1"), (1.125, "1.125"), (4.0, "4"), (0.1, "0.1")]
)
def test_an_effort_is_written_as_the_option_takes_it(effort, name):
    assert words.effort_name(effort) == name
    assert effort_of(name) == effort


def test_the_effort_of_any_round_can_be_given_again():
    """After steps of four, two others at most: then the time is used."""
    for first, fours in product((1 / 4, 1 / 16), range(7)):
        for others in product((1, 3, 2, 1.5), repeat=2):
            effort = min(first * 4**fours * others[0] * others[1], MOST_EFFORT)
            assert effort_of(words.effort_name(effort)) == effort


def round_of(effort, done=1.0):
    return Round(effort, [fold(auc=0.75, done=done, fixed=1.0, seconds=4.0)], 3.0)


def test_less_than_an_ordinary_fold_is_a_warning_unless_the_effort_was_given():
    said = words.warning_line(round_of(1 / 4), 10, False)
    assert said.startswith("warning: learned with effort 1/4, because") and "--effort 1 takes about 11 s" in said
    assert words.warning_line(round_of(1 / 4), 10, True) == ""
    assert words.warning_line(round_of(1.0), 10, False) == words.warning_line(round_of(None), 10, False) == ""


@pytest.mark.parametrize("effort", [1 / 4, None])
def test_a_cut_is_a_warning_that_says_what_to_do(effort):
    said = words.warning_line(round_of(effort, 0.999), 10, False)
    assert said == "warning: time ran out, learning stopped at 99% of the plan; --budget 30 gives more"


def test_a_line_for_each_round():
    assert words.round_line(round_of(1 / 4), 2.34) == "effort 1/4: mean AUC 0.7500, 2.3 s"
    assert words.round_line(round_of(None), 2.34) == "mean AUC 0.7500, 2.3 s"


def test_the_columns_in_the_table_and_the_others():
    columns = [SimpleNamespace(name=f"c{j}") for j in range(17)]
    means = np.linspace(0.17, 0.01, 17)
    means[14] = -1e-9
    found = SimpleNamespace(columns=columns, means=means, errors=means / 10, n_folds=3, n_weak=4)
    rows = words.column_cells(found)
    assert len(rows) == words.MOST_COLUMNS and rows[0] == ["c0", "0.1700", "0.0170"]
    assert rows[14][1] == "0.0000"
    about, rest = words.explanation_lines(found)
    assert about.endswith("standard error over 3 folds)") and rest.startswith(
        "2 other columns: 0.0200 or less each; 4 more "
    )
    found.n_weak, found.means = 0, means[:15]
    assert words.explanation_lines(found)[1] == ""


def test_names_that_fit_into_a_line():
    assert words.shorten("a\nb\x1b[0m  c") == "a b [0m c"
    assert words.shorten("x" * 41) == "x" * 37 + "..."
