"""From files to `Data`: one module for each format, behind ``load`` and ``stream``; ``base.py`` says what it offers."""

import glob
import zlib
from pathlib import Path

from preprocess import InputError
from tenfold.readers import csv_text, libsvm, matlab, numpy_files, parquet
from tenfold.readers.base import Wanted, check_file, no_garbage, no_warnings, reason
from tenfold.readers.checks import check, in_rows, is_in_rows  # noqa: F401
from tenfold.readers.files import find_copies, find_files
from tenfold.readers.text import ending

READERS = (matlab, csv_text, libsvm, numpy_files, parquet)
DEFAULT = matlab  # for files whose ending is none of these


def load(path, **wanted):
    """Read a file by its ending: .csv, .tsv, .npz, .parquet, LIBSVM text (.svm, .libsvm, .txt), else MATLAB.

    The keyword arguments are those of `Wanted`: which variables, which label column.

    Examples
    --------
    >>> import numpy, tempfile
    >>> from tenfold import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.savez(folder + "/data.npz", X=[[1, 2], [3, 4]], y=["no", "yes"])
    ...     data = load(folder + "/data.npz", x_names=("X",), y_names=("y",))
    >>> data.X.shape, data.y.tolist()
    ((2, 2), ['no', 'yes'])
    """
    path, wanted = Path(path), Wanted(**wanted)
    reader = _reader_of(path)
    try:
        check_file(path)
        with no_warnings(), no_garbage():
            data = reader.load(path, wanted)
            check(path, data, wanted.like, wanted.as_stored)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}") from error
    return data


def _reader_of(path):
    return next((reader for reader in READERS if ending(path) in reader.ENDINGS), DEFAULT)


def check_given(paths, given):
    """Refuse options, by their names, that have no effect on any of these files."""
    paths = [Path(path) for path in paths]
    effective = {option for path in paths for option in _reader_of(path).OPTIONS}
    for option in given:
        if option not in effective:
            found = " and ".join(map(str, paths)) or "the embedded sample"
            options = " or ".join(f"--{name}" for name in sorted(effective))
            expected = f"expected {options}" if options else "which needs no such option"
            raise InputError(f"--{option} has no effect on {found}, {expected}")


def stream(paths, start=0, stop=None, **wanted):
    """Yield the rows of files that need not fit into memory, a `Data` of some at a time, and the share read so far.

    The files are a .npy pair, features and labels, or one of CSV text, LIBSVM text or Parquet. Of columns and
    categories, there are those of the first `Data`, or of ``like``. The other keyword arguments are those of `Wanted`;
    ``start`` and ``stop`` are in units of ``length``.
    """
    paths, wanted = [Path(path) for path in paths], Wanted(**wanted)
    reader, like = _streamer_of(paths), wanted.like
    try:
        for path in paths:
            check_file(path)
        for data, share in reader.stream(paths, wanted, start, stop):
            check(paths[0], data, like)
            like = like or data
            yield data, share
    except (EOFError, zlib.error) as error:
        raise InputError(f"{paths[0]} is damaged or cut short: {reason(error)}") from error
    except OSError as error:
        raise InputError(f"{paths[0]} cannot be read: {reason(error)}") from error


def length(paths):
    """The greatest ``stop`` of a stream of these files, in units of its own, or None if it cannot be cut."""
    paths = [Path(path) for path in paths]
    try:
        return _streamer_of(paths).length(paths)
    except OSError as error:
        raise InputError(f"{paths[0]} cannot be read: {reason(error)}") from error


def _streamer_of(paths):
    endings = tuple(ending(path) for path in paths)
    reader = next((reader for reader in READERS if endings in getattr(reader, "STREAMED", ())), None)
    if reader is None:
        raise _unknown(paths)
    return reader


def _unknown(paths):
    found = " and ".join(map(str, paths[:5])) or "no file"
    return InputError(
        f"--stream with {found}, expected x.npy and y.npy, or files of one kind: CSV text, LIBSVM text or Parquet"
    )


def find_streams(names):
    """The files that make up a stream, those that belong together in a tuple, and what there is to say about them.

    The names are those of files, of directories, or patterns; their order does not matter, but for that of a pair.
    """
    groups, notes = group_files(names)
    return groups, notes + find_copies(groups)


def is_stream(names):
    """Whether what these names stand for is read some rows at a time: several files, or a kind that can be."""
    if len(names) > 1 or Path(names[0]).is_dir() or glob.has_magic(str(names[0])):
        return True
    return any((ending(Path(names[0])),) in getattr(reader, "STREAMED", ()) for reader in READERS)


def input_files(names):
    """All files that these names stand for, in order."""
    return [path for paths in group_files(names)[0] for path in paths] if is_stream(names) else list(names)


def group_files(names):
    """As `find_streams`, without a look into the files for copies of others."""
    streamed = {reader: {e for unit in getattr(reader, "STREAMED", ()) for e in unit} for reader in READERS}
    files, notes = find_files(names, set().union(*streamed.values()))
    readers = {reader for reader, endings in streamed.items() if any(ending(file) in endings for file in files)}
    if len(readers) != 1 or not all(ending(file) in streamed[reader] for reader in readers for file in files):
        raise _unknown(files)
    (reader,) = readers
    groups = reader.group(files) if hasattr(reader, "group") else [(file,) for file in sorted(files)]
    return groups, notes
