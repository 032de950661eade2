"""CSV text: cells with commas between them, a header or none, numbers and text columns."""

import contextlib
import csv
import io

import numpy as np
import scipy.sparse as sp

from preprocess import InputError, is_number, listing
from tenfold.readers.base import TEXT_BYTES, Data, allow, is_missing, no_warnings, reason
from tenfold.readers.text import lines_of, open_text

ENDINGS = (".csv",)
STREAMED = ((".csv",),)

MOST_COLUMNS = 100_000


def load(path, wanted):
    with io.TextIOWrapper(open_text(path), encoding="utf-8-sig", newline="") as file:
        rows = _parse(path, file)
    names, target = _header(path, rows, wanted.label, wanted.like, wanted.labelled)
    return _from_csv(path, rows[names is not None :], names, target, wanted.like)


def _parse(path, lines):
    """The rows, as lists of equally many cells; empty lines are skipped."""
    try:
        rows = [row for row in csv.reader(lines, strict=True) if row]
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not CSV text in UTF-8: {reason(error)}") from error
    if not rows:
        raise InputError(f"{path} has no rows, expected at least two")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise InputError(f"{path}: row {number} has {len(row)} cells, expected {len(rows[0])} as in the first row")
    if len(rows[0]) > MOST_COLUMNS:
        raise InputError(f"{path} has {len(rows[0])} columns, expected at most {MOST_COLUMNS} in a CSV file")
    return rows


def _header(path, rows, label, like, labelled=True):
    """The names in the first row, or None if it is no header, and the position of the label, or None if it has none.

    A first row is a header if ``label`` is in it, or if what stands in the label's place is neither a number nor a
    label of another row; without labels, if no number stands where numbers belong.
    """
    first = [cell.strip() for cell in rows[0]]
    if label is None and like is not None and like.label in first:
        label = like.label
    if not labelled and label not in first and len(first) == _n_csv_columns(like):
        where_numbers_belong = [cell for j, cell in enumerate(first) if j not in like.categories]
        is_header = where_numbers_belong and not any(is_number(c) or is_missing(c) for c in where_numbers_belong)
        return first if is_header or first == like.names else None, None
    if label is not None:
        if label not in first:
            raise InputError(f"{path} has no column {label!r}; its first row is {listing(first)}")
        return first, first.index(label)
    if len(first) < 2:
        raise InputError(f"{path} has a single column, expected features and a label with commas between them")
    labels = {row[-1].strip() for row in rows[1:]}
    if like is not None:
        labels.update(map(str, np.unique(like.y)))
    is_label = is_number(first[-1]) or is_missing(first[-1]) or first[-1] in labels
    return None if is_label else first, len(first) - 1


def _n_csv_columns(like):
    """How many columns of cells have become the features of a CSV file."""
    return like.X.shape[1] - sum(len(values) - 1 for values in like.categories.values())


def _from_csv(path, rows, names, target, like):
    """Numbers stay numbers; a column that holds any text becomes one column of 0 and 1 for each of its values."""
    columns = list(zip(*rows)) or [()] * (len(names) if names else 0)
    y = label = None
    if target is not None:
        y = _labels(path, columns.pop(target))
        if names is not None:
            label = names.pop(target)
    if None not in (names, like) and like.names not in (None, names):
        raise InputError(
            f"{path}: the features are {listing(names)}, expected {listing(like.names)} as in the training file"
        )
    categories = {} if like is None else like.categories
    parts = []
    for j, column in enumerate(columns):
        numbers = None if j in categories else _numbers(column)
        if numbers is not None:
            parts.append(numbers[:, None])
        elif like is None or j in categories:
            values = categories.setdefault(j, sorted({c.strip() for c in set(column) if not is_missing(c)}))
            parts.append(_indicators(column, values))
        else:
            raise InputError(f"{path}: feature {j + 1} holds text, expected numbers as in the training file")
    X = sp.hstack(parts, format="csr") if categories else np.hstack(parts)
    if categories and X.nnz > X.shape[0] * X.shape[1] / 10:
        X = X.toarray()
    return Data(X, y, names=names, label=label, categories=categories)


def _labels(path, cells):
    y = _numbers(cells)
    if y is not None:
        return y
    allow(path, TEXT_BYTES * len(cells) * max(map(len, cells)), "the label column")
    return np.array(cells)


def _numbers(cells):
    """The cells as an array of numbers, NaN where they are missing, or None if some are text."""
    for convert in (float, lambda cell: np.nan if is_missing(cell) else float(cell)):  # the quick one does for most
        with contextlib.suppress(ValueError):
            return np.fromiter(map(convert, cells), float, len(cells))
    return None


def _indicators(column, values):
    """One sparse 0/1 column for each of ``values``; a cell that is none of them is zero in all."""
    index = {value: j for j, value in enumerate(values)}
    index_of_cell = {cell: index.get(cell.strip(), -1) for cell in set(column)}
    j = np.fromiter(map(index_of_cell.get, column), int, len(column))
    i = np.flatnonzero(j >= 0)
    return sp.csr_array((np.ones(len(i)), (i, j[i])), shape=(len(column), len(values)))


def stream(paths, label):
    (path,) = paths
    like = None
    for lines, share in lines_of(path):
        if like is None:
            rows = _parse(path, _text(path, lines))
            names, target = _header(path, rows, label, None)
            like = _from_csv(path, rows[names is not None :], names, target, None)
            yield like, share
            continue
        cells = None
        if not like.categories and like.y.dtype.kind != "U":
            with contextlib.suppress(ValueError), no_warnings():  # some may be missing, and then are found below
                cells = np.loadtxt(lines, delimiter=",", comments=None, ndmin=2)
        if cells is not None and cells.shape[1] == like.X.shape[1] + 1:
            yield Data(np.delete(cells, target, axis=1), cells[:, target]), share
        else:
            yield _from_csv(path, _parse(path, _text(path, lines)), None, target, like), share


def _text(path, lines):
    try:
        return [line.decode("utf-8-sig") for line in lines]
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not CSV text in UTF-8: {reason(error)}") from error
