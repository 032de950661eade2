"""Text files, packed or not: their endings, their bytes, and some lines of them at a time."""

import bz2
import gzip
import io
import os
import zlib
from pathlib import Path

import numpy as np

from preprocess import InputError
from tenfold.readers.base import allow, reason

OPENERS = {".gz": gzip.open, ".bz2": bz2.open}
STREAMED_CELLS = 2_000_000  # cells read at a time from a stream
LONGEST_LINE = 2**25  # bytes
MOST_TEXT = 2**24  # bytes that packed text may unpack to, or SWELLING times the file's size if that is more:
# split into cells, it takes some forty times as much


class CannotCut(Exception):
    """A row of a text file goes on over several lines, so that the file must be read from its beginning."""


def ending(path):
    """The ending of a file's name, or of what is packed in it."""
    return Path(path.stem if path.suffix.lower() in OPENERS else path.name).suffix.lower()


def open_text(path):
    """The bytes of a text file; what is packed is unpacked beforehand, so that it is refused before it is split up."""
    if path.suffix.lower() not in OPENERS:
        return path.open("rb")
    text = io.BytesIO()
    try:
        with OPENERS[path.suffix.lower()](path) as file:
            while piece := file.read(2**20):
                text.write(piece)
                allow(path, text.tell(), "the text", MOST_TEXT)
    except (EOFError, zlib.error) as error:
        raise InputError(f"{path} is damaged or cut short: {reason(error)}") from error
    text.seek(0)
    return text


def open_unpacked(path, start=0, stop=None):
    """The bytes of a text file as they are stored, and as they are once unpacked, which is done on the way.

    Of a file that is not packed there may be asked for the lines that begin between two bytes.
    """
    raw = path.open("rb")
    opener = OPENERS.get(path.suffix.lower())
    if opener:
        return raw, opener(raw)
    return raw, raw if start == 0 and stop is None else Lines(raw, start, stop)


def length(paths):
    """The bytes of a text file, None if it is packed: then it has to be read from its beginning."""
    (path,) = paths
    return None if path.suffix.lower() in OPENERS else path.stat().st_size


class Lines(io.BufferedIOBase):
    """The lines of a file that begin between two bytes; rows of several lines, in quotes, are found out."""

    def __init__(self, file, start, stop):
        self.file, self.is_inside = file, False
        self.end = None if stop is None else self._next_line(stop)
        self.start = self._next_line(start)
        file.seek(self.start)

    def _next_line(self, position):
        """Where the first line begins that does not begin before this byte."""
        if position == 0:
            return 0
        self.file.seek(position - 1)
        while (piece := self.file.readline(LONGEST_LINE)) and not piece.endswith(b"\n"):
            pass
        return self.file.tell()

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=io.SEEK_SET):
        at = {io.SEEK_SET: 0, io.SEEK_END: self.size(), io.SEEK_CUR: self.tell()}[whence] + offset
        self.file.seek(self.start + at)
        return at

    def tell(self):
        return self.file.tell() - self.start

    def size(self):
        return (os.fstat(self.file.fileno()).st_size if self.end is None else self.end) - self.start

    def _left(self, n):
        left = self.size() - self.tell()
        return left if n is None or n < 0 else min(n, left)

    def read(self, n=-1):
        piece = self.file.read(self._left(n))
        if b'"' in piece or self.is_inside:
            self._check_quotes(piece)
        return piece

    read1 = read

    def readline(self, n=-1):
        return self.file.readline(self._left(n))

    def _check_quotes(self, piece):
        """Lines must not end inside quotes, of which there are an odd number before what is inside."""
        cells = np.frombuffer(piece, np.uint8)
        is_odd = (np.cumsum(cells == ord('"'), dtype=np.int64) + self.is_inside) & 1
        if (is_odd.astype(bool) & (cells == ord("\n"))).any():
            raise CannotCut
        self.is_inside = bool(is_odd[-1]) if len(piece) else self.is_inside

    def close(self):
        self.file.close()
        super().close()


class ShortLines(io.BufferedIOBase):
    """The bytes of the last of some files, which it closes; a line so long that it would fill the memory is refused."""

    def __init__(self, path, *files):
        self.path, self.files, self.since = path, files, 0

    def readable(self):
        return True

    def read(self, n=-1):
        piece = self.files[-1].read(n)
        last = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
        self.since = len(piece) - last - 1 if last >= 0 else self.since + len(piece)
        if self.since >= LONGEST_LINE:
            raise InputError(f"{self.path} has a line of {LONGEST_LINE} bytes or more, expected shorter rows")
        return piece

    read1 = read

    def close(self):
        for file in self.files:
            file.close()
        super().close()


def rows_at_a_time(n_columns, share=1.0):
    return max(int(share * STREAMED_CELLS) // n_columns, 1000)


def lines_of(path, share=1.0, start=0, stop=None):
    """Yield some lines of a text file, packed or not, at a time, and the share of the file read so far."""
    raw, file = open_unpacked(path, start, stop)
    with raw, file:
        counted = file if isinstance(file, Lines) else raw
        size = max(counted.seek(0, io.SEEK_END), 1)
        counted.seek(0)
        lines = _read_lines(path, file, 1)
        n = rows_at_a_time(lines[0].count(b",") + lines[0].count(b":") + 1, share) if lines else 0
        while lines:
            lines += _read_lines(path, file, n - len(lines))
            filled = [line for line in lines if line.strip()]
            if filled:
                yield filled, min(counted.tell() / size, 1)
            lines = _read_lines(path, file, 1)


def _read_lines(path, file, n):
    """At most ``n`` lines, and fewer if they are so long that they would fill the memory."""
    lines, size = [], 0
    while len(lines) < n and size < 4 * LONGEST_LINE and (line := file.readline(LONGEST_LINE)):
        if len(line) == LONGEST_LINE:
            raise InputError(f"{path} has a line of {LONGEST_LINE} bytes or more, expected shorter rows")
        lines.append(line)
        size += len(line)
    return lines
