"""Labels become signs, and raw rows become clean, scaled ones. Oracle: scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from small_files import dense

import preprocess
from preprocess import InputError, Preprocessor, find_classes, show, signs

pytestmark = pytest.mark.filterwarnings("error")


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


# --- Preprocessor among scikit-learn's -------------------------------------------------------------------------------


@parametrize_with_checks([Preprocessor()])
def test_scikit_learn_finds_nothing_wrong_with_it(estimator, check):
    check(estimator)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_in_a_pipeline_it_learns_from_the_training_rows_of_each_fold_only(raw, make):
    X, y, folds = make(np.concatenate(raw)), np.arange(50) % 2, KFold(5)
    pipeline = make_pipeline(Preprocessor(), LogisticRegression())
    fitted = cross_validate(pipeline, X, y, cv=folds, return_estimator=True)["estimator"]
    for (train, test), pipeline in zip(folds.split(X), fitted):
        preprocessor = Preprocessor().fit(X[train])
        model = LogisticRegression().fit(preprocessor.transform(X[train]), y[train])
        expected = model.decision_function(preprocessor.transform(X[test]))
        assert_allclose(pipeline.decision_function(X[test]), expected, rtol=1e-6)
        assert_array_equal(pipeline[0].extremes_, preprocessor.extremes_)


def test_a_clone_has_learned_nothing(raw):
    fitted = Preprocessor().set_output(transform="default").fit(raw[0])
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "kept_")
    with pytest.raises(NotFittedError):
        copy.transform(raw[0])
    with pytest.raises(NotFittedError):
        copy.get_feature_names_out()
    assert_array_equal(copy.fit(raw[0]).transform(raw[1]), fitted.transform(raw[1]))


def test_rows_stored_otherwise_than_the_training_rows(raw):
    """They become what the training rows were: fitted on dense rows, zeros of sparse ones need not stay zeros."""
    train, other = np.nan_to_num(raw[0], posinf=9), np.nan_to_num(raw[1], neginf=-9)
    preprocessor = Preprocessor().fit(train)
    for make in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_matrix):
        Z = preprocessor.transform(make(other))
        assert isinstance(Z, np.ndarray) and Z.dtype == np.float32
        assert_array_equal(Z, preprocessor.transform(other))
    preprocessor.fit(sp.csr_array(train))
    assert_array_equal(dense(preprocessor.transform(other)), dense(preprocessor.transform(sp.csr_array(other))))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_rows_of_another_number_of_features_are_refused(raw, make):
    preprocessor = Preprocessor().fit(make(raw[0]))
    assert preprocessor.n_features_in_ == 6
    with pytest.raises(ValueError, match="5 features, but Preprocessor is expecting 6"):
        preprocessor.transform(make(raw[1][:, :5]))


# --- Preprocessor and data frames ------------------------------------------------------------------------------------


@pytest.fixture
def frame():
    """A data frame with a column that is constant, one that is a copy, and a missing cell."""
    pandas = pytest.importorskip("pandas")
    columns = {"height": [1.0, 2.0, 3.0], "planet": [7, 7, 7], "weight": [0, np.nan, 4], "size": [1, 2, 3]}
    return pandas.DataFrame(columns, index=["ann", "bob", "cid"])


def test_a_data_frame_is_read_as_the_numbers_in_it_and_its_names_are_kept(frame):
    preprocessor = Preprocessor().fit(frame)
    assert_array_equal(preprocessor.feature_names_in_, ["height", "planet", "weight", "size"])
    assert preprocessor.feature_names_in_.dtype == object
    assert_array_equal(preprocessor.get_feature_names_out(), ["height", "weight", "bias"])
    assert_array_equal(preprocessor.get_feature_names_out(list(frame)), ["height", "weight", "bias"])
    Z = preprocessor.transform(frame)
    assert isinstance(Z, np.ndarray)
    assert_array_equal(Z, Preprocessor().fit_transform(frame.to_numpy()))


def test_names_without_a_data_frame():
    preprocessor = Preprocessor().fit(np.array([[1, 7, 0], [2, 7, 5], [3, 7, 4]]))
    assert not hasattr(preprocessor, "feature_names_in_")
    assert_array_equal(preprocessor.get_feature_names_out(), ["x0", "x2", "bias"])
    assert_array_equal(preprocessor.get_feature_names_out(["a", "b", "c"]), ["a", "c", "bias"])
    with pytest.raises(ValueError, match="should have length equal to"):
        preprocessor.get_feature_names_out(["a", "b"])


def test_columns_of_other_names_or_in_another_order_are_refused(frame):
    preprocessor = Preprocessor().fit(frame)
    for other in (frame[["planet", "height", "weight", "size"]], frame.rename(columns={"size": "length"})):
        with pytest.raises(ValueError, match="feature names should match"):
            preprocessor.transform(other)
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        preprocessor.get_feature_names_out(["a", "b", "c", "d"])


def test_a_data_frame_comes_out_where_it_is_asked_for(frame):
    plain = Preprocessor().fit(frame)
    preprocessor = Preprocessor().set_output(transform="pandas")
    for Z in (preprocessor.fit_transform(frame), preprocessor.transform(frame)):
        assert type(Z) is type(frame)
        assert list(Z.columns) == ["height", "weight", "bias"] and list(Z.index) == ["ann", "bob", "cid"]
        assert set(Z.dtypes) == {np.dtype(np.float32)}
        assert_array_equal(Z.to_numpy(), plain.transform(frame))
    assert list(preprocessor.fit(frame.to_numpy()).transform(frame.to_numpy()).columns) == ["x0", "x2", "bias"]


def test_the_names_go_through_a_pipeline(frame):
    pipeline = make_pipeline(Preprocessor(), MinMaxScaler()).set_output(transform="pandas")
    assert list(pipeline.fit_transform(frame).columns) == ["height", "weight", "bias"]
    assert_array_equal(pipeline.get_feature_names_out(), ["height", "weight", "bias"])


# --- columns that say what is missing --------------------------------------------------------------------------------


def with_gaps(n=60):
    """Columns missing in no row, in many, in the same many, in 3, in all but 3, and in others; NaN or infinite."""
    rng = np.random.RandomState(0)
    X = rng.rand(n, 6) + 1
    X[10:40, 1], X[10:40, 2], X[:3, 3], X[3:, 4] = np.nan, np.inf, np.nan, np.nan
    X[rng.rand(n) < 0.5, 5] = -np.inf
    return X


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_a_column_says_where_another_is_missing_unless_that_is_rare_or_said_already(make):
    X = with_gaps()
    preprocessor = Preprocessor().fit(make(X))
    Z = dense(preprocessor.transform(make(X)))
    assert_array_equal(preprocessor.missing_, [1, 5])
    assert preprocessor.get_feature_names_out().tolist()[-3:] == ["x1_missing", "x5_missing", "bias"]
    assert preprocessor.n_features_out_ == Z.shape[1]
    assert_array_equal(Z[:, -3:-1], ~np.isfinite(X[:, [1, 5]]))
    assert np.isfinite(Z).all() and (Z[:, -1] == 1).all()


def test_rows_are_cleaned_and_scaled_some_at_a_time_and_that_changes_nothing(monkeypatch):
    X = with_gaps()
    whole = Preprocessor().fit(X[:45])
    expected = whole.transform(X)
    monkeypatch.setattr(preprocess, "CHUNK_CELLS", 50)
    few = Preprocessor().fit(X[:45])
    assert_array_equal(few.kept_, whole.kept_)
    assert_array_equal(few.missing_, whole.missing_)
    assert few.changes_ == whole.changes_
    assert_allclose(few.transform(X), expected, rtol=1e-6)
    assert_array_equal(whole.transform(X), expected)
