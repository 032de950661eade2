"""Parquet files, where pyarrow is installed: columns of numbers, text and dates, read by row groups."""

import numpy as np

from preprocess import InputError, listing
from tenfold.readers.base import allow, reason
from tenfold.readers.csv_columns import is_empty
from tenfold.readers.csv_table import Table, place
from tenfold.readers.csv_text import LABELS
from tenfold.readers.table_data import Layout, csv_of, make_data
from tenfold.readers.text import rows_at_a_time

ENDINGS = (".parquet", ".pq")
STREAMED = tuple((ending,) for ending in ENDINGS)
OPTIONS = ("label",)

INDEX = "__index_level_0__"  # what pandas calls the numbers of its rows
READ_BYTES = 2**16  # of a column at a time, lest a whole row group be in memory


def load(path, wanted):
    file = _open(path)
    layout = _find_layout(path, file, wanted)
    width = len(layout.names)
    n_rows, n_columns = file.metadata.num_rows, width - (layout.target is not None)
    allow(path, 8 * n_rows * n_columns, f"a table of {n_rows} x {n_columns} cells")
    table = Table(width, layout.target)
    table.cells = np.empty((n_rows, n_columns))
    for batch in _batches(path, file, range(file.num_row_groups), rows_at_a_time(width)):
        _add(path, table, batch)
    return make_data(path, layout, table.finish(), wanted.like)


def stream(paths, wanted, start=0, stop=None):
    (path,) = paths
    file = _open(path)
    layout, like = _find_layout(path, file, wanted), wanted.like
    width = len(layout.names)
    groups = range(file.num_row_groups)[start:stop]
    n_rows, n_read = sum(file.metadata.row_group(group).num_rows for group in groups), 0
    n_at_a_time = rows_at_a_time(2 * width, wanted.at_a_time)  # they are in memory twice, as pyarrow's and as ours
    for batch in _batches(path, file, groups, n_at_a_time):
        table = Table(width, layout.target)
        table.cells = np.empty((batch.num_rows, len(table.columns)))
        _add(path, table, batch)
        n_read += batch.num_rows
        data = make_data(path, layout, table, like)
        like = like or data
        yield data, min(n_read / max(n_rows, 1), 1)


def length(paths):
    """The row groups of a file."""
    (path,) = paths
    return _open(path).num_row_groups


def _open(path):
    """The file, if all its columns can be used."""
    try:
        from pyarrow import parquet, types
    except ImportError:
        raise InputError(
            f"{path} is a Parquet file, for which pyarrow is needed: python -m pip install pyarrow"
        ) from None
    try:
        file = parquet.ParquetFile(path, buffer_size=READ_BYTES, pre_buffer=False, page_checksum_verification=True)
        fields = list(file.schema_arrow)
    except OSError:
        raise
    except Exception as error:
        raise InputError(f"{path} is not a Parquet file, or is damaged: {reason(error)}") from error
    for field in fields:
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        known = types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_null
        if not any(is_kind(kind) for is_kind in (*known, _is_text, _is_day)):
            raise InputError(f"{path}: column {field.name!r} holds {kind}, expected numbers, text or dates")
    return file


def _is_text(kind):
    return str(kind) in ("string", "large_string", "string_view")


def _is_day(kind):
    return str(kind).startswith(("date", "timestamp"))


def _find_layout(path, file, wanted):
    """The names of the columns, and where the label is."""
    names, csv = [name for name in file.schema_arrow.names if name != INDEX], csv_of(wanted.like)
    known = {column["name"] for column in csv["columns"]} - {None}
    label = wanted.label or csv["label"]
    by_name = [j for j, name in enumerate(names) if name.lower() in LABELS and name not in known]
    if label in names:
        return Layout(names, names.index(label))
    if wanted.label is not None:
        raise InputError(f"{path} has no column {wanted.label!r}; its columns are {listing(names)}")
    if len(by_name) == 1:
        return Layout(names, by_name[0])
    if not wanted.labelled and (known or len(names) == len(csv["columns"])):
        return Layout(names, None)
    if label is not None:
        raise InputError(f"{path} has no column {label!r}, which the training file has")
    return Layout(names, csv["position"] if len(names) == len(csv["columns"]) + 1 else len(names) - 1)


def _batches(path, file, groups, n_rows):
    """Yield some rows of these row groups at a time."""
    if not groups:
        return
    try:
        with file:
            for batch in file.iter_batches(n_rows, row_groups=list(groups), use_threads=False):
                if batch.num_rows:
                    yield batch.drop_columns([INDEX]) if INDEX in batch.schema.names else batch
    except MemoryError:
        raise
    except Exception as error:
        raise InputError(f"{path} is damaged or cut short: {reason(error)}") from error


def _add(path, table, batch):
    """Take over the rows of a batch."""
    rows = slice(table.n_rows, table.n_rows + batch.num_rows)
    try:
        if table.target is not None:
            table.label_codes.append(_encode(batch.column(table.target), table.labels, lambda cell: False))
        for k, j in enumerate(table.columns):
            column = batch.column(j)
            numbers = _numbers(column)
            if numbers is not None:
                table.cells[rows, k] = numbers
            else:
                table.cells[rows, k] = _encode(column, table.values.setdefault(k, {}), is_empty)
    except (ValueError, NotImplementedError) as error:  # as pyarrow's errors are
        raise InputError(f"{path} is damaged: {reason(error)}") from error
    table.n_rows = rows.stop


def _numbers(column):
    """The cells of a column of numbers, NaN where there is none; None if it holds text or days."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if _is_text(column.type) or _is_day(column.type):
        return None
    if pa.types.is_null(column.type):
        return np.nan
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _encode(column, positions, is_missing):
    """For each cell of text, or of what is written as text, its value's position among all; a missing one is empty."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not _is_text(column.type):
        column = column.cast(pa.string())
    encoded = column.fill_null("").dictionary_encode()
    return place(encoded.indices.to_numpy(zero_copy_only=False), encoded.dictionary.to_pylist(), positions, is_missing)
