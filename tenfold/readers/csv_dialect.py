"""How a CSV file is written: its encoding, its separator, its decimal mark, and where its rows begin."""

import codecs
import csv
import io
import re
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from preprocess import InputError, is_number
from tenfold.readers.base import is_missing, reason
from tenfold.readers.csv_columns import AROUND
from tenfold.readers.text import LONGEST_LINE, OPENERS, Lines, ShortLines, open_text, open_unpacked

SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
MOST_COLUMNS = 100_000
SAMPLE_LINES, SAMPLE_SIZE = 300, 2**18  # lines, or characters, by which the dialect is found
COMMENT = re.compile(r"\s*#(?![,;\t|])")  # a column may be called #
WITH_COMMA, WITH_POINT = re.compile(r"[+-]?[\d.]*,\d+"), re.compile(r"[+-]?[\d,]*\.\d+")
GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")  # 1,234, which may also be a number between 1 and 2
POINTS_GROUP = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+")
PIECE = 2**18  # bytes read at a time
LINE_END = re.compile(rb"\r\n|\r|\n")
SAYS_SEPARATOR = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)  # a first line by which Excel knows
KINDS = {  # of files that are no text, by how they begin
    b"PK\x03\x04": "an Excel workbook (.xlsx) or another zip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook (.xls)",
    b"\x1f\x8b": "packed by gzip, and needs the ending .csv.gz",
    b"BZh": "packed by bzip2, and needs the ending .csv.bz2",
    b"PAR1": "a Parquet file, and needs the ending .parquet",
    b"MATLAB": "a MATLAB file, and needs the ending .mat",
}


@dataclass
class Dialect:
    """How a file is written, and its first rows, ``width`` cells each; ``skip`` lines come before them.

    The first row takes ``first_lines`` lines: there may be line breaks in quotes.
    """

    encoding: str
    sep: str
    decimal: str
    skip: int
    first_lines: int
    width: int
    rows: list
    is_grouped: bool = False  # that there are commas between thousands
    is_checked: bool = False  # that all rows are as wide
    start: int = 0  # the byte from which on the file is read, if not from its beginning
    stop: "int | None" = None

    def open(self, path, with_first=True, unpacked=True, decoded=True):
        """The text of the file from its first or second row on, and a function for the share read so far.

        If it need not be ``decoded``, UTF-8 stays bytes, which pandas decodes where it finds text: a fifth less work.
        """
        n_lines = 0 if self.start else self.skip + (0 if with_first else self.first_lines)
        if not decoded and self.encoding == "utf-8":
            file, share = _open_bytes(path, unpacked, self.start, self.stop)
            return Undecoded(file, n_lines), share
        text, share = open_csv(path, self.encoding, unpacked, self.start, self.stop)
        for _ in range(n_lines):
            text.readline()
        return text, share

    def has_spaces(self, path):
        """Whether there may be spaces before cells: if pandas has to look for them, it takes half as long again."""
        if path.suffix.lower() in OPENERS:
            return True
        _, file = open_unpacked(path, self.start, self.stop)
        with file:
            return any(b" " in piece for piece in iter(partial(file.read, 2**20), b""))

    def notes(self, path):
        """What is unusual about it, in words."""
        mark = ", with a decimal comma" if self.decimal == "," else ""
        cells = f"cells are separated by {SEPARATORS.get(self.sep, repr(self.sep))}{mark}"
        notes = [f"{path}: {cells}"] if self.sep != "," or mark else []
        if self.is_grouped:
            notes.append(f"{path}: commas in numbers are between thousands: 1,234 is 1234")
        return notes + ([f"{path}: the text is in UTF-16"] if self.encoding == "utf-16" else [])


class Undecoded:
    """The bytes of a text file behind so many lines, in a form in which pandas takes them as they are."""

    def __init__(self, file, n_lines):
        first, ends = b"", []
        while len(ends) <= n_lines and (piece := file.read(max(len(first), PIECE))):
            first += piece
            ends = [found.end() for found in LINE_END.finditer(first)]
        self.file, self.first = file, io.BytesIO(first[[0, *ends, *[len(first)] * n_lines][n_lines] :])

    def read(self, n=-1):
        """At most ``n`` bytes: little, lest far more be read than what the next rows take."""
        n = PIECE if n < 0 else min(n, PIECE)
        return self.first.read(n) or self.file.read(n)

    def __iter__(self):
        """Only what can be iterated over is a file to pandas."""
        return iter(self.read, b"")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()


def open_csv(path, encoding, unpacked=True, start=0, stop=None):
    """The text of a file, unpacked beforehand or on the way, and a function for the share of it read so far."""
    file, share = _open_bytes(path, unpacked, start, stop)
    text = io.TextIOWrapper(file, encoding=encoding, newline="")
    text._CHUNK_SIZE = PIECE
    return text, share


def _open_bytes(path, unpacked, start, stop):
    """As `open_csv`, before it is decoded."""
    raw, file = (open_text(path),) * 2 if unpacked else open_unpacked(path, start, stop)
    counted = file if isinstance(file, Lines) else raw
    size = counted.seek(0, io.SEEK_END)
    counted.seek(0)
    return ShortLines(path, raw, file), lambda: min(counted.tell() / max(size, 1), 1)


def find_dialect(path, wanted, unpacked=True):
    """The `Dialect` of a file, by what the user says and by its first lines."""
    usual = (getattr(wanted.like, "csv", None) or {}).get("decimal", ".")
    found = path.stat()
    return replace(_find_dialect(path, found.st_size, found.st_mtime_ns, wanted.sep, wanted.encoding, usual, unpacked))


@lru_cache(maxsize=64)
def _find_dialect(path, n_bytes, changed, sep, encoding, decimal, unpacked):
    """As `find_dialect`, once for all pieces of a file that does not change."""
    encoding = _find_encoding(path, encoding, unpacked)
    try:
        skip, before, lines, whole = _first_lines(path, encoding, unpacked)
    except UnicodeError as error:
        raise not_text(path, encoding, error) from error
    if not lines:
        raise InputError(f"{path} has no rows, expected at least two")
    if any("\0" in line for line in lines):
        raise InputError(f"{path} is not CSV text: it holds null characters; --encoding utf-16-le may help")
    if sep is not None:
        sep = _check_separator(sep)
    elif said := SAYS_SEPARATOR.fullmatch(before):
        sep = said[1]
    else:
        sep = _find_separator(lines, whole)
    rows, first_lines = _split(lines, sep, whole)
    if names := _names_in_comment(before, sep, rows):
        rows, first_lines, skip = [names, *rows], 1, skip - 1
    _check_quotes(path, lines, sep, whole, len(rows))
    width = len(rows[0])
    if len(rows) > 1 and width > 1 and not any(row[-1].strip() for row in rows):
        width -= 1  # there is a separator at the end of every line
    if width > MOST_COLUMNS:
        raise InputError(f"{path} has {width} columns, expected at most {MOST_COLUMNS} in a CSV file")
    decimal = _find_decimal(rows, decimal)
    dialect = Dialect(encoding, sep, decimal, skip, first_lines, width, rows)
    for number, row in enumerate(rows, start=1):
        check_width(path, number, row, width)
    dialect.rows = [[cell.strip() for cell in row[:width]] for row in rows]
    cells = (AROUND.sub("", cell) for row in dialect.rows[1:] for cell in row)
    dialect.is_grouped = decimal == "." and any(map(GROUPED.fullmatch, cells))
    return dialect


def _find_encoding(path, given, unpacked):
    """What the user says, or else what a byte order mark says, or else UTF-8."""
    if given is not None:
        try:
            return codecs.lookup(given).name
        except LookupError:
            raise InputError(f"--encoding {given} is unknown, expected one such as utf-8, utf-16 or latin-1") from None
    raw, file = (open_text(path),) * 2 if unpacked else open_unpacked(path)
    with raw, file:
        start = file.read(6)
    if kind := next((kind for mark, kind in KINDS.items() if start.startswith(mark)), None):
        raise InputError(f"{path} is not CSV text: it is {kind}" + ("; save it as CSV" * ("Excel" in kind)))
    return next((name for mark, name in MARKS.items() if start.startswith(mark)), "utf-8")


def not_text(path, encoding, error):
    """The `InputError` for a file that is not text of the encoding that was found."""
    name = "UTF-8" if encoding.startswith("utf-8") else encoding
    return InputError(f"{path} is not CSV text in {name}: {reason(error)}; try --encoding, for example latin-1")


def _first_lines(path, encoding, unpacked):
    """How many lines are comments or empty, the last of them, the first lines after them, and whether these are all."""
    text, _ = open_csv(path, encoding, unpacked)
    skip, before, lines, size = 0, "", [], 0
    with text:
        while line := text.readline(LONGEST_LINE):
            if not lines and (not line.strip() or COMMENT.match(line) or (not skip and SAYS_SEPARATOR.fullmatch(line))):
                skip, before = skip + 1, line
                continue
            lines.append(line)
            size += len(line)
            if len(lines) >= SAMPLE_LINES or (size > SAMPLE_SIZE and len(lines) > 3):
                return skip, before, lines, False
    return skip, before, lines, True


def _names_in_comment(line, sep, rows):
    """The names in a comment right above rows with numbers, if it has as many cells, as NumPy writes a header."""
    if not COMMENT.match(line):
        return None
    names = [name.strip() for name in next(csv.reader([line.strip()[1:]], delimiter=sep, skipinitialspace=True))]
    is_header = len(names) == len(rows[0]) > 1 and all(names) and not any(map(is_number, names))
    return names if is_header and any(map(is_number, rows[0])) else None


def _check_separator(sep):
    sep = {"tab": "\t", "\\t": "\t"}.get(sep, sep)
    if len(sep) != 1 or sep in '"\r\n':
        raise InputError(f"--sep {sep!r} is not a separator, expected one character, or tab")
    return sep


def _split(lines, sep, whole):
    """The rows of cells in some lines, and the lines of the first; the last row may be cut short, unless it is all."""
    reader = csv.reader(lines, delimiter=sep, skipinitialspace=True)
    rows, first_lines = [], 0
    try:
        for row in reader:
            if any(cell.strip() for cell in row) or len(row) > 1:
                rows.append(row)
            first_lines = first_lines or reader.line_num
    except csv.Error:  # a cell too long to be one: pandas says more about it
        pass
    if len(rows) > 1 and not whole:
        rows.pop()
    return rows or [[""]], first_lines


def _check_quotes(path, lines, sep, whole, n_rows):
    """Refuse a first row that does not end: pandas finds it out in the others."""
    try:
        for _ in csv.reader(lines if whole else (), delimiter=sep, skipinitialspace=True, strict=True):
            pass
        is_open = not whole and n_rows < 2
    except csv.Error as error:
        is_open = "unexpected end" in str(error)
    if is_open:
        raise InputError(f"{path} is not CSV text: there is a quote without an end in its first {len(lines)} lines")


def _find_separator(lines, whole):
    """The separator that splits all rows into equally many cells, most of them numbers, and then into most cells."""

    def merit(sep):
        rows, _ = _split(lines, sep, whole)
        rows = rows[:100]
        widths = {len(row) for row in rows}
        cells = [cell for row in rows[1:] or rows for cell in row[:200]]
        return (
            len(rows[0]) > 1,
            len(widths) == 1,
            sum(_like_number(cell, sep) for cell in cells) / max(len(cells), 1),
            len(rows[0]),
        )

    return max(SEPARATORS, key=merit)


def _like_number(cell, sep):
    cell = cell.strip()
    return is_number(cell) or is_missing(cell) or bool(sep != "," and WITH_COMMA.fullmatch(cell))


def _find_decimal(rows, usual):
    """The decimal mark: a comma, if more cells are numbers with one than with a point.

    Commas that may group digits by three, as in 1,234, must not be taken for decimal ones beside cells such as 999:
    if there are no others, it is the ``usual`` mark.
    """
    cells = [AROUND.sub("", cell.strip()) for row in rows[1:] or rows for cell in row]
    with_comma = [cell for cell in cells if WITH_COMMA.fullmatch(cell)]
    with_point = [cell for cell in cells if WITH_POINT.fullmatch(cell)]
    if all(map(POINTS_GROUP.fullmatch, with_point)) and any(
        POINTS_GROUP.fullmatch(c) and c.count(".") > 1 for c in cells
    ):
        return ","
    if all(map(GROUPED.fullmatch, with_comma)):
        return "." if with_point or not with_comma else usual
    return "," if len(with_comma) > len(with_point) else "."


def check_width(path, number, row, width, start=0):
    """Refuse a row of more or fewer cells than there should be; an empty one at its end does no harm."""
    if len(row) != width and not (len(row) == width + 1 and not row[-1].strip()):
        where = f" after byte {start}" if start else ""
        found = f"{len(row)} cells" if len(row) > 1 else "1 cell"
        raise InputError(f"{path}: row {number}{where} has {found}, expected {width} as in the first row")


def check_widths(path, dialect, unpacked=True):
    """Refuse a file some of whose rows are too short or too long: pandas fills up the short ones."""
    text, _ = dialect.open(path, unpacked=unpacked)
    with text:
        rows = csv.reader(text, delimiter=dialect.sep, skipinitialspace=True)
        filled = (row for row in rows if len(row) > 1 or "".join(row).strip())
        try:
            for number, row in enumerate(filled, start=1):
                check_width(path, number, row, dialect.width, dialect.start)
        except csv.Error as error:
            raise InputError(f"{path} is not CSV text: {reason(error)}") from error
        except UnicodeError as error:
            raise not_text(path, dialect.encoding, error) from error
    dialect.is_checked = True
