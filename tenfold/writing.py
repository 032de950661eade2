"""The result on standard output, and files that are written whole or not at all."""

import errno
import io
import os
import sys
from pathlib import Path

from preprocess import InputError
from tenfold.readers.base import reason


def print_result(text):
    """Write a line to standard output."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    print(text, flush=True)


def write_whole(path, write):
    """Call ``write`` with a file to write to; what was at ``path`` before stays until all is written."""
    path = Path(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        try:
            with part.open("wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {reason(error)}") from error


def write_scores(path, scores, probability=None, acted=None):
    """A .csv file with a line for each row: its number, from 1, its score and, if known, probability and decision."""
    columns = {"score": scores, "probability": probability, "decision": acted}
    columns = {name: column for name, column in columns.items() if column is not None}
    lines = zip(*(column.astype(int if name == "decision" else float).tolist() for name, column in columns.items()))

    def write(file):
        text = io.TextIOWrapper(file, encoding="ascii", newline="\n")
        text.write(",".join(["row", *columns]) + "\n")
        text.writelines(f"{row},{','.join(map(repr, line))}\n" for row, line in enumerate(lines, start=1))
        text.flush()
        text.detach()

    write_whole(path, write)
