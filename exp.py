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
import errno  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
from contextlib import contextmanager, nullcontext  # noqa: E402
from dataclasses import dataclass, field  # noqa: E402
from pathlib import Path  # noqa: E402

__version__ = "1.1.0"

PUBLISHED = ("C", "buffer", "update", "passes")  # options of the published algorithm
WORDS = {
    "linear": "the columns themselves",
    "mixed": "similarities to landmarks",
    "smooth": "wide, smooth similarities to landmarks",
    "rough": "wide, rough similarities to landmarks",
}
CHUNK = 2048  # rows learned from at a time
CONNECT_SECONDS = 10  # to wait for a scheduler
HELD_OUT = 0.1  # share of a stream that is not learned from
MOST_HELD_OUT = 20_000  # rows of a class that are kept of it
HELD_OUT_CELLS = 4_000_000  # and their cells
LONG_STREAM = 200_000  # rows for which steps of many rows are still many
STREAM_STEP_SIZES = (200.0, 2_500.0, 30_000.0, 300_000.0)
RESERVE = 0.12  # share of the budget kept for scoring, printing and ending
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
                self.points.append((seconds, rows, roc_auc_score(self.y_test, score(self.X_test))))
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
    """Learn from the rows ``train`` of X: a `Model`, and what a `Fold` tells of it."""
    import numpy as np
    import scipy.sparse as sp

    from oam import FEW_COLUMNS, Ranker
    from preprocess import Model, Preprocessor, plain_features, rich_features

    n_columns = X.shape[1]
    sparse = sp.issparse(X) and n_columns > FEW_COLUMNS
    cells_per_row = max(X.nnz / X.shape[0], 1) if sparse else n_columns
    plan = make_plan(len(train), np.count_nonzero(y[train] > 0), n_test, n_columns, cells_per_row, sparse)
    rows = rng.permutation(train)
    rows = rows[thin(y[rows], plan.rows)]
    if sparse or options.features == "linear":
        features = plain_features()
    else:
        features = rich_features(plan.landmarks, plan.small, plan.quick)
    model = Model(Preprocessor().fit(X[rows]), features, keep_sparse=sparse)
    ranker = Ranker(plan.visits, plan.folds, rng, block=plan.block, draw=2 * plan.block)

    def weighed():
        return model.weigh(features.coefficients(ranker.weights_), ranker.intercept_)

    watch = (lambda rows, end: curve.note(rows, lambda X: weighed().score(X), end)) if curve else None
    feature_sets = features.fit_transform(model.scale(X[rows]), thin(y[rows], plan.sample), rng)
    ranker.fit(feature_sets, y[rows], stop, watch)
    shares = dict(zip(features.maps, np.sum(ranker.shares_, axis=1)))
    done = ranker.done_ * len(shares) / len(features.maps)
    return weighed(), model.preprocessor.changes_, done, shares


def learn_published(X, y, train, options, rng, stop, curve=None):
    """The same for the published algorithm as it stands, on the scaled columns and the bias."""
    from oam import OnlineAUC
    from preprocess import Model, Preprocessor, plain_features

    model = Model(Preprocessor().fit(X[train]), plain_features(), keep_sparse=True)
    given = {name: getattr(options, name) for name in PUBLISHED if getattr(options, name) is not None}
    passes = given.pop("passes", 1)
    learner = OnlineAUC(random_state=rng, **given)
    planned, learned = passes * len(train), 0
    while learned < planned and not (learned and stop()):
        start = learned % len(train)
        if start == 0:
            order = rng.permutation(train)
        rows = order[start : start + CHUNK]
        learner.partial_fit(model.scale(X[rows]), y[rows], classes=[-1, 1])
        model.weigh([learner.coef_[0]], learner.intercept_[0])
        learned += len(rows)
        if curve:
            curve.note(learned, model.score)
    return model, model.preprocessor.changes_, learned / planned, {}


def run_fold(fold, work, options, clock):
    """Learn from the training rows of a fold, in a seeded random order, and measure the AUC on its test rows."""
    from sklearn.metrics import auc, roc_curve

    stop, begun = clock.start(fold), clock.now()
    train, X_test, y_test = work.split(fold)
    curve = Curve(clock, X_test, y_test) if options.plots else None
    model, *told = make_model(work, train, X_test.shape[0], options, fold, stop, curve)
    learned = clock.now() - begun
    scores = model.score(X_test)
    fpr, tpr, _ = roc_curve(y_test, scores)
    area = auc(fpr, tpr)
    if curve:
        curve.end(learned, area)
    return Fold(area, scores, clock.now() - begun, curve.points if curve else [], *told)


def make_model(work, train, n_test, options, fold, stop=lambda: False, curve=None):
    """What `learn` or `learn_published` make of the rows ``train``; the seed and the fold decide all that is random."""
    import numpy as np

    rng = np.random.RandomState([options.seed, fold])
    if options.published:
        return learn_published(work.X, work.y, train, options, rng, stop, curve)
    return learn(work.X, work.y, train, n_test, options, rng, stop, curve)


def run_folds(work, options, talk):
    """The `Fold` of each split, in order."""
    n_folds = len(work.splits)
    jobs = min(options.jobs, n_folds)
    clock = Clock(options.started + options.budget * (1 - RESERVE), n_folds, jobs)
    begun, folds = time.monotonic(), {}
    talk.progress([], n_folds, begun, options)
    with cluster(options.scheduler, work) if options.scheduler else nullcontext():
        if options.scheduler or is_joblib_told_where():
            results = through_joblib(work, options)
        else:
            results = in_processes(jobs, n_folds, run_fold, work, options, clock)
        for fold, result in results:
            folds[fold] = result
            talk.progress(folds.values(), n_folds, begun, options)
    return [folds[fold] for fold in range(n_folds)]


def is_joblib_told_where():
    """Whether we are called within joblib's ``parallel_config`` or ``parallel_backend``."""
    from joblib.parallel import BACKENDS, DEFAULT_BACKEND, get_active_backend

    return type(get_active_backend()[0]) is not BACKENDS[DEFAULT_BACKEND]


def through_joblib(work, options):
    """Yield the number and the `Fold` of each split as it ends, from wherever joblib's backend runs it.

    Clocks of other machines differ, so each fold there has its own, set to an equal share of what is left here.
    """
    import joblib

    n_folds, workers = len(work.splits), joblib.effective_n_jobs(-1)
    left = options.started + options.budget * (1 - RESERVE) - time.monotonic()
    share = left / -(-n_folds // workers)
    patience = {"timeout": max(60, 10 * options.budget)} if options.scheduler else {}
    parallel = joblib.Parallel(n_jobs=-1, return_as="generator_unordered", batch_size=1, **patience)
    return parallel(joblib.delayed(run_elsewhere)(fold, work, options, share) for fold in range(n_folds))


def run_elsewhere(fold, work, options, seconds):
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    n_folds = len(work.splits)
    return fold, run_fold(fold, work, options, Clock(time.monotonic() + seconds, n_folds, n_folds))


@contextmanager
def cluster(address, work):
    """Let joblib run on the Dask cluster whose scheduler is at this address; program and data are sent there."""
    import joblib

    from preprocess import InputError

    try:
        from distributed import Client
    except ImportError:
        raise InputError("--scheduler needs Dask, which is not installed: python -m pip install distributed") from None
    try:
        with Client(address, timeout=CONNECT_SECONDS) as client:
            for name in ("preprocess.py", "oam.py", "exp.py"):
                client.upload_file(str(Path(__file__).with_name(name)))
            with joblib.parallel_config(backend="dask", scatter=[work]):
                yield
    except (InputError, MemoryError):
        raise
    except Exception as error:  # there are many ways for a cluster to fail
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(
            f"--scheduler {address}: the Dask cluster cannot be reached, or has failed: {reason}"
        ) from error


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


def compare(work, options, cost, report):
    """Yield a `Rival` for each of the baselines, on the same rows; ``report`` is told how far the next one has got."""
    from concurrent.futures.process import BrokenProcessPool

    from baselines import Rival, learners, run_rival

    n_folds = len(work.splits)
    for name, learner in learners(cost, options.seed).items():
        report(name, 0, n_folds)
        folds, trouble = {}, ""
        try:
            jobs = min(options.jobs, n_folds)
            for fold, result in in_processes(jobs, n_folds, run_rival, work, learner, seconds=options.compare_seconds):
                folds[fold] = result
                report(name, len(folds), n_folds)
        except TimeoutError:
            trouble = f"stopped after {options.compare_seconds:g} s, with {len(folds)} of {n_folds} folds done"
        except (MemoryError, BrokenProcessPool):
            trouble = "not enough memory, or its process was killed"
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


def print_comparison(work, folds, options, cost, talk):
    """Print a table of ours and the baselines, a line as soon as it is known, and return the lines' `Rival` objects."""
    from baselines import Rival, table_head, table_row

    ours = Rival("ours", [fold.auc for fold in folds], [fold.scores for fold in folds], sum(f.seconds for f in folds))
    print_result(table_head())
    print_result(table_row(ours, ours))
    rivals = [ours]
    if cost is not None:  # learners know of one cost for each class
        cost = cost[work.y > 0, 0].mean(), cost[work.y < 0, 1].mean()
    for rival in compare(work, options, cost, talk.comparing):
        talk.clear()
        print_result(table_row(rival, ours))
        rivals.append(rival)
    talk.clear()
    talk.say(
        "lead of ours: the mean over the folds and its 95 % interval (paired, corrected for shared training rows); "
        "+/-: standard deviation over the folds; seconds: of all folds, one core each"
    )
    return rivals


@dataclass
class Decisions:
    """Which rows to act on at given costs, and what came of it, by each way to decide.

    Each row is decided on by what the other folds teach; ``threshold`` is what all folds teach, for rows to come.
    """

    cost: object
    scores: object
    probability: object
    acted: dict
    outcomes: dict
    threshold: float


def decide(work, folds, cost):
    """`Decisions` at these costs."""
    import numpy as np

    from oam import Calibration, Outcome, best_threshold, least_risk

    y, scores = work.y_test, in_file_order(work, folds)
    probability, moved = np.empty(len(y)), np.empty(len(y), bool)
    for train, test in work.splits:
        probability[test] = Calibration().fit(scores[train], y[train]).probability(scores[test])
        moved[test] = scores[test] > best_threshold(scores[train], y[train], cost[train])
    acted = {
        "Bayes minimum risk": least_risk(probability, cost),
        "moved threshold": moved,
        "act on no row": np.zeros(len(y), bool),
        "act on every row": np.ones(len(y), bool),
    }
    outcomes = {name: Outcome.of(rows, y, cost) for name, rows in acted.items()}
    return Decisions(cost, scores, probability, acted, outcomes, best_threshold(scores, y, cost))


def in_file_order(work, folds):
    """The scores of all test rows, in the order of their file."""
    import numpy as np

    scores = np.empty(len(work.y_test))
    for (_, test), fold in zip(work.splits, folds):
        scores[test] = fold.scores
    return scores


def find_costs(name, data, y, options):
    """What missing each row, were it positive, and what a false alarm on it would cost: rows x 2."""
    import numpy as np

    from preprocess import InputError

    if data.cost is not None:
        return data.cost
    if options.cost_name:
        raise InputError(f"{name} holds no {options.cost_name}, expected what errors on each row cost")
    pair = options.cost
    if not pair:
        if y is None or len(set(y)) < 2:
            raise InputError(f"{name} has neither labels of both classes nor costs for each row, expected --cost FN,FP")
        pair = np.count_nonzero(y < 0) / np.count_nonzero(y > 0), 1.0
    return np.tile(np.array(pair, float), (data.X.shape[0], 1))


def write_scores(path, scores, probability=None, acted=None):
    """A .csv file with a line for each row: its number, from 1, its score and, if known, probability and decision."""
    import io

    from preprocess import write_whole

    columns = {"score": scores, "probability": probability, "decision": acted}
    columns = {name: column for name, column in columns.items() if column is not None}
    lines = zip(*(column.astype(int if name == "decision" else float).tolist() for name, column in columns.items()))

    def write(file):
        text = io.TextIOWrapper(file, encoding="ascii", newline="\n")
        text.write(",".join(["row", *columns]) + "\n")
        text.writelines(f"{row},{','.join(map(repr, line))}\n" for row, line in enumerate(lines, start=1))
        text.flush()
        text.detach()

    write_whole(path, write)


def save_model(path, data, classes, work, folds, options):
    """Learn from all training rows and save the model, calibrated by the scores that the folds gave to other rows.

    Two files give the model that was tested, without probabilities.
    """
    import numpy as np

    from oam import Calibration

    alone = len(work.splits) == 1
    n_test = len(work.y_test) // len(work.splits)
    model, *_ = make_model(work, np.arange(len(work.y)), n_test, options, fold=0 if alone else len(work.splits))
    model.like = data.without_rows(classes)
    model.about = about(options)
    if not alone:
        model.calibration = Calibration().fit(in_file_order(work, folds), work.y).arrays
    model.save(path)


def about(options):
    """What a model file tells of where it came from."""
    return {"program": "exp.py", "version": __version__, "seed": options.seed}


def use_model(options, talk):
    """Score a file with a saved model; the AUC, if the file has labels of both classes."""
    import numpy as np
    from sklearn.metrics import roc_auc_score

    from oam import Calibration, Outcome, least_risk
    from preprocess import InputError, Model, load, show, signs

    model = Model.load(options.model)
    if not model.calibration and options.cost is not None:
        raise InputError(f"{options.model} has no probabilities to decide by, expected a model saved after folds")
    name = options.files[0]
    x_names, y_names = names(options.x_name, "x_te", "x_tr"), names(options.y_name, "y_te", "y_tr")
    costs = cost_names(options, "c_te", "c_tr")
    data = load(name, x_names, y_names, options.label, model.like, labelled=False, cost_names=costs)
    talk.say(
        f"{name}: {data.X.shape[0]} rows x {data.X.shape[1]} features; a positive is label {show(model.like.y[1])}"
    )
    y = None if data.y is None else signs(data.y, model.like.y)
    both = y is not None and len(set(y)) == 2
    if not both and not options.scores:
        found = "no labels" if y is None else f"one label only, {show(data.y[0])}"
        raise InputError(f"{name} has {found}, so there is no AUC; expected both classes, or --scores to write scores")
    with np.errstate(all="ignore"):
        scores = model.score(data.X)
    if not np.isfinite(scores).all():
        raise InputError(f"{options.model} gives scores that are not finite, expected numbers: it may be damaged")
    probability = Calibration(model.calibration).probability(scores) if model.calibration else None
    acted = None
    if options.cost is not None:
        cost = find_costs(name, data, y, options)
        acted = least_risk(probability, cost)
        if y is not None:
            talk.outcomes({"Bayes minimum risk": Outcome.of(acted, y, cost)})
    if options.scores:
        write_scores(options.scores, scores, probability, acted)
        talk.say(f"scores are in {options.scores}")
    return roc_auc_score(y, scores) if both else None


class HeldOut:
    """A uniform sample of the rows held out of a stream, of each class apart: an AUC minds no class's size."""

    def __init__(self, size, rng):
        from oam import Reservoir

        self.reservoirs = {1: Reservoir(size), -1: Reservoir(size)}
        self.rng = rng

    def add(self, Z, y):
        import numpy as np

        uniform = self.rng.random_sample(len(y))
        for sign, reservoir in self.reservoirs.items():
            (which,) = np.nonzero(y == sign)
            if len(which):
                reservoir.add(Z, None, which, uniform)

    def sizes(self):
        return [len(reservoir) for reservoir in self.reservoirs.values()]

    def auc(self, learner):
        import numpy as np
        from sklearn.metrics import roc_auc_score

        scores = [learner.decision_function(reservoir.rows) for reservoir in self.reservoirs.values()]
        return roc_auc_score(np.repeat([1, -1], self.sizes()), np.concatenate(scores))


def learn_stream(options, talk):
    """Learn from files of any size in one pass, some rows at a time; the AUC on rows held out of the stream."""
    import numpy as np

    from oam import FEW_COLUMNS
    from preprocess import InputError, Model, Preprocessor, find_classes, plain_features, signs, stream

    rng = np.random.RandomState(options.seed)
    model, n_rows, n_learned = None, 0, 0
    for data, share in stream(options.files, options.label):
        out = rng.random_sample(data.X.shape[0]) < HELD_OUT
        if model is None:
            classes = find_classes(data.y, options.positive)
            y = signs(data.y, classes)
            if len(set(y[~out])) < 2:
                raise InputError(
                    f"{options.files[0]}: the first rows are too few, or of one class, expected both classes"
                )
            many = data.X.shape[1] > FEW_COLUMNS  # of fewer, sparse rows are quicker to learn from when dense
            model = Model(Preprocessor().fit(data.X[~out]), plain_features(), many, data.without_rows(classes))
            Z = model.scale(data.X[~out])
            learners = make_learners(Z, y[~out], len(y) / share, options, rng)
            size = int(min(MOST_HELD_OUT, max(HELD_OUT_CELLS / Z.shape[1], 100)))
            to_choose, to_test, n_first = HeldOut(size, rng), HeldOut(size, rng), Z.shape[0]
        y, Z = signs(data.y, classes), model.scale(data.X)
        choose = out & (rng.random_sample(len(y)) < 0.5) & (len(learners) > 1)
        test = out & ~choose
        to_choose.add(Z[choose], y[choose])
        to_test.add(Z[test], y[test])
        if not out.all():
            for learner in learners:
                learner.partial_fit(Z[~out], y[~out], classes=[-1, 1])
        n_rows, n_learned = n_rows + len(y), n_learned + np.count_nonzero(~out)
        talk.streaming(n_rows, share)
    talk.clear()
    if model is None:
        raise InputError(f"{options.files[0]} has no rows, expected some")
    if 0 in to_test.sizes() or (len(learners) > 1 and 0 in to_choose.sizes()):
        raise InputError(f"a class is not among the {n_rows - n_learned} rows held out of {n_rows}, expected both")
    best = max(learners, key=to_choose.auc) if len(learners) > 1 else learners[0]
    model.weigh([best.coef_[0]], best.intercept_[0])
    talk.stream(options, n_rows, n_learned, n_first, len(learners), to_choose, to_test)
    if options.save:
        model.about = about(options)
        model.save(options.save)
        talk.say(f"the model, learned from {n_learned} rows, is in {options.save}")
    return to_test.auc(best)


def make_learners(Z, y, n_rows, options, rng):
    """A learner with the C that was asked for, or several, whose steps over so many rows like these differ in size."""
    import numpy as np

    from oam import OnlineAUC
    from preprocess import LinearMap, Views

    given = {name: getattr(options, name) for name in PUBLISHED if getattr(options, name) is not None}
    if "C" in given:
        values = [given.pop("C")]
    else:
        share = np.mean(y > 0)
        scale = LinearMap("scaled").fit(Views(None, Z)).scale_
        values = [size * float(scale) ** 2 / (share * (1 - share) * n_rows**2) for size in STREAM_STEP_SIZES]
    block = 512 if n_rows > LONG_STREAM else 64
    return [OnlineAUC(C, block=block, random_state=rng.randint(2**31 - 1), **given) for C in values]


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

    def outcomes(self, outcomes):
        """A table of what each way to decide has led to."""
        counts = ("true_positives", "false_positives", "false_negatives", "true_negatives")
        self.say(
            f"{'decisions':<19}{'TP':>8}{'FP':>8}{'FN':>8}{'TN':>8}  precision  recall      F1        cost  savings"
        )
        for name, outcome in outcomes.items():
            numbers = "".join(f"{getattr(outcome, count):8d}" for count in counts)
            rates = f"{outcome.precision:11.4f}{outcome.recall:8.4f}{outcome.f1:8.4f}"
            self.say(f"{name:<19}{numbers}{rates}{outcome.cost:12.6g}{outcome.savings:9.1%}")

    def decisions(self, decisions):
        """The outcomes, and the thresholds that a user can apply."""
        import numpy as np

        missed, false_alarm = decisions.cost.min(axis=0)
        alike = np.ptp(decisions.cost, axis=0).max() == 0
        costs = f"{missed:g} for a missed positive, {false_alarm:g} for a false alarm" if alike else "those of each row"
        self.say(f"costs: {costs}; each fold decides by what the others teach")
        self.outcomes(decisions.outcomes)
        level = (
            f"{false_alarm / (missed + false_alarm):.4g}"
            if alike
            else "false alarm / (missed + false alarm) of the row"
        )
        self.say(
            f"for rows to come: act where the probability is above {level} (Bayes minimum risk), "
            f"or the score above {decisions.threshold:.6g} (moved threshold)"
        )

    def data(self, name, data, y, classes):
        import numpy as np

        from preprocess import show

        n_pos = np.count_nonzero(y > 0)
        self.say(
            f"{name}: {data.X.shape[0]} rows x {data.X.shape[1]} features, "
            f"{n_pos} positive (label {show(classes[1])}), {len(y) - n_pos} negative (label {show(classes[0])})"
        )

    def streaming(self, n_rows, share):
        if self.live:
            self.show(share, f"{n_rows:,} rows")

    def stream(self, options, n_rows, n_learned, n_first, n_learners, to_choose, to_test):
        seconds = time.monotonic() - options.started
        self.say(f"{n_rows} rows in {seconds:.1f} s, {n_learned} of them learned from, scaled by the first {n_first}")
        if n_learners > 1:
            positive, negative = to_choose.sizes()
            self.say(f"C chosen among {n_learners} values by {positive} positive and {negative} negative rows held out")
        positive, negative = to_test.sizes()
        self.say(f"AUC on a sample of {positive} positive and {negative} negative rows held out of the stream")

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
    """Do what was asked for, and print the result."""
    import numpy as np
    from joblib import cpu_count
    from threadpoolctl import threadpool_limits

    talk = Talk(options.quiet)
    options.jobs = options.jobs or cpu_count()
    if options.plots:
        prepare_plots(options.plots)
    work = use_model if options.model else learn_stream if options.stream else test_by_folds
    # Folds share the cores, and the digits must not depend on how many there are. Products may read, and not use, what
    # lies beyond their rows, and NumPy then warns of it.
    with threadpool_limits(1), np.errstate(invalid="ignore"):
        auc = work(options, talk)
    if auc is not None:
        print_result(f"AUC Score: {auc:.4f}")


def test_by_folds(options, talk):
    """Cross-validate a file, or learn from one and test on another, with all that was asked for; the mean AUC."""
    from preprocess import find_classes, load, signs

    if options.files:
        name = options.files[0]
        x_names, y_names = names(options.x_name, "x_tr"), names(options.y_name, "y_tr")
        data = load(name, x_names, y_names, options.label, cost_names=cost_names(options, "c_tr"))
    else:
        name, data = "embedded sample (scikit-learn's digits, the eights thinned to 40 against the rest)", sample()
    classes = find_classes(data.y, options.positive)
    y = signs(data.y, classes)
    cost = None if options.cost is None else find_costs(name, data, y, options)
    talk.data(name, data, y, classes)
    work = two_files(data, y, classes, options) if len(options.files) == 2 else one_file(name, data, y, options, talk)
    folds = run_folds(work, options, talk)
    talk.summary(folds, options)
    rivals = print_comparison(work, folds, options, cost, talk) if options.compare else []
    decisions = None if cost is None else decide(work, folds, cost)
    if decisions:
        talk.decisions(decisions)
    if options.save:
        save_model(options.save, data, classes, work, folds, options)
        talk.say(f"the model, learned from all {len(y)} rows, is in {options.save}")
    if options.scores:
        told = (decisions.probability, decisions.acted["Bayes minimum risk"]) if decisions else ()
        write_scores(options.scores, in_file_order(work, folds), *told)
        talk.say(f"scores of rows not learned from are in {options.scores}")
    if options.plots:
        draw_figures(options.plots, work, folds, rivals, decisions)
        talk.say(f"figures are in {options.plots}")
    return sum(fold.auc for fold in folds) / len(folds)


def one_file(name, data, y, options, talk):
    """The folds of one file."""
    import numpy as np
    from sklearn.model_selection import StratifiedKFold

    from preprocess import InputError

    rarer = min(np.count_nonzero(y > 0), np.count_nonzero(y < 0))
    if rarer < 2:
        raise InputError(f"{name}: one class has a single row, expected at least 2 to cross-validate")
    if rarer < options.folds:
        talk.say(f"warning: {rarer} folds instead of {options.folds}, because one class has {rarer} rows only")
    folds = StratifiedKFold(min(options.folds, rarer), shuffle=True, random_state=options.seed)
    return Work(data.X, y, data.X, y, list(folds.split(np.zeros(len(y)), y)))


def two_files(data, y, classes, options):
    """One fold: all rows of the first file, and all of the second."""
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


def draw_figures(directory, work, folds, rivals, decisions):
    from figures import draw, draw_decisions

    def results(of_folds):
        return [(work.y_test[test], scores) for (_, test), scores in zip(work.splits, of_folds)]

    learners = {rival.name: results(rival.scores) for rival in rivals if not rival.trouble}
    draw(directory, results([fold.scores for fold in folds]), [fold.curve for fold in folds], learners)
    if decisions:
        draw_decisions(directory, work.y, decisions)


def cost_names(options, *usual):
    """The names of the costs of each row, if these are asked for."""
    return names(options.cost_name, *usual) if options.cost == () else ()


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
        raise argparse.ArgumentTypeError(
            f"{text!r} is not two numbers above 0, such as 100,1 (a file goes before --cost)"
        ) from None
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
        nargs="?",
        const=(),
        metavar="FN,FP",
        help="decide which rows to act on, given the cost of a missed positive and of a false alarm; without numbers, "
        "those of each row in the file, c_tr (rows x 2), or else negatives/positives,1; also for the learners of "
        "--compare that mind costs (default: no decisions)",
    )
    add("--cost-name", metavar="NAME", help="the variable of each row's costs; implies --cost (default: c_tr)")
    add("--scheduler", metavar="ADDRESS", help="run the folds on the Dask cluster at this address (default: here)")
    add(
        "--stream",
        action="store_true",
        help="learn in one pass from a file that need not fit into memory: x.npy y.npy, CSV or LIBSVM text; linear, "
        "without folds or budget, tested on rows held out of the stream (default: off)",
    )
    add("--save", type=Path, metavar="MODEL", help="learn from all rows and save the model as .npz (default: no model)")
    add(
        "--model",
        type=Path,
        metavar="MODEL",
        help="score a file with a saved model instead of learning (default: none)",
    )
    add(
        "--scores",
        type=Path,
        metavar="CSV",
        help="write the score of each row, by a model that has not learned from it, and its probability where there "
        "are probabilities: with --cost, or by a saved model (default: none)",
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
    if options.cost_name and options.cost is None:
        options.cost = ()
    check_together(parser, options, given)
    options.compare_seconds = options.compare_seconds or 60.0
    options.published = bool(given)
    options.started = time.monotonic() if started is None else started
    try:
        return run_safely(options)
    except KeyboardInterrupt:
        return fail("interrupted", 130)


def check_together(parser, options, given):
    """Refuse options that do not go together."""
    alone = {
        "model": (*given, "features", "save", "compare", "plots", "stream", "scheduler"),
        "stream": ("features", "passes", "compare", "plots", "cost", "scores", "scheduler"),
    }
    for option, others in alone.items():
        for other in others:
            if getattr(options, option) and getattr(options, other) not in (None, False):
                parser.error(f"--{other} does not go with --{option}")
    if options.model and len(options.files) != 1:
        parser.error(f"--model with {len(options.files)} files, expected 1 to score")
    if options.cost is not None and len(options.files) == 2:
        parser.error("--cost decides by folds of one file: --save a model of it, then --model for the other file")
    if options.cost and options.cost_name:
        parser.error("--cost-name reads the costs of each row, expected --cost without numbers beside it")


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
    from exp import main  # so that what is sent to other processes belongs to a module that they have too

    code = main(started=STARTED)
    if code == 130:
        os._exit(code)  # workers killed at a bad moment can leave a thread that waits for them forever
    sys.exit(code)
