"""Files that need not fit into memory, as pieces that can be read apart from each other, and their first rows."""

from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path

import numpy as np

from preprocess import InputError, is_number, listing, show
from tenfold.readers import find_streams, length, stream

PIECE_BYTES = 2**23  # of a piece, or more if there would be more pieces than
MOST_PIECES = 256
PLACES = 16  # from which first rows are read, until there are
FIRST_ROWS = 400_000


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

    def read(self, like=None, **wanted):
        """Yield a `Data` of some rows at a time, as of ``like``, and the share of the piece read so far."""
        for data, share in stream(self.paths, self.start, self.stop, like=like, **wanted):
            if like is not None and data.y is not None:
                data.y = as_labels_of(like.y, data.y, self.paths[-1])
            yield data, share

    def random(self, seed, purpose=0):
        """A generator of random numbers of its own, whoever reads it."""
        return np.random.RandomState([seed, purpose, self.number, self.start % 2**32, self.start // 2**32])


def as_labels_of(known, y, path):
    """Labels of the kind of those that are known; among others than in the first rows, they may look like others."""
    if (y.dtype.kind == "U") == (known.dtype.kind == "U"):
        return y
    values, places = np.unique(y, return_inverse=True)
    if known.dtype.kind == "U":
        return np.array([show(value) for value in values.tolist()])[places]
    strange = next(value for value in values.tolist() if not is_number(value))
    raise InputError(f"{path}: the label {strange} is no number, expected one as in the first rows")


def refuse_labels(path, labels):
    """Refuse a file that has a third label."""
    some = listing(sorted(map(show, labels)), most=5)
    raise InputError(f"{path}: the labels take {len(labels)} values ({some}), expected two classes")


def find_pieces(names, can_be_cut=True):
    """The pieces of the stream that these files, directories and patterns make, and what there is to say about them.

    They follow from the files, not from who reads them. Unless they ``can_be_cut``, each file is one.
    """
    groups, notes = find_streams(names)
    files = []
    for number, paths in enumerate(groups):
        paths = tuple(Path(path).resolve() for path in paths)  # workers may be in other directories
        size = sum(path.stat().st_size for path in paths)
        files.append(Piece(paths, number, 0, length(paths) if can_be_cut else None, size))
    size = max(PIECE_BYTES, sum(file.size for file in files) / MOST_PIECES)
    return [piece for file in files for piece in file.cut(round(file.size / size))], notes


def read_places(pieces, wanted):
    """The first rows of places all over the stream: for each the piece, a `Data`, and its share of the piece.

    The columns are those of the first of them.
    """
    places, like = [], None
    for i in sorted({k * len(pieces) // PLACES for k in range(PLACES)}):
        for data, share in islice(pieces[i].read(like=like, **wanted), 1):
            places.append((pieces[i], data, share))
            like = like or data
        if sum(data.X.shape[0] for _, data, _ in places) > FIRST_ROWS:
            break
    if like is None:
        raise InputError(f"{pieces[0].paths[0]} has no rows, expected some")
    return places
