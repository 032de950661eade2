"""Online AUC maximization in ten seconds: the cross-validated AUC of a buffered online ranker.

    python exp.py                       ten folds of an embedded sample
    python exp.py train.mat             ten folds of a file with x_tr and y_tr
    python exp.py train.mat test.mat    train on the first file, test on the second
    python exp.py data.csv --label sick --positive yes
    python exp.py train.mat --update sequential --C 1e-3 --buffer 100
    python exp.py train.mat --explain --compare --plots figures --page result.html
    python exp.py train.mat --cost 100,1 --save model.npz
    python exp.py --model model.npz new.mat --scores scores.csv

The last line on standard output is the result, for example "AUC Score: 0.9712". Apart from the table of
--compare nothing else goes there; all messages go to standard error.
"""

import time

STARTED = time.monotonic() - time.process_time()  # about when the process started, before the imports

import argparse  # noqa: E402
import contextlib  # noqa: E402
import sys  # noqa: E402
from fractions import Fraction  # noqa: E402
from pathlib import Path  # noqa: E402

VERSION = "1.3.0"
RESERVE = 0.05  # share of the budget kept for printing and ending
OF_FILES = ("x-name", "y-name", "cost-name", "label", "sep", "encoding")  # options for some kinds of files only
OF_FOLDS = ("compare", "plots", "explain", "page")  # options that need folds
EXTRAS = ("cost", "save", "scores", "plots", "explain", "page")  # options for what is done once the AUC is known
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
STREAM = """learn in one pass from files that may be larger than memory, a directory or a pattern of them: x.npy y.npy,
CSV, LIBSVM text or Parquet; without folds or budget, tested on rows that are held out (default: off)"""
LABEL = "the label column of a table (default: the only one called label, target, class, y or outcome, else the last)"
SCORES = """write a line for each row: its score, by a model that has not learned from it; with --cost or --model also
its probability (default: none)"""


def cross_validate(options, terminal):
    """The main job: load, split, learn, score, and print the mean AUC over the splits; two files are one split."""
    from preprocess import find_classes, signs
    from tenfold.decisions import find_costs
    from tenfold.folds import Experiment, count_folds, rows_to_use
    from tenfold.parallel import workers
    from tenfold.readers import in_rows, load
    from tenfold.readers.sample import NAME, sample

    name = options.files[0] if options.files else NAME
    data = load(name, as_stored=len(options.files) == 1, **wanted(options, "tr")) if options.files else sample()
    classes = find_classes(data.y, options.positive)
    y = signs(data.y, classes)
    terminal.notes(data.notes)
    terminal.data(name, data.X, y, classes)
    if len(options.files) == 2:
        name = options.files[1]
        test = load(name, like=data, **wanted(options, "te", "tr"))
        terminal.notes(test.notes)
        experiment = Experiment.train_and_test(data.X, y, test.X, signs(test.y, classes), name)
        costs = None if options.cost is None else find_costs(name, test, y, options.cost, options.cost_name)
    else:
        n_folds, used = count_folds(y, options.folds, name), rows_to_use(data.X, y)
        terminal.rows_used(len(used), len(y))
        costs = None if options.cost is None else find_costs(name, data, y, options.cost, options.cost_name)[used]
        data.X = X = in_rows(data.X, used if len(used) < len(y) else None)  # of the file, no more is kept
        experiment = Experiment.cross_validation(X, y, n_folds, options.seed, used)
    with workers(options.jobs, options.scheduler, experiment) as at_work:
        rounds = learn(options, terminal, at_work, experiment)
        terminal.summary(rounds)
        folds = rounds[-1].folds
        if 1 < len(folds) < options.folds:
            warning = f"warning: {len(folds)} folds instead of {options.folds}: one class has only {len(folds)} rows"
            terminal.warn(warning)
        results = []
        if options.compare:
            from tenfold.extras import print_comparison

            results = print_comparison(options, terminal, at_work, experiment, folds, costs)
    print_auc(rounds[-1].auc)
    if any(getattr(options, option) not in (None, False) for option in EXTRAS):
        from tenfold.extras import do_extras

        model = make_estimator(options, rounds[-1].effort)
        do_extras(options, terminal, data.without_rows(classes), experiment, costs, model, rounds, results)


def learn(options, terminal, at_work, experiment):
    """The rounds of learning: as many as there is time for, or one if the effort is given, or is not to be chosen."""
    from tenfold.rounds import run_round, run_rounds

    end = options.started + (1 - RESERVE) * options.budget
    estimator, show = make_estimator(options, options.effort), terminal.progress(len(experiment.splits))
    if options.effort or published_settings(options):
        cut = None if options.effort else end
        return [run_round(at_work, experiment, estimator, show, options.explain, cut=cut)]
    return run_rounds(at_work, experiment, estimator, end, show, options.explain)


def make_estimator(options, effort):
    """What learns in each fold."""
    from tenfold.ranker import AUCRanker, PublishedRanker

    if given := published_settings(options):
        return PublishedRanker(**given, random_state=options.seed)
    return AUCRanker(options.features or "auto", effort=effort or 1.0, random_state=options.seed)


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
        with contextlib.suppress(ValueError):
            value = kind(text)
            if (value > low if isinstance(low, float) else value >= low) and value < high:
                return value
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")

    return parse


def effort(text):
    """An argparse type: a number above 0 such as 4, 0.25 or 1/4."""
    from tenfold.rounds import MOST_EFFORT

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


def make_parser():
    description, examples, output = (__doc__ or "\n\n\n\n").split("\n\n")  # python -OO leaves docstrings out
    about = {"description": f"{description}\n\n{output}", "epilog": f"examples:\n{examples}"}
    parser = argparse.ArgumentParser("exp.py", formatter_class=argparse.RawDescriptionHelpFormatter, **about)
    parser.error = lambda message: sys.exit(fail(f"error: {message} (python exp.py --help lists all options)"))
    add = parser.add_argument
    count, positive = number(int, 1, "a whole number of at least 1"), number(float, 0.0, "a finite number above 0")
    folds, seed = number(int, 2, "a whole number of at least 2"), number(int, 0, "a whole number below 2**32", 2**32)
    C = number(float, 0.0, "a number above 0 and below 1e6", 1e6)
    add("files", nargs="*", metavar="FILE", help=FILES)
    add("--folds", type=folds, default=10, metavar="N", help="folds (default: 10)")
    add("--seed", type=seed, default=0, metavar="N", help="seed of all random numbers (default: 0)")
    add("--budget", type=positive, default=10.0, metavar="S", help="seconds from start to end (default: 10)")
    add("--effort", type=effort, metavar="E", help=EFFORT)
    add("--features", choices=["auto", "linear"], help=FEATURES)
    add("--C", type=C, metavar="C", help="weight of a pair's loss (default: chosen; 1e-3 with the next three options)")
    add("--buffer", type=count, metavar="N", help="rows kept of each class (default: 500)")
    add("--update", choices=["sequential", "gradient"], help="the paper's two updates (default: gradient)")
    add("--passes", type=count, metavar="N", help="passes over the training rows (default: 1)")
    add("--jobs", type=count, metavar="N", help="most folds, or parts of a stream, at a time (default: one a core)")
    add("--plots", type=Path, metavar="DIR", help="draw figures of the folds into this directory (default: none)")
    add("--explain", action="store_true", help="also say which columns matter (permutation importance) (default: off)")
    add("--page", type=Path, metavar="HTML", help="write an HTML page on which to choose a threshold (default: none)")
    add("--compare", action="store_true", help="also run other learners and print a table (default: off)")
    add("--compare-seconds", type=positive, metavar="S", help="seconds for each learner of --compare (default: 60)")
    add("--cost", type=costs, nargs="?", const=(), metavar="FN,FP", help=COST)
    add("--cost-name", metavar="NAME", help="the variable of each row's costs; implies --cost (default: c_tr)")
    add("--scheduler", metavar="ADDRESS", help="run on the Dask cluster at this address (default: here)")
    add("--stream", action="store_true", help=STREAM)
    add("--save", type=Path, metavar="MODEL", help="learn from all rows and save the model as .npz (default: no model)")
    add("--model", type=Path, metavar="MODEL", help="score a file with a saved model, do not learn (default: none)")
    add("--scores", type=Path, metavar="CSV", help=SCORES)
    add("--force", action="store_true", help="overwrite files that were not written by this program (default: off)")
    add("--positive", metavar="LABEL", help="the label of the positive class (default: the rarer one)")
    add("--label", metavar="NAME", help=LABEL)
    add("--sep", metavar="CHARACTER", help="separator of the cells of a .csv file, or tab (default: found)")
    add("--encoding", metavar="NAME", help="text encoding of a .csv file (default: utf-8 or utf-16, found)")
    add("--x-name", metavar="NAME", help="the variable of the features (default: x_tr; of a test file x_te, then x_tr)")
    add("--y-name", metavar="NAME", help="the variable of the labels (default: y_tr; of a test file y_te, then y_tr)")
    add("-q", "--quiet", action="store_true", help="only print the result, errors and warnings (default: off)")
    add("--version", action="version", version=f"%(prog)s {VERSION}")
    return parser


def check_options(parser, options):
    """Refuse options that do not go together."""
    given = list(published_settings(options))
    if len(options.files) > 2 and not options.stream:
        parser.error(f"{len(options.files)} files given, expected at most 2: a training file and a test file")
    if given and options.features == "auto":
        parser.error(f"--{given[0]} belongs to the published algorithm, which goes with --features linear only")
    if given and options.effort:
        parser.error(f"--effort does not go with --{given[0]}, which belongs to the published algorithm")
    if options.compare_seconds and not options.compare:
        parser.error("--compare-seconds goes with --compare only")
    of_model = (*OF_FOLDS, "features", "effort", "scheduler", "save", "stream", *given)
    of_stream = (*OF_FOLDS, "effort", "passes", "cost", "scores", "x_name", "y_name")
    for option, others in ("model", of_model), ("stream", of_stream):
        for other in others:
            if getattr(options, option) and getattr(options, other) not in (None, False):
                parser.error(f"--{other.replace('_', '-')} does not go with --{option}")
    if options.model and len(options.files) != 1:
        parser.error(f"--model with {len(options.files)} files, expected 1 to score")
    if options.cost is not None and len(options.files) == 2 and given:
        parser.error(f"--cost with two files needs probabilities, which --{given[0]}, the published algorithm, lacks")
    if options.cost and options.cost_name:
        parser.error("--cost-name reads the costs of each row, expected --cost without numbers beside it")


def run(options):
    """Do what was asked for, and print the result; the exit code. Whatever is wrong with the input is one line."""
    from concurrent.futures.process import BrokenProcessPool

    from joblib import cpu_count

    from preprocess import InputError
    from tenfold.models import one_thread
    from tenfold.readers import check_given, stream_files
    from tenfold.scoring import use_model
    from tenfold.streams import run_stream
    from tenfold.terminal import Terminal
    from tenfold.writing import check_outputs

    terminal = Terminal(options.quiet, options.started, options.budget, bool(options.effort))
    most = sys.maxsize if options.stream else cpu_count()  # more folds at a time would wait for each other
    options.jobs = min(options.jobs or cpu_count(), most)
    try:
        files = stream_files(options.files) if options.stream else options.files
        check_given(files, [name for name in OF_FILES if getattr(options, name.replace("-", "_")) is not None])
        check_outputs(options, files)
        with one_thread():  # folds share the cores, and the digits must not depend on how many there are
            if options.model:
                use_model(options, terminal, wanted(options, "te", "tr"), print_auc)
            elif options.stream:
                run_stream(options, terminal, published_settings(options), print_auc)
            else:
                cross_validate(options, terminal)
        return 0
    except InputError as error:
        return fail(f"error: {error}")
    except MemoryError:
        return fail("error: not enough memory for this file")
    except BrokenProcessPool:
        return fail("error: a worker process was killed, perhaps because memory ran out; --jobs 1 needs less")
    except OSError as error:  # loading turns its own into InputError, so this is the output
        sys.stdout = None
        return fail(f"error: cannot write the result: {error.strerror}")


def print_auc(auc):
    """Print the result; what follows it cannot take it back."""
    from tenfold.writing import print_result

    print_result(f"AUC Score: {auc:.4f}")


def fail(message, code=2):
    """Say why there is no result."""
    with contextlib.suppress(OSError, AttributeError):  # there may be no standard error
        print(f"exp.py: {message}", file=sys.stderr, flush=True)
    return code


def main(argv=None, started=None):
    """Run the command; the exit code."""
    parser = make_parser()
    options = parser.parse_args(argv)
    options.cost = () if options.cost_name and options.cost is None else options.cost
    check_options(parser, options)
    options.compare_seconds = options.compare_seconds or 60.0
    options.argv = sys.argv[1:] if argv is None else argv
    options.started = time.monotonic() if started is None else started
    try:
        return run(options)
    except KeyboardInterrupt:
        return fail("interrupted", 130)
    except ImportError as error:
        reason = " ".join(str(error).split())
        return fail(f"error: {reason}; to install all that is needed: python -m pip install -r requirements.txt")


if __name__ == "__main__":
    sys.exit(main(started=STARTED))
