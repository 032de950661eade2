"""From scores to decisions: thresholds and what they cost, against brute force and what the command writes."""

import re
from dataclasses import astuple

import numpy as np
import pytest
from conftest import EFFORT, FEW, RESULT, call, make_rows, outcome, read_scores, refused, score
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.io import savemat
from scipy.special import expit
from sklearn.model_selection import StratifiedKFold

from preprocess import InputError
from tenfold.calibration import log_odds
from tenfold.decisions import (
    Outcome,
    add_outcomes,
    best_threshold,
    cost_by_threshold,
    cost_of,
    decide,
    decide_by_folds,
    find_costs,
    least_risk,
)
from tenfold.folds import Experiment

pytestmark = pytest.mark.filterwarnings("error")


def scored(n=300, n_pos=30, seed=0):
    rng = np.random.RandomState(seed)
    y = np.where(np.arange(n) < n_pos, 1, -1)
    return 3 * rng.randn(n) + 4 * (y > 0), y


def all_of(outcome):
    """Its counts and costs, and what follows from them."""
    return [*astuple(outcome), outcome.precision, outcome.recall, outcome.f1, outcome.savings]


COSTS = st.integers(1, 9)
ROWS = st.lists(st.tuples(st.integers(0, 6), st.booleans(), COSTS, COSTS), min_size=1, max_size=25)


def brute_force(s, y, cost, threshold):
    """What acting on all scores above a threshold costs, row by row."""
    return sum(
        (cost_i[0] if s_i <= threshold else 0) if y_i > 0 else (cost_i[1] if s_i > threshold else 0)
        for s_i, y_i, cost_i in zip(s, y, cost)
    )


@settings(max_examples=200, deadline=None, derandomize=True)
@given(ROWS)
def test_thresholds_and_their_costs_are_those_of_brute_force(rows):
    s, y, *cost = (np.array(column, float) for column in zip(*rows))
    y, cost = np.where(y > 0, 1, -1), np.column_stack(cost)
    thresholds, total = cost_by_threshold(s, y, cost)
    assert len(thresholds) == len(set(s)) + 1
    for threshold, found in zip(thresholds, total):
        assert found == brute_force(s, y, cost, threshold)
    everywhere = [-np.inf, *np.arange(-0.25, 7, 0.25)]
    best = best_threshold(s, y, cost)
    assert brute_force(s, y, cost, best) == min(brute_force(s, y, cost, t) for t in everywhere)
    assert brute_force(s, y, cost, best) == cost_of(s > best, y, cost)


@pytest.mark.parametrize("missed, false_alarm", [(1, 1), (10, 1), (1, 4), (0.3, 0.7)])
def test_bayes_minimum_risk_is_the_cheapest_threshold_of_true_probabilities(missed, false_alarm):
    """Against brute force over thresholds, in expectation: each row is positive with its probability."""
    p = np.random.RandomState(0).rand(500)
    cost = np.tile([missed, false_alarm], (len(p), 1)).astype(float)

    def expected(acted):
        return np.where(acted, (1 - p) * false_alarm, p * missed).sum()

    risks = [expected(p > threshold) for threshold in [-1, *np.sort(p)]]
    assert expected(least_risk(p, cost)) == pytest.approx(min(risks))
    assert_array_equal(least_risk(p, cost), p > false_alarm / (missed + false_alarm))


def test_bayes_minimum_risk_minds_the_costs_of_each_row():
    rng = np.random.RandomState(1)
    p, cost = rng.rand(12), rng.rand(12, 2)
    risks = [np.where(acted, (1 - p) * cost[:, 1], p * cost[:, 0]).sum() for acted in np.ndindex(*[2] * 12)]
    acted = least_risk(p, cost)
    assert np.where(acted, (1 - p) * cost[:, 1], p * cost[:, 0]).sum() == pytest.approx(min(risks))


def test_worked_example():
    """20 positives; 54 rows are detected, 18 of them true."""
    y = np.where(np.arange(1000) < 20, 1, -1)
    acted = (np.arange(1000) < 18) | (np.arange(1000) >= 1000 - 36)
    outcome = Outcome.of(acted, y, np.tile([49.0, 1.0], (1000, 1)))
    assert astuple(outcome) == (18, 36, 2, 944, 2 * 49 + 36, 20 * 49, 980)
    assert outcome.precision == pytest.approx(1 / 3) and outcome.recall == pytest.approx(9 / 10)
    assert outcome.f1 == pytest.approx(2 / (3 + 10 / 9))
    assert outcome.savings == pytest.approx((980 - 134) / 980)


@pytest.mark.parametrize("acted", [False, True])
def test_the_cheaper_constant_decision_saves_nothing(acted):
    y = scored()[1]
    cost = np.tile([20.0, 1.0] if acted else [2.0, 1.0], (len(y), 1))
    assert Outcome.of(np.full(len(y), acted), y, cost).savings == 0
    assert Outcome.of(np.full(len(y), not acted), y, cost).savings < 0


def test_of_equally_cheap_thresholds_the_one_with_the_fewest_rows_to_act_on():
    """Also where sums of costs differ by rounding: three alarms of 0.1 cost as much as a miss of 0.3."""
    scores, y = np.arange(5.0), np.array([1, -1, -1, -1, 1])
    cost = np.tile([0.3, 0.1], (5, 1))
    thresholds, total = cost_by_threshold(scores, y, cost)
    assert np.ptp(total[[1, 5]]) < 1e-15
    assert best_threshold(scores, y, cost) == thresholds[1] == 3.5


def test_an_outcome_without_any_act_has_no_precision_and_no_warning():
    y = scored()[1]
    outcome = Outcome.of(np.zeros(len(y), bool), y, np.ones((len(y), 2)))
    assert (outcome.precision, outcome.recall, outcome.f1) == (0, 0, 0)


def test_where_doing_nothing_costs_nothing_nothing_can_be_saved():
    assert Outcome.of(np.array([False, True]), np.array([-1, -1]), np.ones((2, 2))).savings == 0


def test_rows_that_stand_for_several_count_as_often():
    """Against an outcome of as many rows."""
    rng = np.random.RandomState(0)
    y, acted, weight = np.where(rng.rand(80) < 0.3, 1, -1), rng.rand(80) < 0.4, rng.randint(1, 9, 80)
    cost = rng.randint(1, 9, (80, 2)).astype(float)
    found = Outcome.of(acted, y, cost, weight.astype(float))
    again = np.repeat(np.arange(80), weight)
    assert all_of(found) == pytest.approx(all_of(Outcome.of(acted[again], y[again], cost[again])))


def test_outcomes_of_parts_add_up_to_that_of_the_whole():
    rng = np.random.RandomState(0)
    y, acted, cost = np.where(rng.rand(80) < 0.3, 1, -1), rng.rand(80) < 0.4, rng.randint(1, 9, (80, 2)).astype(float)
    rules = {"some": acted, "all": np.ones(80, bool)}
    total = {}
    for part in (slice(0, 10), slice(10, 50), slice(50, 80)):
        of_part = {name: Outcome.of(rows[part], y[part], cost[part]) for name, rows in rules.items()}
        total = add_outcomes(total, of_part)
    assert list(total) == list(rules)
    for name, rows in rules.items():
        assert all_of(total[name]) == pytest.approx(all_of(Outcome.of(rows, y, cost)))


# --- on rows with folds, and on rows with probabilities --------------------------------------------------------------


def test_rows_of_a_fold_are_decided_on_by_the_other_folds():
    s, y = scored()
    cost = np.random.RandomState(1).randint(1, 9, (len(y), 2)).astype(float)
    folds = Experiment.cross_validation(s[:, None], y, 4, seed=0)
    decisions = decide_by_folds(folds, s, cost)
    for train, test in folds.splits:
        slope, offset = log_odds(s[train], y[train], np.ones(len(train)))
        assert_allclose(decisions.probability[test], expit(slope * s[test] + offset))
        moved = s[test] > best_threshold(s[train], y[train], cost[train])
        assert_array_equal(decisions.acted["moved threshold"][test], moved)
    assert_array_equal(decisions.acted["Bayes minimum risk"], least_risk(decisions.probability, cost))
    assert list(decisions.outcomes) == ["Bayes minimum risk", "moved threshold", "act on no row", "act on every row"]
    for name, found in decisions.outcomes.items():
        assert found == Outcome.of(decisions.acted[name], y, cost)
    assert decisions.threshold == best_threshold(s, y, cost)


def test_decisions_on_a_sample_are_those_on_the_rows_it_stands_for():
    """Against folds in which each row is there as often as it weighs."""
    s, y = scored(240, 80)
    cost = np.random.RandomState(1).randint(1, 9, (240, 2)).astype(float)
    of_file = {1: 80, -1: 4 * 160}  # rows of each class in the file
    sample = Experiment.cross_validation(s[:, None], y, 4, 0, np.arange(240), of_file)
    again = np.repeat(np.arange(240), sample.weight.astype(int))
    splits = [tuple(np.flatnonzero(np.isin(again, rows)) for rows in split) for split in sample.splits]
    repeated = Experiment(s[again], y[again], s[again], y[again], splits, np.arange(720), np.ones(720))
    found, expected = decide_by_folds(sample, s, cost), decide_by_folds(repeated, s[again], cost[again])
    assert len(again) == 720 and found.threshold == expected.threshold
    assert_allclose(found.probability[again], expected.probability, atol=2e-3)
    for rule in found.acted:
        assert np.mean(found.acted[rule][again] != expected.acted[rule]) < 0.01
    for rule in ("moved threshold", "act on no row", "act on every row"):
        assert all_of(found.outcomes[rule]) == pytest.approx(all_of(expected.outcomes[rule]))


def test_what_becomes_of_a_row_in_a_fold_does_not_depend_on_its_label():
    s, y = scored()
    cost = np.tile([7.0, 2.0], (len(y), 1))
    folds = Experiment.cross_validation(s[:, None], y, 4, seed=0)
    _, test = folds.splits[0]
    changed = y.copy()
    changed[test] = -y[test]
    before, after = (
        decide_by_folds(Experiment(s, labels, s, labels, folds.splits), s, cost) for labels in (y, changed)
    )
    assert_array_equal(after.probability[test], before.probability[test])
    for rule in before.acted:
        assert_array_equal(after.acted[rule][test], before.acted[rule][test])


def test_rows_with_probabilities_are_decided_on_by_bayes_minimum_risk():
    s, y = scored()
    cost = np.tile([9.0, 1.0], (len(y), 1))
    decisions = decide(y, s, expit(s), cost)
    assert_array_equal(decisions.acted["Bayes minimum risk"], expit(s) > 1 / 10)
    assert list(decisions.outcomes) == ["Bayes minimum risk", "act on no row", "act on every row"]
    assert decisions.threshold is None
    unlabelled = decide(None, s, expit(s), cost)
    assert unlabelled.outcomes == {}
    assert_array_equal(unlabelled.acted["Bayes minimum risk"], decisions.acted["Bayes minimum risk"])


def test_costs_are_those_of_the_file_or_the_pair_or_the_rarity():
    y, cost = np.array([1, -1, -1, -1] * 2), np.arange(16.0).reshape(8, 2)
    assert find_costs("f", cost, 8, y, (), "mine") is cost
    assert_array_equal(find_costs("f", None, 8, y, (5.0, 2.0), None), [[5, 2]] * 8)
    assert_array_equal(find_costs("f", None, 8, y, (), None), [[3, 1]] * 8)
    assert_array_equal(find_costs("f", None, 8, None, (5.0, 2.0), None), [[5, 2]] * 8)
    with pytest.raises(InputError, match="f holds no mine, expected a variable with two costs for each row"):
        find_costs("f", None, 8, y, (), "mine")
    for labels in (None, np.ones(8)):
        with pytest.raises(InputError, match="f has neither labels of both classes nor costs for each row"):
            find_costs("f", None, 8, labels, (), None)


# --- as the command is met -------------------------------------------------------------------------------------------


def test_the_rows_of_each_fold_are_decided_on_by_the_other_folds(train, rows, tmp_path, undrawn):
    """Against probabilities and thresholds worked out here from the scores that the command writes."""
    y = rows[1]
    code, out, err = call(
        train, *FEW, "--cost", "7,2", "--scores", tmp_path / "scores.csv", "--plots", tmp_path / "figures"
    )
    assert code == 0 and float(RESULT.fullmatch(out)[1]) == score(train, *FEW)
    columns = read_scores(tmp_path / "scores.csv")
    s = columns["score"]
    for i, j in StratifiedKFold(3, shuffle=True, random_state=0).split(s, y):
        slope, offset = log_odds(s[i], y[i], np.ones(len(i)))
        assert_allclose(columns["probability"][j], expit(slope * s[j] + offset))
    assert "costs: 7 for a missed positive, 2 for a false alarm; decisions on the rows of a fold use the scores" in err
    assert_array_equal(columns["decision"], columns["probability"] > 2 / 9)
    acted = columns["decision"] > 0
    tp, fp, fn = ((acted & (y > 0)).sum(), (acted & (y < 0)).sum(), (~acted & (y > 0)).sum())
    cost = 7 * fn + 2 * fp
    expected = [tp, fp, fn, len(y) - tp - fp - fn, tp / (tp + fp), tp / (tp + fn), 2 * tp / (2 * tp + fp + fn), cost]
    assert_allclose(outcome(err, "Bayes minimum risk")[:-1], expected, atol=1e-4)
    constant = min(7 * 15, 2 * 45)
    assert outcome(err, "Bayes minimum risk")[-1] == pytest.approx(100 * (constant - cost) / constant, abs=0.06)
    assert outcome(err, "act on every row")[:4].tolist() == [15, 45, 0, 0]
    assert outcome(err, "act on no row")[7] == 7 * 15
    assert outcome(err, "moved threshold")[:4].sum() == 60
    level, threshold = map(float, re.search(r"probability is above (\S+) .* score above (\S+) ", err).groups())
    assert level == pytest.approx(2 / 9, abs=1e-4)
    costs = [7 * ((s <= t) & (y > 0)).sum() + 2 * ((s > t) & (y < 0)).sum() for t in [threshold, *s, -np.inf]]
    assert costs[0] == min(costs)
    assert {path.name for path in (tmp_path / "figures").iterdir()} >= {"precision_recall.png", "cost.png"}


def test_costs_of_each_row_are_read_from_the_file(rows, tmp_path):
    X, y = rows
    cost = np.random.RandomState(0).randint(1, 9, (60, 2))
    savemat(tmp_path / "train.mat", {"x_tr": X, "y_tr": y, "c_tr": cost, "mine": cost})
    argv = [tmp_path / "train.mat", *FEW, "--scores", tmp_path / "scores.csv", "--force"]
    for asked in (["--cost"], ["--cost-name", "mine"]):
        code, _, err = call(*argv, *asked)
        acted = read_scores(tmp_path / "scores.csv")["decision"] > 0
        probability = read_scores(tmp_path / "scores.csv")["probability"]
        assert code == 0 and "costs: those of each row" in err
        assert_array_equal(acted, probability * cost[:, 0] > (1 - probability) * cost[:, 1])
        assert outcome(err, "Bayes minimum risk")[7] == cost[~acted & (y > 0), 0].sum() + cost[acted & (y < 0), 1].sum()
    assert "costs: 5 for a missed positive" in call(*argv, "--cost", "5,1")[2]
    refused("holds no yours, expected a variable with two costs for each row", *argv, "--cost-name", "yours")
    for bad, message in (
        (cost[:, :1], "60 x 1, expected two numbers"),
        (-cost, "some costs are negative, missing or infinite"),
    ):
        savemat(tmp_path / "bad.mat", {"x_tr": X, "y_tr": y, "c_tr": bad})
        refused(message, tmp_path / "bad.mat", *FEW, "--cost")
        assert 0 < score(tmp_path / "bad.mat", *FEW) <= 1  # nobody asked for them


def test_without_numbers_or_costs_in_the_file_a_positive_costs_what_it_is_rarer(train):
    assert "costs: 3 for a missed positive, 1 for a false alarm" in call(train, *FEW, "--cost")[2]


# --- two files -------------------------------------------------------------------------------------------------------


@pytest.fixture
def tested(tmp_path):
    """A test file with costs of its own, fewer rows than the training file has, and rarer positives."""
    X, y = make_rows(42, 4, 6, seed=1)
    cost = np.random.RandomState(0).randint(1, 9, (42, 2))
    savemat(tmp_path / "test.mat", {"x_te": X, "y_te": y, "c_te": cost})
    return tmp_path / "test.mat", y, cost


@pytest.mark.parametrize("features", ["auto", "linear"])
def test_rows_of_a_test_file_are_decided_on_by_their_probabilities(train, tested, tmp_path, features):
    path, y, _ = tested
    argv = [train, path, "--features", features, *EFFORT]
    code, out, err = call(*argv, "--cost", "7,2", "--scores", tmp_path / "scores.csv")
    assert code == 0 and float(RESULT.fullmatch(out)[1]) == score(*argv)
    columns = read_scores(tmp_path / "scores.csv")
    assert list(columns) == ["score", "probability", "decision"] and len(columns["score"]) == 42
    assert_array_equal(columns["probability"], expit(columns["score"]))
    acted = columns["probability"] > 2 / 9
    assert_array_equal(columns["decision"], acted)
    tp, fp, fn = (acted & (y > 0)).sum(), (acted & (y < 0)).sum(), (~acted & (y > 0)).sum()
    found = outcome(err, "Bayes minimum risk")
    assert found[:4].tolist() == [tp, fp, fn, 42 - tp - fp - fn] and found[7] == 7 * fn + 2 * fp
    assert outcome(err, "act on every row")[:4].tolist() == [6, 36, 0, 0]
    assert outcome(err, "act on no row")[7] == 7 * 6
    assert "moved threshold" not in err and "other folds" not in err
    assert re.search(r"^costs: 7 for a missed positive, 2 for a false alarm$", err, re.M)
    assert re.search(r"act where the probability is above 0\.2222 \(Bayes minimum risk\)$", err, re.M)


def test_costs_of_each_row_of_a_test_file_are_read_from_it(train, tested, tmp_path):
    path, y, cost = tested
    code, _, err = call(train, path, *EFFORT, "--cost", "--scores", tmp_path / "scores.csv")
    columns = read_scores(tmp_path / "scores.csv")
    acted = columns["decision"] > 0
    assert code == 0 and "costs: those of each row" in err
    assert_array_equal(acted, columns["probability"] * cost[:, 0] > (1 - columns["probability"]) * cost[:, 1])
    assert outcome(err, "Bayes minimum risk")[7] == cost[~acted & (y > 0), 0].sum() + cost[acted & (y < 0), 1].sum()


def test_without_costs_in_the_test_file_the_positives_of_the_training_file_count(train, save):
    X, y = make_rows(42, 4, 6, seed=1)
    err = call(train, save("test.mat", x=X, y=y), *EFFORT, "--cost")[2]
    assert "costs: 3 for a missed positive, 1 for a false alarm" in err


@pytest.mark.parametrize("given", [["--passes", 2], ["--C", "1e-3"]])
def test_the_published_algorithm_has_no_probabilities_to_decide_on_a_test_file_by(train, given):
    option = given[0]
    err = refused(
        f"needs probabilities, which {option}, the published algorithm, lacks", train, train, *given, "--cost"
    )
    assert err.count("\n") == 1
    assert call(train, "--folds", 3, *given, "--cost")[0] == 0  # folds have them
