"""Online AUC maximization in ten seconds: the cross-validated AUC of a buffered online ranker.

    python exp.py                       ten folds of an embedded sample
    python exp.py train.mat             ten folds of a file with x_tr and y_tr
    python exp.py train.mat test.mat    train on the first file, test on the second
    python exp.py data.csv --label sick --positive yes
    python exp.py train.mat --features linear --seed 3 -q
    python exp.py train.mat --update sequential --C 1e-3 --buffer 100
    python exp.py train.mat --plots figures
    python exp.py train.mat --compare
    python exp.py train.mat --cost 100,1 --save model.npz
    python exp.py --model model.npz new.mat --scores scores.csv

The last line on standard output is the result, for example "AUC Score: 0.9712". Nothing else goes there but the table
of --compare; what is said on the way goes to standard error.
"""

import time

STARTED = time.monotonic() - time.process_time()  # about when the process started, before the imports

import argparse  # noqa: E402
import contextlib  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")  # virtual machines may take seconds to hand out huge pages

VERSION = "1.2.0"
ALONE = 0.8  # share of the budget for a model that is learned alone; folds have a tenth each
OF_FILES = ("x-name", "y-name", "cost-name", "label", "sep", "encoding")  # options for some kinds of files only
PUBLISHED = ("C", "buffer", "update", "passes")  # options of the published algorithm

# Longer help texts.
FILES = """data to cross-validate (default: an embedded sample); a second file is the test set. MATLAB, .csv, .tsv,
.npz, or LIBSVM text (.svm, .libsvm, .txt, also .gz or .bz2)"""
FEATURES = """what to learn from: auto, the columns and similarities to training rows, in shares chosen inside each
fold; linear, the scaled columns, with C chosen inside each fold (default: auto)"""
COST = """decide which rows to act on, given the cost of a missed positive and of a false alarm; without numbers, those
of each row in the file, c_tr (rows x 2), or else negatives/positives,1; also for the learners of --compare that mind
costs (default: no decisions)"""
STREAM = """learn in one pass from a file that need not fit into memory: x.npy y.npy, CSV or LIBSVM text; linear,
without folds or budget, tested on rows held out of the stream (default: off)"""
SCORES = """write the score of each row, by a model that has not learned from it, and its probability where there are
probabilities: with --cost, or by a saved model (default: none)"""


def cross_validate(options, terminal):
    """The main job: load, split, learn, score, and yield the mean AUC over the splits; two files are one split."""
    from preprocess import find_classes, signs
    from tenfold.decisions import find_costs
    from tenfold.folds import RESERVE, Experiment, count_folds, run_folds
    from tenfold.readers import load
    from tenfold.readers.sample import NAME, sample

    name = options.files[0] if options.files else NAME
    data = load(name, **wanted(options, "tr")) if options.files else sample()
    classes = find_classes(data.y, options.positive)
    y = signs(data.y, classes)
    terminal.notes(data.notes)
    terminal.data(name, data.X, y, classes)

    if len(options.files) == 2:
        test = load(options.files[1], like=data, **wanted(options, "te", "tr"))
        terminal.notes(test.notes)
        experiment = Experiment.train_and_test(data.X, y, test.X, signs(test.y, classes), options.files[1])
    else:
        n_folds, test = count_folds(y, options.folds, name), data
        if n_folds < options.folds:
            terminal.say(f"warning: {n_folds} folds instead of {options.folds}: one class has {n_folds} rows only")
        experiment = Experiment.cross_validation(data.X, y, n_folds, options.seed)
    what = ((options.files or [name])[-1], test, experiment.y, options.cost, options.cost_name)
    costs = None if options.cost is None else find_costs(*what)

    n_splits = len(experiment.splits)
    estimator = make_estimator(options, ALONE if n_splits == 1 else 1 / max(10, n_splits))
    how = {"jobs": options.jobs, "scheduler": options.scheduler, "with_curves": bool(options.plots)}
    moments = options.started, options.started + options.budget * (1 - RESERVE)
    folds = run_folds(experiment, estimator, *moments, report=terminal.progress(n_splits), **how)
    terminal.summary(folds, bool(options.plots))
    results = []
    if options.compare:
        from tenfold.extras import print_comparison

        results = print_comparison(options, terminal, experiment, folds, costs)
    yield sum(fold.auc for fold in folds) / len(folds)
    if options.cost is not None or options.save or options.scores or options.plots:
        from tenfold.extras import do_extras

        like, model = data.without_rows(classes), make_estimator(options, ALONE)
        do_extras(options, terminal, like, experiment, costs, model, folds, results)


def make_estimator(options, share):
    """What learns in each fold, planned for this share of the budget."""
    from tenfold.ranker import AUCRanker, PublishedRanker

    if given := published_settings(options):
        return PublishedRanker(**given, random_state=options.seed)
    return AUCRanker(options.features or "auto", budget=share * options.budget, random_state=options.seed)


def published_settings(options):
    """The parameters of the published algorithm that were given."""
    return {name: getattr(options, name) for name in PUBLISHED if getattr(options, name) is not None}


def wanted(options, *endings):
    """What to look for in a file: the names that the user chose, or else x_, y_ and c_ with these endings."""
    chosen = {"x": options.x_name, "y": options.y_name, "c": options.cost_name}
    x, y, c = ([name] if name else [f"{key}_{ending}" for ending in endings] for key, name in chosen.items())
    text = {"label": options.label, "sep": options.sep, "encoding": options.encoding}
    return {"x_names": x, "y_names": y, "cost_names": c if options.cost == () else [], **text}


def number(kind, low, what, high=float("inf")):
    """An argparse type: a ``kind`` below ``high`` and at least ``low``, or above it if ``low`` is a float."""

    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        inside = value is not None and (value > low if isinstance(low, float) else value >= low) and value < high
        if not inside:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return value

    return parse


def costs(text):
    """An argparse type: two costs."""
    try:
        missed, false_alarm = (number(float, 0.0, "a number above 0")(part) for part in text.split(","))
    except (ValueError, argparse.ArgumentTypeError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not two numbers above 0, such as 100,1 (a file goes before --cost)"
        ) from None
    return missed, false_alarm


def make_parser():
    description, examples, output = (__doc__ or "\n\n\n\n").split("\n\n")  # python -OO leaves docstrings out
    about = {"description": f"{description}\n\n{output}", "epilog": f"examples:\n{examples}"}
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="exp.py", formatter_class=raw, **about)
    add = parser.add_argument
    count, positive = number(int, 1, "a whole number of at least 1"), number(float, 0.0, "a number above 0")
    folds, seed = number(int, 2, "a whole number of at least 2"), number(int, 0, "a whole number below 2**32", 2**32)
    C = number(float, 0.0, "a number above 0 and below 1e6", 1e6)
    add("files", nargs="*", metavar="FILE", help=FILES)
    add("--folds", type=folds, default=10, metavar="N", help="folds (default: 10)")
    add("--seed", type=seed, default=0, metavar="N", help="seed of folds, order and reservoirs (default: 0)")
    add("--budget", type=positive, default=10.0, metavar="S", help="seconds in all, from start to end (default: 10)")
    add("--features", choices=["auto", "linear"], help=FEATURES)
    add("--C", type=C, metavar="C", help="weight of a pair's loss (default: chosen; 1e-3 with the next three options)")
    add("--buffer", type=count, metavar="N", help="rows kept of each class (default: 500)")
    add("--update", choices=["sequential", "gradient"], help="the paper's two updates (default: gradient)")
    add("--passes", type=count, metavar="N", help="passes over the training rows (default: 1)")
    add("--jobs", type=count, metavar="N", help="folds at a time (default: one for each core)")
    add("--plots", type=Path, metavar="DIR", help="draw figures of the folds into this directory (default: none)")
    add("--compare", action="store_true", help="also run other learners and print a table (default: off)")
    add("--compare-seconds", type=positive, metavar="S", help="stop a learner of --compare after this (default: 60)")
    add("--cost", type=costs, nargs="?", const=(), metavar="FN,FP", help=COST)
    add("--cost-name", metavar="NAME", help="the variable of each row's costs; implies --cost (default: c_tr)")
    add("--scheduler", metavar="ADDRESS", help="run the folds on the Dask cluster at this address (default: here)")
    add("--stream", action="store_true", help=STREAM)
    add("--save", type=Path, metavar="MODEL", help="learn from all rows and save the model as .npz (default: no model)")
    add("--model", type=Path, metavar="MODEL", help="score a file with a saved model, do not learn (default: none)")
    add("--scores", type=Path, metavar="CSV", help=SCORES)
    add("--force", action="store_true", help="write over files that this program has not written (default: off)")
    add("--positive", metavar="LABEL", help="the label of the positive class (default: the rarer one)")
    add("--label", metavar="NAME", help="the label column of a .csv file (default: label, target, class, y, or last)")
    add("--sep", metavar="CHARACTER", help="what is between the cells of a .csv file, or tab (default: found)")
    add("--encoding", metavar="NAME", help="how the text of a .csv file is stored (default: utf-8 or utf-16, found)")
    add("--x-name", metavar="NAME", help="the variable of the features (default: x_tr; of a test file x_te, then x_tr)")
    add("--y-name", metavar="NAME", help="the variable of the labels (default: y_tr; of a test file y_te, then y_tr)")
    add("-q", "--quiet", action="store_true", help="say nothing but the result and errors (default: off)")
    add("--version", action="version", version=f"%(prog)s {VERSION}")
    return parser


def check_options(parser, options):
    """Refuse options that do not go together."""
    given = list(published_settings(options))
    if len(options.files) > 2:
        parser.error(f"{len(options.files)} files given, expected at most 2: a training file and a test file")
    if given and options.features == "auto":
        parser.error(f"--{given[0]} belongs to the published algorithm, which goes with --features linear only")
    if options.compare_seconds and not options.compare:
        parser.error("--compare-seconds goes with --compare only")
    excluded = {
        "model": (*given, "features", "save", "compare", "plots", "stream", "scheduler"),
        "stream": ("features", "passes", "compare", "plots", "cost", "scores", "scheduler", "x_name", "y_name"),
    }
    for option, others in excluded.items():
        for other in others:
            if getattr(options, option) and getattr(options, other) not in (None, False):
                parser.error(f"--{other.replace('_', '-')} does not go with --{option}")
    if options.model and len(options.files) != 1:
        parser.error(f"--model with {len(options.files)} files, expected 1 to score")
    if options.cost is not None and len(options.files) == 2 and given:
        parser.error(f"--cost with two files needs probabilities, which the published algorithm (--{given[0]}) has not")
    if options.cost and options.cost_name:
        parser.error("--cost-name reads the costs of each row, expected --cost without numbers beside it")


def run(options):
    """Do what was asked for, and print the result; the exit code. Whatever is wrong with the input is one line."""
    from concurrent.futures.process import BrokenProcessPool

    from joblib import cpu_count

    from preprocess import InputError
    from tenfold.models import one_thread
    from tenfold.readers import check_given
    from tenfold.scoring import use_model
    from tenfold.streams import run_stream
    from tenfold.terminal import Terminal
    from tenfold.writing import check_outputs, print_result

    terminal = Terminal(options.quiet, options.started, options.budget)
    options.jobs = options.jobs or cpu_count()
    try:
        if options.model:
            aucs = use_model(options, terminal, wanted(options, "te", "tr"))
        elif options.stream:
            aucs = run_stream(options, terminal, published_settings(options))
        else:
            aucs = cross_validate(options, terminal)
        check_given(options.files, [name for name in OF_FILES if getattr(options, name.replace("-", "_")) is not None])
        check_outputs(options)
        with one_thread():  # folds share the cores, and the digits must not depend on how many there are
            for auc in aucs:  # one, or none; what follows it cannot take it back
                print_result(f"AUC Score: {auc:.4f}")
        return 0
    except InputError as error:
        return fail(f"error: {error}")
    except MemoryError:
        return fail("error: not enough memory for this file")
    except BrokenProcessPool:
        return fail("error: a worker process was killed, perhaps for want of memory; --jobs 1 needs less")
    except OSError as error:  # loading turns its own into InputError, so this is the output
        sys.stdout = None
        return fail(f"error: cannot write the result: {error.strerror}")


def fail(message, code=2):
    """Say why there is no result."""
    with contextlib.suppress(OSError, AttributeError):  # there may be no standard error
        print(f"exp.py: {message}", file=sys.stderr, flush=True)
    return code


def main(argv=None, started=None):
    """Run the command; the exit code."""
    parser = make_parser()
    options = parser.parse_args(argv)
    if options.cost_name and options.cost is None:
        options.cost = ()
    check_options(parser, options)
    options.compare_seconds = options.compare_seconds or 60.0
    options.started = time.monotonic() if started is None else started
    try:
        return run(options)
    except KeyboardInterrupt:
        return fail("interrupted", 130)
    except ImportError as error:
        reason = " ".join(str(error).split())
        return fail(f"error: {reason}; expected all of this: python -m pip install -r requirements.txt")


if __name__ == "__main__":
    code = main(started=STARTED)
    if code == 130:
        os._exit(code)  # workers killed at a bad moment can leave a thread that waits for them forever
    sys.exit(code)
