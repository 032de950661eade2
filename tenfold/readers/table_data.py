"""From a table of cells to `Data`: the columns as they are described here, or as in the training file."""

from dataclasses import dataclass

import numpy as np

from preprocess import InputError, is_number, listing
from tenfold.readers.base import Data, is_missing
from tenfold.readers.csv_columns import convert, describe, is_index, new_values


@dataclass
class Layout:
    """The ``names`` in the first row, or None if it is no header, and where the label is, or None if there is none.

    ``is_guess`` says that the first row is no header after all if its label is that of a row far below.
    """

    names: "list | None"
    target: "int | None"
    is_guess: bool = False


def csv_of(like):
    """What the training file says of its columns; those of a file that is no CSV file hold numbers."""
    if like is None:
        return {"columns": [], "label": None, "position": 0}
    n = like.X.shape[1]
    return like.csv or {"columns": [{"name": None, "kind": "number"}] * n, "label": None, "position": n}


def make_data(path, layout, table, like, decimal=".", notes=()):
    """The `Data` of a table: its columns as they are described here, or as in the training file."""
    notes = list(notes)
    if table.n_rows == 0:
        raise InputError(f"{path} has {'a header and ' * bool(layout.names)}no rows, expected at least one row")
    y = table.make_labels(path, decimal)
    if like is None:
        _check_label(path, layout, table, y)
        notes += _label_note(path, layout, len(table.columns))
        columns, places = _describe_all(path, layout, table, decimal, notes), table.columns
        said = []  # all that there is to say has been said in describing them
    else:
        columns, places = match(path, len(table.columns) + (layout.target is not None), layout, like, notes)
        said = notes
    parts = _convert_all(path, layout, table, columns, places, decimal, said)
    if not parts:
        why = "; ".join(note.removeprefix(f"{path}: ") for note in notes if "left out" in note)
        raise InputError(f"{path} has no column to learn from, expected at least one: {why or 'there is none'}")
    is_whole = len(parts) == 1 and getattr(parts[0], "base", None) is table.cells
    X = table.cells if is_whole and parts[0].shape == table.cells.shape else np.asarray(np.hstack(parts))
    label = layout.names[layout.target] if layout.names and layout.target is not None else None
    csv = {"columns": columns, "label": label, "position": layout.target, "decimal": decimal}
    return Data(X, y, csv=csv if like is None else like.csv, new_values=new_values(parts), notes=notes)


def _check_label(path, layout, table, y):
    """Refuse a label that cannot be meant: one of two columns of its name, or one of more than two values."""
    name = layout.names[layout.target] if layout.names else None
    if layout.names and layout.names.count(name) > 1:
        raise InputError(f"{path} has {layout.names.count(name)} columns called {name!r}, expected one label")
    values = [value for value in table.labels if not is_missing(value)]
    if len(values) > 2 and len(np.unique(y)) > 2:
        hint = "--label names another column" if layout.names else "a header and --label would name another column"
        found = f"the label, {'the last column' if name is None else repr(name)},"
        raise InputError(
            f"{path}: {found} takes {len(values)} values ({listing(values, most=5)}), expected two classes; {hint}"
        )


def _label_note(path, layout, n_others):
    if layout.names is None:
        where = "the last column" if layout.target == n_others else f"column {layout.target + 1}"
        return [f"{path}: no header; the label is {where}"]
    said = "; its first row, of numbers, is a header" if all(map(is_number, filter(None, layout.names))) else ""
    return [f"{path}: the label is {layout.names[layout.target]!r}{said}"]


def _where(layout, j):
    """What a column is called."""
    return f"column {layout.names[j]!r}" if layout.names and layout.names[j] else f"column {j + 1}"


def _describe_all(path, layout, table, decimal, notes):
    """The description of each column of a training file."""
    columns = []
    for k, j in enumerate(table.columns):
        name, cells = layout.names[j] if layout.names else None, table.column(k)
        if j == 0 and len(table.columns) > 1 and is_index(name, cells, table.n_rows):
            notes.append(f"{path}: {_where(layout, j)} is left out: it only numbers the rows")
            columns.append({"name": name, "kind": "left out"})
        else:
            columns.append(describe(path, name, _where(layout, j), cells, decimal, notes))
    return columns


def match(path, width, layout, like, notes):
    """The columns of the training file, and where each is in this one: by names, if both have them."""
    columns = csv_of(like)["columns"]
    places = [j for j in range(width) if j != layout.target]
    expected = [column["name"] for column in columns]
    names = [layout.names[j] for j in places] if layout.names else expected
    if None in expected or names == expected:
        if len(places) != len(columns):
            raise InputError(f"{path} has {len(places)} features, expected {len(columns)} as in the training file")
        return columns, places
    place = dict(zip(_counted(names), places))
    matched = zip(columns, _counted(expected))
    matched = [(column, key) for column, key in matched if column["kind"] != "left out" or key in place]
    for column, key in matched:
        if key not in place:
            raise InputError(f"{path} has no column {column['name']!r}, which the training file has")
    if extra := [name for name in names if name not in expected]:
        notes.append(f"{path}: not in the training file, and ignored: {listing(extra)}")
    return [column for column, _ in matched], [place[key] for _, key in matched]


def _counted(names):
    """Each name with how often it has come before: of columns of one name, the first matches the first."""
    seen = {}
    for name in names:
        seen[name] = seen.get(name, -1) + 1
        yield name, seen[name]


def _convert_all(path, layout, table, columns, places, decimal, notes):
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
            parts.append(convert(path, column, _where(layout, j), table.column(k), decimal, notes))
    return parts
