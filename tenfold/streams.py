"""Files that need not fit into memory: one pass over all rows keeps a uniform sample of each class.

Every row draws a random number, and of each class the rows with the smallest numbers stay: that is a uniform sample
without replacement, whatever the files are cut into, and whoever reads them.
"""

from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from preprocess import InputError, show
from tenfold.pieces import find_pieces, refuse_labels
from tenfold.readers.text import CannotCut

SAMPLE_CELLS = 10_000_000  # of the sample: 200,000 rows of 50 columns
MOST_SAMPLED = 500_000  # rows
AT_A_TIME = 16  # pieces that are read between two looks at how small a number must be, fewer at the beginning
MOST_LABELS = 20  # that are counted


@dataclass
class Kept:
    """Rows of one label: their random numbers, where they are (piece and row of it), and the rows themselves."""

    numbers: list = field(default_factory=list)
    places: list = field(default_factory=list)
    rows: list = field(default_factory=list)
    count: int = 0

    def add(self, numbers, places, rows):
        if len(numbers):
            self.numbers.append(numbers)
            self.places.append(places)
            self.rows.append(rows)
            self.count += len(numbers)

    def arrays(self):
        stack = sp.vstack if sp.issparse(self.rows[0]) else np.concatenate
        return np.concatenate(self.numbers), np.concatenate(self.places), stack(self.rows)

    def smallest(self, n):
        """Keep the rows of the n smallest numbers only; the greatest of these, or 1 if there are not so many."""
        if self.count < n:
            return 1.0
        numbers, places, rows = self.arrays()
        kept = np.sort(np.argpartition(numbers, n - 1)[:n])
        self.numbers, self.places, self.rows = [numbers[kept]], [places[kept]], [rows[kept]]
        self.count = n
        return float(self.numbers[0].max())


@dataclass
class Part:
    """What a piece has given: the `Kept` rows and the number of rows by label, and notes on the file."""

    kept: dict
    counts: dict
    n_rows: int
    notes: list


def read_part(number, pieces, below, n, like, seed, wanted):
    """The `Part` of a piece: of each label, rows whose numbers are ``below`` what it says, or 1, at most n.

    It is None if the piece cannot be read without those before it.
    """
    piece = pieces[number]
    rng, part = piece.random(seed), Part({}, {}, 0, [])
    try:
        for data, _ in piece.read(like=like, **wanted):
            X, numbers = data.without_new_values(), rng.random_sample(len(data.y))
            for label in np.unique(data.y).tolist():
                is_label = data.y == label
                part.counts[label] = part.counts.get(label, 0) + int(np.count_nonzero(is_label))
                few = np.flatnonzero(is_label & (numbers <= below.get(label, 1.0)))
                kept = part.kept.setdefault(label, Kept())
                places = np.column_stack([np.full(len(few), number), part.n_rows + few])
                kept.add(numbers[few], places, X[few])
                if kept.count > 2 * n:
                    kept.smallest(n)
            if len(part.counts) > MOST_LABELS:
                raise InputError(f"{piece.paths[-1]}: the labels take more than {MOST_LABELS} values, expected two")
            part.n_rows += len(data.y)
            part.notes += data.notes
    except CannotCut:
        return None
    return part


def read_sample(names, workers, *, seed=0, n_rows=None, report=lambda n_rows, share: None, **wanted):
    """A sample, as `Data`, of at most ``n_rows`` rows of the files, directories or patterns with these ``names``.

    All rows of the rarer class are in it, or as many as make up half of it. The same files give the same sample, in
    whatever order they are named and however many ``workers`` there are. ``wanted`` is as of `load`.
    """
    try:
        return _read_sample(*find_pieces(names), workers, seed, n_rows, report, wanted)
    except CannotCut:  # once more, each file from its beginning
        return _read_sample(*find_pieces(names, can_be_cut=False), workers, seed, n_rows, report, wanted)


def _read_sample(pieces, notes, workers, seed, n_rows, report, wanted):
    first = first_rows(pieces, wanted)
    n = n_rows or int(np.clip(SAMPLE_CELLS / max(cells_per_row(first.X), 1), 1000, MOST_SAMPLED))
    like = first.without_rows(np.unique(first.y))
    total, done, below = sum(piece.size for piece in pieces), 0, {}
    kept, counts, n_read, notes = {}, {}, [], notes + first.notes
    starts = [i for i in (0, 1, 4, *range(AT_A_TIME, len(pieces), AT_A_TIME)) if i < len(pieces)]
    for start, stop in pairwise([*starts, len(pieces)]):
        some = range(start, stop)

        def watch(parts, n_before=sum(n_read), done=done):  # noqa: B008
            read = sum(part.n_rows for part in parts.values() if part is not None)
            report(n_before + read, (done + sum(pieces[i].size for i in parts)) / max(total, 1))

        parts = workers.run(some, read_part, pieces, below, n, like, seed, wanted, watch=watch)
        if None in parts.values():
            raise CannotCut
        for i in some:
            part = parts[i]
            n_read.append(part.n_rows)
            done += pieces[i].size
            notes += [note for note in part.notes if note not in notes]
            for label, of_label in part.kept.items():
                counts[label] = counts.get(label, 0) + part.counts[label]
                all_of_label = kept.setdefault(label, Kept())
                for item in zip(of_label.numbers, of_label.places, of_label.rows):
                    all_of_label.add(*item)
            if len(counts) > 2:
                refuse_labels(pieces[i].paths[-1], counts)
        below = {label: of_label.smallest(n) for label, of_label in kept.items()}
    return _finish(pieces, kept, counts, np.cumsum([0, *n_read]), n, like, notes)


def _finish(pieces, kept, counts, first, n, like, notes):
    if len(counts) < 2:
        ((label, n_rows),) = counts.items()
        name = f"{pieces[0].paths[0]}{' ...' if len(pieces) > 1 else ''}"
        raise InputError(f"{name}: all {n_rows} labels are {show(label)}, expected two classes")
    rare, common = sorted(counts, key=lambda label: (counts[label], label))
    sizes = {rare: min(counts[rare], max(n // 2, n - counts[common]))}
    sizes[common] = min(counts[common], n - sizes[rare])
    rows, X, y = [], [], []
    for label, size in sizes.items():
        kept[label].smallest(size)
        _, places, of_label = kept[label].arrays()
        rows.append(first[places[:, 0]] + places[:, 1])
        X.append(of_label)
        y += [label] * size
    rows = np.concatenate(rows)
    order = np.argsort(rows)
    X = sp.vstack(X, format="csr") if sp.issparse(X[0]) else np.concatenate(X)
    how = {"rows": rows[order], "counts": counts, "notes": list(dict.fromkeys(notes))}
    return replace(like, X=X[order], y=np.array(y)[order], **how)


def cells_per_row(X):
    """How many cells a row has in the mean; of sparse rows, those that are stored."""
    return X.nnz / X.shape[0] if sp.issparse(X) else X.shape[1]


def first_rows(pieces, wanted):
    """The first rows of the stream, by which its columns are known."""
    for piece in pieces:
        for data, _ in piece.read(**wanted):
            return data
    raise InputError(f"{pieces[0].paths[0]} has no rows, expected some")
