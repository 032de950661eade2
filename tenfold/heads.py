"""What can be known of a stream before it is learned from: by its first rows, and by rows in places further on."""

from dataclasses import dataclass, replace
from itertools import islice, pairwise

import numpy as np
import scipy.sparse as sp

from preprocess import InputError, find_classes, listing, show, signs
from tenfold.readers import length, stream
from tenfold.readers.base import Data

MOST_HEADS = 16  # places
HEAD_CHUNKS = 2  # how much is read in all of them, in units of what a stream reads at a time
HEAD_CELLS = 20_000_000  # and the cells of all of them, if 1,000 rows of one are many
LEAST_BYTES = 2**20  # of a range of a file

HELD_OUT = 0.1  # share of each class that is not learned from
MOST_HELD_OUT = 0.3  # if it takes as much to have
ENOUGH = 200  # rows of it


@dataclass(frozen=True)
class Piece:
    """A range of a file, or of files that belong together, which has this number in the stream; ``stop`` may be None.

    ``size`` is about how many bytes there are in it.
    """

    paths: tuple
    number: int
    start: int
    stop: "int | None"
    size: float

    def cut(self, n):
        """The same as ``n`` pieces, or fewer if it cannot be cut into so many."""
        if self.stop is None or self.stop <= self.start:
            return [self]
        n = max(min(n, self.stop - self.start), 1)
        at = [self.start + (self.stop - self.start) * i // n for i in range(n + 1)]
        return [replace(self, start=a, stop=b, size=self.size / n) for a, b in pairwise(at)]

    def read(self, **wanted):
        """Yield a `Data` of some rows at a time, and the share of the piece read so far."""
        return stream(self.paths, self.start, self.stop, **wanted)

    def random(self, seed):
        """The generator that decides which of the rows are held out."""
        return np.random.RandomState([seed, self.number, self.start % 2**32, self.start // 2**32])


def whole_files(groups, can_be_cut=True):
    """A `Piece` for each group of files that belong together."""
    pieces = []
    for number, paths in enumerate(groups):
        stop = length(paths) if can_be_cut else None
        pieces.append(Piece(tuple(paths), number, 0, stop, sum(path.stat().st_size for path in paths)))
    return pieces


def cut_all(pieces, n, least=0):
    """Pieces of the stream, in order, about as many as asked for, each of so many bytes at ``least``."""
    total = sum(piece.size for piece in pieces)
    size = max(total / n, least, 1)
    return [part for piece in pieces for part in piece.cut(max(round(piece.size / size), 1))]


@dataclass
class Head:
    """What the first rows say.

    ``data`` is a `Data` of rows that are not held out, of several places in the stream; ``like`` is it without rows,
    and with the two classes for labels. ``y`` has the signs of its rows. ``n_rows`` is about how many rows there are,
    ``counts`` how many of the sign -1 and 1, and ``held_out`` the share of them to hold out.
    """

    data: Data
    like: Data
    y: np.ndarray
    ranges: list
    n_rows: float
    counts: dict
    held_out: dict
    notes: list


def read_head(pieces, positive, seed, **wanted):
    """The `Head` of a stream of these pieces."""
    ranges = cut_all(pieces, MOST_HEADS, LEAST_BYTES)
    n_heads = min(len(ranges), MOST_HEADS)
    wanted = {**wanted, "at_a_time": min(HEAD_CHUNKS / n_heads, 1)}
    places = _evenly(ranges, n_heads)
    heads, like = [], None
    for piece in places:
        for data, share in islice(piece.read(**wanted, like=like), 1):
            heads.append((piece, data, share))
            like = like or data
        if like is not None and sum(_n_cells(data) for _, data, _ in heads) > HEAD_CELLS:
            break
    if like is None:
        raise InputError(f"{ranges[0].paths[0]} has no rows, expected some")
    read = sum(piece.size for piece, *_ in heads)
    every = sum(piece.size for piece in ranges) / max(read, 1)  # for how many bytes each of those that were read stands
    n_rows = sum(data.X.shape[0] / share for _, data, share in heads) * every
    if all(share == 1 for *_, share in heads) and len(heads) == len(ranges):
        n_rows = sum(data.X.shape[0] for _, data, _ in heads)
    counts = {}
    for piece, data, share in heads:
        for label, n in zip(*np.unique(data.y, return_counts=True)):
            counts[label] = counts.get(label, 0) + n * every / share
        if len(counts) > 2:
            some = listing(sorted(map(show, counts)), most=5)
            raise InputError(f"{piece.paths[-1]}: the labels take {len(counts)} values ({some}), expected two classes")
    if len(counts) == 1:
        counts = _look_further(ranges, like, counts, wanted)
    values = np.array(list(counts))
    weights = np.ceil(1000 * np.array(list(counts.values())) / max(counts.values())).astype(int)
    classes = find_classes(np.repeat(values, weights), positive)
    by_sign = {sign: float(counts[classes[(sign + 1) // 2]]) for sign in (-1, 1)}
    held_out = {sign: min(max(ENOUGH / n, HELD_OUT), MOST_HELD_OUT) for sign, n in by_sign.items()}
    X, y = [], []
    for piece, data, _ in heads:
        head_signs = signs_of(piece, data, classes)
        learned = ~hold_out(piece.random(seed), head_signs, held_out)
        X.append(data.X[learned])
        y.append(head_signs[learned])
    data = replace(like, X=sp.vstack(X, format="csr") if sp.issparse(X[0]) else np.concatenate(X))
    y, like, notes = np.concatenate(y), like.without_rows(classes), [note for _, d, _ in heads for note in d.notes]
    return Head(data, like, y, ranges, n_rows, by_sign, held_out, notes)


def _evenly(ranges, n):
    return [ranges[i * len(ranges) // n] for i in range(n)]


def _n_cells(data):
    return data.X.nnz if sp.issparse(data.X) else data.X.size


def _look_further(ranges, like, counts, wanted):
    """Read on until there is a second label: in a stream that is sorted the first rows may all have one."""
    seen = dict.fromkeys(counts, 0)
    for piece in ranges:
        for data, _ in piece.read(**{**wanted, "at_a_time": 1}, like=like):
            for label, n in zip(*np.unique(data.y, return_counts=True)):
                seen[label] = seen.get(label, 0) + n
            if len(seen) > 1:
                (known,) = counts
                share = (sum(seen.values()) - seen[known]) / sum(seen.values())
                return {label: counts[known] * (1 - share if label == known else share) for label in seen}
    n, (label,) = sum(seen.values()), seen
    raise InputError(f"all {n} labels of the stream are {show(label)}, expected two classes")


def signs_of(piece, data, classes):
    """The signs of the labels; a label that there should not be is said to be in this piece."""
    try:
        return signs(data.y, classes)
    except InputError as error:
        raise InputError(f"{piece.paths[-1]}: {error}") from None


def hold_out(rng, y, shares):
    """Which of the next rows of a piece are not learned from."""
    return rng.random_sample(len(y)) < np.where(y > 0, shares[1], shares[-1])
