"""The files that a stream is made of: by their names, by directories, and by patterns."""

import filecmp
import glob
from pathlib import Path

from preprocess import InputError, listing
from tenfold.readers.base import check_file
from tenfold.readers.text import ending


def find_files(names, endings):
    """The files that these names, directories and patterns stand for, and what there is to say about them.

    Of a directory, these are all files with one of the ``endings``.
    """
    files, notes = [], []
    for name in names:
        path = Path(name)
        if path.is_dir():
            files += _in_directory(path, endings, notes)
        elif not path.exists() and glob.has_magic(str(name)):
            found = [file for file in map(Path, glob.glob(str(name), recursive=True)) if file.is_file()]
            if not found:
                raise InputError(f"{name}: there is no file whose name is like that")
            files += sorted(found)
        else:
            files.append(path)
    seen = set()
    for file in files:
        check_file(file)
        if (real := file.resolve()) in seen:
            raise InputError(
                f"{file} is given twice, expected each file once: rows to test on must not be learned from"
            )
        seen.add(real)
    return files, notes


def find_copies(groups):
    """What there is to say about files that hold the same bytes as others; those of a group belong together.

    They are not refused, because they may be without rows.
    """
    notes, alike = [], {}
    for paths in groups:
        others = alike.setdefault(tuple((path.stat().st_size, _first_bytes(path)) for path in paths), [])
        same = (other for other in others if all(filecmp.cmp(a, b, shallow=False) for a, b in zip(paths, other)))
        if other := next(same, None):
            found = f"{paths[0]} holds the same bytes as {other[0]}"
            notes.append(f"{found}: rows to test on, if there are any, are also learned from")
        else:
            others.append(paths)
    return notes


def _first_bytes(path):
    with open(path, "rb") as file:
        return file.read(4096)


def _in_directory(directory, endings, notes):
    """The files of a directory, but those that are hidden or, as ``_SUCCESS``, only say how they were made."""
    there = [path for path in sorted(directory.iterdir()) if path.name[0] not in "._"]
    files = [path for path in there if path.is_file() and ending(path) in endings]
    if not files:
        raise InputError(f"{directory} holds no file to stream, expected files that end in {listing(sorted(endings))}")
    if len(files) < len(there):
        others = [f"{path.name}/" if path.is_dir() else path.name for path in there if path not in files]
        notes.append(f"{directory}: not read: {listing(others, most=5)}")
    return files
