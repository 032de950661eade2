"""Files become numbers and labels; raw rows become features. Oracles: SciPy, scikit-learn, and the arrays written."""

import bz2
import gzip
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.io import savemat
from sklearn.datasets import dump_svmlight_file
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

from preprocess import Data, InputError, Preprocessor, find_classes, load, show, signs

pytestmark = pytest.mark.filterwarnings("error")

X_SMALL = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 4.5], [3.0, -1.0, 0.0]])
Y_SMALL = np.array([1, -1, 1])


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def mat(path, **variables):
    savemat(path, variables, appendmat=False)
    return path


def hdf5(path, fill):
    """A file as MATLAB's -v7.3 writes it: 512 bytes of MATLAB's header, then HDF5."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w", userblock_size=512) as file:
        fill(file)
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")
    return path


# --- load: formats ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float64", "float32", "uint8", "int8", "int16", "uint16", "int32", "int64", "bool"])
@pytest.mark.parametrize("compress", [True, False])
def test_mat_keeps_types_as_small_as_they_are(tmp_path, kind, compress):
    X = np.abs(X_SMALL).astype(kind)
    savemat(tmp_path / "a.mat", {"x_tr": X, "y_tr": Y_SMALL}, do_compression=compress)
    data = load(tmp_path / "a.mat")
    assert_array_equal(data.X, X)
    assert data.X.dtype == (np.uint8 if kind == "bool" else X.dtype)  # MATLAB's logical is a byte


def test_mat_of_version_4(tmp_path):
    savemat(tmp_path / "a.mat", {"x_tr": X_SMALL, "y_tr": Y_SMALL}, format="4")
    assert_array_equal(load(tmp_path / "a.mat").X, X_SMALL)


@pytest.mark.parametrize("make", [sp.csc_matrix, sp.csr_matrix, sp.coo_matrix])
def test_mat_sparse_stays_sparse(tmp_path, make):
    data = load(mat(tmp_path / "a.mat", x_tr=make(X_SMALL), y_tr=sp.csc_matrix(Y_SMALL)))
    assert sp.issparse(data.X) and data.X.format == "csr"
    assert_array_equal(data.X.toarray(), X_SMALL)
    assert_array_equal(data.y, Y_SMALL)


@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (3,)])
@pytest.mark.parametrize("save", [mat, lambda path, **v: np.savez(path, **v)])
def test_labels_may_be_a_row_a_column_or_flat(tmp_path, shape, save):
    path = tmp_path / ("a.mat" if save is mat else "a.npz")
    save(path, x_tr=X_SMALL, y_tr=Y_SMALL.reshape(shape))
    assert_array_equal(load(path).y, Y_SMALL)


def test_text_labels_are_padded_in_matlab_but_not_here(tmp_path):
    assert_array_equal(load(mat(tmp_path / "a.mat", x_tr=X_SMALL, y_tr=["no", "yes", "no"])).y, ["no", "yes", "no"])


def test_a_variable_that_is_there_twice_is_refused(tmp_path):
    once = mat(tmp_path / "a.mat", x_tr=X_SMALL).read_bytes()
    twice = once + mat(tmp_path / "a.mat", x_tr=X_SMALL + 1, y_tr=Y_SMALL).read_bytes()[128:]
    with pytest.raises(InputError, match='Duplicate variable name "x_tr"'):
        load(write(tmp_path / "a.mat", twice))


def test_other_variable_names(tmp_path):
    path = mat(tmp_path / "a.mat", A=X_SMALL, b=Y_SMALL, x_tr=X_SMALL[:1])
    assert_array_equal(load(path, ["nothing", "A"], ["b"]).X, X_SMALL)
    with pytest.raises(InputError, match=r"holds A, b, x_tr; expected y_tr \("):
        load(path)


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


def test_npz(tmp_path):
    np.savez(tmp_path / "a.npz", x_tr=X_SMALL, y_tr=["no", "yes", "no"])
    data = load(tmp_path / "a.npz")
    assert_array_equal(data.X, X_SMALL)
    assert_array_equal(signs(data.y, find_classes(data.y)), [-1, 1, -1])


@pytest.mark.parametrize("make", [np.asarray, sp.csc_matrix])
def test_mat_of_version_7_3(tmp_path, make):
    X = make(X_SMALL)

    def fill(file):
        if sp.issparse(X):
            group = file.create_group("x_tr")
            group.attrs["MATLAB_sparse"] = np.uint64(X.shape[0])
            for key, values in [("data", X.data), ("ir", X.indices), ("jc", X.indptr)]:
                group[key] = values
        else:
            file["x_tr"] = X.T
        file["y_tr"] = Y_SMALL[:, None]
        file.create_group("#refs#")

    data = load(hdf5(tmp_path / "a.mat", fill))
    assert sp.issparse(data.X) == sp.issparse(X)
    assert_array_equal(dense(data.X), X_SMALL)
    assert_array_equal(data.y, Y_SMALL)


def as_text(file, name, codes):
    """MATLAB stores characters as numbers and says so in an attribute."""
    file.create_dataset(name, data=np.array(codes, np.uint16)).attrs["MATLAB_class"] = np.bytes_("char")


def test_text_labels_of_version_7_3(tmp_path):
    data = load(
        hdf5(tmp_path / "a.mat", lambda file: (as_text(file, "y_tr", [list(b"nyn")]), file.update(x_tr=X_SMALL)))
    )
    assert_array_equal(data.y, ["n", "y", "n"])


def a_struct(file):
    file.create_group("x_tr")["field"] = 1


def a_text(file):
    as_text(file, "x_tr", np.full((3, 3), 65))


def a_cell(file):
    file["held"] = 1
    file.create_dataset("x_tr", (3, 3), dtype=__import__("h5py").ref_dtype)


def an_empty(file):
    file.create_dataset("x_tr", data=np.array([3, 0], np.uint64)).attrs["MATLAB_empty"] = np.uint8(1)


def a_complex(file):
    file["x_tr"] = np.ones((3, 3), [("real", float), ("imag", float)])


def a_broken_sparse(file):
    group = file.create_group("x_tr")
    group.attrs["MATLAB_sparse"] = np.uint64(3)
    for key, values in [("data", np.ones(1)), ("ir", np.array([7])), ("jc", np.array([0, 1]))]:
        group[key] = values


@pytest.mark.parametrize(
    "fill, message",
    [
        (a_struct, "x holds a struct"),
        (a_text, "x holds text"),
        (a_cell, "x holds a struct, a cell"),
        (an_empty, "x is 3 x 0"),
        (a_complex, "complex"),
        (a_broken_sparse, "damaged"),
    ],
)
def test_what_version_7_3_may_hold_instead_of_numbers(tmp_path, fill, message):
    with pytest.raises(InputError, match=message):
        load(hdf5(tmp_path / "a.mat", lambda file: (fill(file), file.create_dataset("y_tr", data=Y_SMALL))))


def test_version_7_3_without_h5py_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(InputError, match=r"v7.3 .* -v7 .* install h5py"):
        load(write(tmp_path / "a.mat", b"MATLAB 7.3 MAT-file".ljust(1000)))


@pytest.mark.parametrize("name", ["datos ñandú 数据.mat", "noending", "a.b.c"])
def test_a_file_without_a_known_ending_is_matlab(tmp_path, name):
    assert load(mat(tmp_path / name, x_tr=X_SMALL, y_tr=Y_SMALL)).X.shape == (3, 3)


def test_the_assignments_file(assignment):
    data = load(assignment)
    assert data.X.shape == (14341, 122)
    assert np.count_nonzero(signs(data.y, find_classes(data.y)) > 0) == 66


# --- load: CSV -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "1,2,0\n3,4,1\n",
        "\ufeff1,2,0\n3,4,1\n",
        "a,b,label\n1,2,0\n3,4,1\n",
        "\ufeffa,b,label\r\n1,2,0\r\n\r\n3,4,1\r\n",  # a byte order mark, Windows line ends, an empty line
        '"a, or\nb",b,label\n"1"," 2 ",0\n3,4e0,1',
        "2019,2020,label\n1,2,0\n3,4,1\n",
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_csv_with_and_without_header(tmp_path, text, pack):
    ending = {gzip.compress: ".gz", bz2.compress: ".bz2"}.get(pack, "")
    data = load(write(tmp_path / f"a.csv{ending}", pack(text.encode())))
    assert_array_equal(data.X, [[1, 2], [3, 4]])
    assert_array_equal(data.y, [0, 1])


def test_csv_label_by_name(tmp_path):
    path = write(tmp_path / "a.csv", "a, sick ,b\n1,no,2\n3,yes,4\n")
    data = load(path, label="sick")
    assert_array_equal(data.X, [[1, 2], [3, 4]])
    assert_array_equal(data.y, ["no", "yes"])
    with pytest.raises(InputError, match="no column 'ill'; its first row is a, sick, b"):
        load(path, label="ill")


def test_csv_of_text_only_without_header(tmp_path):
    data = load(write(tmp_path / "a.csv", "red,yes\nblue,no\nred,no\nblue,yes\n"))
    assert_array_equal(data.X, [[0, 1], [1, 0], [0, 1], [1, 0]])  # blue, red
    assert_array_equal(data.y, ["yes", "no", "no", "yes"])


def test_csv_missing_cells(tmp_path):
    data = load(write(tmp_path / "a.csv", "1,,0\nNA,2,1\n?,n/a,1\nnull, nan ,0\ninf,3,0\n"))
    nan = np.nan
    assert_array_equal(data.X, [[1, nan], [nan, 2], [nan, nan], [nan, nan], [np.inf, 3]])


def test_csv_text_becomes_one_column_a_value(tmp_path):
    """A test file may hold the values in another order, and others; those and missing ones are zero in all columns."""
    train = load(write(tmp_path / "train.csv", "n,colour,y\n5,red,0\n6,blue,1\n7, red,1\n8,?,0\n"))
    assert_array_equal(dense(train.X), [[5, 0, 1], [6, 1, 0], [7, 0, 1], [8, 0, 0]])
    test = load(write(tmp_path / "test.csv", "n,colour,y\n1,green,1\n2,blue,0\n"), like=train)
    assert_array_equal(dense(test.X), [[1, 0, 0], [2, 1, 0]])


def test_csv_with_many_values_is_sparse(tmp_path):
    text = "".join(f"v{i},{i % 2}\n" for i in range(50))
    data = load(write(tmp_path / "a.csv", text))
    assert sp.issparse(data.X) and data.X.shape == (50, 50) and data.X.nnz == 50


def test_csv_test_file_that_begins_with_its_only_positive(tmp_path):
    train = load(write(tmp_path / "train.csv", "1,yes\n2,yes\n3,no\n"))
    assert_array_equal(load(write(tmp_path / "test.csv", "4,yes\n5,no\n"), like=train).y, ["yes", "no"])


@pytest.mark.parametrize(
    "text, message",
    [
        ("b,a,y\n1,2,0\n3,4,1\n", "the features are b, a, expected a, b as in the training file"),
        ("a,b,y\n1,x,0\n3,4,1\n", "feature 2 holds text, expected numbers"),
        ("1,2,3,0\n3,4,5,1\n", "3 features, expected 2"),
    ],
)
def test_csv_test_file_must_match(tmp_path, text, message):
    train = load(write(tmp_path / "train.csv", "a,b,y\n1,2,0\n3,4,1\n"))
    with pytest.raises(InputError, match=message):
        load(write(tmp_path / "test.csv", text), like=train)


# --- load: what cannot be used ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.mat", b"", "is empty"),
        ("a.mat", b"hello, this is no MATLAB file\n" * 20, "not a MATLAB file"),
        ("a.mat", b"x", "not a MATLAB file"),
        ("a.csv", "a,b,y\n", "x is 0 x 2"),
        ("a.csv", "\n\n", "no rows"),
        ("a.csv", "1;2;0\n3;4;1\n", "a single column, expected features and a label with commas"),
        ("a.csv", "1,2,0\n3,4\n", "row 2 has 2 cells, expected 3"),
        ("a.csv", "a,y\n3,4,1\n", "row 2 has 3 cells, expected 2"),
        ("a.csv", '1,"2\n3,4', "not CSV"),
        ("a.csv", "é,1\nb,0\n".encode("latin-1"), "UTF-8"),
        ("a.csv", "1,0\n2,\n3,1\n", "1 of 3 labels are missing"),
        ("a.csv", "1,no\n2,?\n3,yes\n4,no\n", "1 of 4 labels are missing"),
        ("a.csv.gz", gzip.compress(b"1,0\n" * 99)[:-9], "a.csv.gz"),
        ("a.csv.gz", b"plain", "a.csv.gz cannot be read"),
        ("a.svm", "yes 1:2\n", "not LIBSVM"),
        ("a.svm", "1 2:1 1:1\n", "not LIBSVM"),
        ("a.svm", "1 5\n", "not LIBSVM"),
        ("a.svm.bz2", bz2.compress(b"1 1:1\n" * 9)[:-9], "a.svm.bz2"),
        ("a.npz", b"hello", "not a .npz file"),
    ],
)
def test_unusable_files(tmp_path, name, content, message):
    with pytest.raises(InputError, match=message) as caught:
        load(write(tmp_path / name, content))
    assert "\n" not in str(caught.value) and name in str(caught.value)


@pytest.mark.parametrize(
    "x, y, message",
    [
        (X_SMALL * 1j, Y_SMALL, "complex numbers, expected real"),
        (sp.csc_matrix(X_SMALL * 1j), Y_SMALL, "complex numbers, expected real"),
        ("text", Y_SMALL, "text, expected real numbers"),
        ({"field": 1}, Y_SMALL, "a struct, a cell array"),
        (np.array([[1, "a"]], object), Y_SMALL, "a struct, a cell array"),
        (np.ones((3, 2, 2)), Y_SMALL, "3 dimensions, expected 2"),
        (np.ones((0, 3)), Y_SMALL, "x is 0 x 3"),
        (np.ones((3, 0)), Y_SMALL, "x is 3 x 0"),
        (X_SMALL, np.ones((2, 3)), "y is 2 x 3, expected one label"),
        (X_SMALL, {"field": 1}, "y holds neither"),
        (X_SMALL, Y_SMALL * 1j, "y holds neither"),
        (X_SMALL, np.ones(5), "3 rows and y has 5 labels, expected as many$"),
        (X_SMALL[:2], Y_SMALL, "2 rows and y has 3 labels, expected as many; x seems to be transposed"),
        (X_SMALL, [0, np.nan, 1], "1 of 3 labels are missing"),
        (X_SMALL, [0, np.inf, 1], "1 of 3 labels are missing or infinite"),
    ],
)
def test_unusable_variables(tmp_path, x, y, message):
    with pytest.raises(InputError, match=message):
        load(mat(tmp_path / "a.mat", x_tr=x, y_tr=y))


@pytest.mark.parametrize("shape", [(), (3,)])
def test_npz_of_too_few_dimensions(tmp_path, shape):
    np.savez(tmp_path / "a.npz", x_tr=np.ones(shape), y_tr=Y_SMALL)
    with pytest.raises(InputError, match=f"x has {len(shape)} dimensions"):
        load(tmp_path / "a.npz")


def test_npz_with_pickles_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", x_tr=np.array([[print]], object), y_tr=Y_SMALL)
    with pytest.raises(InputError, match="plain arrays"):
        load(tmp_path / "a.npz")


@pytest.mark.parametrize("save", ["compressed", "plain", "npz", "hdf5"])
def test_a_file_cut_short_anywhere_is_an_input_error(tmp_path, save):
    X, y = np.random.RandomState(0).randint(0, 9, (40, 5)), np.arange(40) % 2
    path = tmp_path / ("a.npz" if save == "npz" else "a.mat")
    if save == "npz":
        np.savez(path, x_tr=X, y_tr=y)
    elif save == "hdf5":
        hdf5(path, lambda file: [file.create_dataset(name, data=A) for name, A in [("x_tr", X.T), ("y_tr", y)]])
    else:
        savemat(path, {"x_tr": X, "y_tr": y}, do_compression=save == "compressed")
    content = path.read_bytes()
    for length in np.linspace(0, len(content) - 1, 60).astype(int):
        with pytest.raises(InputError):
            load(write(path, content[:length]))


def test_a_damaged_mat_file_loads_or_is_an_input_error(tmp_path):
    """Compressed, as MATLAB writes it: SciPy's reader may crash on the damage that a checksum does not find."""
    rng = np.random.RandomState(0)
    savemat(tmp_path / "a.mat", {"x_tr": sp.csc_matrix(X_SMALL), "y_tr": Y_SMALL}, do_compression=True)
    content = (tmp_path / "a.mat").read_bytes()
    for _ in range(150):
        damaged = bytearray(content)
        damaged[rng.randint(128, len(content))] ^= 1 << rng.randint(8)
        try:
            load(write(tmp_path / "a.mat", bytes(damaged)))
        except InputError as error:
            assert "\n" not in str(error)


def test_paths_that_are_no_files(tmp_path):
    for path, message in [(tmp_path, "is a directory"), (tmp_path / "no.mat", "no such file"), ("x" * 5000, "xxx")]:
        with pytest.raises(InputError, match=message):
            load(path)


def test_a_forbidden_file(tmp_path, monkeypatch):
    """Simulated, since nothing is forbidden to an administrator."""

    def refuse(*args):
        raise PermissionError(13, "Permission denied")

    path = mat(tmp_path / "a.mat", x_tr=X_SMALL, y_tr=Y_SMALL)
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match=r"cannot be read: .*Permission denied"):
        load(path)


def test_a_test_file_may_be_stored_otherwise(tmp_path):
    """Dense or sparse, as the training file is; a feature more or less is an error."""
    for make in (np.asarray, sp.csr_array):
        like = Data(make(X_SMALL), Y_SMALL)
        for other in (X_SMALL, sp.csc_matrix(X_SMALL)):
            data = load(mat(tmp_path / "a.mat", x_tr=other, y_tr=Y_SMALL), like=like)
            assert type(data.X) is type(like.X)
            assert_array_equal(dense(data.X), X_SMALL)
    np.savez(tmp_path / "a.npz", x_tr=X_SMALL.astype(np.float16), y_tr=Y_SMALL)  # a type that SciPy cannot hold
    assert_array_equal(load(tmp_path / "a.npz", like=like).X.toarray(), X_SMALL)
    with pytest.raises(InputError, match="2 features, expected 3 as in the training file"):
        load(mat(tmp_path / "a.mat", x_tr=X_SMALL[:, :2], y_tr=Y_SMALL), like=like)


# --- labels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rare, common",
    [
        (1, -1),
        (-1, 1),
        (0, 1),
        (2, 1),
        (True, False),
        (0.5, 1.5),
        ("yes", "no"),
        (2**60, 2**60 + 1),
        (1.0, 100000001.0),
    ],
)
def test_the_rarer_class_is_positive_unless_one_is_named(rare, common):
    y = np.array([common, rare, common])
    assert_array_equal(signs(y, find_classes(y)), [-1, 1, -1])
    for label, expected in [(rare, [-1, 1, -1]), (common, [1, -1, 1])]:
        assert_array_equal(signs(y, find_classes(y, show(y.dtype.type(label)))), expected)


def test_of_equally_frequent_labels_the_greater_is_positive():
    assert_array_equal(find_classes(np.array([1, 0, 1, 0])), [0, 1])
    assert_array_equal(find_classes(np.array(["b", "a"])), ["a", "b"])


@pytest.mark.parametrize("text", ["1", "1.0", "+1", "1e0"])
def test_a_positive_label_is_compared_as_a_number(text):
    for y in (np.array([0, 1, 1]), np.array([0.0, 1.0, 1.0]), np.array([False, True, True])):
        assert find_classes(y, text)[1] == 1


@pytest.mark.parametrize(
    "y, positive, message",
    [
        ([3, 3], None, "all 2 labels are 3, expected two classes"),
        ([1.0, 2.0, 3.5], None, r"3 values \(1, 2, 3.5\), expected two classes"),
        (range(9), None, r"9 values \(0, 1, 2, 3, 4, \.\.\.\)"),
        ([0, 1], "2", "--positive 2 is none of the labels, which are 0 and 1"),
        (["a", "b"], "1", "--positive 1 is none of the labels, which are a and b"),
        (["1", "b"], "1.0", "none of the labels"),
    ],
)
def test_labels_that_make_no_two_classes(y, positive, message):
    with pytest.raises(InputError, match=message):
        find_classes(np.array(y), positive)


@pytest.mark.parametrize("y", [[0, 2], [0.0, 2.0], ["2", "2"]])
def test_a_label_that_training_did_not_have(y):
    with pytest.raises(InputError, match="the label 2 is not one of 0 and 1"):
        signs(np.array(y), np.array([0, 1]))


# --- Preprocessor ----------------------------------------------------------------------------------------------------


@pytest.fixture
def raw():
    """Rows to fit and other rows, of several scales, with missing and infinite cells; no column is constant."""
    rng = np.random.RandomState(1)
    X = rng.randn(50, 6) * [1, 1e-5, 1e5, 1, 3, 1] + [0, 0, 0, 50, 0, 0]
    X[rng.rand(*X.shape) < 0.1] = np.nan
    X[[0, 45], [1, 2]] = np.inf, -np.inf
    return X[:40], X[40:]


def filled(train, X):
    impute = SimpleImputer().fit(np.where(np.isfinite(train), train, np.nan))
    return impute.transform(np.where(np.isfinite(X), X, np.nan))


def test_dense_rows_are_imputed_and_scaled_as_scikit_learn_would(raw):
    train = raw[0]
    scaler = MinMaxScaler().fit(filled(train, train))
    preprocessor = Preprocessor().fit(train)
    for X in raw:
        Z = preprocessor.transform(X)
        assert Z.dtype == np.float32
        assert_allclose(Z[:, :-1], scaler.transform(filled(train, X)), rtol=1e-6, atol=1e-6)
        assert_array_equal(Z[:, -1], 1)
    assert preprocessor.changes_ == {"constant": 0, "duplicated": 0, "missing": np.count_nonzero(~np.isfinite(train))}
    assert preprocessor.n_features_out_ == 7


def test_sparse_rows_likewise_and_they_stay_sparse(raw):
    """With `MaxAbsScaler`, so that zeros stay zeros; cells that are not stored are known zeros, not missing."""
    mask = np.random.RandomState(2).rand(50, 6) < 0.4
    train, other = np.where(mask[:40], raw[0], 0), np.where(mask[40:], raw[1], 0)
    scaler = MaxAbsScaler().fit(filled(train, train))
    preprocessor = Preprocessor().fit(sp.csr_array(train))
    for X in (train, other):
        Z = preprocessor.transform(sp.csr_array(X))
        assert sp.issparse(Z) and Z.format == "csr" and Z.dtype == np.float32
        assert_allclose(Z.toarray()[:, :-1], scaler.transform(filled(train, X)), rtol=1e-6, atol=1e-6)
        assert_array_equal(Z[:, [-1]].toarray(), 1)
        assert Z.nnz <= np.count_nonzero(X) + len(X)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_constant_and_duplicated_columns_are_dropped_and_counted(make):
    a, b = [0.0, 1, 2, 4], [5.0, 0, 0, 1]
    a_again = [-0.0, 1, 2, 4]
    nearly_a = [0.0, 1, 2, np.nextafter(4, 5)]
    half_missing, constant_or_missing = [np.nan, 0, 1, np.inf], [0.1, np.nan, 0.1, 0.1]
    X = np.column_stack([[7] * 4, a, b, a_again, [0] * 4, nearly_a, a, half_missing, [np.nan] * 4, constant_or_missing])
    preprocessor = Preprocessor().fit(make(X))
    assert_array_equal(preprocessor.kept_, [1, 2, 5, 7])
    assert preprocessor.changes_ == {"constant": 4, "duplicated": 2, "missing": 7}
    assert preprocessor.transform(make(X)).shape == (4, 5)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n", range(2, 12))
def test_a_constant_column_with_a_missing_cell_stays_constant(make, n):
    """Its mean must not differ from it in the last digit."""
    X = np.column_stack([[np.nan] + [0.7] * n, np.arange(n + 1)])
    assert_array_equal(Preprocessor().fit(make(X)).kept_, [1])


def test_a_stored_zero_is_a_zero(tmp_path):
    data = load(write(tmp_path / "a.svm", "1 1:2 2:2\n0 1:0\n0 2:0\n"))
    assert data.X.nnz == 2
    assert Preprocessor().fit(data.X).changes_["duplicated"] == 1


def test_columns_with_equal_extremes_and_mean_are_not_taken_for_equal():
    X = np.array([[0, 0, 0], [1, 2, 1], [2, 1, 2], [3, 3, 3]], np.uint8)
    assert_array_equal(Preprocessor().fit(X).kept_, [0, 1])
    assert_array_equal(Preprocessor().fit(sp.csr_array(X)).kept_, [0, 1])


@pytest.mark.parametrize("X", [np.ones((3, 2)), np.full((3, 1), np.nan), sp.csr_array((3, 2)), np.ones((1, 4))])
def test_nothing_to_learn_from(X):
    with pytest.raises(InputError, match="no feature varies"):
        Preprocessor().fit(X)


@pytest.mark.parametrize("kind", ["bool", "uint8", "int8", "uint16", "int32", "uint64", "float16", "float32"])
def test_other_types_scale_as_float64_does(kind):
    """Unsigned differences must not wrap."""
    X = np.array([[0, 7], [1, 100], [0, 0], [1, 55]]).astype(kind)
    Z = Preprocessor().fit(X).transform(X)
    assert_allclose(Z[:, :-1], MinMaxScaler().fit_transform(X.astype(float)), rtol=1e-6)


@pytest.mark.parametrize(
    "column",
    [
        1_700_000_000 + np.arange(8),  # seconds since 1970
        np.float32(1e7) + np.arange(8, dtype=np.float32),
        np.linspace(-1, 1, 8) * 1.7e308,
        np.linspace(1e308, 1.7e308, 8),
        np.arange(8) * 5e-324,
        np.linspace(-1e-20, 1e-20, 8),
        np.arange(8, dtype=np.float32) * np.float32(1e-9),
    ],
)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_huge_and_tiny_values_keep_their_order(column, make):
    X = make(np.column_stack([column, np.arange(8) % 3]))
    Z = dense(Preprocessor().fit(X).transform(X))
    assert np.isfinite(Z).all() and np.abs(Z).max() == 1
    if make is np.asarray:
        assert_allclose(Z[:, 0], np.linspace(0, 1, 8), atol=1e-6)


def test_the_mean_of_huge_values_does_not_overflow():
    X = np.array([[1e308, 0], [1.5e308, 1], [np.nan, 0]])
    assert_allclose(Preprocessor().fit(X).transform(X)[:, 0], [0, 1, 0.5])


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_a_row_far_outside_the_training_rows_stays_finite(make):
    train = make(np.array([[0, 1e-300], [1, 2e-300]]))
    Z = dense(Preprocessor().fit(train).transform(make(np.array([[1e308, 1e308], [-1e308, 1]]))))
    assert np.isfinite(Z).all() and np.isfinite(Z.sum())


def test_transform_neither_learns_nor_changes_its_input(raw):
    train, other = raw
    preprocessor = Preprocessor().fit(train)
    before, copy = preprocessor.transform(train), other.copy()
    preprocessor.transform(other)
    assert_array_equal(other, copy)
    assert_array_equal(preprocessor.transform(train), before)
    assert_array_equal(preprocessor.transform(other[3:5]), preprocessor.transform(other)[3:5])
