"""Which columns matter: held against a plain loop and scikit-learn, and as the command says it."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import EFFORT, FEW, Screen, call, frames, make_rows, one_split, refused, score
from numpy.testing import assert_allclose
from sklearn.inspection import permutation_importance
from sklearn.metrics import roc_auc_score

from tenfold import AUCRanker, explain, load
from tenfold.folds import Experiment, run_fold
from tenfold.ranker import PublishedRanker

pytestmark = pytest.mark.filterwarnings("error")


def column(*features, **settings):
    return explain.Column(f"column {features[0]}", np.array(features), **settings)


def run(X, y, estimator=None, n_folds=3):
    """An experiment and its folds, which have kept their models."""
    experiment = Experiment.cross_validation(X, y, n_folds, 0)
    estimator = estimator or PublishedRanker(random_state=0)
    return experiment, [run_fold(k, experiment, estimator, with_model=True) for k in range(n_folds)]


def naive_drop(experiment, folds, k, features, orders):
    """The drops of a fold's AUC by scoring all of its rows anew, the columns in these orders."""
    X, y = experiment.test_rows(k)
    X = X.toarray() if sp.issparse(X) else X
    drops = []
    for order in orders:
        shuffled = X.copy()
        for i, j in enumerate(order):
            shuffled[i, features] = X[j, features]
        drops.append(roc_auc_score(y, folds[k].model(X)) - roc_auc_score(y, folds[k].model(shuffled)))
    return drops


def orders(y, seed):
    """The orders in which the values of a fold's rows are shuffled: after a draw of the rows of each class."""
    rng = np.random.RandomState(seed)
    for sign in (1, -1):
        rng.permutation(np.flatnonzero(y == sign))
    return [rng.permutation(len(y)) for _ in range(explain.SHUFFLES)]


def test_columns_of_files_have_numbers_or_names(tmp_path):
    path = tmp_path / "a.csv"
    cells = zip(range(3), ["red", "blue", "red"], [5, 6, 8], ["2024-01-01", "2024-02-01", "2024-03-01"])
    rows = "".join(f"{i},{i / 2},{colour},{n % 2},{day},{n * 9}\n" for i, colour, n, day in cells)
    path.write_text(f"index,a,colour,y,day,\n{rows}")
    found = explain.find_columns(load(path).without_rows(np.array([0, 1])))
    assert [(c.name, c.features.tolist(), c.values) for c in found] == [
        ("a", [0], None),
        ("colour", [1], ["blue", "red"]),
        ("day", [2, 3, 4, 5, 6], None),
        ("column 6", [7], None),
    ]
    path = tmp_path / "a.svm"
    path.write_text("1 0:1 2:5\n-1 0:2\n")
    assert [c.name for c in explain.find_columns(load(path))] == ["column 0", "column 1", "column 2"]


@pytest.mark.parametrize("as_sparse", [False, True])
def test_drops_are_those_of_a_plain_loop(as_sparse):
    X, y = make_rows(90, 5, 30)
    X[:, 3] = np.round(X[:, 3])
    X[:, 4] = 1  # constant
    experiment, folds = run(sp.csr_array(X) if as_sparse else X, y)
    columns = [column(0), column(3), column(1, 2), column(4)]
    found = explain.explain(experiment, folds, columns, seed=5)
    assert found.n_weak == 1 and found.n_folds == 3
    assert found.means.tolist() == sorted(found.means, reverse=True)
    for c, drops, mean, error in zip(found.columns, found.drops, found.means, found.errors):
        expected = [
            np.mean(naive_drop(experiment, folds, k, c.features, orders(experiment.test_rows(k)[1], 5)))
            for k in range(3)
        ]
        assert_allclose(drops, expected, atol=1e-12)
        assert_allclose((mean, error), (np.mean(expected), np.std(expected, ddof=1) / np.sqrt(3)), atol=1e-12)


def test_drops_are_those_of_scikit_learn(monkeypatch):
    """But for chance: within five standard errors of many shuffles, for each column and fold."""
    monkeypatch.setattr(explain, "SHUFFLES", 60)
    X, y = make_rows(240, 4, 60)
    X[:, 1] *= np.where(y > 0, 1, 3)
    train, test = next(iter(Experiment.cross_validation(X, y, 2, 0).splits))
    experiment = one_split(X, y, train, test)
    folds = [run_fold(0, experiment, AUCRanker(random_state=0), with_model=True)]
    ranker = AUCRanker(random_state=0).fit(X[train], y[train])
    expected = permutation_importance(ranker, X[test], y[test], scoring="roc_auc", n_repeats=60, random_state=0)
    columns = [column(j) for j in range(4)]
    found = explain.explain(experiment, folds, columns, seed=0)
    assert found.drops.shape == (4, 60)
    for c, drops, mean in zip(found.columns, found.drops, found.means):
        (j,) = c.features
        error = np.sqrt((drops.var() + expected.importances[j].var()) / 60)
        assert abs(mean - expected.importances_mean[j]) < 5 * error + 1e-12
    assert {c.name for c in found.columns[:1]} == {columns[expected.importances_mean.argmax()].name}


def test_a_sample_of_the_rows_gives_about_the_same(monkeypatch):
    X, y = make_rows(900, 3, 300)
    experiment, folds = run(X, y, n_folds=2)
    columns = [column(j) for j in range(3)]
    whole = explain.explain(experiment, folds, columns, seed=0)
    monkeypatch.setattr(explain, "MOST_ROWS", 80)
    some = explain.explain(experiment, folds, columns, seed=0)
    assert_allclose(sorted(some.means), sorted(whole.means), atol=0.05)
    assert (some.drops != whole.drops).any()


def test_the_auc_in_which_rounding_breaks_no_tie():
    scores = np.array([0.1 + 0.2, 0.3, 7.0, 0.0])
    assert explain._auc(np.array([1, -1, -1, -1]), scores) == 0.5
    assert explain._auc(np.array([1, -1]), np.zeros(2)) == 0.5
    rng = np.random.RandomState(0)
    for size in (2, 5, 300):
        y, scores = np.where(np.arange(300) % 7, -1, 1), rng.randint(0, size, 300)
        assert explain._auc(y, scores) == pytest.approx(roc_auc_score(y, scores))


def test_missing_cells_are_shuffled_too():
    X, y = make_rows(120, 3, 40)
    X[y > 0, 0] = np.nan
    X = np.where(np.random.RandomState(0).rand(*X.shape) < 0.1, np.nan, X)
    for rows in (X, sp.csr_array(X)):
        found = explain.explain(*run(rows, y), [column(j) for j in range(3)], seed=0)
        assert found.columns[0].name == "column 0" and found.means[0] > 0.05


@pytest.mark.parametrize("as_sparse", [False, True])
def test_of_many_columns_the_strong_ones_are_shuffled(monkeypatch, as_sparse):
    monkeypatch.setattr(explain, "MOST_COLUMNS", 20)
    rng = np.random.RandomState(0)
    X, y = make_rows(150, 2, 50)
    X = np.hstack([rng.randn(150, 299) / 100 * (rng.rand(150, 299) < 0.3), X, np.zeros((150, 3))])
    experiment, folds = run(sp.csr_array(X) if as_sparse else X, y)
    columns = [column(j) for j in range(X.shape[1])]
    found = explain.explain(experiment, folds, columns, seed=0)
    assert len(found.columns) == 20 and found.n_weak == 284
    assert {c.name for c in found.columns[:2]} == {"column 299", "column 300"}


def test_probes_of_a_linear_model_are_its_weights():
    X, y = make_rows(90, 4, 30)
    X[:, 2] = (X[:, 2] > 1.5) * 7.0
    for rows in (X, sp.csr_array(X)):
        experiment, folds = run(rows, y)
        effects = explain.probe(experiment, folds[0], 0, seed=0)
        weights = folds[0].model(np.eye(4)) - folds[0].model(np.zeros((4, 4)))
        deviation = X[experiment.splits[0][1]].std(axis=0)
        assert_allclose(effects, explain.PROBES * np.abs(weights) * deviation, rtol=1e-5)


def test_mean_scores_over_the_values_of_a_column():
    """Of numbers, some that are there, in order; of text, the values that are there."""
    X, y = make_rows(120, 3, 40)
    kinds = ["a", "b", "c", "never"]
    X[:, 2] = np.random.RandomState(0).randint(0, 3, 120)
    X[::9, 2] = np.nan
    experiment, folds = run(X, y, AUCRanker(effort=1 / 16, categories={2: kinds}, random_state=0))
    columns = [column(0), column(1), column(2, values=kinds)]
    found = explain.explain(experiment, folds, columns, seed=0, with_dependence=True)
    by_name = {d.column.name: d for d in found.dependences}
    assert by_name["column 2"].values.tolist() == kinds[:3]
    numbers = by_name["column 0"].values
    assert len(numbers) == explain.GRID and (np.diff(numbers) > 0).all() and set(numbers) <= set(X[:, 0])
    for k, fold in enumerate(folds):
        rows, _ = experiment.test_rows(k)
        rows = rows[np.random.RandomState(0).permutation(len(rows))[: explain.ROWS_OF_MEAN]]
        for j, cells in ((0, numbers), (2, range(3))):
            for cell, score_of_cell in zip(cells, by_name[f"column {j}"].scores[:, k], strict=True):
                moved = rows.copy()
                moved[:, j] = cell
                assert score_of_cell == pytest.approx(fold.model(moved).mean())


def test_mean_scores_of_a_linear_model_are_a_line():
    X, y = make_rows(120, 2, 40)
    experiment, folds = run(X, y)
    (found,) = explain.explain(experiment, folds, [column(0)], seed=0, with_dependence=True).dependences
    for k, fold in enumerate(folds):
        weights = fold.model(np.eye(2)) - fold.model(np.zeros((2, 2)))
        assert_allclose(np.diff(found.scores[:, k]), np.diff(found.values) * weights[0], atol=1e-5)


# --- as the command says it ------------------------------------------------------------------------------------------


@pytest.fixture
def people(tmp_path):
    """A csv file with names, in which the first and the third column matter."""
    rng = np.random.RandomState(1)
    risk = rng.rand(200)
    job = np.where(rng.rand(200) < 0.2 + 0.6 * (risk > 0.7), "miner", np.where(rng.rand(200) < 0.5, "clerk", "cook"))
    noise, sick = rng.rand(200), np.where(risk > 0.7, "yes", "no")
    lines = [f"{40 * r + 20:.1f},{z:.3f},{j},{s}" for r, z, j, s in zip(risk, noise, job, sick)]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(['"age, years",shoe size,job,sick', *lines]) + "\n")
    return path


def table(err):
    return re.findall(r"^(.*?) +(-?\d\.\d{4}) +(\d\.\d{4})$", err.partition("AUC lost when")[2], re.M)


def test_the_command_names_the_columns_that_matter(people):
    code, out, err = call(people, *FEW, "--explain")
    assert code == 0 and float(out.split()[-1]) == score(people, *FEW)
    rows = table(err)
    assert rows[0][0] == "age, years"
    assert sorted(name for name, _, _ in rows) == ["age, years", "job", "shoe size"]
    assert float(rows[0][1]) > 0.1 and "standard error over 3 folds" in err


def test_two_files_and_two_processes(people):
    _, _, err = call(people, people, "--explain", "--jobs", 1, *EFFORT)
    assert "standard error over the shuffles" in err and table(err)[0][0] == "age, years"
    assert table(call(people, *FEW, "--jobs", 2, "--explain")[2]) == table(call(people, *FEW, "--explain")[2])


def test_a_long_or_strange_name_stays_in_its_line(people):
    text = people.read_text().replace("shoe size", "shoe\x1b[31m " + "very " * 20 + "long")
    people.write_text(text)
    _, _, err = call(people, *FEW, "--explain")
    name = next(name for name, _, _ in table(err) if name.startswith("shoe"))
    assert "\x1b" not in name and len(name) == 40 and name.endswith("...")


def test_a_bar_grows_and_goes(people):
    screen = Screen()
    assert call(people, *FEW, "--explain", stderr=screen)[0] == 0
    shown = [frame for frame in frames(screen.getvalue()) if "--explain: " in frame and "%" in frame]
    assert any("s left" in frame for frame in shown) and "100%" in shown[-1]
    assert table(screen.getvalue())


def test_where_there_are_no_folds_there_is_nothing_to_explain(people, model):
    refused("--explain does not go with --model", "--model", model, people, "--explain")
    refused("expected no option that needs folds", "--stream", people, "--explain", "--features", "linear")
