"""CSV text: rows of cells, a header or none, a label, and columns of numbers, dates and text."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from preprocess import InputError, is_number, listing
from tenfold.readers.base import Data, is_missing
from tenfold.readers.csv_columns import assemble, convert, describe, is_empty, is_index, to_number
from tenfold.readers.csv_dialect import SEPARATORS, check_widths, find_dialect
from tenfold.readers.csv_table import Table, read_chunks

ENDINGS = (".csv", ".tsv")
STREAMED = tuple((ending,) for ending in ENDINGS)
OPTIONS = ("label", "sep", "encoding")

LABELS = {"label", "target", "class", "y", "outcome"}


@dataclass
class Layout:
    """The ``names`` in the first row, or None if it is no header, and where the label is, or None if there is none.

    ``is_guess`` says that the first row is no header after all if its label is that of a row far below.
    """

    names: "list | None"
    target: "int | None"
    is_guess: bool = False


def load(path, wanted):
    dialect = find_dialect(path, wanted)
    layout = find_layout(path, dialect, wanted)
    table = _read(path, dialect, layout, wanted.like)
    if layout.is_guess and layout.names[layout.target] in table.labels:
        layout.names = None
        table = _read(path, dialect, layout, wanted.like)
    if table.ends_are_missing():
        check_widths(path, dialect)
    return _make_data(path, dialect, layout, table, wanted.like)


def _read(path, dialect, layout, like):
    """All rows; once more, if it turns out on the way which columns hold text."""
    as_text = _text_columns(path, dialect, layout, like)
    while True:
        table = Table(dialect.width, layout.target)
        for frame, share in read_chunks(path, dialect, layout.names is not None, layout.target, as_text):
            table.add(frame, share)
        if not table.changed:
            return table.finish()
        as_text |= table.changed


def _text_columns(path, dialect, layout, like):
    """The columns that hold text in the first rows, or in the training file."""
    rows = dialect.rows[layout.names is not None :]
    found = {j for row in rows for j, cell in enumerate(row) if not (is_number(cell) or is_empty(cell))}
    if like is not None:
        columns, places = _match(path, dialect, layout, like, [])
        found |= {j for column, j in zip(columns, places) if column["kind"] in ("date", "text")}
    return found


# --- header and label ------------------------------------------------------------------------------------------------


def find_layout(path, dialect, wanted):
    """Whether the first row is a header, and where the label is."""
    first, rest = dialect.rows[0], dialect.rows[1:]
    csv = _csv_of(wanted.like)
    known = {column["name"] for column in csv["columns"]} - {None}
    names_all = _names_all(first, csv)
    label = wanted.label or csv["label"]
    if label in first and (wanted.label or names_all or not is_number(label)):
        return Layout(first, first.index(label))
    by_name = [j for j, cell in enumerate(first) if cell.lower() in LABELS and cell not in known]
    if not wanted.labelled and len(by_name) != 1 and (names_all or len(first) == len(csv["columns"])):
        return Layout(first if names_all or _is_header_of(first, csv["columns"]) else None, None)
    if wanted.label is not None:
        raise InputError(f"{path} has no column {wanted.label!r}; its first row is {listing(first)}")
    if len(first) < 2:
        separators = ", ".join(SEPARATORS.values())
        raise InputError(
            f"{path} has a single column, expected features and a label with {separators} between them, or --sep"
        )
    at_end = csv["position"] if len(first) == len(csv["columns"]) + 1 else len(first) - 1
    target = by_name[0] if len(by_name) == 1 else at_end
    if names_all and first[target] in known:
        raise InputError(f"{path} has no label beside {listing(first)}, expected {csv['label'] or 'one'}")
    labels = {row[target] for row in rest}
    if wanted.like is not None:
        labels.update(map(str, np.unique(wanted.like.y)))
    if names_all or _names_are_numbers(first, rest, labels, target):
        return Layout(first, target)
    is_label = is_number(first[target]) or is_missing(first[target]) or first[target] in labels
    return Layout(None, at_end) if is_label else Layout(first, target, is_guess=True)


def _csv_of(like):
    """What the training file says of its columns; those of a file that is no CSV file hold numbers."""
    if like is None:
        return {"columns": [], "label": None, "position": 0}
    n = like.X.shape[1]
    return like.csv or {"columns": [{"name": None, "kind": "number"}] * n, "label": None, "position": n}


def _names_all(first, csv):
    """Whether a row names all columns of the training file; numbers must be in their places, lest they be cells."""
    names = [column["name"] for column in csv["columns"]]
    needed = {column["name"] for column in csv["columns"] if column["kind"] != "left out"} - {None}
    if not needed or not needed <= set(first):
        return False
    at = csv["position"]
    return not all(map(is_number, needed)) or first in (names, [*names[:at], csv["label"], *names[at:]])


def _is_header_of(first, columns):
    """Whether no number stands where numbers belong in a row without a label."""
    cells = [cell for cell, column in zip(first, columns) if column["kind"] == "number"]
    return bool(cells) and not any(to_number(cell) is not None or is_missing(cell) for cell in cells)


def _names_are_numbers(first, rest, labels, target):
    """Whether a row of numbers is a header: 0, 1, 2, ..., or others that rise up to no label of the two classes."""
    names = first[1:] if first[0].lower() in ("", "unnamed: 0") else first
    if not names or not all(name.isdecimal() and name.isascii() and len(name) < 10 for name in names):
        return False
    numbers = [int(name) for name in names]
    if any(b <= a for a, b in pairwise(numbers)):
        return False
    is_count = numbers[0] in (0, 1) and numbers[-1] - numbers[0] == len(numbers) - 1
    filled = {label for label in labels if not is_missing(label)}
    if is_count and (len(names) > 2 or names != first):
        return first not in rest
    return first[target] not in filled and len(filled) == 2


# --- from cells to Data ----------------------------------------------------------------------------------------------


def _make_data(path, dialect, layout, table, like):
    """The `Data` of a table: its columns as they are described here, or as in the training file."""
    notes = dialect.notes(path)
    y = table.make_labels(path, dialect.decimal)
    if like is None:
        notes += _label_note(path, layout, dialect.width)
        columns, places = _describe_all(path, dialect, layout, table, notes), table.columns
        said = []  # all that there is to say has been said in describing them
    else:
        columns, places = _match(path, dialect, layout, like, notes)
        said = notes
    parts = _convert_all(path, dialect, layout, table, columns, places, said)
    is_whole = len(parts) == 1 and getattr(parts[0], "base", None) is table.cells
    X = table.cells if is_whole and parts[0].shape == table.cells.shape else assemble(parts, table.n_rows)
    label = layout.names[layout.target] if layout.names and layout.target is not None else None
    csv = {"columns": columns, "label": label, "position": layout.target}
    return Data(X, y, csv=csv if like is None else like.csv, notes=notes)


def _label_note(path, layout, width):
    if layout.names is None:
        where = "the last column" if layout.target == width - 1 else f"column {layout.target + 1}"
        return [f"{path}: no header; the label is {where}"]
    said = "; its first row, of numbers, is a header" if all(map(is_number, filter(None, layout.names))) else ""
    return [f"{path}: the label is {layout.names[layout.target]!r}{said}"]


def _where(layout, j):
    """What a column is called."""
    return f"column {layout.names[j]!r}" if layout.names and layout.names[j] else f"column {j + 1}"


def _describe_all(path, dialect, layout, table, notes):
    """The description of each column of a training file."""
    columns = []
    for k, j in enumerate(table.columns):
        name, cells = layout.names[j] if layout.names else None, table.column(k)
        if j == 0 and len(table.columns) > 1 and is_index(name, cells, table.n_rows):
            notes.append(f"{path}: {_where(layout, j)} is left out: it only counts the rows")
            columns.append({"name": name, "kind": "left out"})
        else:
            columns.append(describe(path, name, _where(layout, j), cells, dialect.decimal, notes))
    return columns


def _match(path, dialect, layout, like, notes):
    """The columns of the training file, and where each is in this one: by names, if both have them."""
    columns = _csv_of(like)["columns"]
    places = [j for j in range(dialect.width) if j != layout.target]
    expected = [column["name"] for column in columns]
    names = [layout.names[j] for j in places] if layout.names else expected
    if None in expected or names == expected:
        if len(places) != len(columns):
            raise InputError(f"{path} has {len(places)} features, expected {len(columns)} as in the training file")
        return columns, places
    place = dict(zip(reversed(names), reversed(places)))
    columns = [column for column in columns if column["kind"] != "left out" or column["name"] in place]
    for column in columns:
        if column["name"] not in place:
            raise InputError(f"{path} has no column {column['name']!r}, which the training file has")
    if extra := [name for name in names if name not in expected]:
        notes.append(f"{path}: not in the training file, and ignored: {listing(extra)}")
    return columns, [place[column["name"]] for column in columns]


def _convert_all(path, dialect, layout, table, columns, places, notes):
    """The parts of X, in order; numbers side by side are one part."""
    parts, run = [], []
    position = {j: k for k, j in enumerate(table.columns)}
    for column, j in zip(columns, places):
        k = position[j]
        if column["kind"] == "number" and k not in table.values:
            if run and k == run[1]:
                run[1] += 1
                parts[-1] = table.cells[:, run[0] : run[1]]
            else:
                run = [k, k + 1]
                parts.append(table.cells[:, k : k + 1])
        elif column["kind"] != "left out":
            run = []
            parts.append(convert(path, column, _where(layout, j), table.column(k), dialect.decimal, notes))
    return parts


# --- streams ---------------------------------------------------------------------------------------------------------


def stream(paths, wanted):
    (path,) = paths
    dialect = find_dialect(path, wanted, unpacked=False)
    layout = find_layout(path, dialect, wanted)
    like = None
    for first in (True, False):  # once the first rows have told what the columns are, all is read anew, by that
        as_text = _text_columns(path, dialect, layout, like)
        chunks = read_chunks(path, dialect, layout.names is not None, layout.target, as_text, unpacked=False)
        for i, (frame, share) in enumerate(chunks):
            if i == 0 and not first:
                continue
            table = Table(dialect.width, layout.target)
            table.add(frame)
            data = _make_data(path, dialect, layout, table.finish(), like)
            if table.ends_are_missing() and not dialect.is_checked:
                check_widths(path, dialect, unpacked=False)
            yield data, share
            if first:
                like = data
                break
        if like is None:
            raise InputError(f"{path} has no rows below its header, expected some")
