"""From files to `Data`: one module for each format, behind ``load`` and ``stream``; ``base.py`` says what it offers."""

import zlib
from pathlib import Path

from preprocess import InputError
from tenfold.readers import csv_text, libsvm, matlab, numpy_files
from tenfold.readers.base import Wanted, check_file, no_garbage, no_warnings, reason
from tenfold.readers.checks import check
from tenfold.readers.text import ending

READERS = (matlab, csv_text, libsvm, numpy_files)
DEFAULT = matlab  # for files whose ending is none of these


def load(path, **wanted):
    """Read a file by its ending: .csv or .tsv, .npz, LIBSVM text (.svm, .libsvm, .txt, also .gz or .bz2), else MATLAB.

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
            check(path, data, wanted.like)
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
            options = ", ".join(f"--{name}" for name in sorted(effective)) or "none such"
            raise InputError(f"--{option} has no effect on {found}, expected {options}")


def stream(paths, **wanted):
    """Yield the rows of files that need not fit into memory, a `Data` of some at a time, and the share read so far.

    The files are a .npy pair, features and labels, or one of CSV or LIBSVM text. Of columns and categories, there are
    those of the first `Data`. The keyword arguments are those of `Wanted`.
    """
    paths = [Path(path) for path in paths]
    endings = tuple(ending(path) for path in paths)
    reader = next((reader for reader in READERS if endings in getattr(reader, "STREAMED", ())), None)
    if reader is None:
        found = " and ".join(map(str, paths)) or "no file"
        raise InputError(f"--stream with {found}, expected x.npy and y.npy, or one file of CSV or LIBSVM text")
    like = None
    try:
        for path in paths:
            check_file(path)
        for data, share in reader.stream(paths, Wanted(**wanted)):
            check(paths[0], data, like)
            like = like or data
            yield data, share
    except (EOFError, zlib.error) as error:
        raise InputError(f"{paths[0]} is damaged or cut short: {reason(error)}") from error
    except OSError as error:
        raise InputError(f"{paths[0]} cannot be read: {reason(error)}") from error
