"""What trees say of a row. Oracles: scikit-learn's own scores, loops over nodes and folds, labels that mean nothing."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ttest_ind
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_selection import f_classif
from sklearn.metrics import roc_auc_score

from tenfold.features import boosting
from tenfold.features.boosting import Boosting, choose_columns, grow
from tenfold.features.forest import Forest
from tenfold.features.rows import Rows
from tenfold.features.trees import Trees
from tenfold.lanes import inner_folds
from tenfold.plan import thin

pytestmark = pytest.mark.filterwarnings("error")

LEARNERS = {
    "boosted": lambda: HistGradientBoostingClassifier(
        max_iter=7, max_leaf_nodes=9, max_bins=31, early_stopping=False, random_state=0
    ),
    "boosted deep": lambda: HistGradientBoostingClassifier(
        max_iter=3, max_leaf_nodes=None, min_samples_leaf=1, early_stopping=False, random_state=0
    ),
    "one boosted stump": lambda: HistGradientBoostingClassifier(max_iter=1, max_leaf_nodes=2, early_stopping=False),
}


def rows_of(n=300, d=4, seed=0):
    """Rows with ties and a column of two values; two of them, together, decide."""
    rng = np.random.RandomState(seed)
    Z = rng.rand(n, d).astype(np.float32)
    Z[:, 1], Z[:, 2] = np.round(5 * Z[:, 1]) / 5, Z[:, 2] > 0.7
    y = np.where((Z[:, 0] > 0.6) & (Z[:, 1] > 0.3) ^ (rng.rand(n) < 0.1), 1, -1)
    y[:2] = 1, -1
    return Z, y


def grown_on(learner, Z, y):
    """The trees of a learner that looks at all columns."""
    return grow(learner, Z, y, np.arange(Z.shape[1]))


def expected_scores(learner, Z):
    """By scikit-learn: the boosted sum without what it starts from."""
    return learner.decision_function(Z) - learner._baseline_prediction.item()


@pytest.fixture(params=LEARNERS)
def grown(request):
    """A fitted learner of scikit-learn and its trees."""
    learner = LEARNERS[request.param]()
    return learner, grown_on(learner, *rows_of())


# --- Trees -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 511, 1500])
def test_scores_are_those_of_scikit_learn(grown, n):
    learner, found = grown
    Z = rows_of(n + 1, seed=1)[0][:n]
    for rows in (Z, np.asfortranarray(Z), Z.astype(np.float64), 3 * Z - 1):
        scores = found.score(rows)
        assert scores.shape == (n,) and scores.dtype == np.float64
        assert_allclose(scores, expected_scores(learner, rows), rtol=1e-12, atol=1e-12)


def test_training_rows_lie_on_the_same_side_of_each_threshold(grown):
    learner, found = grown
    Z = rows_of()[0]
    assert len(np.unique(found.score(Z))) > 1
    assert_allclose(found.score(Z), expected_scores(learner, Z), rtol=1e-12, atol=1e-12)


def test_values_between_those_of_float32_are_told_apart():
    """Boosting has thresholds of float64, and float64 is what is scored."""
    learner = LEARNERS["boosted deep"]()
    Z, y = rows_of()
    found = grown_on(learner, Z, y)
    at = np.unique(found.threshold[found.left != np.arange(len(found.left))])
    Z = np.repeat(np.concatenate([at, np.nextafter(at, 2), np.nextafter(at, -2)])[:, None], 4, axis=1)
    assert_allclose(found.score(Z), expected_scores(learner, Z), rtol=1e-12, atol=1e-12)


def test_no_rows_have_no_scores(grown):
    assert grown[1].score(np.empty((0, 4), np.float32)).shape == (0,)


def test_a_row_scores_the_same_alone_or_among_others(grown):
    Z = rows_of(300, seed=2)[0]
    whole = grown[1].score(Z)
    assert_array_equal([grown[1].score(Z[i : i + 1]).item() for i in range(45)], whole[:45])


def naive_score(found, row):
    total = 0
    for node in found.root:
        while found.left[node] != node:
            node = (found.left if row[found.column[node]] <= found.threshold[node] else found.right)[node]
        total += found.value[node]
    return total


def test_scores_are_sums_over_leaves(grown):
    Z = rows_of(40, seed=3)[0]
    assert_allclose(grown[1].score(Z), [naive_score(grown[1], row) for row in Z], rtol=1e-12, atol=1e-12)


def test_nodes_come_after_those_that_lead_to_them_and_leaves_lead_to_themselves(grown):
    """Which is what `Trees` checks, so scikit-learn must number them so."""
    found, itself = grown[1], np.arange(len(grown[1].column))
    is_leaf = found.left == itself
    assert_array_equal(found.right == itself, is_leaf)
    assert (found.left[~is_leaf] > itself[~is_leaf]).all() and (found.right[~is_leaf] > itself[~is_leaf]).all()
    led_to = np.concatenate([found.root, found.left[~is_leaf], found.right[~is_leaf]])
    assert_array_equal(np.sort(led_to), itself)  # each from one place


def test_where_there_are_too_many_columns_trees_look_at_those_in_which_the_classes_differ_most():
    rng = np.random.RandomState(0)
    Z, y = rng.rand(400, 60).astype(np.float32), np.where(np.arange(400) % 3, -1, 1)
    Z[:, [3, 31, 58]] += 0.4 * (y[:, None] > 0)
    Z[:, 7] = 0.5  # constant
    by_t = np.argsort([-abs(ttest_ind(z[y > 0], z[y < 0]).statistic) if np.ptp(z) else 0 for z in Z.T])
    for n_columns in (1, 3, 10, 59):
        (found,) = choose_columns(Z, y, np.full(400, -1), n_columns)
        assert_array_equal(found, np.sort(by_t[:n_columns]))
    some = np.sort(by_t[:10])
    found, of_some = (grow(LEARNERS["boosted"](), Z[:, some], y, columns) for columns in (some, np.arange(10)))
    assert_array_equal(found.score(Z), of_some.score(Z[:, some]))
    assert_array_equal(found.narrowed(some).score(Z[:, some]), found.score(Z))


@pytest.mark.parametrize("n_folds", [2, 3, 6])
@pytest.mark.parametrize("n, d", [(90, 40), (700, 300)])
def test_columns_are_those_of_greatest_F_in_all_other_folds(n, d, n_folds):
    rng = np.random.RandomState(n_folds)
    Z, y = rng.standard_normal((n, d)).astype(np.float32), np.where(rng.rand(n) < 0.2, 1, -1)
    Z[:, 0], Z[:, 1], Z[:, 2:5] = 3, 1e3 + Z[:, 1], Z[:, 2:5] > 1
    Z[:, 5] = rng.rand(n) < 1 / n  # constant in most folds
    fold = inner_folds(y, n_folds, rng)
    for k, found in enumerate(choose_columns(Z, y, fold, 9)):
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            F, _ = f_classif(Z[fold != k].astype(np.float64), y[fold != k])
        assert_array_equal(found, np.sort(np.argsort(-np.nan_to_num(F), kind="stable")[:9]))


def test_deep_trees_are_deep():
    """A column in which the labels take turns."""
    Z, y = np.arange(64, dtype=np.float32)[:, None], np.where(np.arange(64) % 2, 1, -1)
    learner = LEARNERS["boosted deep"]()
    found = grown_on(learner, Z, y)
    assert max(predictor.get_max_depth() for (predictor,) in learner._predictors) > 8
    assert_allclose(found.score(Z), expected_scores(learner, Z), rtol=1e-12)
    assert_array_equal(found.score(Z) > 0, y > 0)


@pytest.mark.parametrize("n_groups", [1, 2, 5])
def test_joined_trees_score_the_mean(n_groups):
    makes = list(LEARNERS.values())
    groups = [grown_on(makes[i % 3](), *rows_of(seed=i)) for i in range(n_groups)]
    before = [{name: A.copy() for name, A in vars(group).items()} for group in groups]
    joined = Trees.joined(groups)
    Z = rows_of(521, seed=9)[0]
    assert_allclose(joined.score(Z), np.mean([group.score(Z) for group in groups], axis=0), rtol=1e-12, atol=1e-12)
    for group, old in zip(groups, before):
        for name, A in old.items():
            assert_array_equal(getattr(group, name), A)


# --- damage ----------------------------------------------------------------------------------------------------------


def put(name, index, value):
    def change(arrays):
        arrays[name][index] = value

    return change


def replaced(name, make):
    return lambda arrays: arrays.update({name: make(arrays[name])})


DAMAGES = {
    "a root that is not there": put("root", 1, 10**6),
    "a root before all": put("root", 1, -1),
    "no roots": replaced("root", lambda A: A[:0]),
    "a column before all": put("column", 0, -1),
    "a child that is not there": put("left", 0, 10**6),
    "a child before all": put("right", 0, -1),
    "a leaf that leads nowhere": lambda arrays: put("left", -1, len(arrays["left"]))(arrays),
    "a circle": put("right", -1, 0),
    "a circle of two": put("left", 3, 2),
    "a value that is no number": put("value", -1, np.nan),
    "an infinite value": put("value", 0, np.inf),
    **{f"{name} too short": replaced(name, lambda A: A[:-1]) for name in ("column", "threshold", "left", "right")},
    "values too many": replaced("value", lambda A: np.append(A, 0)),
    "nothing": lambda arrays: arrays.update({name: A[:0] for name, A in arrays.items()}),
    **{f"{name} of numbers with fractions": replaced(name, lambda A: A + 0.5) for name in ("root", "column", "left")},
    **{f"{name} as text": replaced(name, lambda A: A.astype(str)) for name in ("root", "right", "threshold", "value")},
    **{f"{name} in two dimensions": replaced(name, lambda A: A[:, None]) for name in ("root", "column", "value")},
    **{f"{name} in none": replaced(name, lambda A: A[0].reshape(())) for name in ("root", "column", "left", "value")},
    "complex values": replaced("value", lambda A: A + 1j),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_trees_are_refused(damage):
    arrays = {name: A.copy() for name, A in vars(grown_on(LEARNERS["boosted"](), *rows_of())).items()}
    Trees(**arrays)
    DAMAGES[damage](arrays)
    with pytest.raises(ValueError, match="its trees have"):
        Trees(**arrays)


def test_columns_that_are_not_there_are_refused_though_no_row_may_come_to_ask_for_them(grown):
    arrays = {name: A.copy() for name, A in vars(grown[1]).items()}
    arrays["column"][-1] = 4
    found = Trees(**arrays)
    with pytest.raises(ValueError, match="its trees look at column 5 of 4"):
        found.score(np.zeros((2, 4)))
    assert np.isfinite(found.score(np.zeros((2, 5)))).all()


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_put_in_scoring_ends(seed):
    """Random numbers for some of the nodes' parts: refused, or scored."""
    rng = np.random.RandomState(seed)
    arrays = {name: A.copy() for name, A in vars(grown_on(LEARNERS["boosted"](), *rows_of(60))).items()}
    name = ("left", "right", "root", "column")[seed % 4]
    where = rng.randint(len(arrays[name]), size=3)
    arrays[name][where] = rng.randint(len(arrays["column"]) if name != "column" else 6, size=3)
    try:
        scores = Trees(**arrays).score(rows_of(60)[0])
    except ValueError:
        return
    assert np.isfinite(scores).all()


# --- boosted trees ---------------------------------------------------------------------------------------------------


def fit_transform(Z, y, fold, n_trees=4, n_leaves=40, **settings):
    """The set, and the feature of all rows."""
    feature_set = Boosting(n_trees, n_leaves, **{"n_columns": Z.shape[1], "n_rows": len(y), **settings})
    F, numbers = feature_set.fit_transform(Rows(Z), y, fold)
    assert_array_equal(numbers, np.arange(len(y)))
    assert F.shape == (len(y), 1) and F.dtype == np.float32
    return feature_set, F[:, 0]


def test_features_are_scores_of_trees_grown_on_the_other_folds(rng):
    """By scikit-learn, fold after fold; other rows are described by the mean."""
    (Z, y), (other, _) = rows_of(), rows_of(50, seed=5)
    fold = inner_folds(y, 3, rng)
    feature_set, F = fit_transform(Z, y, fold)
    expected, of_others = np.empty(len(y)), []
    for k in range(3):
        learner = feature_set._booster().fit(Z[fold != k], y[fold != k])
        expected[fold == k] = expected_scores(learner, Z[fold == k])
        of_others.append(expected_scores(learner, other))
    assert_allclose(F, expected / expected.std(), rtol=1e-5, atol=1e-5)
    assert F.std() == pytest.approx(1, abs=1e-4)
    coefficients = feature_set.coefficients(np.float32([0.7]))
    scores = 0.7 * np.mean(of_others, axis=0) / expected.std()
    assert_allclose(feature_set.score(Rows(other), coefficients), scores, rtol=1e-5, atol=1e-6)


def test_the_labels_of_a_fold_do_not_change_its_own_features(rng):
    """But for the scale, which all rows share; those of the other folds do change."""
    Z, y = rows_of()
    fold = inner_folds(y, 3, rng)
    before, F = fit_transform(Z, y, fold)
    for k in range(3):
        after, G = fit_transform(Z, np.where(fold == k, -y, y), fold)
        of_fold, others = fold == k, fold != k
        assert_allclose(G[of_fold] / after.scale_, F[of_fold] / before.scale_, rtol=1e-6, atol=1e-7)
        assert np.mean(np.abs(G[others] / after.scale_ - F[others] / before.scale_) > 1e-3) > 0.5


def test_other_rows_of_a_fold_do_not_change_a_rows_features(rng):
    Z, y = rows_of()
    fold = inner_folds(y, 3, rng)
    before, F = fit_transform(Z, y, fold)
    moved = np.flatnonzero(fold == 1)[::2]
    kept = np.flatnonzero(fold == 1)[1::2]
    Z[moved] = 1 - Z[moved]
    after, G = fit_transform(Z, y, fold)
    assert_allclose(G[kept] / after.scale_, F[kept] / before.scale_, rtol=1e-6, atol=1e-7)


def test_labels_that_mean_nothing_give_features_that_mean_nothing():
    """The AUC of random scores has variance (n + 1) / (12 n_pos n_neg); trees tell the rows they saw apart."""
    n, aucs = 300, []
    for seed in range(6):
        rng = np.random.RandomState(seed)
        Z, y = rng.rand(n, 5).astype(np.float32), rng.permutation(np.where(np.arange(n) % 3, -1, 1))
        fold = inner_folds(y, 3, rng)
        feature_set, F = fit_transform(Z, y, fold)
        aucs += [roc_auc_score(y[fold == k], F[fold == k]) for k in range(3)]
        assert roc_auc_score(y, feature_set.trees_.score(Z)) > 0.7
    n_pos, n_neg = n / 9, 2 * n / 9
    error = np.sqrt((n_pos + n_neg + 1) / (12 * n_pos * n_neg) / len(aucs))
    assert np.mean(aucs) == pytest.approx(0.5, abs=4 * error)


def test_features_rank_rows_they_have_not_seen(rng):
    (Z, y), (other, y_other) = rows_of(600), rows_of(600, seed=1)
    feature_set, F = fit_transform(Z, y, inner_folds(y, 3, rng), n_trees=10)
    assert roc_auc_score(y, F) > 0.8
    assert roc_auc_score(y_other, feature_set.score(Rows(other), [1.0])) > 0.8


@pytest.mark.parametrize("n_pos, n", [(1, 40), (39, 40), (1, 2), (2, 40), (2, 4)])
def test_few_rows_of_a_class_are_enough(rng, n_pos, n):
    """With one row, there is one fold, -1, and the trees have seen all rows."""
    Z, y = rng.rand(n, 3).astype(np.float32), np.where(np.arange(n) < n_pos, 1, -1)
    fold = inner_folds(y, 6, rng)
    assert set(fold) == ({-1} if min(n_pos, n - n_pos) == 1 else {0, 1})
    feature_set, F = fit_transform(Z, y, fold)
    assert np.isfinite(F).all()
    scores = feature_set.score(Rows(Z), feature_set.coefficients(np.float32([1])))
    assert len(feature_set.trees_.root) == 4 * len(set(fold))
    if fold[0] == -1:
        assert_allclose(scores, F, rtol=1e-5, atol=1e-6)


def test_equal_rows_do_no_harm(rng):
    Z, y = np.ones((50, 3), np.float32), np.where(np.arange(50) % 5, -1, 1)
    feature_set, F = fit_transform(Z, y, inner_folds(y, 3, rng))
    assert np.isfinite(F).all() and np.isfinite(feature_set.coefficients(np.float32([1]))).all()
    assert len(set(feature_set.score(Rows(Z), np.float32([1])))) == 1


def test_features_follow_from_the_rows_alone(rng):
    Z, y = rows_of()
    fold = inner_folds(y, 3, rng)
    first = fit_transform(Z, y, fold)[1]
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    copies = Z.copy(), y.copy(), fold.copy()
    assert_array_equal(fit_transform(Z, y, fold)[1], first)
    assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    for A, B in zip((Z, y, fold), copies):
        assert_array_equal(A, B)


def test_however_many_the_trees_are_their_sum_is_about_as_large(rng):
    """A few learn faster, each for itself, than many."""
    Z, y = rows_of(600)
    fold = inner_folds(y, 3, rng)
    deviations = [1 / fit_transform(Z, y, fold, n_trees)[0].scale_ for n_trees in (15, 40, 80)]
    assert max(deviations) < 1.5 * min(deviations)
    assert 1 / fit_transform(Z, y, fold, 1)[0].scale_ < min(deviations)  # no tree learns as fast as it can


@pytest.mark.parametrize("n_rows", [100, 299])
def test_trees_are_grown_on_some_of_the_rows_and_these_are_described(rng, n_rows):
    """As if there were no others, but for the folds, which are those of all rows."""
    Z, y = rows_of()
    fold, numbers = inner_folds(y, 3, rng), thin(y, n_rows)
    feature_set = Boosting(4, 40, 4, n_rows)
    F, found = feature_set.fit_transform(Rows(Z), y, fold)
    assert_array_equal(found, numbers)
    assert_array_equal(F[:, 0], fit_transform(Z[numbers], y[numbers], fold[numbers])[1])


def test_of_wide_data_all_rows_are_described_by_trees_grown_on_some_of_the_others(rng):
    Z, y = rows_of()
    fold = inner_folds(y, 3, rng)
    feature_set, F = fit_transform(Z, y, fold, n_rows=90, wide=True)
    expected = np.empty(300)
    for k in range(3):
        others = np.flatnonzero(fold != k)
        seen = others[thin(y[others], 90)]
        expected[fold == k] = expected_scores(feature_set._booster().fit(Z[seen], y[seen]), Z[fold == k])
    assert_allclose(F, expected / expected.std(), rtol=1e-5, atol=1e-5)


def test_columns_are_chosen_without_the_rows_that_are_described():
    """With labels that mean nothing, columns chosen by all rows would flatter them."""
    rng = np.random.RandomState(0)
    Z, y = rng.rand(600, 2_000).astype(np.float32), np.where(np.arange(600) % 2, -1, 1)
    fold = inner_folds(y, 3, rng)
    _, honest = fit_transform(Z, y, fold, 6, 8, n_columns=30)
    (chosen,) = choose_columns(Z, y, np.full(600, -1), 30)
    _, flattered = fit_transform(Z[:, chosen], y, fold, 6, 8)
    assert abs(roc_auc_score(y, honest) - 0.5) < 0.08
    assert roc_auc_score(y, flattered) > 0.6


def test_columns_of_wide_data_are_chosen_by_the_first_rows_alone(monkeypatch):
    """In the others, another column says all."""
    monkeypatch.setattr(boosting, "WIDE_CHOSEN_BY", 200)
    Z, y = np.random.RandomState(0).rand(600, 40).astype(np.float32), np.where(np.arange(600) % 2, -1, 1)
    Z[:200, 3], Z[200:, 5] = y[:200] > 0, y[200:] > 0
    for wide, column in (True, 3), (False, 5):
        trees = fit_transform(Z, y, np.arange(600) % 3, 2, 4, n_columns=1, wide=wide)[0].trees_
        assert set(trees.column) <= {0, column} and column in trees.column  # leaves have column 0


# --- a forest --------------------------------------------------------------------------------------------------------


def fit_forest(Z, y, n_trees=30, n_rows=10**6):
    feature_set = Forest(n_trees, n_rows)
    F, numbers = feature_set.fit_transform(Rows(Z), y, np.zeros(len(y)))
    assert_array_equal(numbers, thin(y, n_rows))
    return feature_set, F[:, 0]


@pytest.mark.parametrize("n_rows", [300, 120])
def test_a_forest_describes_rows_by_trees_grown_without_them(n_rows):
    """As scikit-learn's forest does it out of bag; other rows are described by all trees."""
    (Z, y), (other, _) = rows_of(), rows_of(50, seed=5)
    feature_set, F = fit_forest(Z, y, n_rows=n_rows)
    some = thin(y, n_rows)
    forest = RandomForestClassifier(30, min_samples_leaf=3, oob_score=True, random_state=0).fit(Z[some], y[some])
    expected = np.log(forest.oob_decision_function_[:, 1] + 1e-3)
    assert_allclose(F, expected / expected.std(), rtol=1e-5, atol=1e-5)
    coefficients = feature_set.coefficients(np.float32([0.7]))
    scores = 0.7 * np.log(forest.predict_proba(other)[:, 1] + 1e-3) / expected.std()
    assert_allclose(feature_set.score(Rows(other), coefficients), scores, rtol=1e-5, atol=1e-5)


def test_a_rows_own_label_does_not_change_what_a_forest_says_of_it():
    """Rows are drawn without regard to labels; what the forest says of the others does change."""
    Z, y = rows_of(120)
    before, F = fit_forest(Z, y)
    changed = 0
    for i in range(10, 20):
        other = y.copy()
        other[i] = -y[i]
        after, G = fit_forest(Z, other)
        assert G[i] / after.scale_ == pytest.approx(F[i] / before.scale_, rel=1e-5, abs=1e-6)
        changed += np.mean(np.abs(G / after.scale_ - F / before.scale_) > 1e-3) > 0.02
    assert changed >= 8


def test_a_forest_finds_nothing_in_labels_that_mean_nothing():
    n, aucs = 300, []
    for seed in range(6):
        rng = np.random.RandomState(seed)
        Z, y = rng.rand(n, 5).astype(np.float32), rng.permutation(np.where(np.arange(n) % 3, -1, 1))
        feature_set, F = fit_forest(Z, y)
        aucs.append(roc_auc_score(y, F))
        assert roc_auc_score(y, feature_set.trees_.score(Z)) > 0.9  # of rows that the trees have seen
    error = np.sqrt((n + 1) / (12 * n / 3 * 2 * n / 3) / len(aucs))
    assert np.mean(aucs) == pytest.approx(0.5, abs=4 * error)


@pytest.mark.parametrize("n_pos, n, n_trees", [(1, 40, 30), (39, 40, 30), (1, 2, 5), (2, 4, 1), (20, 40, 1)])
def test_a_forest_of_few_trees_or_rows_does_no_harm(rng, n_pos, n, n_trees):
    """One tree has seen most rows: what it says of these is what is true of all."""
    Z, y = rng.rand(n, 3).astype(np.float32), np.where(np.arange(n) < n_pos, 1, -1)
    feature_set, F = fit_forest(Z, y, n_trees)
    scores = feature_set.score(Rows(Z), feature_set.coefficients(np.float32([1])))
    assert np.isfinite(F).all() and np.isfinite(scores).all()
    assert len(feature_set.trees_.root) == n_trees
    equal, G = fit_forest(np.ones((n, 3), np.float32), y, n_trees)
    assert np.isfinite(G).all() and len(set(equal.score(Rows(Z), np.float32([1])))) == 1


def test_a_forest_with_shares_below_0_is_refused():
    """It would have no logarithm."""
    feature_set, _ = fit_forest(*rows_of())
    settings, arrays = feature_set.to_file()
    arrays = {name: A.copy() for name, A in arrays.items()}
    Forest.from_file(settings, arrays)
    arrays["value"][5] = -1e-3
    with pytest.raises(ValueError, match="shares below 0"):
        Forest.from_file(settings, arrays)
