"""The result on standard output, and files that are written whole or not at all."""

import errno
import os
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from preprocess import InputError
from tenfold.readers.base import reason

FIGURE_MARK = b"exp.py"  # at the start of figures, as the program that has drawn them
FIGURES = ("roc", "scores", "auc_time", "auc_steps", "compare", "precision_recall", "cost", "columns", "dependence")


def print_result(text):
    """Write a line to standard output."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    print(text, flush=True)


def check_output(option, path, inputs, force):
    """Find out before the run whether a file can be written after it; one that exists needs ``force``."""
    if path.is_dir():
        raise InputError(f"{option} {path} is a directory, expected the name of a file")
    if any(path.exists() and Path(name).exists() and path.samefile(name) for name in inputs):
        raise InputError(f"{option} {path} is a file to read, expected another name")
    if path.exists() and not path.is_file():
        return  # a device or a pipe
    directory = path.resolve().parent
    if not directory.is_dir() or not os.access(directory, os.W_OK):
        found = "cannot be written to" if directory.is_dir() else "does not exist"
        shown = directory if path.is_symlink() else path.parent
        raise InputError(f"{option} {path}: the directory {shown} {found}, expected one to write into")
    if path.exists():
        _check_existing(option, path, force)


def _check_existing(option, path, force):
    if not os.access(path, os.W_OK):
        raise InputError(f"{option} {path} exists and cannot be written to, expected another name")
    if not force and path.stat().st_size:
        raise InputError(f"{option} {path} exists, expected another name, or --force to overwrite it")


def check_directory(path, force):
    """The same for the directory of --plots, which is made after the run if it does not exist."""
    real = path.resolve()
    there = next(one for one in (real, *real.parents) if one.exists())
    if not there.is_dir():
        found = "a file has this name" if there == real else f"{there} is a file"
        raise InputError(f"--plots {path} cannot be made a directory: {found}")
    if not os.access(there, os.W_OK):
        raise InputError(f"--plots {path} cannot be written to, expected a directory to write into")
    for name in FIGURES:
        if (figure := path / f"{name}.png").exists():
            _check_existing("--plots", figure, force)


@contextmanager
def whole_file(path):
    """A file to write to; what was at ``path`` before stays until all is written.

    Links are followed, and a device or a pipe, which another file must not replace, is written to as it is.
    """
    path = Path(path)
    real = path.resolve()
    try:
        if path.exists() and not path.is_file():  # a pipe that /dev/stdout is a link to has no path of its own
            with path.open("wb") as file:
                yield file
            return
        part = real.with_name(f".exp.py.{os.getpid()}.part")
        try:
            with part.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            part.replace(real)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {reason(error)}") from error


def write_whole(path, write):
    """Call ``write`` with a `whole_file` to write to."""
    with whole_file(path) as file:
        write(file)


class ScoreFile:
    """A file of scores that is written some rows at a time, .csv or .parquet, whole or not at all.

    A line has the number of its row, from 1, its score and, if known, its probability and decision.
    """

    def __init__(self, path):
        self.path, self.n_rows, self.is_parquet = path, 0, path.suffix.lower() in (".parquet", ".pq")
        self._stack, self._file, self._table = ExitStack(), None, None

    def __enter__(self):
        self._file = self._stack.enter_context(whole_file(self.path))
        return self

    def __exit__(self, *error):
        return self._stack.__exit__(*error)

    def add(self, scores, probability=None, acted=None, rows=None):
        """The next rows, or those with these numbers, from 0."""
        rows = np.arange(self.n_rows, self.n_rows + len(scores)) if rows is None else rows
        columns = {"row": rows + 1, "score": scores, "probability": probability}
        columns |= {"decision": None if acted is None else acted.astype(int)}
        columns = {name: column for name, column in columns.items() if column is not None}
        if self.is_parquet:
            self._add_parquet(columns)
        else:
            header = ",".join(columns) + "\n" if self.n_rows == 0 else ""
            lines = zip(*(column.tolist() for column in columns.values()))
            text = header + "".join(",".join(map(repr, line)) + "\n" for line in lines)
            self._file.write(text.encode("ascii"))
        self.n_rows += len(scores)

    def _add_parquet(self, columns):
        import pyarrow as pa
        from pyarrow import parquet

        table = pa.table(columns)
        if self._table is None:
            self._table = self._stack.enter_context(parquet.ParquetWriter(self._file, table.schema))
        self._table.write_table(table)
