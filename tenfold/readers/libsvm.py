"""LIBSVM text: a label, then index:value for each cell that is not zero."""

import io

import numpy as np

from preprocess import InputError
from tenfold.readers.base import Data, reason
from tenfold.readers.text import length, lines_of, open_text  # noqa: F401  (a stream is cut at any byte)

ENDINGS = (".svm", ".libsvm", ".txt")
STREAMED = tuple((ending,) for ending in ENDINGS)
OPTIONS = ()


def load(path, wanted):
    with open_text(path) as file:
        data = _parse(path, file, wanted.like)
    if not wanted.labelled and not np.isin(data.y, wanted.like.y).all():
        data.y = None  # something stands in the place of labels in every such file
    return data


def _parse(path, file, like):
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(file, zero_based=True)
    except InputError:
        raise
    except (ValueError, OverflowError) as error:
        hint = "; a table needs the ending .csv" if path.suffix.lower() == ".txt" else ""
        raise InputError(f"{path} is not LIBSVM text: {reason(error)}{hint}") from error
    first = int(0 not in X.indices)
    if like is not None:
        if like.first_index is not None:
            if first < like.first_index:
                raise InputError(f"{path} counts its features from 0, expected from 1 as in the training file")
            first = like.first_index
        X.resize(X.shape[0], max(X.shape[1], like.X.shape[1] + first))  # the last may be zero in all rows of this file
    return Data(X[:, first:], y, first_index=first)


def stream(paths, wanted, start=0, stop=None):
    (path,) = paths
    like = wanted.like
    for lines, share in lines_of(path, wanted.at_a_time, start, stop):
        data = _parse(path, io.BytesIO(b"".join(lines)), like)
        like = like or data
        data.X = data.X[:, : like.X.shape[1]]
        if not wanted.labelled and not np.isin(data.y, like.y).all():
            data.y = None  # something stands in the place of labels in every such file
        yield data, share
