"""Data frames of pandas: columns of numbers, text, categories and dates, as the columns of a CSV file."""

import numpy as np

from preprocess import InputError, listing
from tenfold.readers.base import Data
from tenfold.readers.csv_columns import DayCells, TextCells, convert, describe, is_empty, new_values

FORMAT = "%Y-%m-%d"  # by which dates that are no text are described


def is_table(X):
    """Whether this is a data frame with a column that holds no numbers."""
    if not (hasattr(X, "dtypes") and hasattr(X, "columns")):
        return False
    return any(not _holds_numbers(dtype) for dtype in X.dtypes)


def _holds_numbers(dtype):
    return getattr(dtype, "kind", "O") in "biuf" and str(dtype) != "category"


def from_frame(frame, like=None):
    """The rows of a data frame as `Data`; its columns are described here, or are those of ``like``, by their names."""
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"the data frame has several columns called {listing(twice)}, expected one of each name")
    if not len(frame):
        raise InputError("the data frame has no rows, expected at least one")
    frame, notes = frame.set_axis(names, axis=1), []
    if like is None:
        columns = [describe("the data frame", name, name, _cells(frame[name]), ".", notes) for name in names]
    else:
        columns = like.csv["columns"]
        if None in [column["name"] for column in columns]:  # the training file has no header
            if len(columns) != len(names):
                raise InputError(f"the data frame has {len(names)} columns, expected {len(columns)}")
            columns = [{**column, "name": name} for column, name in zip(columns, names)]
        missing = [column["name"] for column in columns if column["kind"] != "left out" and column["name"] not in names]
        if missing:
            raise InputError(f"the data frame has no column {listing(missing)}, which the training rows have")
    parts = [
        convert("the data frame", column, column["name"], _cells(frame[column["name"]]), ".", notes)
        for column in columns
        if column["kind"] != "left out"
    ]
    csv = {"columns": columns, "label": None, "position": None, "decimal": "."}
    X, new = np.asarray(np.hstack(parts)), new_values(parts)
    return Data(X, csv=csv if like is None else like.csv, new_values=new, notes=notes)


def _cells(column):
    """The cells of a column as those of a CSV file."""
    import pandas as pd

    if _holds_numbers(column.dtype):
        return column.to_numpy(np.float64, na_value=np.nan)
    if column.dtype.kind == "M" or isinstance(column.dtype, pd.DatetimeTZDtype):
        if getattr(column.dt, "tz", None) is not None:
            column = column.dt.tz_localize(None)
        seconds = column.to_numpy("datetime64[s]")
        return DayCells(np.where(np.isnat(seconds), np.nan, seconds.astype(np.int64) / 86_400), FORMAT)
    if column.dtype.kind in "cm":
        raise InputError(f"the column {column.name!r} holds {column.dtype}, expected numbers, text or dates")
    if any(isinstance(cell, (list, dict, set, frozenset, tuple, np.ndarray)) for cell in column):
        raise InputError(f"the column {column.name!r} holds lists or other objects, expected numbers, text or dates")
    text = column.astype(object).map(lambda cell: "" if pd.isna(cell) else str(cell).strip())
    codes, values = pd.factorize(text)
    known = np.array([not is_empty(value) for value in values], bool)
    places = np.append(np.where(known, np.cumsum(known) - 1, -1), -1)
    return TextCells(places[codes], [value for value, is_known in zip(values, known) if is_known])
