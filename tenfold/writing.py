"""The result on standard output, and files that are written whole or not at all."""

import errno
import io
import os
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from preprocess import InputError
from tenfold.readers.base import reason

PAGE_MARK = b"<!doctype html><!-- written by exp.py -->"  # at the start of pages
FIGURE_MARK = b"exp.py"  # at the start of figures, as the program that has drawn them
FIGURES = ("roc", "scores", "auc_time", "auc_steps", "compare", "precision_recall", "cost", "columns", "dependence")


def print_result(text):
    """Write a line to standard output."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    print(text, flush=True)


def check_outputs(options, inputs):
    """Find out before the run whether all can be written that is to be written after it."""
    outputs = {"--save": options.save, "--scores": options.scores, "--page": options.page}
    outputs = {option: path for option, path in outputs.items() if path is not None}
    inputs = [*inputs, *([options.model] if options.model else [])]
    for option, path in outputs.items():
        _check_output(option, path, inputs, options.force)
        for other in outputs:
            if other < option and outputs[other].resolve() == path.resolve():
                raise InputError(f"{other} and {option} are both {path}, expected two files")
    if options.plots:
        if find_spec("matplotlib") is None:
            raise InputError("--plots needs matplotlib, which is not installed: python -m pip install matplotlib")
        _check_directory(options.plots, options.force)


def _check_output(option, path, inputs, force):
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
    if not force and path.stat().st_size and (writer := _writer_of(path)) != option:
        found = f"was written by {writer}" if writer else "was not written by this program"
        raise InputError(f"{option} {path} exists and {found}, expected another name, or --force")


def _check_directory(path, force):
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "a file has this name" if path.exists() else error.strerror
        raise InputError(f"--plots {path} cannot be made a directory: {reason}") from error
    if not os.access(path, os.W_OK):
        raise InputError(f"--plots {path} cannot be written to, expected a directory to write into")
    for name in FIGURES:
        if (figure := path / f"{name}.png").exists():
            _check_existing("--plots", figure, force)


def _writer_of(path):
    """The option by which an earlier run has written a file, or None."""
    with path.open("rb") as file:
        head = file.read(200)
    is_zip = head.startswith(b"PK") and zipfile.is_zipfile(path)
    found = {
        "--scores": head.startswith(b"row,score"),
        "--page": head.startswith(PAGE_MARK),
        "--plots": head.startswith(b"\x89PNG") and FIGURE_MARK in head,
        "--save": is_zip and "about.npy" in zipfile.ZipFile(path).namelist(),
    }
    return next((option for option, is_so in found.items() if is_so), None)


def write_whole(path, write):
    """Call ``write`` with a file to write to; what was at ``path`` before stays until all is written.

    Links are followed, and a device or a pipe, which another file must not replace, is written to as it is.
    """
    path = Path(path)
    real = path.resolve()
    try:
        if real.exists() and not real.is_file():
            with real.open("wb") as file:
                write(file)
        else:
            _replace(real, write)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {reason(error)}") from error


def _replace(path, write):
    part = path.with_name(f".exp.py.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_scores(path, scores, probability=None, acted=None, rows=None):
    """A .csv file with a line for each row: its number, from 1, its score and, if known, probability and decision.

    ``rows`` are the numbers of the rows, from 0, where they are not all.
    """
    rows = np.arange(len(scores)) if rows is None else rows
    columns = {"score": scores, "probability": probability, "decision": acted}
    columns = {name: column for name, column in columns.items() if column is not None}
    lines = zip(*(column.astype(int if name == "decision" else float).tolist() for name, column in columns.items()))

    def write(file):
        text = io.TextIOWrapper(file, encoding="ascii", newline="\n")
        text.write(",".join(["row", *columns]) + "\n")
        text.writelines(f"{row + 1},{','.join(map(repr, line))}\n" for row, line in zip(rows.tolist(), lines))
        text.flush()
        text.detach()

    write_whole(path, write)
