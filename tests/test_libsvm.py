"""LIBSVM text becomes sparse rows and labels. Oracle: scikit-learn's writer of such files."""

import bz2
import gzip

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import dump_svmlight_file
from small_files import X_SMALL, Y_SMALL, write

from preprocess import InputError
from tenfold.readers import load
from tenfold.readers.base import Data

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize("name", ["a.svm", "a.libsvm", "a.txt", "a.svm.gz", "a.TXT.BZ2"])
def test_libsvm(tmp_path, name):
    dump_svmlight_file(X_SMALL, Y_SMALL, str(tmp_path / "plain"), zero_based=False)
    pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(name[name.rfind(".") :].lower(), bytes)
    data = load(write(tmp_path / name.lower(), pack((tmp_path / "plain").read_bytes())))
    assert_array_equal(data.X.toarray(), X_SMALL)
    assert_array_equal(data.y, Y_SMALL)


@pytest.mark.parametrize("zero_based", [True, False])
def test_libsvm_test_file_counts_features_as_the_training_file_does(tmp_path, zero_based):
    """Even if its first or last features are zero in every row."""
    middle = X_SMALL * [0, 1, 0]
    for name, X in [("train.svm", X_SMALL), ("test.svm", middle)]:
        dump_svmlight_file(X, Y_SMALL, str(tmp_path / name), zero_based=zero_based)
    test = load(tmp_path / "test.svm", like=load(tmp_path / "train.svm"))
    assert_array_equal(test.X.toarray(), middle)


def test_libsvm_test_file_that_counts_from_0_after_a_training_file_that_counts_from_1(tmp_path):
    train, test = write(tmp_path / "train.svm", "1 1:1\n0 2:1\n"), write(tmp_path / "test.svm", "1 0:5\n0 1:6\n")
    with pytest.raises(InputError, match="counts its features from 0, expected from 1"):
        load(test, like=load(train))
    assert_array_equal(load(test, like=Data(np.eye(2), np.array([0, 1]))).X, [[5, 0], [0, 6]])


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.svm", "yes 1:2\n", "not LIBSVM"),
        ("a.svm", "1 2:1 1:1\n", "not LIBSVM"),
        ("a.svm", "1 5\n", "not LIBSVM"),
        ("a.svm.bz2", bz2.compress(b"1 1:1\n" * 9)[:-9], "a.svm.bz2"),
    ],
)
def test_unusable_files(tmp_path, name, content, message):
    with pytest.raises(InputError, match=message) as caught:
        load(write(tmp_path / name, content))
    assert "\n" not in str(caught.value) and name in str(caught.value)
