"""Learning from files that need not fit into memory, in one pass, some rows at a time, and in parts on all cores.

The stream is cut into parts, as many as its size asks for, whoever learns from them. There are several rounds of
learning from some parts at a time, all from the same state, and of merging what they have learned into the next one.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from oam import PairLearner
from preprocess import InputError
from tenfold.calibration import log_odds
from tenfold.features import Versions
from tenfold.heads import cut_all, read_head, whole_files
from tenfold.lanes import auc_of_columns, greedy_choice
from tenfold.models import one_thread
from tenfold.parallel import joblib_runs_elsewhere, workers
from tenfold.parts import AT_A_TIME, Samples, Setup, State, learn_part
from tenfold.plan import MANY_ROWS
from tenfold.ranker import AUCRanker, PublishedRanker
from tenfold.readers import find_streams
from tenfold.readers.text import CannotCut
from tenfold.reliability import auc_and_error
from tenfold.stream_features import fit_features

LONG_STREAM = 200_000  # rows for which steps of many rows are still many
STEPS_OF_A_PART = 500  # that are behind each other, lest merging cost quality
MOST_PARTS = 256  # at a time
SHARED_BY = 8  # workers, and their divisors, that have the same number of parts each if there are more
ROUNDS = 8
FEW_PIECES = 4  # that are learned from at the same time rather than in rounds, where there are no more
STREAM_STEP_SIZES = (200.0, 2_500.0, 30_000.0, 300_000.0)
LANDMARK_ROWS = 1_000_000  # of each class that similarities to landmarks are learned from
MOST_TESTED = 20_000  # rows of a class that are kept of those held out
TESTED_CELLS = 4_000_000  # and their cells
SPARE = 4  # times as many of them that a part sends as it has to, for parts differ
DRAW = 128  # rows of a buffer that a step is paired with, as of `OnlineAUC`
PATIENCE = 3600  # seconds for a part on a cluster


@dataclass
class StreamResult:
    """What came of a stream: the ranker, its AUC on rows held out, the standard error, and what these rest on.

    ``to_choose`` and ``to_test`` are the numbers of positives and negatives among the rows by which lanes were chosen,
    out of ``n_choices``, and by which the AUC was measured; ``n_first`` is the number of rows that scaling is by.
    ``features`` names the sets of features; ``n_parts`` were learned from at a time, in ``n_rounds``.
    """

    ranker: "PublishedRanker | AUCRanker"
    auc: float
    error: float
    n_rows: int
    n_learned: int
    n_first: int
    n_choices: int
    to_choose: list
    to_test: list
    features: list
    n_parts: int
    n_rounds: int


def learn_stream(
    names,
    *,
    positive=None,
    seed=0,
    features="auto",
    settings=None,
    jobs=1,
    scheduler=None,
    report=lambda n_rows, share: None,
    say=lambda notes: None,
    **wanted,
):
    """Learn from files of any size in one pass; the AUC is that on rows held out of the stream.

    The names are those of files, of directories, or patterns. ``settings`` are parameters of `OnlineAUC`; unless C is
    among them, it is chosen by other rows that are held out. ``jobs`` parts are learned from at a time, here or on the
    Dask cluster of that ``scheduler``. ``report`` is called with the number of rows and the share of the files read so
    far, ``say`` with what there is to say about the files. The other keyword arguments are as of `load`.
    """
    groups, notes = find_streams(names)
    if scheduler:  # whose workers are in other directories
        groups = [tuple(Path(path).resolve() for path in paths) for paths in groups]
    said = set()

    def say_once(notes):
        say([note for note in dict.fromkeys(notes) if note not in said])
        said.update(notes)

    say_once(notes)

    def learn(can_be_cut):
        head = read_head(whole_files(groups, can_be_cut), positive, seed, **wanted)
        return _learn(head, seed, features, settings or {}, jobs, scheduler, report, say_once, wanted)

    try:
        return learn(can_be_cut=True)
    except CannotCut:  # once more, each file from its beginning
        return learn(can_be_cut=False)


def _learn(head, seed, features, settings, jobs, scheduler, report, say, wanted):
    """What came of the stream with this head, or CannotCut."""
    say(head.notes)
    if len(set(head.y)) == 0:
        raise InputError("the first rows are too few, expected some to learn from")
    is_choice = "C" not in settings
    function = fit_features(head, features, settings, seed)
    is_linear = function.feature_sets.are_scaled_columns
    shares = {sign: 1.0 if is_linear else min(LANDMARK_ROWS / n, 1.0) for sign, n in head.counts.items()}
    expected = {sign: (1 - head.held_out[sign]) * shares[sign] * n for sign, n in head.counts.items()}
    block, rounds = plan_parts(head.ranges, sum(expected.values()))
    n_at_a_time = max(map(len, rounds))
    width = function.preprocessor.n_features_out_
    size = int(min(MOST_TESTED, max(TESTED_CELLS / width, 100)))
    setup = Setup(head.like, function, head.held_out, is_choice, shares, seed, wanted)
    learners = make_learners(head, function, expected, block, n_at_a_time, settings, seed)
    head.data = None  # it has done its work, and is large
    state = State(learners, Samples(size), Samples(size))
    progress = Progress(head.ranges, report)
    here = (jobs == 1 or n_at_a_time == 1) and not scheduler and not joblib_runs_elsewhere()
    with workers(jobs, scheduler) as at_work:
        part_size = min(size, SPARE * size // sum(map(len, rounds)) + 100)
        for number, parts in enumerate(rounds):
            arguments = setup, state.learners, part_size, number, parts
            said = set()

            def watch(done, parts=parts, said=said):
                for i in done.keys() - said:
                    said.add(i)
                    if done[i] is not None:
                        progress.done(done[i].n_rows, parts[i])
                        say(done[i].notes)

            done = {}
            if here:
                for i in range(len(parts)):
                    done[i] = learn_part(i, *arguments, progress)
                    watch(done)
            else:
                done = at_work.run(range(len(parts)), learn_part, *arguments, watch=watch)
            if None in done.values():
                state = None
                break
            rng = np.random.RandomState([seed, 3, number])
            state = state.merge([done[i] for i in range(len(parts))], size, rng)
    if state is None:
        raise CannotCut
    with one_thread(), np.errstate(invalid="ignore"):
        return _result(head, state, function, is_choice, settings, seed, (n_at_a_time, len(rounds)))


def plan_parts(ranges, n_rows):
    """Rows to a step, and for each round its parts, lists of pieces; all follow from the stream, not from who learns.

    A round takes pieces from all over the stream.
    """
    block = 512 if n_rows > LONG_STREAM else 64
    n_parts = int(min(max(n_rows / block // STEPS_OF_A_PART, 1), MOST_PARTS))
    if n_parts == 1:
        return block, [[ranges]]
    n_parts -= n_parts % SHARED_BY if n_parts > SHARED_BY else 0
    pieces = cut_all(ranges, n_parts * ROUNDS)
    n_parts = min(n_parts, len(pieces), max(len(pieces) // FEW_PIECES, FEW_PIECES))
    n_rounds = min(max(len(pieces) // n_parts, 1), ROUNDS)
    rounds = [pieces[i::n_rounds] for i in range(n_rounds)]
    return block, [[part for part in _split(some, n_parts) if part] for some in rounds]


def _split(pieces, n):
    """``n`` lists of pieces, in order, of about the same size."""
    sizes = np.array([piece.size for piece in pieces])
    of_piece = (np.cumsum(sizes) - sizes / 2) * n // max(sizes.sum(), 1)
    return [[piece for piece, k in zip(pieces, of_piece) if k == number] for number in range(n)]


def make_learners(head, function, expected, block, n_parts, settings, seed):
    """A learner for each set of features, with a lane for the C asked for, or for each of several step sizes.

    As many parts as are learned from at a time make a mean of their steps, so that these may be larger.
    """
    settings = {"buffer": 500, "update": "gradient", **settings}
    C = settings.pop("C", None)
    rng = np.random.RandomState([seed, 4])
    versions = Versions(
        function.feature_sets.columns, function.scale(head.data.X[:1]), function.feature_sets.landmarks_
    )
    learners = {}
    for name, feature_set in function.feature_sets.sets.items():
        F = feature_set.features(versions)
        values = [C] if C is not None else np.array(STREAM_STEP_SIZES) * n_parts**0.5 / (expected[-1] * expected[1])
        how = settings["buffer"], settings["update"], block
        learners[name] = PairLearner(F.shape[1], values, *how, F.dtype, rng, DRAW)
    return learners


class Progress:
    """Says how far the stream has been read: by parts that are done, and by the one that is learned from here."""

    def __init__(self, ranges, report):
        self.report, self.total = report, max(sum(piece.size for piece in ranges), 1)
        self.n_rows, self.size, self.last = 0, 0, 0

    def __call__(self, n_rows, size):
        """So many rows and bytes of the part at hand have been read."""
        n_rows, self.last = self.n_rows + n_rows, self.n_rows + n_rows
        self.report(n_rows, min((self.size + size) / self.total, 1))

    def done(self, n_rows, pieces):
        """A part of so many rows, these pieces, has been learned from."""
        self.n_rows, self.size = self.n_rows + n_rows, self.size + sum(piece.size for piece in pieces)
        if self.n_rows > self.last:
            self(0, 0)


def _result(head, state, function, is_choice, settings, seed, parts):
    """The choice among the lanes by rows held out for that, and the AUC on others."""
    if 0 in state.to_test.sizes() or (is_choice and 0 in state.to_choose.sizes()):
        raise InputError(f"the rows held out of {state.n_rows} lack a class, expected both")
    n_lanes = sum(len(learner.C) for learner in state.learners.values())
    if settings:
        (learner,), (feature_set,) = state.learners.values(), function.feature_sets.sets.values()
        lane = 0
        if is_choice:
            Z, y = state.to_choose.rows()
            lane = int(auc_of_columns(lane_scores(function, state.learners, Z)[0], y).argmax())
        C = settings.get("C", float(learner.C[lane] * feature_set.scale_**2))
        ranker = PublishedRanker(**{**settings, "C": C}, random_state=seed)
        w = learner.W_mean[:, lane]
        middle = np.mean([(B.rows @ w).mean() for B in (learner.P, learner.N) if B.seen])
        function.set_weights(function.feature_sets.coefficients([w]), -middle)
    else:
        is_linear = function.feature_sets.are_scaled_columns
        ranker = AUCRanker("linear" if is_linear else "auto", random_state=seed)
        choose_lanes(function, state.learners, *state.to_choose.rows(), head.counts)
    ranker.classes_, ranker.n_features_in_ = head.like.y, head.like.X.shape[1]
    ranker.data_, ranker.score_function_ = head.like, function
    Z, y = state.to_test.rows()
    auc, error = auc_and_error(y, function.score_scaled(Z))
    sizes = state.to_choose.sizes(), state.to_test.sizes()
    counts = state.n_rows, state.n_learned, len(head.y), n_lanes
    return StreamResult(ranker, auc, error, *counts, *sizes, list(function.feature_sets.sets), *parts)


def lane_scores(function, learners, Z):
    """The scores of scaled rows in each lane, for each set of features."""
    feature_sets, scores = function.feature_sets, {name: [] for name in learners}
    for i in range(0, Z.shape[0], AT_A_TIME):
        versions = Versions(feature_sets.columns, Z[i : i + AT_A_TIME], feature_sets.landmarks_)
        for name, learner in learners.items():
            scores[name].append(feature_sets.sets[name].features(versions) @ learner.W_mean)
    return [np.concatenate(parts) for parts in scores.values()]


def choose_lanes(function, learners, Z, y, counts):
    """Give the function the weights of the lanes that together rank these rows best, or of the best if they are few.

    Each row stands for as many as there are of its class in the stream, and so gives probabilities.
    """
    scores = np.stack(lane_scores(function, learners, Z), axis=1)
    centre, deviation = scores.mean(axis=0, dtype=np.float64), np.maximum(scores.std(axis=0), 1e-12)
    scores = (scores - centre) / deviation
    n_pos = np.count_nonzero(y > 0)
    if min(n_pos, len(y) - n_pos) >= MANY_ROWS:
        shares = greedy_choice(scores, y)
    else:
        aucs = auc_of_columns(scores.reshape(len(y), -1), y)
        shares = np.zeros(aucs.shape)
        shares[aucs.argmax()] = 1
        shares = shares.reshape(scores.shape[1:])
    weights = [learner.W_mean @ (share / scale) for learner, share, scale in zip(learners.values(), shares, deviation)]
    function.set_weights(function.feature_sets.coefficients(weights), -float((shares * centre / deviation).sum()))
    weight = np.where(y > 0, counts[1] / n_pos, counts[-1] / (len(y) - n_pos))
    function.calibrate(*log_odds((scores * shares).sum(axis=(1, 2)), y, weight))


def run_stream(options, terminal, settings, print_auc):
    """Learn from files of any size in one pass, and print the AUC on rows held out of the stream."""
    what = {
        name: getattr(options, name) for name in ("label", "sep", "encoding", "positive", "seed", "jobs", "scheduler")
    }

    def say(notes):
        if notes:
            terminal.clear()
        terminal.notes(notes)

    how = {"features": options.features or "auto", "settings": settings, "report": terminal.streaming, "say": say}
    try:
        result = learn_stream(options.files, **how, **what)
    finally:
        terminal.clear()
    terminal.stream(result)
    print_auc(result.auc)
    if options.save:
        result.ranker.save(options.save)
        terminal.say(f"the model, learned from {result.n_learned} rows, is in {options.save}")
