"""What the readers share, and what each of them offers.

A reader is a module of this folder, for one format. It offers

- ``ENDINGS``: the endings of the files that it reads, in lower case;
- ``OPTIONS``: the options of the command that have an effect on them;
- ``load(path, wanted)``: a `Data` with the arrays that ``wanted``, a `Wanted`, asks for;
- if files need not fit into memory, ``STREAMED``, the endings of the files that belong together, such as features and
  labels; ``stream(paths, wanted, start, stop)``, which yields a `Data` of some rows at a time and the share read so
  far; and ``length(paths)``, the greatest ``stop``, in units of its own such as rows or bytes, at any of which a
  stream can be cut in two, or None if it cannot be cut; and, where files belong together, ``group(paths)``.

A new format is one new module and its name in ``READERS`` (``__init__.py``). Readers refuse a file by `InputError`, one
line that says what was found and what was expected, or by `OSError`; what they return is checked by ``checks.py``.
"""

import contextlib
import gc
import warnings
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp

from preprocess import InputError, listing

MISSING = {"", "na", "n/a", "nan", "null", "?"}
MOST_BYTES = 2**29  # of memory that the content of a file may take, or SWELLING times the file's size if that is more
SWELLING = 20
DATE_PARTS = ["days", "weekday", "month", "day of the month", "hour"]
WIDTHS = {"number": 1, "text": 1, "date": len(DATE_PARTS), "left out": 0}  # columns of X that a column becomes
TEXT_BYTES = 16  # of memory that a character of a label costs, in several copies


@dataclass
class Data:
    """Rows and labels as they stand in a file, and what another file must share with it.

    ``y`` is None in a file without labels; ``cost`` (rows x 2) is what missing each row and what a false alarm on it
    costs, if the file says so. ``csv`` describes the columns of a CSV file, in a way that JSON can hold;
    ``first_index`` is where a LIBSVM file begins to count its features. ``new_values`` are those of text that the
    training file does not have, by the number of the column. Of a sample of a stream, ``rows`` are the numbers of the
    rows in it, from 0, and ``counts`` is how many there are of each label. ``notes`` are lines to say about the file.
    """

    X: "np.ndarray | sp.csr_array"
    y: "np.ndarray | None" = None
    cost: "np.ndarray | None" = None
    csv: "dict | None" = None
    first_index: "int | None" = None
    new_values: dict = field(default_factory=dict)
    rows: "np.ndarray | None" = None
    counts: "dict | None" = None
    notes: list = field(default_factory=list)

    @property
    def categories(self):
        """For each column of X that holds places in a list of values, by its number, that list."""
        return {j: column["values"] for j, column in self._columns_of_text()}

    def add_values(self, new_values):
        """Let the columns of text have the new values of another file, too: nothing is learned of them."""
        for j, column in self._columns_of_text():
            column["values"] = [*column["values"], *new_values.get(j, ())]

    def without_new_values(self):
        """X, in which values of text that the training file does not have are missing."""
        for j in self.new_values:
            self.X[self.X[:, j] >= len(self.categories[j]), j] = np.nan
        return self.X

    def _columns_of_text(self):
        j = 0
        for column in self.csv["columns"] if self.csv else ():
            if column["kind"] == "text":
                yield j, column
            j += WIDTHS[column["kind"]]

    def without_rows(self, classes):
        """What other files must share with this one, and the two classes for labels."""
        return replace(self, X=self.X[:0], y=classes, cost=None, new_values={}, rows=None, counts=None, notes=[])


@dataclass(frozen=True)
class Wanted:
    """What to look for in a file.

    ``x_names``, ``y_names`` and ``cost_names`` are names of variables, of which the first found is taken; ``label``
    names the label column of a CSV file, ``sep`` is what separates its cells, and ``encoding`` how its text is stored;
    they are found if they are None. ``like`` is the `Data` that this file's columns must match. Unless
    ``labelled``, the file may be without labels, as it may always be without costs. ``at_a_time`` is how much of a
    stream is read at a time, as a share of what is usual. If ``as_stored``, dense features may come in the
    order of the file, and lie there still, until `in_rows` turns them into rows.
    """

    x_names: tuple = ("x_tr",)
    y_names: tuple = ("y_tr",)
    cost_names: tuple = ()
    label: "str | None" = None
    sep: "str | None" = None
    encoding: "str | None" = None
    like: "Data | None" = None
    labelled: bool = True
    at_a_time: float = 1.0
    as_stored: bool = False

    def pick(self, path, available):
        """For each array of a `Data`, the name it has among the variables ``available``."""
        picked = {}
        for array, names in ("X", self.x_names), ("y", self.y_names), ("cost", self.cost_names):
            found = [name for name in names if name in available]
            if found:
                picked[array] = found[0]
            elif array == "X" or (array == "y" and self.labelled):
                held = listing(sorted(available)) or "no variables"
                raise InputError(
                    f"{path} holds {held}; expected {' or '.join(names)} (--x-name and --y-name choose other variables)"
                )
        return picked


@contextlib.contextmanager
def no_warnings():
    """Keep libraries from warning: what is wrong with a file is said in one line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def no_garbage():
    """Keep Python from looking for garbage, time and again, among the many cells of a text file."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def check_file(path):
    """Refuse a path at which there is no file to read."""
    if path.is_dir():
        raise InputError(f"{path} is a directory, expected a data file")
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if path.is_fifo():
        raise InputError(f"{path} is a pipe, expected a data file")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty, expected a data file")


def allow(path, n_bytes, what, least=MOST_BYTES):
    """Refuse content that swells beyond measure, as that of a damaged or hostile file may."""
    most = max(least, SWELLING * path.stat().st_size)
    if n_bytes > most:
        raise InputError(
            f"{path}: {what} would take {n_bytes / 1e6:.0f} MB or more, expected at most {most / 1e6:.0f} MB in a file "
            f"of this size; it may help to save it unpacked"
        )


def is_missing(cell):
    """Whether a cell of text stands for a missing value."""
    return cell.strip().lower() in MISSING


def reason(error):
    """What an exception says, without the names of files, or else what it is called."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def size(A):
    """The shape of an array in words."""
    return " x ".join(str(n) for n in A.shape) or "a single value"
