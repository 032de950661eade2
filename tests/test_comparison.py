"""The comparison with other learners. Oracles: scikit-learn on the same folds, and an interval worked out by hand."""

import os
import re
import signal
import time

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import EFFORT, FIGURES, Screen, call, frames, linux, make_rows, one_split
from scipy.io import savemat
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from preprocess import Preprocessor
from tenfold import comparison
from tenfold.comparison import LearnerResult, compare, interval, run_learner, table_head, table_row
from tenfold.folds import Experiment, Fold
from tenfold.parallel import Workers

pytestmark = pytest.mark.filterwarnings("error")


class Slow(LogisticRegression):
    def fit(self, X, y):
        time.sleep(60)


class Picky(LogisticRegression):
    def fit(self, X, y):
        raise ValueError("not\nthese rows")


@linux
def test_comparison(train, rows, monkeypatch, tmp_path):
    """Against scikit-learn on the same folds, and an interval worked out here."""
    some = {"a forest": DecisionTreeClassifier(max_depth=3, random_state=0), "slow": Slow(), "picky": Picky()}
    seen = []
    monkeypatch.setattr(comparison, "learners", lambda *args: seen.append(args) or some)
    argv = [train, "--folds", 5, "--jobs", 2, "--seed", 3, *EFFORT]
    plain = call(*argv)
    code, out, err = call(
        *argv, "--compare", "--compare-seconds", 1, "--cost", "7,2", "--plots", tmp_path, stderr=Screen()
    )
    assert code == 0 and seen == [((7, 2), 3)]
    header, ours, theirs, slow, picky, result = out.splitlines()
    assert result + "\n" == plain[1]
    assert header.split() == ["learner", "AUC", "+/-", "seconds", "lead", "of", "ours"]
    assert re.fullmatch(r"slow +stopped after 1 s, with 0 of 5 folds done", slow)
    assert re.fullmatch(r"picky +cannot learn from this: not these rows", picky)
    our_aucs = np.array(re.search(r"AUC of each fold: (.*)", plain[2])[1].split(), float)
    mean, deviation = map(float, re.match(r"ours +(\S+) +(\S+) +\S+$", ours).groups())
    assert (mean, deviation) == (
        pytest.approx(our_aucs.mean(), abs=2e-4),
        pytest.approx(our_aucs.std(ddof=1), abs=2e-4),
    )
    X, y = rows
    their_aucs = []
    for i, j in StratifiedKFold(5, shuffle=True, random_state=3).split(X, y):
        preprocessor = Preprocessor().fit(X[i])
        tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(preprocessor.transform(X[i]), y[i])
        chances = tree.predict_proba(preprocessor.transform(X[j]))[:, 1]
        their_aucs.append(roc_auc_score(y[j], chances))
    numbers = re.match(r"a forest +(\S+) +(\S+) +\S+ +(\S+) \[(\S+), (\S+)\]$", theirs).groups()
    leads = our_aucs - their_aucs
    half = 2.776445 * np.sqrt(leads.var(ddof=1) * (1 / 5 + 1 / 4))  # Student's t with 4 degrees of freedom
    expected = [np.mean(their_aucs), np.std(their_aucs, ddof=1), leads.mean(), leads.mean() - half, leads.mean() + half]
    np.testing.assert_allclose(np.array(numbers, float), expected, atol=3e-4)
    assert sorted(path.name for path in tmp_path.glob("*.png")) == sorted(
        [*FIGURES, "compare.png", "cost.png", "precision_recall.png"]
    )
    assert frames(err)[-1].startswith("lead of ours: ")  # nothing of the live line is left


@linux
def test_comparison_on_two_files(train, monkeypatch):
    monkeypatch.setattr(comparison, "learners", lambda *args: {"logistic": LogisticRegression()})
    code, out, _ = call(train, train, "--compare", *EFFORT)
    assert code == 0
    assert re.fullmatch(r"learner.*\nours +\S+ +- +\S+\nlogistic +\S+ +- +\S+ +[+-]0\.\d{4}\nAUC Score: \S+\n", out)


def test_sparse_rows_are_made_dense_only_for_those_who_need_it_and_if_they_fit(rows, monkeypatch):
    X, y = rows
    experiment = one_split(sp.csr_array(X), y, np.arange(40), np.arange(40, 60))
    monkeypatch.setattr(comparison, "MOST_DENSE", 10)
    assert run_learner(0, experiment, LogisticRegression())[0] > 0.5
    with pytest.raises(ValueError, match="as dense rows"):
        run_learner(0, experiment, LinearDiscriminantAnalysis())
    monkeypatch.undo()
    assert run_learner(0, experiment, LinearDiscriminantAnalysis())[0] > 0.5


# --- two files with costs --------------------------------------------------------------------------------------------


@linux
@pytest.mark.parametrize("cost", ["pair", "rows"])
def test_costs_of_a_test_file_reach_the_learners(train, tmp_path, monkeypatch, cost):
    """The test file has fewer rows than the training file, so its costs are not those of the training rows."""
    X, y = make_rows(42, 4, 6, seed=1)
    costs = np.random.RandomState(0).randint(1, 9, (42, 2)).astype(float)
    savemat(tmp_path / "test.mat", {"x_te": X, "y_te": y, "c_te": costs})
    seen = []
    monkeypatch.setattr(comparison, "learners", lambda *args: seen.append(args) or {"logistic": LogisticRegression()})
    argv = [train, tmp_path / "test.mat", *EFFORT, "--compare", "--cost", *(["7,2"] if cost == "pair" else [])]
    code, out, err = call(*argv)
    assert code == 0, err
    assert re.fullmatch(r"learner.*\nours +\S+ +- +\S+\nlogistic +\S+ +- +\S+ +[+-]0\.\d{4}\nAUC Score: \S+\n", out)
    ((found, seed),) = seen
    assert found == ((7, 2) if cost == "pair" else (costs[y > 0, 0].mean(), costs[y < 0, 1].mean())) and seed == 0


# --- the parts -------------------------------------------------------------------------------------------------------


def fold_of(auc):
    return Fold(auc, np.zeros(3), 1.5, 0.0, 40, {}, 1.0, {})


class Killed(LogisticRegression):
    def fit(self, X, y):
        os.kill(os.getpid(), signal.SIGKILL)


@linux
def test_ours_is_first_and_each_learner_follows_whatever_became_of_others(rows, monkeypatch):
    experiment = Experiment.cross_validation(*rows, 3, seed=0)
    some = {"picky": Picky(), "slow": Slow(), "killed": Killed(), "logistic": LogisticRegression()}
    monkeypatch.setattr(comparison, "learners", lambda cost, seed: some)
    reports = []
    settings = {"seconds": 1.5, "report": lambda *report: reports.append(report)}
    with Workers(2, experiment) as at_work:
        folds = [fold_of(auc) for auc in (0.5, 0.75, 1.0)]
        results = compare(at_work, experiment, folds, None, 0, **settings)
        ours = next(results)
        assert (ours.name, ours.aucs, ours.seconds, ours.trouble) == ("ours", [0.5, 0.75, 1.0], 4.5, "")
        assert reports == []
        *others, theirs = results
    assert {learner.name: learner.trouble for learner in others} == {
        "picky": "cannot learn from this: not these rows",
        "slow": "stopped after 1.5 s, with 0 of 3 folds done",
        "killed": "not enough memory, or its process was killed",
    }
    assert all(learner.aucs == [] for learner in others)
    assert theirs.aucs == [run_learner(fold, experiment, LogisticRegression())[0] for fold in range(3)]
    assert [len(scores) for scores in theirs.scores] == [len(test) for _, test in experiment.splits]
    done = [n for name, n, _ in reports if name == "logistic"]
    assert done == sorted(done) and (done[0], done[-1]) == (0, 3) and {n for *_, n in reports} == {3}
    assert list(dict.fromkeys(name for name, *_ in reports)) == list(some)


def test_a_table(rows):
    ours, theirs = LearnerResult("ours", [0.9, 0.8], seconds=3.0), LearnerResult("theirs", [0.7, 0.8], seconds=61.25)
    lead = [0.9 - 0.7, 0.0]
    low, high = interval(np.array(lead))
    assert table_head().split() == ["learner", "AUC", "+/-", "seconds", "lead", "of", "ours"]
    assert table_row(ours, ours).split() == ["ours", "0.8500", "0.0707", "3.0"]
    assert table_row(theirs, ours).split() == [
        *["theirs", "0.7500", "0.0707", "61.2"],
        *["+0.1000", f"[{low:+.4f},", f"{high:+.4f}]"],
    ]
    assert table_row(LearnerResult("slow", trouble="too slow"), ours).split() == ["slow", "too", "slow"]
    assert table_row(LearnerResult("one", [0.7]), LearnerResult("ours", [0.8])).split()[-1] == "+0.1000"
