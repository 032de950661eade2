"""CSV text: rows of cells, a header or none, a label, and columns of numbers, dates and text."""

from itertools import pairwise

import numpy as np

from preprocess import InputError, is_number, listing
from tenfold.readers.base import is_missing
from tenfold.readers.csv_columns import find_time_format, is_empty, to_number
from tenfold.readers.csv_dialect import MARKS, SEPARATORS, check_widths, find_dialect
from tenfold.readers.csv_table import Table, read_chunks
from tenfold.readers.table_data import Layout, csv_of, make_data, match
from tenfold.readers.text import length as length_of_text

ENDINGS = (".csv", ".tsv")
STREAMED = tuple((ending,) for ending in ENDINGS)
OPTIONS = ("label", "sep", "encoding")

LABELS = {"label", "target", "class", "y", "outcome"}


def load(path, wanted):
    dialect = find_dialect(path, wanted)
    layout = find_layout(path, dialect, wanted)
    table = _read(path, dialect, layout, wanted.like)
    if layout.is_guess and layout.names[layout.target] in table.labels:
        layout.names = None
        table = _read(path, dialect, layout, wanted.like)
    if table.ends_are_missing():
        check_widths(path, dialect)
    return make_data(path, layout, table, wanted.like, dialect.decimal, dialect.notes(path))


def _read(path, dialect, layout, like):
    """All rows; once more, if it turns out on the way which columns hold text."""
    as_text = _text_columns(path, dialect, layout, like)
    times = _time_columns(dialect, layout, as_text) if like is None else {}
    while True:
        table = Table(dialect.width, layout.target, times)
        how = layout.names is not None, layout.target, as_text - set(times)  # times are no numbers in any case
        for frame, share in read_chunks(path, dialect, *how):
            table.add(frame, share)
        if not table.changed:
            return table.finish()
        as_text |= table.changed
        times = {j: formats for j, formats in times.items() if j not in table.changed}


def _time_columns(dialect, layout, as_text):
    """The columns that hold nothing but dates with times in the first rows, and their formats."""
    rows = dialect.rows[layout.names is not None :]
    cells = {j: [cell for row in rows if not is_empty(cell := row[j].strip())] for j in as_text - {layout.target}}
    return {j: formats for j in cells if (formats := find_time_format(cells[j]))}


def _text_columns(path, dialect, layout, like):
    """The columns that hold text in the first rows, or in the training file."""
    rows = dialect.rows[layout.names is not None :]
    found = {
        j
        for row in rows
        for j, cell in enumerate(row)
        if not (is_number(cell.replace(dialect.decimal, ".")) or is_empty(cell))
    }
    if like is not None:
        columns, places = match(path, dialect.width, layout, like, [])
        found |= {j for column, j in zip(columns, places) if column["kind"] in ("date", "text")}
    return found


# --- header and label ------------------------------------------------------------------------------------------------


def find_layout(path, dialect, wanted):
    """Whether the first row is a header, and where the label is."""
    first, rest = dialect.rows[0], dialect.rows[1:]
    csv = csv_of(wanted.like)
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
        *separators, last = SEPARATORS.values()
        raise InputError(
            f"{path} has a single column, expected features and a label with {', '.join(separators)} or {last} "
            f"between them; --sep names another separator"
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


# --- streams ---------------------------------------------------------------------------------------------------------


def stream(paths, wanted, start=0, stop=None):
    (path,) = paths
    dialect = find_dialect(path, wanted, unpacked=False)
    dialect.start, dialect.stop = start, stop
    layout, notes = find_layout(path, dialect, wanted), dialect.notes(path)
    like, skip = wanted.like, 0
    while True:  # once the first rows have told what the columns are, all is read anew, by that
        how = layout.names is not None, layout.target, _text_columns(path, dialect, layout, like), False
        for i, (frame, share) in enumerate(read_chunks(path, dialect, *how, wanted.at_a_time)):
            if i < skip or not len(frame):
                continue
            table = Table(dialect.width, layout.target)
            table.add(frame)
            data = make_data(path, layout, table.finish(), like, dialect.decimal, notes)
            if table.ends_are_missing() and not dialect.is_checked:
                check_widths(path, dialect, unpacked=False)
            yield data, share
            if like is None:
                like, skip = data, 1
                break
        else:
            break


def length(paths):
    """The bytes of the text, if it can be cut between them."""
    (path,) = paths
    with path.open("rb") as file:
        start = file.read(4)
    in_pairs = any(start.startswith(mark) for mark, name in MARKS.items() if name == "utf-16") or b"\0" in start
    return None if in_pairs else length_of_text(paths)
