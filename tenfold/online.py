"""Linear scores learned online from every row of files that need not fit into memory, in one pass.

Several parts are learned from at a time, all from the same learner, and merged into the next one, in some rounds. A
share of each class is held out: half of it chooses C, the other half gives the AUC.
"""

import copy
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from oam import FEW_COLUMNS, PairLearner, Reservoir, merge_reservoirs
from preprocess import InputError, Preprocessor, find_classes, show, signs
from tenfold.calibration import log_odds
from tenfold.columns import TableEncoder
from tenfold.features.linear import Linear
from tenfold.metrics import auc_and_error, auc_of_columns
from tenfold.models import ScoreFunction, one_thread
from tenfold.parallel import workers
from tenfold.pieces import find_pieces, read_places, refuse_labels
from tenfold.ranker import AUCRanker, PublishedRanker
from tenfold.readers.base import Data
from tenfold.readers.text import CannotCut
from tenfold.streams import Kept, cells_per_row, first_rows

LONG_STREAM = 200_000  # rows for which steps of many rows are still many
STEPS_OF_A_PART = 500  # one after the other, so that merging does not cost quality
MOST_PARTS = 32  # at a time
ROUNDS = 8
STEP_SIZES = (200.0, 2_500.0, 30_000.0, 100_000.0, 300_000.0)
HELD_OUT = 0.1  # share of each class that is not learned from,
ENOUGH, MOST_HELD_OUT = 200, 0.3  # or as much as it takes to have so many rows, up to this share
MOST_TESTED, TESTED_CELLS = 20_000, 4_000_000  # rows of a class that are kept of those held out, and their cells
BUFFER, DRAW = 500, 128  # rows of each class that are kept, and that a step is paired with, as of `OnlineAUC`;
SPARSE_BUFFER, SPARSE_DRAW = 50_000, 8_192  # the same of sparse rows, whose rare columns few rows would not have


@dataclass(frozen=True)
class Scaling:
    """How raw rows become what is learned from: clean, scaled columns, which are sparse or not, times their scale."""

    preprocessor: Preprocessor
    sparse: bool
    linear: Linear
    encoder: "TableEncoder | None" = None

    @classmethod
    def fit(cls, X, settings, y=None, categories=None):
        """Learned from first rows; ``settings`` with a C leave the columns as they are."""
        encoder = TableEncoder(categories) if categories else None
        X = encoder.fit_transform(X, y, np.full(len(y), -1)) if categories else X
        sparse = X.shape[1] > FEW_COLUMNS and sp.issparse(X)  # of fewer, rows are quicker to learn from when dense
        scaling = cls(Preprocessor().fit(X), sparse, Linear(each=not (settings or sparse)), encoder)
        scaling.linear.fit_scale(scaling._scaled(X))
        if "C" in settings:  # the published algorithm as it stands
            scaling.linear.scale_ = np.float32(1)
        return scaling

    def rows(self, X):
        return self._scaled(X if self.encoder is None else self.encoder.transform(X))

    def _scaled(self, X):
        Z = self.preprocessor.transform(X)
        return Z.toarray() if sp.issparse(Z) and not self.sparse else Z

    def features(self, X):
        return self.linear.times_scale(self.rows(X))


@dataclass(frozen=True)
class Setup:
    """What is the same for all parts: ``held_out`` has the share of each sign that is not learned from."""

    like: Data
    classes: np.ndarray
    scaling: Scaling
    held_out: dict
    seed: int
    wanted: dict


@dataclass
class Online:
    """What came of the stream: the ranker, its AUC on rows held out, the standard error, and what these rest on."""

    ranker: "PublishedRanker | AUCRanker"
    auc: float
    error: float
    n_rows: int
    n_learned: int
    n_choices: int
    to_choose: list
    to_test: list


def learn_online(names, workers, *, positive=None, seed=0, settings=None, report=lambda n_rows, share: None, **wanted):
    """Learn from all rows of these files, directories or patterns; ``settings`` are parameters of `OnlineAUC`."""
    how = workers, positive, seed, settings or {}, report, wanted
    try:
        return _learn(*find_pieces(names), *how)
    except CannotCut:  # once more, each file from its beginning
        return _learn(*find_pieces(names, can_be_cut=False), *how)


def _learn(pieces, notes, workers, positive, seed, settings, report, wanted):
    places = read_places(pieces, wanted)
    like = places[0][1]
    classes, counts = describe(pieces, places, positive, wanted)
    held_out = {sign: min(max(ENOUGH / n, HELD_OUT), MOST_HELD_OUT) for sign, n in counts.items()}
    learned = [~held(piece.random(seed), signs(data.y, classes), held_out)[0] for piece, data, _ in places]
    X = [data.without_new_values()[rows] for rows, (_, data, _) in zip(learned, places)]
    X = sp.vstack(X, format="csr") if sp.issparse(X[0]) else np.concatenate(X)
    y = np.concatenate([signs(data.y, classes)[rows] for rows, (_, data, _) in zip(learned, places)])
    setup = Setup(
        like.without_rows(classes), classes, Scaling.fit(X, settings, y, like.categories), held_out, seed, wanted
    )
    block, rounds = plan_parts(pieces, sum(counts.values()))
    learner = make_learner(setup.scaling, X, counts, held_out, block, max(map(len, rounds)), settings, seed)
    size = int(np.clip(TESTED_CELLS / max(cells_per_row(X), 1), 100, MOST_TESTED))
    kept, n_rows, n_learned = {1: Kept(), -1: Kept()}, 0, 0
    total, done = max(sum(piece.size for piece in pieces), 1), 0
    for number, parts in enumerate(rounds):

        def watch(results, before=(n_rows, done), parts=parts):
            read = sum(part.n_rows for part in results.values() if part is not None)
            report(before[0] + read, (before[1] + sum(piece.size for i in results for piece in parts[i])) / total)

        results = workers.run(range(len(parts)), learn_part, setup, learner, size, number, parts, watch=watch)
        if None in results.values():
            raise CannotCut
        parts_done = [results[i] for i in range(len(parts))]
        learner = merge(learner, parts_done, np.random.RandomState([seed, 3, number]))
        for part in parts_done:
            n_rows, n_learned, notes = n_rows + part.n_rows, n_learned + part.n_learned, notes + part.notes
            for sign, of_sign in part.kept.items():
                for item in zip(of_sign.numbers, of_sign.places, of_sign.rows):
                    kept[sign].add(*item)
        for of_sign in kept.values():
            of_sign.smallest(2 * size)
        done += sum(piece.size for part in parts for piece in part)
    return _result(setup, learner, kept, settings, counts, n_rows, n_learned), list(dict.fromkeys(like.notes + notes))


def describe(pieces, places, positive, wanted):
    """The two classes, and about how many rows there are of each sign."""
    seen = set()
    for piece, data, _ in places:
        seen |= set(np.unique(data.y).tolist())
        if len(seen) > 2:
            refuse_labels(piece.paths[-1], seen)
    labels = np.concatenate([data.y for _, data, _ in places])
    known = np.unique(labels)
    if len(known) == 1:  # in a stream that is sorted, the first rows may all have one label
        known = np.append(known, find_other_label(pieces, places[0][1], known[0], wanted))
    weight = [max(np.count_nonzero(labels == label), 1) for label in known]
    classes = find_classes(np.repeat(known, np.ceil(1000 * np.array(weight) / max(weight)).astype(int)), positive)
    y = signs(labels, classes)
    read = sum(piece.size * share for piece, _, share in places)
    every = sum(piece.size for piece in pieces) / max(read, 1)  # for how many rows each of those that were read stands
    counts = {sign: max(float(np.count_nonzero(y == sign) * every), 1.0) for sign in (1, -1)}
    return classes, counts


def held(rng, y, shares):
    """Which of the next rows of a piece are held out, and the random numbers that say so."""
    numbers = rng.random_sample(len(y))
    return numbers < np.where(y > 0, shares[1], shares[-1]), numbers


def find_other_label(pieces, like, label, wanted):
    n = 0
    for piece in pieces:
        for data, _ in piece.read(like=like, **wanted):
            others = data.y[data.y != label]
            if len(others):
                return others[0]
            n += len(data.y)
    raise InputError(f"all {n} labels of the stream are {show(label)}, expected two classes")


def plan_parts(pieces, n_rows):
    """Rows to a step, and for each round its parts, lists of pieces; all follow from the stream, not from who learns.

    A round takes pieces from all over the stream.
    """
    block = 512 if n_rows > LONG_STREAM else 64
    n_rounds = ROUNDS if len(pieces) >= 2 * ROUNDS else 1
    n_parts = int(np.clip(n_rows / n_rounds / block / STEPS_OF_A_PART, 1, MOST_PARTS))
    rounds = [pieces[i::n_rounds] for i in range(n_rounds)]
    return block, [[list(part) for part in _split(some, min(n_parts, len(some)))] for some in rounds]


def _split(pieces, n):
    """``n`` lists of pieces, in order, as many in each."""
    at = [len(pieces) * i // n for i in range(n + 1)]
    return [pieces[a:b] for a, b in pairwise(at)]


def make_learner(scaling, X, counts, held_out, block, n_parts, settings, seed):
    """A learner with a lane for the C asked for, or for each of several step sizes.

    As many parts as are learned from at a time make a mean of their steps, so that these may be larger.
    """
    buffer, draw = (SPARSE_BUFFER, SPARSE_DRAW) if scaling.sparse and not settings else (BUFFER, DRAW)
    settings = {"buffer": buffer, "update": "gradient", **settings}
    n_pos, n_neg = ((1 - held_out[sign]) * counts[sign] for sign in (1, -1))
    C = settings.get("C", np.array(STEP_SIZES) * n_parts**0.5 / (n_pos * n_neg))
    F = scaling.features(X[:1])
    rng = np.random.RandomState([seed, 4])
    return PairLearner(F.shape[1], C, settings["buffer"], settings["update"], block, F.dtype, rng, draw)


@dataclass
class Part:
    """What has been learned from a part, and the rows of each sign that were held out."""

    learner: PairLearner
    kept: dict
    n_rows: int = 0
    n_learned: int = 0
    notes: list = field(default_factory=list)


def learn_part(number, setup, learner, size, key, parts):
    """Go on with this learner on the pieces of part ``number`` of a round: the `Part`, or None if they cannot be cut.

    At most ``size`` rows of a class are kept for the choice, and as many for the test.
    """
    rng = np.random.RandomState([setup.seed, 1, key, number])
    part = Part(copy.deepcopy(learner), {1: Kept(), -1: Kept()})
    part.learner.rng = rng
    own = {1: Reservoir(learner.P.size), -1: Reservoir(learner.P.size)}
    try:
        with one_thread(), np.errstate(invalid="ignore"):
            for piece in parts[number]:
                _learn_piece(piece, setup, part, own, size, rng)
    except CannotCut:
        return None
    part.learner.end()
    part.learner.P, part.learner.N = own[1], own[-1]
    return part


def _learn_piece(piece, setup, part, own, size, rng):
    numbers_of = piece.random(setup.seed)
    for data, _ in piece.read(like=setup.like, **setup.wanted):
        try:
            y = signs(data.y, setup.classes)
        except InputError as error:
            raise InputError(f"{piece.paths[-1]}: {error}") from None
        X = data.without_new_values()
        out, numbers = held(numbers_of, y, setup.held_out)
        for sign, kept in part.kept.items():
            which = np.flatnonzero(out & (y == sign))
            kept.add(numbers[which], np.full((len(which), 2), piece.number), setup.scaling.features(X[which]))
            if kept.count > 4 * size:
                kept.smallest(2 * size)
        F, y = setup.scaling.features(X[~out]), y[~out]
        uniform = rng.random_sample(len(y))
        for sign, reservoir in own.items():
            which = np.flatnonzero(y == sign)
            reservoir.add(F, None, which, reservoir.slots(uniform[which]))
        part.learner.learn(F, y)
        part.n_rows, part.n_learned = part.n_rows + len(data.y), part.n_learned + len(y)
        part.notes += data.notes


def merge(base, parts, rng):
    """The learner after these parts, which have all gone on from ``base``."""
    learners = [part.learner for part in parts if part.n_learned]
    if not learners:
        return base
    first, *others = learners
    first.rng = rng
    merged = first.merge(others)
    for B in "PN":
        both = [getattr(base, B), getattr(merged, B)]
        setattr(merged, B, merge_reservoirs(both, getattr(base, B).size, rng))
    return merged


def _result(setup, learner, kept, settings, counts, n_rows, n_learned):
    """The lane that ranks one half of the rows held out best, and its AUC on the other half."""
    is_choice = len(learner.C) > 1
    halves = [[], []]
    for sign, of_sign in kept.items():
        if of_sign.count < 1 + is_choice:
            raise InputError(f"the rows held out of {n_rows} lack a class, expected both")
        numbers, _, F = of_sign.arrays()
        order = np.argsort(numbers)
        for half, rows in zip(halves, (order[::2], order[1::2]) if is_choice else (order, order)):
            half.append((F[rows], np.full(len(rows), sign)))
    (F_choose, y_choose), (F_test, y_test) = (
        [(sp.vstack(A, format="csr") if sp.issparse(A[0]) else np.concatenate(A)) for A in zip(*half)]
        for half in halves
    )
    scaling, lane = setup.scaling, 0
    if is_choice:
        lane = int(auc_of_columns(F_choose @ learner.W_mean, y_choose).argmax())
    w = learner.W_mean[:, lane]
    middle = np.mean([(B.rows @ w).mean() for B in (learner.P, learner.N) if B.seen])
    of_linear = scaling.linear, w * scaling.linear.scale_
    function = ScoreFunction(scaling.preprocessor, scaling.sparse, None, [of_linear], -middle, scaling.encoder)
    if settings:
        C = settings.get("C", float(learner.C[lane] * scaling.linear.scale_**2))
        ranker = PublishedRanker(**{**settings, "C": C}, random_state=setup.seed)
    else:
        ranker = AUCRanker("linear", random_state=setup.seed)
        weight = np.where(y_choose > 0, counts[1] / (y_choose > 0).sum(), counts[-1] / (y_choose < 0).sum())
        function.calibrate(*log_odds(F_choose @ w - middle, y_choose, weight))
    ranker.classes_, ranker.n_features_in_ = setup.classes, setup.like.X.shape[1]
    ranker.data_, ranker.score_function_ = setup.like, function
    auc, error = auc_and_error(y_test, F_test @ w)
    sizes = [[int((y == sign).sum()) for sign in (1, -1)] for y in (y_choose, y_test)]
    return Online(ranker, auc, error, n_rows, n_learned, len(learner.C), *sizes)


def learns_online(options):
    """Whether a stream is learned from row by row: if asked to, or if rows are sparse and nothing needs folds."""
    given = (options.C, options.buffer, options.update, options.features == "linear" or None)
    of_folds = (
        options.compare,
        options.plots,
        options.explain,
        options.page,
        options.json,
        options.scores,
        options.effort,
    )
    of_folds = (*of_folds, options.sample_rows, None if options.cost is None else True)
    if any(value is not None for value in given):
        if any(of_folds):
            raise InputError(
                "--stream learns online here: expected no option that needs folds, or no --features linear"
            )
        return True
    if any(of_folds) or options.features:
        return False
    pieces, _ = find_pieces(options.files, can_be_cut=False)
    like = first_rows(pieces, {"label": options.label, "sep": options.sep, "encoding": options.encoding})
    return sp.issparse(like.X) and like.X.shape[1] > FEW_COLUMNS


def run_online(options, terminal, settings, print_auc):
    """Learn online from every row of a stream, and print the AUC on rows held out of it."""
    names = "label", "sep", "encoding", "positive", "seed"
    how = {name: getattr(options, name) for name in names}
    with workers(options.jobs, options.scheduler, warn=terminal.warn) as at_work:
        result, notes = learn_online(options.files, at_work, settings=settings, report=terminal.streaming, **how)
    terminal.clear()
    terminal.notes(notes)
    terminal.stream(result)
    if options.save:
        result.ranker.save(options.save)
        terminal.say(f"the model, learned from {result.n_learned} rows, is in {options.save}")
    print_auc(result.auc)
