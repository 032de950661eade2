"""Text files, packed or not: their endings, their bytes, and some lines of them at a time."""

import bz2
import gzip
import io
import zlib
from pathlib import Path

from preprocess import InputError
from tenfold.readers.base import allow, reason

OPENERS = {".gz": gzip.open, ".bz2": bz2.open}
STREAMED_CELLS = 2_000_000  # cells read at a time from a stream
LONGEST_LINE = 2**25  # bytes
MOST_TEXT = 2**24  # bytes that packed text may unpack to, or SWELLING times the file's size if that is more:
# split into cells, it takes some forty times as much


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


def open_unpacked(path):
    """The bytes of a text file as they are stored, and as they are once unpacked, which is done on the way."""
    raw = path.open("rb")
    opener = OPENERS.get(path.suffix.lower())
    return raw, opener(raw) if opener else raw


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


def rows_at_a_time(n_columns):
    return max(STREAMED_CELLS // n_columns, 1000)


def lines_of(path):
    """Yield some lines of a text file, packed or not, at a time, and the share of the file read so far."""
    size = path.stat().st_size
    with path.open("rb") as raw:
        opener = OPENERS.get(path.suffix.lower())
        file = opener(raw) if opener else raw
        lines = _read_lines(path, file, 1)
        n = rows_at_a_time(lines[0].count(b",") + lines[0].count(b":") + 1) if lines else 0
        while lines:
            lines += _read_lines(path, file, n - len(lines))
            filled = [line for line in lines if line.strip()]
            if filled:
                yield filled, min(raw.tell() / size, 1)
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
