"""Columns of text, and data frames: what becomes of them, that no row's own label does, and that all ways agree."""

import json
import pickle
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import EFFORT, call
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.inspection import permutation_importance
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from preprocess import InputError
from tenfold import AUCRanker, load_model
from tenfold.columns import KINDS, TableEncoder
from tenfold.columns.category import FEW, SMOOTHING, FewValues, ManyValues
from tenfold.columns.text import FEWEST, Text, _learn
from tenfold.readers import load
from tenfold.readers.frames import from_frame, is_table

pytestmark = pytest.mark.filterwarnings("error")

ADJECTIVES = ["dark", "red", "light", "sweet", "sour", "old", "new", "cold", "warm", "dry", "wet", "round"]
NOUNS = ["wine", "bread", "stone", "river", "house", "tree", "cloud", "road", "ship", "bird", "fish", "song"]
SMALL = {"effort": 1 / 16, "random_state": 0}


def make_coded(rng, n=300, n_values=80, n_missing=20):
    """Codes of values, some of them missing, signs, and inner folds, with some rows in none."""
    codes = rng.randint(0, n_values, n).astype(float)
    codes[rng.choice(n, n_missing, replace=False)] = np.nan
    return codes, np.where(rng.rand(n) < 0.3, 1, -1), rng.randint(-1, 3, n)


def make_texts(rng, n):
    """Notes of three words."""
    return [" ".join([*rng.choice(ADJECTIVES, 2), rng.choice(NOUNS)]) for _ in range(n)]


def make_frame(n=400, seed=0):
    """Columns of every kind, and labels that depend on a number, a category of few values, and a word."""
    rng = np.random.RandomState(seed)
    size, colour, note = rng.randn(n), rng.choice(["red", "blue", "green"], n), make_texts(rng, n)
    frame = pd.DataFrame(
        {
            "size": size.round(3),
            "colour": colour,
            "city": [f"c{i}" for i in rng.randint(0, 150, n)],
            "note": note,
            "when": pd.date_range("2020-01-01 06:00", periods=n, freq="7h"),
            "flag": rng.rand(n) > 0.5,
        }
    )
    frame.loc[rng.choice(n, 20, replace=False), ["colour", "city", "note"]] = None
    score = size + (colour == "red") + 2 * np.array(["wine" in one for one in note]) + rng.randn(n)
    return frame, np.where(score > 1, "yes", "no")


# --- what each kind makes of a column --------------------------------------------------------------------------------


def naive_code(codes, y, others, value):
    """The share of positives among the other rows of this value, drawn to that of all, and the logarithm of how many.

    A missing value is a value too.
    """
    n = n_pos = n_all = n_pos_all = 0
    for j in np.flatnonzero(others):
        n_all += 1
        n_pos_all += y[j] > 0
        if codes[j] == value or (np.isnan(codes[j]) and np.isnan(value)):
            n += 1
            n_pos += y[j] > 0
    return (n_pos + SMOOTHING * n_pos_all / n_all) / (n + SMOOTHING), np.log(1 + n)


def test_codes_are_those_of_a_naive_double_loop(rng):
    codes, y, fold = make_coded(rng)
    values = [f"v{i:02}" for i in range(80)]
    many = ManyValues()
    found = many.fit_transform(values, codes, y, fold)
    for i, value in enumerate(codes):
        others = fold != fold[i] if fold[i] >= 0 else np.ones(len(y), bool)
        assert_allclose(found[i], naive_code(codes, y, others, value), rtol=1e-12)
    everyone = np.ones(len(y), bool)
    of_others = many.transform(np.array([*range(80), np.nan]))
    for value, row in zip([*range(80), np.nan], of_others):
        assert_allclose(row, naive_code(codes, y, everyone, value), rtol=1e-12)


@pytest.mark.parametrize("kind", [ManyValues, Text])
def test_no_label_of_an_inner_fold_enters_what_its_rows_become(rng, kind):
    codes, y, fold = make_coded(rng)
    values = sorted(set(make_texts(rng, 200)))[:80]
    before, after_all = kind().fit_transform(values, codes, y, fold), []
    for k in range(3):
        flipped = np.where(fold == k, -y, y)
        after = kind().fit_transform(values, codes, flipped, fold)
        assert_array_equal(after[fold == k], before[fold == k])
        after_all.append((after[fold != k] != before[fold != k]).any())
    assert all(after_all)


def test_text_scores_are_those_of_models_of_the_other_folds(rng):
    codes, y, fold = make_coded(rng)
    values = sorted(set(make_texts(rng, 200)))[:80]
    text = Text()
    found, known = text.fit_transform(values, codes, y, fold)[:, 2], ~np.isnan(codes)
    words = text.vectorizer_.transform(values)
    for k in range(3):
        others, rows = known & (fold != k), known & (fold == k)
        coef = _learn(words[codes[others].astype(int)], y[others])
        assert_allclose(found[rows], words[codes[rows].astype(int)] @ coef, rtol=1e-12)
    assert (found[~known] == 0).all()
    assert_allclose(found[known & (fold < 0)], (words @ text.coef_)[codes[known & (fold < 0)].astype(int)], rtol=1e-12)


def test_the_first_kind_that_accepts_a_column_takes_it():
    def kind(values, counts):
        return next(kind.name for kind in KINDS if kind.accepts(values, np.array(counts)))

    words, pairs = [f"v{i}" for i in range(100)], [f"v{i} w{i}" for i in range(100)]
    few, many = [1] * FEW + [0] * (100 - FEW), [1] * (FEW + 1) + [0] * (99 - FEW)  # what training rows lack is no value
    assert [kind(words, few), kind(pairs, few)] == ["few", "few"]
    assert [kind(words, many), kind(pairs, many)] == ["many", "text"]
    assert kind(["v w", *words], [99] + [1] * 100) == "many" and kind(["v w", *words], [101] + [1] * 100) == "text"


def test_few_values_become_columns_of_0_and_1(rng):
    """New and missing ones are zero in all of them; values that no training row has get none."""
    few = FewValues()
    codes = np.array([0, 2, np.nan, 2, 0])
    assert_array_equal(few.fit_transform(["a", "b", "c"], codes, None, None), [[1, 0], [0, 1], [0, 0], [0, 1], [1, 0]])
    assert_array_equal(few.transform(np.array([2, 1, 3, 4, np.nan]), ["x", "y"]), [[0, 1], *4 * [[0, 0]]])


def test_new_and_missing_values_when_scoring(rng):
    """A new value has the mean share and is not frequent, to the last digit as one of which all rows lie elsewhere."""
    codes, y, fold = make_coded(rng)
    values = [f"v{i:02}" for i in range(81)]  # of the last there is no row
    many = ManyValues()
    many.fit_transform(values, codes, y, fold)
    of_none, new, other, beyond, missing = many.transform(np.array([80, 81, 82, 83, np.nan]), ["x", "y"])
    assert_array_equal(new, of_none)
    assert_array_equal(other, of_none)
    assert_allclose(new, [np.mean(y > 0), 0], rtol=1e-12)
    assert_array_equal(beyond, missing)
    assert missing[1] == np.log1p(20)
    for n_pos in range(1, 40):  # for some of them, the mean times ten and divided by ten is not the mean
        signs = np.where(np.arange(41) < n_pos, 1, -1)
        many.fit_transform(["a", "b"], np.zeros(41), signs, np.full(41, -1))
        assert_array_equal(*many.transform(np.array([1.0, 2.0]), ["x"]))


def test_text_that_was_not_seen_is_scored_by_its_words():
    rng = np.random.RandomState(0)
    values = sorted(set(make_texts(rng, 400)))
    codes = np.arange(len(values), dtype=float)
    y = np.where(["wine" in value for value in values], 1, -1)
    text = Text()
    text.fit_transform(values, codes, y, np.arange(len(y)) % 3)
    new = ["some green wine", "no word of these", "unheard", "an old house", "wine"]
    rows = text.transform(len(values) + np.arange(5.0), new)
    alone = [text.transform(np.array([float(len(values))]), [one])[0] for one in new]
    assert_array_equal(rows, alone)
    score = rows[:, 2]
    assert min(score[0], score[4]) > 0 > score[3] and score[1] == score[2] == 0
    again = text.transform(np.array([float(len(values))]), values[:1])  # a known text, as if it were new
    assert_allclose(again[0, 2], text.transform(np.zeros(1))[0, 2], rtol=1e-12)


def test_words_that_too_few_values_share_make_no_score(rng):
    """So do stop words of one letter; nothing fails, and the other two columns are there."""
    for values in ([f"word{i} other{i}" for i in range(80)], ["a b " * (i + 1) for i in range(80)]):
        codes, y, fold = make_coded(rng)
        text = Text()
        assert (text.fit_transform(values, codes, y, fold)[:, 2] == 0).all()
        assert (text.transform(np.array([80.0]), ["word1 other1"])[:, 2] == 0).all()
    values = [f"word{i} {'rare' if i < FEWEST else 'other'}" for i in range(80)]
    text.fit_transform(values, codes, y, fold)
    assert set(text.vectorizer_.vocabulary_) == {"rare", "other"}


def test_text_whose_other_folds_are_all_of_one_class(rng):
    values = sorted(set(make_texts(rng, 200)))[:80]
    codes, fold = np.arange(80.0), np.arange(80) % 2
    found = Text().fit_transform(values, codes, np.where(fold == 0, 1, -1), fold)
    assert np.isfinite(found).all() and (found[:, 2] == 0).all()


# --- all columns of a table ------------------------------------------------------------------------------------------


def make_table(rng, n=300):
    """Rows with two columns of numbers and one of each kind of text between them, and their categories."""
    texts = sorted(set(make_texts(rng, 300)))
    categories = {1: ["blue", "red"], 2: [f"c{i:03}" for i in range(100)], 4: texts}
    X = rng.randn(n, 5)
    for j, values in categories.items():
        X[:, j] = rng.randint(0, len(values), n)
    X[::17, 1] = X[::13, 2] = X[::11, 4] = np.nan
    return X, np.where(rng.rand(n) < 0.4, 1, -1), rng.randint(-1, 3, n), categories


def test_numbers_come_first_and_then_what_columns_of_text_become(rng):
    X, y, fold, categories = make_table(rng)
    encoder = TableEncoder(categories)
    found = encoder.fit_transform(X, y, fold)
    assert [kind.name for kind in encoder.kinds_.values()] == ["few", "many", "text"]
    assert_array_equal(found[:, :2], X[:, [0, 3]])
    kinds = FewValues, ManyValues, Text
    parts = [kind().fit_transform(categories[j], X[:, j], y, fold) for j, kind in zip((1, 2, 4), kinds)]
    assert_array_equal(found[:, 2:], np.column_stack(parts))


def test_a_fitted_encoder_is_kept_in_a_file_to_the_last_digit(rng, tmp_path):
    X, y, fold, categories = make_table(rng)
    encoder = TableEncoder(categories)
    encoder.fit_transform(X, y, fold)
    settings, arrays = encoder.to_file()
    np.savez(tmp_path / "a.npz", **arrays)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as file:
        again = TableEncoder.from_file(json.loads(json.dumps(settings)), dict(file))
    new = {1: ["x"], 2: ["y", "z"], 4: ["some sweet new wine", "é"]}
    X[:3, 1], X[:3, 2], X[:3, 4] = 2, [100, 101, 100], [len(categories[4]), len(categories[4]) + 1, 0]
    assert_array_equal(again.transform(X, new), encoder.transform(X, new))
    assert_array_equal(again.transform(X), encoder.transform(X))


def test_a_long_word_does_not_swell_a_file(rng):
    long = "x" * 50_000
    values = [f"{one} {long}" for one in sorted(set(make_texts(rng, 300)))[:80]]
    encoder = TableEncoder({0: values})
    encoder.fit_transform(np.arange(80.0)[:, None], np.where(np.arange(80) % 2, 1, -1), np.arange(80) % 3)
    assert sum(A.nbytes for A in encoder.to_file()[1].values()) < 5e6


def test_places_beyond_the_list_are_missing(rng):
    """As in rows of a stream whose values its first rows do not have."""
    X, y, fold, categories = make_table(rng)
    beyond, missing = X.copy(), X.copy()
    for j, values in categories.items():
        beyond[5:9, j], missing[5:9, j] = len(values) + np.arange(4), np.nan
    one, other = TableEncoder(categories), TableEncoder(categories)
    assert_array_equal(one.fit_transform(beyond, y, fold), other.fit_transform(missing, y, fold))
    assert_array_equal(one.transform(beyond), other.transform(missing))


@pytest.mark.parametrize("name", ["4.coef", "4.idf", "4.words", "2.mean"])
def test_arrays_that_do_not_fit_together_are_refused(rng, name):
    X, y, fold, categories = make_table(rng)
    encoder = TableEncoder(categories)
    encoder.fit_transform(X, y, fold)
    settings, arrays = encoder.to_file()
    changed = np.array([0.5, 0.5]) if name == "2.mean" else arrays[name][:-9]
    with pytest.raises((ValueError, TypeError)):
        TableEncoder.from_file(settings, arrays | {name: changed})


# --- what is learned -------------------------------------------------------------------------------------------------


def test_labels_that_are_shuffled_cannot_be_predicted():
    """By a category of 2,000 values and by text, of which nearly every row has its own: AUC .5, but for chance."""
    n, n_seeds, scores = 3000, 6, []
    for seed in range(n_seeds):
        rng = np.random.RandomState(seed)
        frame = pd.DataFrame({"city": [f"c{i}" for i in rng.randint(0, 2000, n)], "note": make_texts(rng, n)})
        y = rng.permutation(np.arange(n) % 3 == 0)
        model = AUCRanker(effort=1 / 16, random_state=seed).fit(frame[: n // 2], y[: n // 2])
        assert [kind.name for kind in model.score_function_.encoder.kinds_.values()] == ["many", "text"]
        scores.append(roc_auc_score(y[n // 2 :], model.decision_function(frame[n // 2 :])))
        share = model.predict_proba(frame[n // 2 :])[:, 1]
        assert abs(share - 1 / 3).mean() < 0.1  # who learns from the rows' own labels is sure
    n_pos = n / 6
    one = np.sqrt((n / 2 + 1) / (12 * n_pos * (n / 2 - n_pos)))
    assert abs(np.mean(scores) - 0.5) < 3.5 * one / np.sqrt(n_seeds)
    assert np.abs(np.array(scores) - 0.5).max() < 4 * one


def test_noise_of_many_values_costs_little_of_what_a_number_tells():
    rng, n = np.random.RandomState(0), 4000
    x = rng.randn(n)
    y, half = x + rng.randn(n) > 0.5, n // 2
    frame = pd.DataFrame({"x": x, "city": [f"c{i}" for i in rng.randint(0, 2000, n)], "note": make_texts(rng, n)})
    model = AUCRanker(**SMALL).fit(frame[:half], y[:half])
    assert roc_auc_score(y[half:], model.decision_function(frame[half:])) > roc_auc_score(y[half:], x[half:]) - 0.015


def test_what_a_category_and_a_word_tell_is_learned():
    rng, n = np.random.RandomState(0), 4000
    of_city, city = rng.randn(200), rng.randint(0, 200, n)
    note = make_texts(rng, n)
    score = of_city[city] + 2 * np.array(["wine" in one for one in note])
    y, half = score + 0.5 * rng.randn(n) > 0.5, n // 2
    frame = pd.DataFrame({"city": [f"c{i}" for i in city], "note": note})
    model = AUCRanker(**SMALL).fit(frame[:half], y[:half])
    assert roc_auc_score(y[half:], model.decision_function(frame[half:])) > 0.85
    two = frame[:2].assign(city="nowhere", note=["wine of nowhere", "stone of nowhere"])
    scores = model.decision_function(two)
    assert scores[0] > scores[1]


def test_100_000_categories_in_200_000_rows_end_quickly():
    rng, n = np.random.RandomState(0), 200_000
    frame = pd.DataFrame({"x": rng.randn(n), "who": [f"w{i}" for i in rng.permutation(n) % 100_000]})
    y = frame["x"] + rng.randn(n) > 0
    begun = time.process_time()
    model = AUCRanker(**SMALL).fit(frame, y)
    scores = model.decision_function(frame)
    assert time.process_time() - begun < 20
    assert np.isfinite(scores).all() and roc_auc_score(y, scores) > 0.7


# --- the command, the estimator, and files agree ---------------------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    """A CSV file of all kinds of columns, its rows and its labels."""
    frame, y = make_frame()
    frame.assign(sick=y).to_csv(tmp_path / "a.csv", index=False)
    return tmp_path / "a.csv", frame, y


def test_the_command_gives_what_scikit_learn_gives_to_the_last_digit(table, tmp_path):
    path, _, _ = table
    code, out, _ = call(path, "--label", "sick", "--json", tmp_path / "a.json", *EFFORT)
    assert code == 0
    said = json.loads((tmp_path / "a.json").read_text())
    frame = pd.read_csv(path)
    cv = StratifiedKFold(10, shuffle=True, random_state=0)
    aucs = cross_val_score(
        AUCRanker(**SMALL), frame.drop(columns="sick"), frame["sick"] == "yes", cv=cv, scoring="roc_auc"
    )
    assert said["folds"] == aucs.tolist() and said["auc"] == pytest.approx(aucs.mean(), abs=1e-15)
    assert out == f"AUC Score: {aucs.mean():.4f}\n" and aucs.mean() > 0.75


def test_a_model_of_the_command_scores_a_frame_and_the_reverse(table, tmp_path):
    path, frame, y = table
    csv = pd.read_csv(path).drop(columns="sick")
    assert call(path, "--label", "sick", "--save", tmp_path / "command.npz", *EFFORT)[0] == 0
    AUCRanker(**SMALL).fit(frame, y).save(tmp_path / "estimator.npz")
    AUCRanker(**SMALL).fit(csv, y).save(tmp_path / "of_text.npz")
    other, _ = make_frame(300, seed=1)
    other.to_csv(tmp_path / "b.csv", index=False)
    scores = []
    warnings.filterwarnings("ignore", "X does not have valid feature names")  # see the next test
    for name in ("command", "estimator", "of_text"):
        model = load_model(tmp_path / f"{name}.npz")
        code, _, err = call(
            "--model", tmp_path / f"{name}.npz", tmp_path / "b.csv", "--scores", tmp_path / f"{name}.csv"
        )
        assert code == 0, err
        of_file = pd.read_csv(tmp_path / f"{name}.csv")["score"]
        for rows in (other, pd.read_csv(tmp_path / "b.csv"), other.astype({"colour": "category", "note": "string"})):
            assert_allclose(model.decision_function(rows), of_file, rtol=1e-6, atol=1e-6)
        data = load(tmp_path / "b.csv", like=model.data_, labelled=False)
        assert data.new_values
        scores.append(model.decision_function(data.X, data.new_values))
    for of_other in scores[1:]:
        assert_allclose(of_other, scores[0], rtol=1e-12)


@pytest.mark.xfail(strict=True, reason="RankerMixin.decision_function has scikit-learn check an array against names")
def test_the_command_does_not_warn_of_the_names_of_columns(table, tmp_path):
    path, frame, y = table
    AUCRanker(**SMALL).fit(frame, y).save(tmp_path / "m.npz")
    assert call("--model", tmp_path / "m.npz", path, "-q")[2] == ""


def test_a_model_of_a_file_without_header_scores_a_frame_by_the_order_of_its_columns(tmp_path):
    frame, y = make_frame()
    frame = frame[["size", "colour"]]
    frame.assign(sick=y).to_csv(tmp_path / "a.csv", index=False, header=False)
    assert call(tmp_path / "a.csv", "--save", tmp_path / "m.npz", *EFFORT)[0] == 0
    model = load_model(tmp_path / "m.npz")
    data = load(tmp_path / "a.csv")
    assert_array_equal(model.decision_function(frame), model.decision_function(data.X))
    with pytest.raises(InputError, match="has 1 columns, expected 2"):
        model.decision_function(frame[["colour"]])


def test_saved_and_loaded_and_pickled_models_score_alike(tmp_path):
    frame, y = make_frame()
    model = AUCRanker(**SMALL).fit(frame, y)
    other, _ = make_frame(100, seed=1)
    scores = model.decision_function(other)
    model.save(tmp_path / "m.npz")
    assert_array_equal(load_model(tmp_path / "m.npz").decision_function(other), scores)
    assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(other), scores)
    assert_array_equal(clone(model).fit(frame, y).decision_function(other), scores)
    assert_array_equal(model.predict_proba(other)[:, 1] > 0.5, scores > 0)


def test_two_files_with_new_values_are_a_fit_and_scores(tmp_path):
    frame, y = make_frame()
    other, labels = make_frame(300, seed=1)
    frame.assign(sick=y).to_csv(tmp_path / "a.csv", index=False)
    other.assign(sick=labels).to_csv(tmp_path / "b.csv", index=False)
    how = "--label", "sick", "--json", tmp_path / "a.json", *EFFORT
    assert call(tmp_path / "a.csv", tmp_path / "b.csv", *how)[0] == 0
    model = AUCRanker(**SMALL).fit(pd.read_csv(tmp_path / "a.csv").drop(columns="sick"), y)
    auc = roc_auc_score(labels, model.decision_function(pd.read_csv(tmp_path / "b.csv")))
    assert json.loads((tmp_path / "a.json").read_text())["auc"] == pytest.approx(auc, abs=1e-15)


def test_a_stream_whose_later_rows_have_other_values(tmp_path):
    rng, n = np.random.RandomState(0), 6000
    x, values = rng.randn(n), np.where(np.arange(n) > 5000, "late", rng.choice(["a", "b"], n))
    frame = pd.DataFrame({"x": x.round(3), "value": values, "y": (x + rng.randn(n) > 0).astype(int)})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.assign(value=[f"v{i % 70}" for i in range(n)]).to_csv(tmp_path / "b.csv", index=False)
    code, out, err = call("--stream", tmp_path / "a.csv", tmp_path / "b.csv", *EFFORT)
    assert code == 0, err
    assert float(out.split()[-1]) > 0.7


# --- data frames -----------------------------------------------------------------------------------------------------


def test_a_frame_of_numbers_is_an_array():
    frame = pd.DataFrame({"a": [1, 2], "b": [True, False], "c": [0.5, np.nan]})
    assert not is_table(frame) and not is_table(frame.to_numpy(float)) and is_table(frame.assign(d="x"))
    assert is_table(frame.astype({"a": "category"})) and is_table(frame.assign(d=pd.Timestamp("2020-01-01")))


@pytest.mark.parametrize("dtype", ["object", "string", "category", "str"])
def test_text_in_any_dtype(dtype):
    frame = pd.DataFrame({"colour": pd.Series(["red", None, " blue", "NA", "red"], dtype=object).astype(dtype)})
    if dtype == "str":  # which may have made text of None
        frame["colour"] = frame["colour"].replace("None", "")
    data = from_frame(frame)
    assert data.categories == {0: ["blue", "red"]}
    assert_array_equal(data.X[:, 0], [1, np.nan, 0, np.nan, 1])


def test_numbers_in_any_dtype():
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3], "Int64"),
            "part": pd.array([0.5, None, 2], "Float64"),
            "flag": pd.array([True, None, False], "boolean"),
            "small": np.array([1, 2, 3], np.int8),
            "half": np.array([1, np.nan, 3], np.float32),
            "truth": [True, False, True],
            "as text": ["1", "1,000", None],
            "nothing": [None, None, None],
            "never": pd.to_datetime([None, None, None]),
            "text": ["a", "b", "c"],
        }
    )
    data = from_frame(frame)
    assert [column["kind"] for column in data.csv["columns"]] == 9 * ["number"] + ["text"]
    nan = np.nan
    expected = [[1, nan, 3], [0.5, nan, 2], [1, nan, 0], [1, 2, 3], [1, nan, 3], [1, 0, 1], [1, 1000, nan], 3 * [nan]]
    assert_array_equal(data.X.T, [*expected, 3 * [nan], [0, 1, 2]])
    assert data.X.dtype == np.float64


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_dates(zone):
    """By the clock of their zone."""
    days = pd.Series(pd.to_datetime(["2020-01-31 00:00:00", "2020-03-01 12:30:00", None, "2020-02-29 23:59:59"]))
    data = from_frame(pd.DataFrame({"d": days.dt.tz_localize(zone)}))
    parts = [[0, 4, 1, 31, 0], [30 + 12.5 / 24, 6, 3, 1, 12], 5 * [np.nan], [30 - 1 / 86_400, 5, 2, 29, 23]]
    assert_allclose(data.X, parts, atol=1e-9)
    as_text = from_frame(pd.DataFrame({"d": ["2020-02-01", "", "2020-01-30 06:00"]}), like=data)
    assert_allclose(as_text.X, [[1, 5, 2, 1, 0], 5 * [np.nan], [-0.75, 3, 1, 30, 6]], atol=1e-9)


def test_columns_are_found_by_their_names_in_any_order():
    frame, y = make_frame()
    model = AUCRanker(**SMALL).fit(frame, y)
    scores = model.decision_function(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert_array_equal(model.decision_function(frame[frame.columns[::-1]]), scores)
    assert_array_equal(model.decision_function(frame.assign(more="x", other=1.0)), scores)
    one_by_one = [model.decision_function(frame[i : i + 1])[0] for i in range(20)]
    assert_allclose(one_by_one, scores[:20], rtol=1e-9)
    with pytest.raises(InputError, match="has no column size, note, which the training rows have"):
        model.decision_function(frame.drop(columns=["size", "note"]))


def test_columns_of_another_kind_than_in_training():
    frame, y = make_frame()
    model = AUCRanker(**SMALL).fit(frame, y)
    for name in ("size", "colour", "note", "when"):
        scores = model.decision_function(frame.assign(**{name: np.nan}))
        assert_array_equal(scores, model.decision_function(frame.assign(**{name: None})))
        assert_array_equal(scores, model.decision_function(frame.assign(**{name: pd.NaT})))
    as_new = model.decision_function(frame.assign(city="7"))
    assert_array_equal(model.decision_function(frame.assign(city=7)), as_new)
    as_text = frame.assign(size=frame["size"].astype(str))
    assert_array_equal(model.decision_function(as_text), model.decision_function(frame))
    when = pd.Timestamp("2020-01-01")
    for name, value, message in [
        ("size", "big", "size holds text, expected numbers as in the training file"),
        ("size", when, "size holds dates, expected numbers as in the training file"),
        ("colour", when, "colour holds dates, expected text as in the training file"),
        ("when", "soon", "when holds text, expected dates as in the training file"),
        ("when", 5, "when holds text, expected dates as in the training file"),
    ]:
        with pytest.raises(InputError, match=message):
            model.decision_function(frame.assign(**{name: value}))


def test_frames_that_cannot_be():
    frame, y = make_frame(200)
    twice = frame.set_axis([*frame.columns[:-1], "size"], axis=1)
    with pytest.raises(InputError, match="several columns called size, expected one of each name"):
        from_frame(twice)
    with pytest.raises(InputError, match="several columns called size, expected one of each name"):
        AUCRanker(**SMALL).fit(frame, y).decision_function(twice)
    with pytest.raises(ValueError, match="size"):  # scikit-learn may refuse it first
        AUCRanker(**SMALL).fit(twice, y)
    for thing in ([1, 2], {"a": 1}, (1,), {1}, np.arange(2)):
        for place in (0, 150):
            cells = ["a"] * 200
            cells[place] = thing
            nested = frame.assign(nested=pd.Series(cells, dtype=object))
            with pytest.raises(InputError, match="'nested' holds lists or other objects, expected numbers, text or"):
                AUCRanker(**SMALL).fit(nested, y)
    with pytest.raises(InputError, match=r"'took' holds timedelta64.*, expected numbers, text or dates"):
        AUCRanker(**SMALL).fit(frame.assign(took=pd.Timedelta("1h")), y)
    with pytest.raises(InputError, match="no rows, expected at least one"):
        AUCRanker(**SMALL).fit(frame[:0], y[:0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        AUCRanker(**SMALL).fit(frame, y[:-1])


def test_nothing_is_changed_in_a_frame():
    frame, y = make_frame(100)
    before = frame.copy(deep=True)
    AUCRanker(**SMALL).fit(frame, y).decision_function(frame)
    pd.testing.assert_frame_equal(frame, before)


def test_the_index_of_a_frame_does_not_matter():
    frame, y = make_frame(200)
    scores = AUCRanker(**SMALL).fit(frame, y).decision_function(frame)
    other = frame.set_axis(np.random.RandomState(0).randint(0, 9, 200), axis=0)
    assert_array_equal(AUCRanker(**SMALL).fit(other, pd.Series(y, other.index)).decision_function(other), scores)


def test_pipelines_and_searches_take_frames():
    frame, y = make_frame(300)
    direct = AUCRanker(**SMALL).fit(frame, y)
    pipeline = make_pipeline(FunctionTransformer(), AUCRanker(**SMALL)).fit(frame, y)
    assert_array_equal(pipeline.decision_function(frame), direct.decision_function(frame))
    search = GridSearchCV(AUCRanker(**SMALL), {"features": ["auto", "linear"]}, cv=2, scoring="roc_auc").fit(frame, y)
    assert search.best_score_ > 0.7 and np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_permutation_importance_of_a_frame():
    frame, y = make_frame(2000)
    model = AUCRanker(**SMALL).fit(frame[:1000], y[:1000])
    lost = permutation_importance(model, frame[1000:], y[1000:], scoring="roc_auc", n_repeats=3, random_state=0)
    lost = dict(zip(frame.columns, lost.importances_mean))
    assert lost["size"] > 0.03 and lost["note"] > 0.03
    assert max(abs(lost[name]) for name in ("flag", "when")) < 0.03
