"""The columns of a CSV file: cells of text become numbers, parts of dates, or places in a list of values.

A column is described by a dict that JSON can hold: its ``name`` (None without a header), its ``kind``, number, date,
text or left out, and what else another file needs to be read alike.
"""

import re

import numpy as np

from preprocess import InputError, listing
from tenfold.readers.base import DATE_PARTS, MISSING, WIDTHS

EMPTY = MISSING | {  # cells, beside labels, that count as missing
    *("none", "-", "--", "\u2013", "\u2014", ".", "n.a.", "nat", "-nan", "nil", "(null)", "\\n", "missing"),
    *("#n/a", "#na", "<na>", "#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!"),
}
NA_VALUES = sorted({form(word) for word in EMPTY for form in (str, str.upper, str.capitalize)} | {"NaN"})
FEW = 0.1  # share of cells of a column of numbers or dates that may be something else
CODES = 10  # if these do not have so many times as many values as the rest, and are more than RARE, all are codes
RARE = 0.02
INDEX_NAME = re.compile(r"(?i:|#|unnamed: 0|(.*[ _.-])?(id|idx|index|row|nr|no))|.*[a-z]I[dD]")
WORDS = {"true": 1.0, "false": 0.0, "inf": np.inf, "infinity": np.inf}
STARTS = frozenset("+-\u2212(.,0123456789$€£¥")  # of all other numbers
AROUND = re.compile(r"^[$€£¥]\s*|(?<=^[+-])\s*[$€£¥]\s*|\s*[%$€£¥]$")
GROUPS = {
    mark: re.compile(rf"[+-]?\d{{1,3}}([{group} '\u00a0\u202f]\d{{3}})+({re.escape(mark)}\d*)?")
    for mark, group in (".,", ",.")
}
TIME = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?\S*\s*(?:([apAP])\.?[mM])?")
DATE = re.compile(rf"\d{{1,4}}([-/.])(?:\d{{1,2}}|[A-Za-z]{{3}})\1\d{{1,4}}([ T]{TIME.pattern}.*)?")
DATE_FORMATS = ["%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d-%b-%Y"]
DATE_FORMATS += ["%d.%m.%y", "%m/%d/%y", "%d/%m/%y", "%d-%b-%y"]
TIME_FORMATS = ["%H:%M:%S", "%H:%M"]  # that most dates with a time have
DATE_WORDS = {"Y": "year", "y": "year", "m": "month", "b": "month", "d": "day"}


def is_empty(cell):
    """Whether a cell of a feature stands for a missing value."""
    return cell.lower() in EMPTY


def to_number(cell, decimal="."):
    """The number that a cell means, such as 1,234 or 12 % or ($5) or True, or None if it is none."""
    if cell[:1] not in STARTS:
        return WORDS.get(cell.lower())
    if cell[0] == "(" and cell[-1] == ")":
        cell = f"-{cell[1:-1]}"  # as accountants write it
    cell = AROUND.sub("", cell.replace("\u2212", "-"))
    if GROUPS[decimal].fullmatch(cell):
        cell = "".join(c for c in cell if c.isdigit() or c in "+-" or c == decimal)
    try:
        return None if "_" in cell else float(cell.replace(decimal, "."))
    except ValueError:
        return None


class TextCells:
    """A column of text: ``values``, and for each row the position of its value among them, -1 where it is missing."""

    def __init__(self, codes, values):
        self.codes, self.values = codes.astype(np.intp), values
        self.counts = np.bincount(self.codes[self.codes >= 0], minlength=len(values))
        self.filled = max(self.counts.sum(), 1)

    def look_up(self, of_value):
        """What each row has, given what each value has; NaN where it is missing."""
        return np.append(np.asarray(of_value, float), np.nan)[self.codes]

    def numbers(self, decimal):
        """The number of each value, NaN where it is none."""
        return np.array([np.nan if (n := to_number(value, decimal)) is None else n for value in self.values], float)

    def share_of(self, is_so):
        """The share of filled cells whose value is so."""
        return self.counts[is_so].sum() / self.filled


class DayCells:
    """A column of dates, all written in one format: the day of each row, as of `to_days`."""

    def __init__(self, days, format_):
        self.days, self.format_ = days, format_


def parse_times(column, format_, tail):
    """The days of a pandas column of dates with times, or None if there is anything else among them."""
    import pandas as pd

    parsed = pd.to_datetime(column, format=format_ + tail, errors="coerce")
    if (parsed.isna() & column.notna()).any():
        return None
    day, second = np.divmod(parsed.to_numpy("datetime64[s]").astype(np.int64), 86_400)
    part = second // 3600 / 24 + second % 3600 // 60 / 1440 + second % 60 / 86_400
    return np.where(parsed.isna(), np.nan, day + part)


def find_time_format(cells):
    """The formats of date and time that all of these first cells of a column have, or None if there are none."""
    import pandas as pd

    if not cells or not all(DATE.fullmatch(cell) and ":" in cell for cell in cells):
        return None
    format_ = _best_date_format(cells)
    tails = (mark + time for mark in " T" for time in TIME_FORMATS)
    return next(((format_, tail) for tail in tails if parse_times(pd.Series(cells), format_, tail) is not None), None)


def to_days(values, format_):
    """The day since 1970 of each value, with a part of a day for the time, NaN where it is no date."""
    import pandas as pd

    pairs = [value.replace("T", " ", 1).partition(" ")[::2] for value in values]
    dates = list(dict.fromkeys(date for date, _ in pairs))
    parsed = pd.to_datetime(pd.Series(dates, dtype=object), format=format_, errors="coerce").to_numpy("datetime64[D]")
    day = dict(zip(dates, np.where(np.isnat(parsed), np.nan, parsed.astype(np.int64)).tolist()))
    return np.array([day[date] + (_part_of_day(time) if time else 0) for date, time in pairs], float)


def _part_of_day(time):
    if not (found := TIME.match(time)):
        return np.nan
    hour, minute, second, half = found.groups()
    hour = int(hour) % 12 + 12 * (half.lower() == "p") if half else int(hour)
    return hour / 24 + int(minute) / 1440 + int(second or 0) / 86_400


def describe(path, name, where, cells, decimal, notes):
    """What is in a column of the training file; ``where`` is what it is called in a note, if there is one to make."""
    if isinstance(cells, DayCells) and not np.isnan(cells.days).all():
        return _describe_dates(path, name, where, cells.days, cells.format_, notes)
    if not isinstance(cells, TextCells):
        return {"name": name, "kind": "number"}
    numbers = ~np.isnan(cells.numbers(decimal))
    if _are_most(cells, numbers):
        _note_strange(path, where, cells, ~numbers, "numbers", notes)
        return {"name": name, "kind": "number"}
    format_ = _find_date_format(cells)
    days = to_days(cells.values, format_) if format_ else np.full(len(cells.values), np.nan)
    if _are_most(cells, ~np.isnan(days)):
        _note_strange(path, where, cells, np.isnan(days), "dates", notes)
        return _describe_dates(path, name, where, days, format_, notes)
    n = len(cells.values)
    notes.append(f"{path}: {where} holds text: {n} value{'s' * (n > 1)}")
    return {"name": name, "kind": "text", "values": sorted(cells.values)}


def _describe_dates(path, name, where, days, format_, notes):
    origin = float(np.floor(np.nanmin(days)))
    first = np.datetime64(int(origin), "D")
    order = "".join(DATE_WORDS.get(part, part) for part in re.split(r"%(.)", format_))
    notes.append(
        f"{path}: {where} holds dates ({order}); it becomes {', '.join(DATE_PARTS[1:])} and days since {first}"
    )
    return {"name": name, "kind": "date", "format": format_, "origin": origin}


def _are_most(cells, is_so):
    """Whether all cells but a few are so, and these few are not the rarer of a few codes."""
    share = cells.share_of(~is_so)
    return share < RARE or (share < FEW and is_so.sum() >= CODES * (~is_so).sum())


def _check_strange(path, where, cells, strange, what, notes):
    """Refuse a column that is not what it is in the training file, but for a few cells."""
    if cells.share_of(strange) >= FEW:
        raise InputError(f"{path}: {where} holds text, expected {what} as in the training file")
    _note_strange(path, where, cells, strange, what, notes)


def _note_strange(path, where, cells, strange, what, notes):
    if n := int(cells.counts[strange].sum()):
        found = listing([value for value, is_so in zip(cells.values, strange) if is_so], most=3)
        rest = f"{n} cells ({found}), which count" if n > 1 else f"1 cell ({found}), which counts"
        notes.append(f"{path}: {where} holds {what}, except for {rest} as missing")


def _find_date_format(cells):
    """The format by which most of the first values are dates, or None if they do not look like dates."""
    if not cells.values or cells.share_of(np.array([not DATE.fullmatch(value) for value in cells.values])) >= FEW:
        return None
    return _best_date_format([value for value in cells.values if DATE.fullmatch(value)][:1000])


def _best_date_format(values):
    return min(DATE_FORMATS, key=lambda format_: np.isnan(to_days(values, format_)).sum())


def check_csv(csv, n_features):
    """Refuse descriptions of columns, as a model file holds them, that do not make so many features."""
    found = sum(map(width, csv["columns"]))
    names = [column["name"] for column in csv["columns"]] + [csv["label"]]
    values = [value for column in csv["columns"] for value in column.get("values", [])]
    if found != n_features or not isinstance(csv["position"], (int, type(None))):
        raise ValueError(f"its columns make {found} features, expected {n_features}")
    if not all(isinstance(text, str) for text in values + [name for name in names if name is not None]):
        raise ValueError("its columns have names or values that are not text")


def width(column):
    """How many features a column becomes, by its description."""
    if column["kind"] == "date" and (column["format"] not in DATE_FORMATS or not np.isfinite(column["origin"])):
        raise ValueError(f"its dates are written as {column['format']}")
    return WIDTHS[column["kind"]]


def is_index(name, cells, n_rows):
    """Whether a column only numbers the rows, which may be some of more rows, or in another order."""
    if name is None or not INDEX_NAME.fullmatch(name) or not isinstance(cells, np.ndarray) or n_rows < 2:
        return False
    return bool((cells >= 0).all() and (cells == np.floor(cells)).all() and len(np.unique(cells)) == n_rows)


def convert(path, column, where, cells, decimal, notes):
    """The part of X that a column becomes, rows x columns of numbers: of text, the places of the column's values."""
    kind = column["kind"]
    cells = _as_kind(path, kind, where, cells)
    if kind == "number":
        if not isinstance(cells, TextCells):
            return cells[:, None]
        numbers = cells.numbers(decimal)
        _check_strange(path, where, cells, np.isnan(numbers), "numbers", notes)
        return cells.look_up(numbers)[:, None]
    if kind == "date":
        if isinstance(cells, DayCells):
            days, look_up = cells.days, np.asarray
        else:
            days, look_up = to_days(cells.values, column["format"]), cells.look_up
            _check_strange(path, where, cells, np.isnan(days), "dates", notes)
        parts = days - column["origin"], *_parts_of(days)
        return np.column_stack([look_up(part) for part in parts])
    position = {value: j for j, value in enumerate(column["values"])}
    new = [value for value in cells.values if value not in position]
    position |= {value: len(column["values"]) + j for j, value in enumerate(new)}
    codes = np.array([position[value] for value in cells.values] + [np.nan])[cells.codes]
    return NewValues(codes[:, None], new)


def _as_kind(path, kind, where, cells):
    """Cells that another file has as numbers or dates, as text where the training file has something else."""
    if isinstance(cells, DayCells) and kind != "date":
        if not np.isnan(cells.days).all():
            expected = {"number": "numbers"}.get(kind, kind)
            raise InputError(f"{path}: {where} holds dates, expected {expected} as in the training file")
        return TextCells(np.full(len(cells.days), -1), [])
    if isinstance(cells, np.ndarray) and kind != "number":
        codes, known = np.full(len(cells), -1), ~np.isnan(cells)
        numbers, codes[known] = np.unique(cells[known], return_inverse=True)
        return TextCells(codes, [np.format_float_positional(number, trim="-") for number in numbers])
    return cells


class NewValues(np.ndarray):
    """A column of places in a list of values, behind which come ``new`` ones."""

    def __new__(cls, codes, new):
        column = codes.view(cls)
        column.new = new
        return column

    def __array_finalize__(self, other):
        self.new = getattr(other, "new", [])


def new_values(parts):
    """The new values of each column of X that is made of these parts, by its number."""
    first = np.cumsum([0, *(part.shape[1] for part in parts)])
    return {int(j): part.new for j, part in zip(first, parts) if getattr(part, "new", None)}


def _parts_of(days):
    """Weekday, month, day of the month, and hour of days since 1970."""
    known = np.flatnonzero(~np.isnan(days))
    date = np.floor(days[known]).astype("datetime64[D]")
    month = date.astype("datetime64[M]")
    of_known = (
        np.floor(days[known] + 3) % 7,  # 1970 began on a Thursday
        month.astype(int) % 12 + 1,
        (date - month.astype("datetime64[D]")).astype(int) + 1,
        np.floor(days[known] % 1 * 24 + 1e-6),
    )
    parts = np.full((len(of_known), len(days)), np.nan)
    parts[:, known] = of_known
    return parts
