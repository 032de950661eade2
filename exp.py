"""Online AUC maximization in ten seconds: the cross-validated AUC of a buffered online ranker.

    python exp.py                       ten folds of an embedded sample
    python exp.py train.mat             ten folds of a file with x_tr and y_tr
    python exp.py train.mat test.mat    train on the first file, test on the second
    python exp.py data.csv --label sick --positive yes
    python exp.py train.mat --features linear --seed 3 -q
    python exp.py train.mat --update sequential --C 1e-3 --buffer 100
    python exp.py train.mat --plots figures
    python exp.py train.mat --compare --cost 100,1

The last line on standard output is the result, for example "AUC Score: 0.9712". Nothing else goes there but the table
of --compare; what is said on the way goes to standard error.
"""

import time

STARTED = time.monotonic() - time.process_time()  # about when the process started, before the imports

import argparse  # noqa: E402
import errno  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from dataclasses import dataclass, field  # noqa: E402
from pathlib import Path  # noqa: E402

__version__ = "1.0.0"

PUBLISHED = ("C", "buffer", "update", "passes")  # options of the published algorithm
WORDS = {
    "linear": "the columns themselves",
    "mixed": "similarities to landmarks",
    "smooth": "wide, smooth similarities to landmarks",
    "rough": "wide, rough similarities to landmarks",
}
CHUNK = 2048  # rows learned from or scored at a time
RESERVE = 0.08  # share of the budget kept for scoring, printing and ending
SPACING = 1.15  # how many times as many rows until the next point of a curve


@dataclass(frozen=True)
class Work:
    """What there is to do: for each split ``(train, test)`` learn from these rows of X and test on those of X_test."""

    X: object
    y: object
    X_test: object
    y_test: object
    splits: list

    def split(self, fold):
        train, test = self.splits[fold]
        return train, self.X_test[test], self.y_test[test]


@dataclass
class Fold:
    """What one fold, or one pair of files, has given: ``done`` is the share of the plan that the clock let be.

    ``curve`` has a row for each moment noted on the way: seconds, rows learned from, AUC if it had been the end.
    """

    auc: float
    scores: object = field(compare=False)
    seconds: float = field(compare=False)
    curve: list = field(compare=False)
    changes: dict
    done: float
    shares: dict


@dataclass
class Clock:
    """Deals out what is left of the budget: an equal share to each fold yet to begin; what is unused goes on.

    Time that passes while it is paused does not count, neither for this fold nor for those behind it.
    """

    end: float
    folds: int
    jobs: int
    paused: float = 0.0

    def now(self):
        return time.monotonic() - self.paused

    def start(self, fold):
        """A function that says whether this fold, which begins now and behind all before it, must stop learning."""
        now = self.now()
        rounds = -(-(self.folds - fold) // self.jobs)
        deadline = now + (self.end - now) / rounds
        return lambda: self.now() > deadline

    @contextmanager
    def pause(self):
        begun = time.monotonic()
        yield
        self.paused += time.monotonic() - begun


class Curve:
    """Notes how well the test rows would be ranked if learning ended at this moment, at ever longer intervals."""

    def __init__(self, clock, X_test, y_test):
        self.clock, self.X_test, self.y_test = clock, X_test, y_test
        self.points, self.rows, self.due = [], 0, 0
        self.begun = clock.now()

    def note(self, rows, score, end=lambda: None):
        """``rows`` have been learned from so far; after ``end``, ``score`` scores other rows as if that were all."""
        self.rows = rows
        if rows >= self.due:
            from sklearn.metrics import roc_auc_score

            seconds = self.clock.now() - self.begun
            with self.clock.pause():
                end()
                self.points.append((seconds, rows, roc_auc_score(self.y_test, in_chunks(score, self.X_test))))
            self.due = SPACING * rows

    def end(self, seconds, auc):
        """Learning has taken so long and come to this."""
        if self.points[-1][1] == self.rows:
            self.points.pop()
        self.points.append((seconds, self.rows, auc))


@dataclass(frozen=True)
class Plan:
    """How much to do in a fold. It follows from the shape of the data alone, so it is the same on every machine."""

    rows: int  # training rows to learn from
    sample: int  # of these, rows to learn from through landmarks
    landmarks: int
    visits: int  # rows to learn from for each set of features, pass after pass
    block: int  # rows to a step, which are paired with twice as many from the reservoirs
    folds: int  # inner folds: the more, the more rows each lane learns from
    small: bool  # whether there is time for more kinds of similarity
    quick: bool  # whether to do without what is dear in many columns


def make_plan(n_train, n_pos, n_test, n_columns, cells_per_row, sparse=False):
    """Sized so that ten folds end in about 5 s on two cores and under 9 s on one.

    More than four negatives to a positive add little to pairs, so they are the first to be left out.
    """
    rows = int(min(n_train, 20_000, max(6_000, min(5 * n_pos, 4e6 / cells_per_row))))
    sample = min(rows, 6_000)
    small = n_train <= 3_000
    affordable = min(9e6, 4e9 / n_columns) / (sample + n_test)
    landmarks = int(min(sample, 700 if small else 1_000, max(affordable, 100)))
    quick = (sample + n_test) * landmarks * n_columns > 3e8
    visits = 9_600 if small else 16_000
    folds = 6 if (small or n_pos < 300) and n_columns <= 1_000 else 3
    block = 128 if sparse else 32  # a product of sparse rows costs much the same for few of them as for many
    return Plan(rows, sample, landmarks, visits, block, folds, small, quick)


def thin(y, size):
    """Numbers of at most ``size`` rows, in order; the rarer class may make up to a third of them: pairs need both."""
    import numpy as np

    if len(y) <= size:
        return np.arange(len(y))
    rare, common = sorted((np.flatnonzero(y > 0), np.flatnonzero(y < 0)), key=len)
    n_rare = min(len(rare), max(size // 3, size * len(rare) // len(y)))
    return np.sort(np.concatenate([rare[:n_rare], common[: size - n_rare]]))


def learn(X, y, train, n_test, options, rng, stop, curve=None):
    """Learn from the rows ``train`` of X: a function that scores rows, and what a `Fold` tells of it."""
    import numpy as np
    import scipy.sparse as sp

    from oam import FEW_COLUMNS, Ranker
    from preprocess import Preprocessor, plain_features, rich_features

    n_columns = X.shape[1]
    sparse = sp.issparse(X) and n_columns > FEW_COLUMNS
    cells_per_row = max(X.nnz / X.shape[0], 1) if sparse else n_columns
    plan = make_plan(len(train), np.count_nonzero(y[train] > 0), n_test, n_columns, cells_per_row, sparse)
    rows = rng.permutation(train)
    rows = rows[thin(y[rows], plan.rows)]
    preprocessor = Preprocessor().fit(X[rows])

    def scale(X):
        Z = preprocessor.transform(X)
        return Z.toarray() if sp.issparse(Z) and not sparse else Z

    Z = scale(X[rows])
    if sparse or options.features == "linear":
        features = plain_features()
    else:
        features = rich_features(plan.landmarks, plan.small, plan.quick)
    ranker = Ranker(plan.visits, plan.folds, rng, block=plan.block, draw=2 * plan.block)

    def score(X):
        return features.score(scale(X), ranker.weights_) + np.float64(ranker.intercept_)

    watch = (lambda rows, end: curve.note(rows, score, end)) if curve else None
    ranker.fit(features.fit_transform(Z, thin(y[rows], plan.sample), rng), y[rows], stop, watch)
    shares = dict(zip(features.maps, np.sum(ranker.shares_, axis=1)))
    done = ranker.done_ * len(shares) / len(features.maps)
    return score, preprocessor.changes_, done, shares


def learn_published(X, y, train, options, rng, stop, curve=None):
    """The same for the published algorithm as it stands, on the scaled columns and the bias."""
    from oam import OnlineAUC
    from preprocess import Preprocessor

    preprocessor = Preprocessor().fit(X[train])
    given = {name: getattr(options, name) for name in PUBLISHED if getattr(options, name) is not None}
    passes = given.pop("passes", 1)
    learner = OnlineAUC(random_state=rng, **given)
    planned, learned = passes * len(train), 0

    def score(X):
        return learner.decision_function(preprocessor.transform(X))

    while learned < planned and not (learned and stop()):
        start = learned % len(train)
        if start == 0:
            order = rng.permutation(train)
        rows = order[start : start + CHUNK]
        learner.partial_fit(preprocessor.transform(X[rows]), y[rows], classes=[-1, 1])
        learned += len(rows)
        if curve:
            curve.note(learned, score)
    return score, preprocessor.changes_, learned / planned, {}


def run_fold(fold, work, options, clock):
    """Learn from the training rows of a fold, in a seeded random order, and measure the AUC on its test rows."""
    import numpy as np
    from sklearn.metrics import auc, roc_curve

    stop, begun = clock.start(fold), clock.now()
    train, X_test, y_test = work.split(fold)
    curve = Curve(clock, X_test, y_test) if options.plots else None
    rng = np.random.RandomState([options.seed, fold])
    if options.published:
        score, *told = learn_published(work.X, work.y, train, options, rng, stop, curve)
    else:
        score, *told = learn(work.X, work.y, train, X_test.shape[0], options, rng, stop, curve)
    learned = clock.now() - begun
    scores = in_chunks(score, X_test)
    fpr, tpr, _ = roc_curve(y_test, scores)
    area = auc(fpr, tpr)
    if curve:
        curve.end(learned, area)
    return Fold(area, scores, clock.now() - begun, curve.points if curve else [], *told)


def in_chunks(score, X):
    """The scores of the rows of X, a part of them at a time."""
    import numpy as np

    return np.concatenate([score(X[i : i + CHUNK]) for i in range(0, X.shape[0], CHUNK)])


def run_folds(work, options, talk):
    """The `Fold` of each split, in order."""
    n_folds = len(work.splits)
    jobs = min(options.jobs, n_folds)
    clock = Clock(options.started + options.budget * (1 - RESERVE), n_folds, jobs)
    begun, folds = time.monotonic(), {}
    talk.progress([], n_folds, begun, options)
    for fold, result in in_processes(jobs, n_folds, run_fold, work, options, clock):
        folds[fold] = result
        talk.progress(folds.values(), n_folds, begun, options)
    return [folds[fold] for fold in range(n_folds)]


def in_processes(jobs, n, function, *arguments, seconds=None):
    """Yield i and ``function(i, *arguments)`` for each i below n as it ends, from so many processes.

    TimeoutError ends it after ``seconds``. Threads would wait for each other: the steps of learning are short.
    """
    _start_worker(function, *arguments)
    if jobs == 1 and seconds is None:
        yield from map(_run_numbered, range(n))
        return
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import active_children, get_context

    fork = sys.platform == "linux"  # workers then share the data and what is imported
    context = get_context("fork" if fork else "spawn")
    pool = ProcessPoolExecutor(jobs, context, _start_process, (function, *arguments))
    try:
        for done in as_completed([pool.submit(_run_numbered, i) for i in range(n)], seconds):
            yield done.result()
        pool.shutdown()
    except BaseException:
        for worker in active_children():
            worker.kill()
        raise


def _start_process(*work):
    import signal

    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one ends the others
    threadpool_limits(1)
    _start_worker(*work)


def _start_worker(*work):
    global _work
    _work = work


def _run_numbered(i):
    function, *arguments = _work
    return i, function(i, *arguments)


def sample():
    """Scikit-learn's bundled handwritten digits: the eights, thinned to 40, against all the rest."""
    import numpy as np
    from sklearn.datasets import load_digits

    from preprocess import Data

    X, digit = load_digits(return_X_y=True)
    eights = np.flatnonzero(digit == 8)
    rows = np.setdiff1d(np.arange(len(digit)), eights[40:])
    return Data(X[rows], (digit[rows] == 8).astype(int))


def compare(work, options, report):
    """Yield a `Rival` for each of the baselines, on the same rows; ``report`` is told how far the next one has got."""
    from baselines import Rival, learners, run_rival

    n_folds = len(work.splits)
    for name, learner in learners(options.cost, options.seed).items():
        report(name, 0, n_folds)
        folds, trouble = {}, ""
        try:
            jobs = min(options.jobs, n_folds)
            for fold, result in in_processes(jobs, n_folds, run_rival, work, learner, seconds=options.compare_seconds):
                folds[fold] = result
                report(name, len(folds), n_folds)
        except TimeoutError:
            trouble = f"stopped after {options.compare_seconds:g} s, with {len(folds)} of {n_folds} folds done"
        except MemoryError:
            trouble = "not enough memory"
        except ValueError as error:
            trouble = f"cannot learn from this: {' '.join(str(error).split())}"
        if trouble:
            yield Rival(name, trouble=trouble)
        else:
            aucs, scores, seconds = zip(*(folds[fold] for fold in range(n_folds)))
            yield Rival(name, list(aucs), list(scores), sum(seconds))


def print_result(text):
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    print(text, flush=True)


def print_comparison(work, folds, options, talk):
    """Print a table of ours and the baselines, a line as soon as it is known, and return the lines' `Rival` objects."""
    from baselines import Rival, table_head, table_row

    ours = Rival("ours", [fold.auc for fold in folds], [fold.scores for fold in folds], sum(f.seconds for f in folds))
    print_result(table_head())
    print_result(table_row(ours, ours))
    rivals = [ours]
    for rival in compare(work, options, talk.comparing):
        talk.clear()
        print_result(table_row(rival, ours))
        rivals.append(rival)
    talk.clear()
    talk.say(
        "lead of ours: the mean over the folds and its 95 % interval (paired, corrected for shared training rows); "
        "+/-: standard deviation over the folds; seconds: of all folds, one core each"
    )
    return rivals


class Talk:
    """All that is said on standard error. On a terminal the last line is live: a bar that grows."""

    BAR = 20

    def __init__(self, quiet):
        self.quiet = quiet or sys.stderr is None
        self.live = not self.quiet and sys.stderr.isatty()
        self.shown = 0  # characters of the live line

    def say(self, text, end="\n"):
        if not self.quiet:
            try:
                print(text, end=end, file=sys.stderr, flush=True)
            except OSError:  # nobody can read it, but there may be a result to print
                self.quiet = True

    def progress(self, folds, n_folds, begun, options):
        """Say how many folds are done, how well, and on a terminal also how many seconds are left."""
        import numpy as np

        now = time.monotonic()
        aucs = [fold.auc for fold in folds]
        text = f"fold {len(aucs)}/{n_folds}"
        if aucs:
            text += f": mean AUC {np.mean(aucs):.4f}"
        if not self.live:
            if aucs and n_folds > 1:
                self.say(f"{text}, {now - options.started:.1f} s")
            return
        if len(aucs) > 1:
            text += f" +/- {np.std(aucs, ddof=1):.4f}"
        left = options.started + options.budget - now
        if aucs:
            left = min(left, (now - begun) / len(aucs) * (n_folds - len(aucs)))
        if len(aucs) < n_folds:
            self.show(len(aucs) / n_folds, f"{text}, {max(left, 0):.1f} s left")
        else:
            self.show(1, f"{text}, {now - options.started:.1f} s", end="\n")

    def comparing(self, name, done, n_folds):
        if self.live:
            self.show(done / n_folds, f"{name}: fold {done}/{n_folds}")

    def show(self, share, text, end=""):
        """Write over the live line, in one go and not beyond the terminal's width."""
        import shutil

        full, empty = ("█", "░") if _can_write("█░") else ("#", ".")
        n_full = round(self.BAR * share)
        line = f"{full * n_full}{empty * (self.BAR - n_full)} {text}"[: shutil.get_terminal_size().columns - 1]
        blank = " " * (self.shown - len(line))
        self.shown = 0 if end else len(line)
        if _in_colour():
            line = f"\x1b[36m{line[: self.BAR]}\x1b[0m{line[self.BAR :]}"
        self.say(f"\r{line}{blank}", end=end)

    def clear(self):
        if self.shown:
            self.say("\r" + " " * self.shown + "\r", end="")
            self.shown = 0

    def summary(self, folds, options):
        import numpy as np

        changes = {}
        for key in folds[0].changes:
            counts = sorted({fold.changes[key] for fold in folds})
            changes[key] = "no" if counts == [0] else " to ".join(str(n) for n in sorted({counts[0], counts[-1]}))
        self.say(
            f"preprocessing: {changes['missing']} missing values replaced by column means, {changes['constant']} "
            f"constant and {changes['duplicated']} duplicated columns dropped; scaled, bias column added"
        )
        aucs = np.array([fold.auc for fold in folds])
        if len(aucs) > 1:
            self.say("AUC of each fold: " + " ".join(f"{auc:.4f}" for auc in aucs))
            self.say(f"mean {aucs.mean():.4f} +/- {aucs.std(ddof=1):.4f} (standard deviation over {len(aucs)} folds)")
        if len(folds[0].shares) > 1:
            self.say("weighed inside the training rows: " + describe([fold.shares for fold in folds]))
        done = sum(fold.done for fold in folds) / len(folds)
        cut = f"the clock cut learning to {done:.0%} of the plan" if done < 1 else "the clock cut nothing"
        beyond = ", and more for the points of curves" if options.plots else ""
        self.say(f"{time.monotonic() - options.started:.1f} s of {options.budget:g} s{beyond}; {cut}")


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


def describe(shares):
    """In words: which features make up how much of the score, and in how many folds the most."""
    largest = [max(share, key=share.get) for share in shares]
    mean = {name: sum(share.get(name, 0) for share in shares) / len(shares) for name in WORDS}
    return ", ".join(
        f"{WORDS[name]} {mean[name]:.0%} (the most in {largest.count(name)} of {len(shares)} folds)"
        for name in sorted(mean, key=mean.get, reverse=True)
        if mean[name] > 0
    )


def run(options):
    """Load, learn, print."""
    import numpy as np
    from joblib import cpu_count
    from threadpoolctl import threadpool_limits

    from preprocess import InputError, find_classes, load, show, signs

    talk = Talk(options.quiet)
    options.jobs = options.jobs or cpu_count()
    if options.plots:
        prepare_plots(options.plots)
    if options.files:
        name = options.files[0]
        data = load(name, names(options.x_name, "x_tr"), names(options.y_name, "y_tr"), options.label)
    else:
        name, data = "embedded sample (scikit-learn's digits, the eights thinned to 40 against the rest)", sample()
    classes = find_classes(data.y, options.positive)
    y = signs(data.y, classes)
    n_pos = np.count_nonzero(y > 0)
    n_neg = len(y) - n_pos
    talk.say(
        f"{name}: {data.X.shape[0]} rows x {data.X.shape[1]} features, {n_pos} positive (label {show(classes[1])}), "
        f"{n_neg} negative (label {show(classes[0])})"
    )
    if len(options.files) == 2:
        work = two_files(data, y, classes, options)
    else:
        rarer = min(n_pos, n_neg)
        if rarer < 2:
            raise InputError(f"{name}: one class has a single row, expected at least 2 to cross-validate")
        if rarer < options.folds:
            talk.say(f"warning: {rarer} folds instead of {options.folds}, because one class has {rarer} rows only")
        work = cross_validation(data.X, y, min(options.folds, rarer), options.seed)
    with threadpool_limits(1):  # the folds share the cores, and the digits must not depend on how many there are
        folds = run_folds(work, options, talk)
        talk.summary(folds, options)
        rivals = print_comparison(work, folds, options, talk) if options.compare else []
    if options.plots:
        draw_figures(options.plots, work, folds, rivals)
        talk.say(f"figures are in {options.plots}")
    print_result(f"AUC Score: {sum(fold.auc for fold in folds) / len(folds):.4f}")


def cross_validation(X, y, n_folds, seed):
    import numpy as np
    from sklearn.model_selection import StratifiedKFold

    splits = StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(np.zeros(len(y)), y)
    return Work(X, y, X, y, list(splits))


def two_files(data, y, classes, options):
    import numpy as np

    from preprocess import InputError, load, show, signs

    x_names, y_names = names(options.x_name, "x_te", "x_tr"), names(options.y_name, "y_te", "y_tr")
    test = load(options.files[1], x_names, y_names, options.label, like=data)
    y_test = signs(test.y, classes)
    if len(set(y_test)) < 2:
        raise InputError(f"{options.files[1]}: all labels are {show(test.y[0])}, expected both classes")
    return Work(data.X, y, test.X, y_test, [(np.arange(len(y)), np.arange(len(y_test)))])


def prepare_plots(directory):
    """Find out before the run whether figures can be drawn after it."""
    from importlib.util import find_spec

    from preprocess import InputError

    if find_spec("matplotlib") is None:
        raise InputError("--plots needs matplotlib, which is not installed: python -m pip install matplotlib")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--plots {directory} is no directory and cannot be made: {error.strerror}") from error


def draw_figures(directory, work, folds, rivals):
    from figures import draw

    def results(of_folds):
        return [(work.y_test[test], scores) for (_, test), scores in zip(work.splits, of_folds)]

    learners = {rival.name: results(rival.scores) for rival in rivals if not rival.trouble}
    draw(directory, results([fold.scores for fold in folds]), [fold.curve for fold in folds], learners)


def names(chosen, *usual):
    """The names to look for in a file: the one that the user chose, or else the usual ones."""
    return (chosen,) if chosen else usual


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
        missed, false_alarm = (number(float, 0.0, "a number above 0", float("inf"))(part) for part in text.split(","))
    except (ValueError, argparse.ArgumentTypeError):
        raise argparse.ArgumentTypeError(f"{text!r} is not two numbers above 0, such as 100,1") from None
    return missed, false_alarm


def make_parser():
    description, examples, output = __doc__.split("\n\n")
    parser = argparse.ArgumentParser(
        prog="exp.py",
        description=f"{description}\n\n{output}",
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    count = number(int, 1, "a whole number of at least 1")
    positive = number(float, 0.0, "a number above 0")
    add(
        "files",
        nargs="*",
        metavar="FILE",
        help="data to cross-validate (default: an embedded sample); a second file "
        "is the test set. MATLAB, .csv, .npz, or LIBSVM text (.svm, .libsvm, .txt, also .gz or .bz2)",
    )
    add(
        "--folds",
        type=number(int, 2, "a whole number of at least 2"),
        default=10,
        metavar="N",
        help="folds (default: 10)",
    )
    add(
        "--seed",
        type=number(int, 0, "a whole number from 0 to 4294967295", 2**32),
        default=0,
        metavar="N",
        help="seed of folds, order and reservoirs (default: 0)",
    )
    add("--budget", type=positive, default=10.0, metavar="S", help="seconds in all, from start to end (default: 10)")
    add(
        "--features",
        choices=["auto", "linear"],
        help="what to learn from: auto, the columns and similarities to training rows, weighed inside each fold; "
        "linear, the scaled columns, with C chosen inside each fold (default: auto)",
    )
    add(
        "--C",
        type=number(float, 0.0, "a number above 0 and below 1e6", 1e6),
        metavar="C",
        help="weight of a pair's loss, instead of choosing (default: 1e-3 with the next three options)",
    )
    add("--buffer", type=count, metavar="N", help="rows kept of each class (default: 500)")
    add("--update", choices=["sequential", "gradient"], help="the paper's two updates (default: gradient)")
    add("--passes", type=count, metavar="N", help="passes over the training rows (default: 1)")
    add("--jobs", type=count, metavar="N", help="folds at a time (default: one for each core)")
    add("--plots", type=Path, metavar="DIR", help="draw figures of the folds into this directory (default: none)")
    add("--compare", action="store_true", help="also run other learners and print a table (default: off)")
    add(
        "--compare-seconds",
        type=positive,
        metavar="S",
        help="seconds after which a learner of --compare is stopped (default: 60)",
    )
    add(
        "--cost",
        type=costs,
        metavar="FN,FP",
        help="cost of a missed positive and of a false alarm, for the cost-sensitive learners of --compare "
        "(default: negatives/positives,1)",
    )
    add("--positive", metavar="LABEL", help="the label of the positive class (default: the rarer one)")
    add("--label", metavar="NAME", help="the label column of a .csv file (default: the last)")
    add("--x-name", metavar="NAME", help="the variable of the features (default: x_tr; of a test file x_te, then x_tr)")
    add("--y-name", metavar="NAME", help="the variable of the labels (default: y_tr; of a test file y_te, then y_tr)")
    add("-q", "--quiet", action="store_true", help="say nothing but the result and errors (default: off)")
    add("--version", action="version", version=f"%(prog)s {__version__}")
    return parser


def main(argv=None, started=None):
    parser = make_parser()
    options = parser.parse_args(argv)
    if len(options.files) > 2:
        parser.error(f"{len(options.files)} files given, expected at most 2: a training file and a test file")
    given = [name for name in PUBLISHED if getattr(options, name) is not None]
    if given and options.features == "auto":
        parser.error(f"--{given[0]} belongs to the published algorithm, which goes with --features linear only")
    if options.compare_seconds and not options.compare:
        parser.error("--compare-seconds goes with --compare only")
    if options.cost and not options.compare:
        parser.error("--cost goes with --compare only")
    options.compare_seconds = options.compare_seconds or 60.0
    options.published = bool(given)
    options.started = time.monotonic() if started is None else started
    try:
        return run_safely(options)
    except KeyboardInterrupt:
        return fail("interrupted", 130)


def run_safely(options):
    """The exit code of a run; whatever is wrong with the input, or with where the output goes, is one line."""
    from concurrent.futures.process import BrokenProcessPool

    from preprocess import InputError

    try:
        run(options)
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
    Talk(quiet=False).say(f"exp.py: {message}")
    return code


if __name__ == "__main__":
    code = main(started=STARTED)
    if code == 130:
        os._exit(code)  # workers killed at a bad moment can leave a thread that waits for them forever
    sys.exit(code)
