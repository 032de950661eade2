"""Arrays in NumPy's files are read as they were written, and pickles are not."""

import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from small_files import X_SMALL, Y_SMALL, write

from preprocess import InputError, find_classes, signs
from tenfold.readers import load
from tenfold.readers.numpy_files import read_npz

pytestmark = pytest.mark.filterwarnings("error")


def test_npz(tmp_path):
    np.savez(tmp_path / "a.npz", x_tr=X_SMALL, y_tr=["no", "yes", "no"])
    data = load(tmp_path / "a.npz")
    assert_array_equal(data.X, X_SMALL)
    assert_array_equal(signs(data.y, find_classes(data.y)), [-1, 1, -1])


@pytest.mark.parametrize("shape", [(), (3,)])
def test_npz_of_too_few_dimensions(tmp_path, shape):
    np.savez(tmp_path / "a.npz", x_tr=np.ones(shape), y_tr=Y_SMALL)
    with pytest.raises(InputError, match=f"x has {len(shape)} dimensions"):
        load(tmp_path / "a.npz")


def test_npz_with_pickles_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", x_tr=np.array([[print]], object), y_tr=Y_SMALL)
    with pytest.raises(InputError, match="plain arrays"):
        load(tmp_path / "a.npz")


def test_arrays_that_python_2_wrote_are_read_without_a_warning(tmp_path):
    np.savez(tmp_path / "a.npz", x_tr=X_SMALL, y_tr=Y_SMALL)
    rows, columns = (str(n).encode() for n in X_SMALL.shape)
    with zipfile.ZipFile(tmp_path / "a.npz") as new, zipfile.ZipFile(tmp_path / "old.npz", "w") as old:
        for name in new.namelist():
            shape = b"(%s, %s)" % (rows, columns)
            old.writestr(name, new.read(name).replace(shape + b", }  ", b"(%sL, %sL), }" % (rows, columns)))
    assert_array_equal(read_npz(tmp_path / "old.npz")["x_tr"], X_SMALL)  # as models are


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.npz", b"hello", "not a .npz file"),
    ],
)
def test_unusable_files(tmp_path, name, content, message):
    with pytest.raises(InputError, match=message) as caught:
        load(write(tmp_path / name, content))
    assert "\n" not in str(caught.value) and name in str(caught.value)


def test_a_file_cut_short_anywhere_is_an_input_error(tmp_path):
    X, y = np.random.RandomState(0).randint(0, 9, (40, 5)), np.arange(40) % 2
    path = tmp_path / "a.npz"
    np.savez(path, x_tr=X, y_tr=y)
    content = path.read_bytes()
    for length in np.linspace(0, len(content) - 1, 60).astype(int):
        with pytest.raises(InputError):
            load(write(path, content[:length]))
