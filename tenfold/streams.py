"""Learning from files that need not fit into memory, in one pass, some rows at a time."""

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import roc_auc_score

from oam import FEW_COLUMNS, OnlineAUC, Reservoir
from preprocess import InputError, Preprocessor, find_classes, signs
from tenfold.features import LinearFeatures, Versions, plain_feature_sets
from tenfold.models import ScoreFunction
from tenfold.ranker import PublishedRanker
from tenfold.readers import stream

HELD_OUT = 0.1  # share of a stream that is not learned from
MOST_HELD_OUT = 20_000  # rows of a class that are kept of it
HELD_OUT_CELLS = 4_000_000  # and their cells
LONG_STREAM = 200_000  # rows for which steps of many rows are still many
STREAM_STEP_SIZES = (200.0, 2_500.0, 30_000.0, 300_000.0)


class HeldOut:
    """A uniform sample of the rows held out of a stream, of each class apart: an AUC minds no class's size."""

    def __init__(self, size, rng):
        self.reservoirs = {1: Reservoir(size), -1: Reservoir(size)}
        self.rng = rng

    def add(self, Z, y):
        uniform = self.rng.random_sample(len(y))
        for sign, reservoir in self.reservoirs.items():
            (which,) = np.nonzero(y == sign)
            if len(which):
                reservoir.add(Z, None, which, uniform)

    def sizes(self):
        return [len(reservoir) for reservoir in self.reservoirs.values()]

    def auc(self, learner):
        scores = [learner.decision_function(reservoir.rows) for reservoir in self.reservoirs.values()]
        return roc_auc_score(np.repeat([1, -1], self.sizes()), np.concatenate(scores))


@dataclass
class StreamResult:
    """What came of a stream: the ranker, its AUC on rows held out, and what this rests on.

    ``to_choose`` and ``to_test`` are the numbers of positives and negatives among the rows by which C was chosen, out
    of ``n_choices`` values, and by which the AUC was measured; ``n_first`` is the number of rows that scaling is by.
    """

    ranker: PublishedRanker
    auc: float
    n_rows: int
    n_learned: int
    n_first: int
    n_choices: int
    to_choose: list
    to_test: list


def learn_stream(
    paths,
    *,
    positive=None,
    seed=0,
    settings=None,
    report=lambda n_rows, share: None,
    say=lambda notes: None,
    **wanted,
):
    """Learn from files of any size in one pass; the AUC is that on rows held out of the stream.

    ``settings`` are parameters of `OnlineAUC`; unless C is among them, it is chosen by other rows that are held out.
    ``report`` is called with the number of rows and the share of the files read so far, ``say`` with what there is to
    say about the files. The other keyword arguments are as of `load`.
    """
    rng = np.random.RandomState(seed)
    settings = settings or {}
    ranker, n_rows, n_learned = None, 0, 0
    for data, share in stream(paths, **wanted):
        say(data.notes)
        out = rng.random_sample(data.X.shape[0]) < HELD_OUT
        if ranker is None:
            classes = find_classes(data.y, positive)
            y = signs(data.y, classes)
            if len(set(y[~out])) < 2:
                raise InputError(f"{paths[0]}: the first rows are too few, or of one class, expected both classes")
            ranker = PublishedRanker(**settings, random_state=seed)
            ranker.classes_, ranker.n_features_in_ = classes, data.X.shape[1]
            ranker.data_ = data.without_rows(classes)
            many = data.X.shape[1] > FEW_COLUMNS  # of fewer, sparse rows are quicker to learn from when dense
            ranker.score_function_ = ScoreFunction(Preprocessor().fit(data.X[~out]), plain_feature_sets(), many)
            scale = ranker.score_function_.scale
            Z = scale(data.X[~out])
            learners = make_learners(Z, y[~out], len(y) / share, settings, rng)
            size = int(min(MOST_HELD_OUT, max(HELD_OUT_CELLS / Z.shape[1], 100)))
            to_choose, to_test, n_first = HeldOut(size, rng), HeldOut(size, rng), Z.shape[0]
        y, Z = signs(data.y, classes), scale(data.X)
        choose = out & (rng.random_sample(len(y)) < 0.5) & (len(learners) > 1)
        test = out & ~choose
        to_choose.add(Z[choose], y[choose])
        to_test.add(Z[test], y[test])
        if not out.all():
            for learner in learners:
                learner.partial_fit(Z[~out], y[~out], classes=[-1, 1])
        n_rows, n_learned = n_rows + len(y), n_learned + np.count_nonzero(~out)
        report(n_rows, share)
    if ranker is None:
        raise InputError(f"{paths[0]} has no rows, expected some")
    if 0 in to_test.sizes() or (len(learners) > 1 and 0 in to_choose.sizes()):
        raise InputError(f"a class is not among the {n_rows - n_learned} rows held out of {n_rows}, expected both")
    best = max(learners, key=to_choose.auc) if len(learners) > 1 else learners[0]
    ranker.set_params(C=best.C).take_over(best)
    sizes = to_choose.sizes(), to_test.sizes()
    return StreamResult(ranker, to_test.auc(best), n_rows, n_learned, n_first, len(learners), *sizes)


def make_learners(Z, y, n_rows, settings, rng):
    """A learner with the C that was asked for, or several, whose steps over so many rows like these differ in size."""
    settings = dict(settings)
    if "C" in settings:
        values = [settings.pop("C")]
    else:
        share = np.mean(y > 0)
        scale = LinearFeatures("scaled").fit(Versions(None, Z)).scale_
        values = [size * float(scale) ** 2 / (share * (1 - share) * n_rows**2) for size in STREAM_STEP_SIZES]
    block = 512 if n_rows > LONG_STREAM else 64
    return [OnlineAUC(C, block=block, random_state=rng.randint(2**31 - 1), **settings) for C in values]


def run_stream(options, terminal, settings):
    """Learn from files of any size in one pass, and yield the AUC on rows held out of the stream."""
    what = {name: getattr(options, name) for name in ("label", "sep", "encoding", "positive", "seed")}

    def say(notes):
        if notes:
            terminal.clear()
        terminal.notes(notes)

    try:
        result = learn_stream(options.files, settings=settings, report=terminal.streaming, say=say, **what)
    finally:
        terminal.clear()
    terminal.stream(result)
    yield result.auc
    if options.save:
        result.ranker.save(options.save)
        terminal.say(f"the model, learned from {result.n_learned} rows, is in {options.save}")
