"""Sentences and table cells that standard error and the page share."""

from types import SimpleNamespace

import numpy as np
import pytest

from tenfold import words


def fold(**settings):
    return SimpleNamespace(**{"done": 1.0, "effort": 1, "changes": {}, **settings})


def test_what_rows_were_cleaned_of():
    clean = {"missing": 0, "constant": 0, "duplicated": 0}
    assert words.changes_line([fold(changes=clean)]) == "preprocessing: columns scaled, bias column added"
    found = words.changes_line([fold(changes={**clean, "constant": n}) for n in (2, 0, 5)])
    assert found == "preprocessing: columns scaled, bias column added; constant columns dropped: 0 to 5"


def test_shares_are_said_largest_first():
    shares = [{"linear": 0.2, "mixed": 0.8}, {"linear": 0.6, "mixed": 0.3, "rough": 0.1}]
    assert words.shares_line(shares) == (
        "shares in the score, chosen by the training rows: similarities to landmarks 55% (the most in 1 of 2 folds), "
        "the columns themselves 40% (the most in 1 of 2 folds), wide, rough similarities to landmarks 5% (the most in "
        "0 of 2 folds)"
    )


@pytest.mark.parametrize(
    "effort, said", [(0.5, "half"), (0.0625, "a sixteenth"), (1 / 32, "a thirty-second"), (1, None)]
)
def test_the_effort_is_said_where_it_is_not_the_usual_one(effort, said):
    line = words.effort_line([fold(effort=effort)] * 2)
    assert line == (f"this machine is slow or busy: learned with {said} of the usual effort" if said else "")
    assert words.effort_line([fold(effort=0.25), fold(effort=1), fold(effort=0.25)]).endswith(
        "learned with less than the usual effort (all in 1 fold, a quarter in 2 folds)"
    )


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
