"""The cells of a CSV file, read by pandas some rows at a time: numbers, or positions among the values of text."""

import numpy as np

from preprocess import InputError, is_number
from tenfold.readers.base import TEXT_BYTES, allow, is_missing, no_warnings, reason
from tenfold.readers.csv_columns import NA_VALUES, DayCells, TextCells, is_empty, parse_times
from tenfold.readers.csv_dialect import check_widths, not_text
from tenfold.readers.text import rows_at_a_time

AT_A_TIME = 2048  # rows
LONGEST_LABEL = 1000  # characters
CTRL_C = "Calling read"  # what pandas says if it comes while bytes are read: other errors are passed on as they are
WIDE = 1000  # columns from which on pandas, which makes a list of them for each, is told the usual missing values only:
USUAL_NA_VALUES = ["", "NA", "NaN", "nan"]  # columns that have others come as text, and are found to be numbers later


def read_chunks(path, dialect, has_header, target, as_text, unpacked=True, at_a_time=1.0):
    """Yield pandas' frames of some rows at a time, and the share of the file read so far.

    The columns are counted from 0. There is one more than in the file, to find rows that are too long. The label and
    the columns ``as_text`` come as text.
    """
    try:
        import pandas as pd
    except ImportError:
        raise InputError(f"{path} is a CSV file: install pandas to read it") from None
    spaces = at_a_time < 1 or dialect.has_spaces(path)  # where a few rows are wanted, a look at all would not pay
    text, share = dialect.open(path, with_first=not has_header, unpacked=unpacked, decoded=False)
    columns = range(dialect.width + 1)
    missing = NA_VALUES if dialect.width < WIDE else USUAL_NA_VALUES
    with text:
        try:
            frames = pd.read_csv(
                text,
                sep=dialect.sep,
                decimal=dialect.decimal,
                header=None,
                names=columns,
                index_col=False,
                skipinitialspace=spaces,
                dtype=dict.fromkeys({*as_text, target} - {None}, str),
                keep_default_na=False,
                na_values={j: [] if j == target else missing for j in columns},
                low_memory=False,
                chunksize=rows_at_a_time(dialect.width, at_a_time),
            )
            while (frame := _next(frames)) is not None:
                if not frame[dialect.width].isna().all():
                    check_widths(path, dialect, unpacked)
                yield frame, share()
        except pd.errors.EmptyDataError:
            return
        except UnicodeError as error:
            raise not_text(path, dialect.encoding, error) from error
        except pd.errors.ParserError as error:
            if CTRL_C in str(error):
                raise KeyboardInterrupt from error
            check_widths(path, dialect, unpacked)
            raise InputError(f"{path} is not CSV text: {reason(error)}") from error


def _next(frames):
    with no_warnings():
        return next(frames, None)


class Table:
    """All columns of a file but the label: numbers, or in columns of text, positions among their ``values``.

    ``times`` has the formats, as of `find_time_format`, of the columns that are taken for dates with times, and become
    days at once: there are too many values to look at each by itself, as is done with those of text.
    ``changed`` are the columns that came as text first and as numbers then, or the other way round, or as something
    else than times: what they hold is known only if they are read as text from the start.
    """

    def __init__(self, width, target, times=None):
        self.columns = [j for j in range(width) if j != target]
        self.target, self.times = target, times or {}
        self.cells = np.empty((0, len(self.columns)))
        self.n_rows = 0
        self.values, self.changed = {}, set()
        self.labels, self.label_codes = {}, []

    def add(self, frame, share=1.0):
        """Take over the rows of a frame; by the share of the file read so far, there is room made for the rest."""
        start, end = self.n_rows, self.n_rows + len(frame)
        if end > len(self.cells):
            shape = int(end / share * 1.02) + 1, self.cells.shape[1]
            if start:
                self.cells.resize(shape, refcheck=False)
            else:
                self.cells = np.empty(shape)  # a first array that is resized would be filled with zeros
        if self.target is not None:
            self.label_codes.append(_encode(frame[self.target], self.labels, is_missing=lambda cell: False))
        are_numbers = [dtype.kind in "biuf" for dtype in frame.dtypes]
        self._add_numbers(frame, [k for k, j in enumerate(self.columns) if are_numbers[j]])
        for k, j in enumerate(self.columns):
            if j in self.times:
                self._add_times(frame[j], k, j)
                continue
            if start and are_numbers[j] == (k in self.values):
                self.changed.add(j)
            if not are_numbers[j]:
                self.cells[start:end, k] = _encode(frame[j], self.values.setdefault(k, {}), is_empty)
        self.n_rows = end

    def _add_times(self, column, k, j):
        if j not in self.changed:
            days = parse_times(column, *self.times[j])
            if days is None:
                self.changed.add(j)
            else:
                self.cells[self.n_rows : self.n_rows + len(column), k] = days

    def _add_numbers(self, frame, which):
        """Take over the columns of numbers, all at a time for some rows, which a cache holds."""
        columns = [frame[self.columns[k]].to_numpy() for k in which]
        for i in range(0, len(frame), AT_A_TIME):
            rows = slice(self.n_rows + i, self.n_rows + min(i + AT_A_TIME, len(frame)))
            for k, column in zip(which, columns):
                self.cells[rows, k] = column[i : i + AT_A_TIME]

    def finish(self):
        """Give back the room that was not needed."""
        self.cells.resize((self.n_rows, self.cells.shape[1]), refcheck=False)
        return self

    def column(self, k):
        """The cells of a column, the label not counted."""
        cells = self.cells[:, k]
        if (j := self.columns[k]) in self.times:
            return DayCells(cells, self.times[j][0])
        return TextCells(cells, list(self.values[k])) if k in self.values else cells

    def ends_are_missing(self):
        """Whether the last cell of a row is missing, which it is in a row that is too short."""
        if self.target == len(self.columns):
            return "" in self.labels
        last = self.cells[:, -1]
        return bool((last < 0).any() if len(self.columns) - 1 in self.values else np.isnan(last).any())

    def make_labels(self, path, decimal):
        """The labels: numbers, if they all are, else text; None if there is no such column."""
        if self.target is None:
            return None
        codes = np.concatenate([np.empty(0, int), *self.label_codes])
        values = ["nan" if is_missing(value) else value.replace(decimal, ".") for value in self.labels]
        if all(map(is_number, values)):
            return np.array([float(value) for value in values])[codes]
        longest = max(map(len, self.labels))
        if longest > LONGEST_LABEL:
            raise InputError(
                f"{path}: the label column holds {longest} characters in a cell, expected one of two classes"
            )
        allow(path, TEXT_BYTES * self.n_rows * longest, "the label column")
        return np.array(list(self.labels))[codes]


def _encode(column, positions, is_missing):
    """For each cell its value's position, which is new if the value is; -1 for a missing one."""
    codes, values = column.factorize()
    return place(codes, values.tolist(), positions, is_missing)


def place(codes, values, positions, is_missing):
    """For each code the position of its value, which is new if the value is; -1 for a missing one and the code -1."""
    values = [str(value).strip() for value in values]
    of_value = [-1 if is_missing(value) else positions.setdefault(value, len(positions)) for value in values]
    return np.array([*of_value, -1])[codes]
