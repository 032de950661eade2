"""Online AUC maximization in ten seconds: the cross-validated AUC of a buffered online ranker.

    python exp.py                       ten folds of an embedded sample
    python exp.py train.mat             ten folds of a file with x_tr and y_tr
    python exp.py train.mat test.mat    train on one file, test on the other
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

import contextlib  # noqa: E402
import os  # noqa: E402
import shlex  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402

from tenfold.options import OF_FILES, parse, published_settings, wanted, wanted_of_text  # noqa: E402

HELP = "python exp.py --help lists all options"
RESERVE = 0.05  # share of the budget kept for printing and ending


def cross_validate(options, terminal, reports):
    """The main job: load, split, learn and score in rounds, print the mean AUC over the splits, and report."""
    from tenfold.comparison import print_comparison
    from tenfold.parallel import workers
    from tenfold.reports import Result

    names, data = read_data(options, terminal)
    experiment, like, costs = split(options, terminal, names, data)
    with workers(options.jobs, options.scheduler, experiment, warn=terminal.warn) as at_work:
        rounds = learn(
            options, terminal, at_work, experiment, like, any("models" in report.needs for report in reports)
        )
        warning, comparison = terminal.summary(rounds, options.folds), []
        if options.compare:
            how = {"cost": costs, "seed": options.seed, "seconds": options.compare_seconds}
            comparison = print_comparison(terminal, at_work, experiment, rounds[-1].folds, **how)
    print_auc(rounds[-1].auc)
    result = Result(
        files=names,
        like=like,
        experiment=experiment,
        rounds=rounds,
        estimator=make_estimator(options, rounds[-1].effort, like),
        costs=costs,
        comparison=comparison,
        warning=warning,
        seconds=terminal.taken,
        budget=options.budget,
        seed=options.seed,
        jobs=options.jobs,
        command=command_line(options.argv),
        drawn=options.plots is not None,
    )
    for report in reports:
        report.write(result, terminal)


def read_data(options, terminal):
    """What to call the data, and the `Data` of the file to learn from, of a sample of a stream, or the embedded one."""
    from tenfold.parallel import workers
    from tenfold.readers import load
    from tenfold.readers.sample import NAME, sample
    from tenfold.streams import read_sample

    if not options.files:
        return [NAME], sample()
    if not options.stream:
        return options.files, load(options.files[0], as_stored=len(options.files) == 1, **wanted(options, "tr"))
    how = {"n_rows": options.sample_rows, "report": terminal.streaming, **wanted_of_text(options)}
    with workers(options.jobs, options.scheduler, warn=terminal.warn) as at_work:
        data = read_sample(options.files, at_work, seed=options.seed, **how)
    terminal.sampled(data.counts, len(data.y))
    terminal.started = options.started = time.monotonic()  # reading all rows takes its own time
    return [" ".join(map(str, options.files))], data


def split(options, terminal, names, data):
    """The `Experiment`, whose splits are folds or two files, its `Data` without rows, the costs of its test rows."""
    from preprocess import find_classes, signs
    from tenfold.decisions import find_costs
    from tenfold.folds import Experiment, count_folds, rows_to_use
    from tenfold.readers import in_rows, load

    classes = find_classes(data.y, options.positive, data.counts)
    y = signs(data.y, classes)
    terminal.notes(data.notes)
    terminal.data(names[0], data.X, y, classes)
    counts = {sign: (y == sign).sum() for sign in (-1, 1)}
    if data.counts:  # of the stream that this is a sample of
        counts = {sign: data.counts[label] for sign, label in zip((-1, 1), classes.tolist())}
    if len(names) == 2:
        test = load(names[1], like=data, **wanted(options, "te", "tr"))
        terminal.notes(test.notes)
        used = slice(None)
        data.add_values(test.new_values)
        of_test = test.X, signs(test.y, classes), names[1]
        experiment = Experiment.train_and_test(data.X, y, *of_test, data.categories)
    else:
        n_folds, used, test = count_folds(y, options.folds, names[0]), rows_to_use(data.X, y, data.categories), data
        terminal.rows_used(len(used), len(y))
        rows = used if data.rows is None else data.rows[used]
        data.X = X = in_rows(data.X, used if len(used) < len(y) else None)  # of the file, no more is kept
        experiment = Experiment.cross_validation(X, y[used], n_folds, options.seed, rows, counts, data.categories)
    costs = None
    if options.cost is not None:
        pair = options.cost or (counts[-1] / counts[1], 1.0)
        costs = find_costs(names[-1], test.cost, len(test.y), y, pair, options.cost_name)[used]
    return experiment, data.without_rows(classes), costs


def learn(options, terminal, at_work, experiment, like, with_models):
    """The rounds of learning: as many as there is time for, or one if the effort is given, or is not to be chosen."""
    from tenfold.rounds import run_round, run_rounds

    end = options.started + (1 - RESERVE) * options.budget
    estimator, show = make_estimator(options, options.effort, like), terminal.progress(len(experiment.splits))
    if options.effort or published_settings(options):
        cut = None if options.effort else end
        return [run_round(at_work, experiment, estimator, show, with_models, cut=cut)]
    return run_rounds(at_work, experiment, estimator, end, show, with_models)


def make_estimator(options, effort, like):
    """What learns in each fold from data like this."""
    from tenfold.ranker import AUCRanker, PublishedRanker

    if given := published_settings(options):
        return PublishedRanker(**given, categories=like.categories or None, random_state=options.seed)
    how = {"effort": effort or 1.0, "categories": like.categories or None}
    return AUCRanker(options.features or "auto", **how, random_state=options.seed)


def command_line(argv):
    """The command, as one would type it."""
    words = ["python", "exp.py", *map(str, argv)]
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def run(options):
    """Do what was asked for, and print the result; the exit code. Whatever is wrong with the input is one line."""
    from concurrent.futures.process import BrokenProcessPool

    from joblib import cpu_count

    from preprocess import InputError
    from tenfold.models import one_thread
    from tenfold.online import learns_online, run_online
    from tenfold.readers import check_given, input_files
    from tenfold.reports import chosen
    from tenfold.scoring import use_model
    from tenfold.terminal import Terminal

    terminal = Terminal(options.quiet, options.started, options.budget, bool(options.effort))
    most = sys.maxsize if options.stream else cpu_count()  # more folds at a time would wait for each other
    options.jobs = min(options.jobs or cpu_count(), most)
    try:
        files = input_files(options.files) if options.stream or options.model else options.files
        check_given(files, [name for name in OF_FILES if getattr(options, name.replace("-", "_")) is not None])
        inputs = [*files, *([options.model] if options.model else [])]
        reports = chosen(vars(options), inputs, options.force)
        with terminal, one_thread():  # folds share the cores, and the digits must not depend on how many there are
            if options.model:
                use_model(options, terminal, wanted(options, "te", "tr"), print_auc)
            elif options.stream and learns_online(options):
                run_online(options, terminal, published_settings(options), print_auc)
            else:
                cross_validate(options, terminal, reports)
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
    options = parse(argv, __doc__, lambda message: sys.exit(fail(f"error: {message} ({HELP})")))
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
