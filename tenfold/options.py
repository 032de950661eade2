"""The options of the command: what they are called, what goes together, and what they mean for reading files."""

import argparse
import contextlib
import shutil
import textwrap
from fractions import Fraction
from pathlib import Path

from tenfold import __version__

MOST_EFFORT = 1024
OF_FILES = ("x-name", "y-name", "cost-name", "label", "sep", "encoding")  # options for some kinds of files only
OF_FOLDS = ("compare", "plots", "explain", "page")  # options that need folds
PUBLISHED = ("C", "buffer", "update", "passes")  # options of the published algorithm

FILES = """data to cross-validate (default: an embedded sample); a second file is the test set. MATLAB, .csv, .tsv,
.npz, .parquet, or LIBSVM text (.svm, .libsvm, .txt, also .gz or .bz2)"""
FEATURES = """what to learn from. auto: the columns, similarities to some training rows (landmarks), and the scores of
boosted trees or of a random forest; linear: the scaled columns only, with C chosen inside each fold (default: auto)"""
EFFORT = """the size of all that a fold learns from: 4 is about four times the work of 1; the same effort gives the same
digits on every machine, however long it takes (default: the greatest that there is time for)"""
COST = """decide which rows to act on, given the cost of a missed positive and of a false alarm; without numbers, those
of each row in the file, c_tr (rows x 2), or else negatives/positives,1; also for the learners of --compare that use
costs (default: no decisions)"""
STREAM = """read files that may be larger than memory, a directory or a pattern of them, in one pass: x.npy y.npy, CSV,
LIBSVM text or Parquet; a uniform sample of each class is kept, and all else is done with it. With --features linear, or
if rows are sparse, scores are learned online from every row, and tested on rows held out (default: off)"""
LABEL = "the label column of a table (default: the only one called label, target, class, y or outcome, else the last)"
SCORES = """write a line for each row: its score, by a model that has not learned from it; with --cost or --model also
its probability (default: none)"""


def published_settings(options):
    """The parameters of the published algorithm that were given."""
    return {name: getattr(options, name) for name in PUBLISHED if getattr(options, name) is not None}


def wanted(options, *endings):
    """What to look for in a file: the names that the user chose, or else x_, y_ and c_ with these endings."""
    chosen = {"x": options.x_name, "y": options.y_name, "c": options.cost_name}
    x, y, c = ([name] if name else [f"{key}_{ending}" for ending in endings] for key, name in chosen.items())
    return {"x_names": x, "y_names": y, "cost_names": c if options.cost == () else [], **wanted_of_text(options)}


def wanted_of_text(options):
    """What the user says of a table: its label column, separator and encoding."""
    return {"label": options.label, "sep": options.sep, "encoding": options.encoding}


def number(kind, low, what, high=float("inf")):
    """An argparse type: a ``kind`` below ``high`` and at least ``low``, or above it if ``low`` is a float."""

    def parse(text):
        with contextlib.suppress(ValueError):
            value = kind(text)
            if (value > low if isinstance(low, float) else value >= low) and value < high:
                return value
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")

    return parse


def effort(text):
    """An argparse type: a number above 0 such as 4, 0.25 or 1/4."""
    try:
        value = float(Fraction(text))
    except (ValueError, ZeroDivisionError, OverflowError):
        value = 0
    if not MOST_EFFORT >= value >= 1 / MOST_EFFORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number such as 4, 0.5 or 1/4, up to {MOST_EFFORT}")
    return value


def costs(text):
    """An argparse type: two costs."""
    try:
        missed, false_alarm = (number(float, 0.0, "a finite number above 0")(part) for part in text.split(","))
    except (ValueError, argparse.ArgumentTypeError):
        expected = "two numbers above 0, such as 100,1 (a file goes before --cost)"
        raise argparse.ArgumentTypeError(f"{text!r} is not {expected}") from None
    return missed, false_alarm


def make_parser(about, error):
    """The parser; ``about`` is the docstring of the command, ``error`` is called with what is wrong."""
    description, examples, output = (about or "\n\n\n\n").split("\n\n")  # python -OO leaves docstrings out
    width = max(shutil.get_terminal_size().columns - 2, 20)  # as argparse has it
    description = "\n\n".join(textwrap.fill(part, width) for part in (description, output))
    texts = {"description": description, "epilog": "examples:\n" + textwrap.indent(textwrap.dedent(examples), "  ")}
    parser = argparse.ArgumentParser("exp.py", formatter_class=argparse.RawDescriptionHelpFormatter, **texts)
    parser.error = error
    count, positive = number(int, 1, "a whole number of at least 1"), number(float, 0.0, "a finite number above 0")
    several, seed = number(int, 2, "a whole number of at least 2"), number(int, 0, "a whole number below 2**32", 2**32)
    C = number(float, 0.0, "a number above 0 and below 1e6", 1e6)

    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help=FILES)
    add("-q", "--quiet", action="store_true", help="only print the result, errors and warnings (default: off)")
    add("--version", action="version", version=f"%(prog)s {__version__}")

    add = parser.add_argument_group("data").add_argument
    add("--label", metavar="NAME", help=LABEL)
    add("--positive", metavar="LABEL", help="the label of the positive class (default: the rarer one)")
    add("--sep", metavar="CHARACTER", help="separator of the cells of a .csv file, or tab (default: found)")
    add("--encoding", metavar="NAME", help="text encoding of a .csv file (default: utf-8 or utf-16, found)")
    add("--x-name", metavar="NAME", help="the variable of the features (default: x_tr; of a test file x_te, then x_tr)")
    add("--y-name", metavar="NAME", help="the variable of the labels (default: y_tr; of a test file y_te, then y_tr)")

    add = parser.add_argument_group("learning").add_argument
    add("--budget", type=positive, default=10.0, metavar="S", help="seconds from start to end (default: 10)")
    add("--effort", type=effort, metavar="E", help=EFFORT)
    add("--folds", type=several, default=10, metavar="N", help="folds (default: 10)")
    add("--seed", type=seed, default=0, metavar="N", help="seed of all random numbers (default: 0)")
    add("--features", choices=["auto", "linear"], help=FEATURES)

    add = parser.add_argument_group("results").add_argument
    add("--scores", type=Path, metavar="CSV", help=SCORES)
    add("--plots", type=Path, metavar="DIR", help="draw figures of the folds into this directory (default: none)")
    add("--page", type=Path, metavar="HTML", help="write an HTML page on which to choose a threshold (default: none)")
    add("--json", type=Path, metavar="FILE", help="write the AUC and what it rests on as JSON (default: none)")
    add("--explain", action="store_true", help="say which columns matter (permutation importance) (default: off)")
    add("--compare", action="store_true", help="run other learners, too, and print a table (default: off)")
    add("--compare-seconds", type=positive, metavar="S", help="seconds for each learner of --compare (default: 60)")
    add("--force", action="store_true", help="overwrite files that exist (default: off)")

    add = parser.add_argument_group("decisions").add_argument
    add("--cost", type=costs, nargs="?", const=(), metavar="FN,FP", help=COST)
    add("--cost-name", metavar="NAME", help="the variable of each row's costs; implies --cost (default: c_tr)")

    add = parser.add_argument_group("models").add_argument
    add("--save", type=Path, metavar="MODEL", help="learn from all rows and save the model as .npz (default: no model)")
    add("--model", type=Path, metavar="MODEL", help="score files with a saved model, do not learn (default: none)")

    add = parser.add_argument_group("large data and other machines").add_argument
    add("--stream", action="store_true", help=STREAM)
    add("--sample-rows", type=several, metavar="N", help="rows to keep of a stream (default: by their cells)")
    add("--jobs", type=count, metavar="N", help="most folds, or parts of a stream, at a time (default: one a core)")
    add("--scheduler", metavar="ADDRESS", help="run on the Dask cluster of this address or file (default: here)")

    add = parser.add_argument_group("the published algorithm as it stands").add_argument
    add("--C", type=C, metavar="C", help="weight of a pair's loss (default: chosen; 1e-3 with the next three options)")
    add("--buffer", type=count, metavar="N", help="rows kept of each class (default: 500)")
    add("--update", choices=["sequential", "gradient"], help="the paper's two updates (default: gradient)")
    add("--passes", type=count, metavar="N", help="passes over the training rows (default: 1)")
    return parser


def check_options(parser, options):
    """Refuse options that do not go together."""
    given = list(published_settings(options))
    if options.stream and not options.files:
        parser.error("--stream without a file, expected one or more to read")
    if len(options.files) > 2 and not (options.stream or options.model):
        parser.error(f"{len(options.files)} files given, expected at most 2: a training file and a test file")
    if given and options.features == "auto":
        parser.error(f"--{given[0]} belongs to the published algorithm, which goes with --features linear only")
    if given and options.effort:
        parser.error(f"--effort does not go with --{given[0]}, which belongs to the published algorithm")
    if options.compare_seconds and not options.compare:
        parser.error("--compare-seconds goes with --compare only")
    of_model = (*OF_FOLDS, "json", "features", "effort", "scheduler", "save", "stream", *given)
    for option, others in ("model", of_model), ("stream", ("passes", "x_name", "y_name")):
        for other in others:
            if getattr(options, option) and getattr(options, other) not in (None, False):
                parser.error(f"--{other.replace('_', '-')} does not go with --{option}")
    if options.scheduler is not None and not options.scheduler.strip():
        parser.error("--scheduler without an address, expected one such as tcp://192.0.2.1:8786, or a scheduler file")
    if options.model and not options.files:
        parser.error("--model without a file, expected one or more to score")
    if options.sample_rows and not options.stream:
        parser.error("--sample-rows goes with --stream only")
    if options.cost is not None and len(options.files) == 2 and given and not options.stream:
        parser.error(f"--cost with two files needs probabilities, which --{given[0]}, the published algorithm, lacks")
    if options.cost and options.cost_name:
        parser.error("--cost-name reads the costs of each row, expected --cost without numbers beside it")


def parse(argv, about, error):
    """The options in these words, or in those of the command; whatever does not go together is an ``error``."""
    parser = make_parser(about, error)
    options = parser.parse_args(argv)
    options.cost = () if options.cost_name and options.cost is None else options.cost
    check_options(parser, options)
    options.compare_seconds = options.compare_seconds or 60.0
    return options
