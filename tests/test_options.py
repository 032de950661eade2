"""The options of the command: its help, what goes together, and what they mean for reading files."""

import re
import shutil

import pytest
from conftest import call, refused

import exp
from tenfold import __version__
from tenfold.options import make_parser, parse, published_settings, wanted, wanted_of_text


def parsed(*argv):
    return parse([str(arg) for arg in argv], exp.__doc__, pytest.fail)


def test_help_shows_examples_and_every_default():
    code, out, err = call("--help")
    assert (code, err) == (0, "")
    assert "python exp.py train.mat test.mat" in out
    defaults = dict(re.findall(r"^  (?:-\w, )?(--[\w-]+)(?:(?!^  -).)*?\(default:\s+([^)]*)\)", out, re.M | re.S))
    assert set(defaults) == set(re.findall(r"--[\w-]+", out.split("\n\n")[0])) - {"--version"} | {"--quiet"}
    assert [defaults[f"--{name}"] for name in ("folds", "seed", "budget", "passes")] == ["10", "0", "10", "1"]


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_help_fits_the_terminal(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert shutil.get_terminal_size().columns == columns
    code, out, _ = call("--help")
    lines = out.splitlines()
    assert code == 0 and max(map(len, lines)) <= columns
    examples = lines[lines.index("examples:") + 1 :]
    assert len(examples) == 8 and all("python exp.py" in line for line in examples)  # each is still a line of its own
    assert all(line in map(str.strip, exp.__doc__.splitlines()) for line in map(str.strip, examples))


def test_every_option_is_in_a_group_that_has_a_name():
    parser = make_parser(exp.__doc__, pytest.fail)
    titles = [group.title for group in parser._action_groups]
    assert {"data", "learning", "results", "decisions", "models"} <= set(titles)
    loose = {action.dest for group in parser._action_groups[:2] for action in group._group_actions}
    assert loose == {"files", "help", "quiet", "version"}
    out = call("--help")[1]
    for title in titles:
        assert f"\n{title}:\n" in out


def test_help_needs_no_docstring():
    """python -OO leaves it out."""
    parser = make_parser(None, pytest.fail)
    assert "--folds" in parser.format_help()


def test_version():
    assert call("--version") == (0, f"exp.py {__version__}\n", "")


def test_what_is_not_given():
    options = parsed()
    assert (options.files, options.budget, options.folds, options.seed) == ([], 10, 10, 0)
    assert (options.effort, options.features, options.cost, options.jobs) == (None, None, None, None)
    assert options.compare_seconds == 60 and not (options.force or options.stream or options.compare)
    assert published_settings(options) == {}


def test_settings_of_the_published_algorithm_are_those_given():
    assert published_settings(parsed("--C", "0.01", "--passes", 2)) == {"C": 0.01, "passes": 2}
    assert published_settings(parsed("--update", "sequential", "--buffer", 9)) == {"update": "sequential", "buffer": 9}


@pytest.mark.parametrize(
    "argv, cost, names",
    [
        ([], None, []),
        (["--cost"], (), ["c_te", "c_tr"]),
        (["--cost", "7,2"], (7.0, 2.0), []),
        (["--cost-name", "mine"], (), ["mine"]),
        (["--cost-name", "mine", "--cost"], (), ["mine"]),
    ],
)
def test_costs_are_looked_for_where_no_numbers_are_given(argv, cost, names):
    options = parsed("a.mat", *argv)
    assert options.cost == cost and wanted(options, "te", "tr")["cost_names"] == names


def test_what_to_look_for_in_a_file():
    text = {"label": None, "sep": None, "encoding": None}
    assert wanted(parsed("a.mat"), "tr") == {"x_names": ["x_tr"], "y_names": ["y_tr"], "cost_names": [], **text}
    options = parsed("a.csv", "--x-name", "A", "--label", "sick", "--sep", ";", "--encoding", "latin-1")
    text = {"label": "sick", "sep": ";", "encoding": "latin-1"}
    names = {"x_names": ["A"], "y_names": ["y_te", "y_tr"], "cost_names": []}
    assert wanted(options, "te", "tr") == {**names, **text}
    assert wanted_of_text(options) == text


def test_what_is_wrong_is_told_to_whoever_asked():
    said = []

    def error(message):
        said.append(message)
        raise SystemExit

    for argv in (["--folds", "1"], ["--sample-rows", "9"], ["--wat"]):
        with pytest.raises(SystemExit):
            parse(argv, exp.__doc__, error)
    assert [message.split()[0] for message in said] == ["argument", "--sample-rows", "unrecognized"]


@pytest.mark.parametrize("option", ["--json", "--page", "--plots", "--save", "--scores", "--model"])
def test_an_output_without_a_name_is_refused(option):
    refused(f"argument {option}: expected one argument", option)
