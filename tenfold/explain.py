"""Which columns matter: how much of the held-out AUC is lost when the values of a column are shuffled.

Reference: L. Breiman. Random Forests. Machine Learning 45, 2001 (section 10).
"""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from tenfold.metrics import auc_of_columns
from tenfold.parallel import Workers
from tenfold.readers.csv_columns import width

SHUFFLES = 5  # of each column, in each fold
MOST_ROWS = 2000  # of each class, by which the AUC of a fold is measured
MOST_COLUMNS = 200  # that are shuffled; of more, those that move the scores the most
PROBES, PROBED_CELLS = 2, 2**21  # rows of each fold in which all columns are moved; cells of such rows at a time
DRAWN = 6  # columns over whose values the mean score is taken
GRID, MOST_VALUES = 20, 10  # values of a column of numbers, or of text, at which it is taken
ROWS_OF_MEAN = 100  # rows of each fold over which it is taken


@dataclass
class Column:
    """A column of a file: its name, and the columns of X that are made of it.

    ``values`` are those of a column of text, whose cells are places among them, or None.
    """

    name: str
    features: np.ndarray
    values: "list | None" = None


@dataclass
class Dependence:
    """The mean score (values x folds) if a column had one of these values, numbers or text, in all rows."""

    column: Column
    values: np.ndarray
    scores: np.ndarray


@dataclass
class Explanation:
    """The columns, the strongest first, and the ``drops`` of the AUC (columns x folds, or shuffles of a single one).

    ``n_weak`` other columns were not shuffled: no score, or hardly any, depends on them.
    """

    columns: list
    drops: np.ndarray
    n_folds: int
    n_weak: int = 0
    dependences: list = field(default_factory=list)

    @property
    def means(self):
        return self.drops.mean(axis=1)

    @property
    def errors(self):
        """The standard error of each mean."""
        return self.drops.std(axis=1, ddof=1) / np.sqrt(self.drops.shape[1])


def find_columns(data):
    """The `Column`s of a file; ``data`` may be without rows."""
    n = data.X.shape[1]
    if data.csv is None:
        first = 1 if data.first_index is None else data.first_index
        return [Column(f"column {j + first}", np.array([j])) for j in range(n)]
    columns, start, position = [], 0, data.csv["position"]
    for j, column in enumerate(data.csv["columns"]):
        number = j + 1 + (position is not None and j >= position)
        features = np.arange(start, start + width(column))
        start += len(features)
        if len(features):
            columns.append(Column(column["name"] or f"column {number}", features, column.get("values")))
    return columns


def explain(experiment, folds, columns, seed, *, jobs=1, with_dependence=False, report=lambda done, n: None):
    """The `Explanation` of the scores of ``folds``, which have kept their models.

    ``report`` is called with the number of pieces of work that are done, and that of all.
    """
    n_all, n_folds = len(columns), len(folds)
    columns = _strongest(experiment, folds, columns, seed)
    numbers = range(len(columns) * n_folds)
    drops = np.zeros((len(columns), n_folds, SHUFFLES))
    with Workers(min(jobs, n_folds), experiment, folds, columns, seed) as workers:
        results = workers.run(numbers, drop_of, watch=lambda results: report(len(results), len(numbers)))
    for number, found in results.items():
        drops[divmod(number, n_folds)] = found
    drops = drops.mean(axis=2) if n_folds > 1 else drops[:, 0]
    order = np.argsort(-drops.mean(axis=1), kind="stable")
    found = Explanation([columns[j] for j in order], drops[order], n_folds, n_all - len(columns))
    if with_dependence:
        first = found.columns[:DRAWN]
        with Workers(min(jobs, n_folds), experiment, folds, first, seed) as workers:
            parts = workers.run(range(len(first) * n_folds), dependence_on)
        for j, column in enumerate(first):
            _, values = _grid(experiment.X_test, column)
            scores = np.column_stack([parts[j * n_folds + fold] for fold in range(n_folds)])
            found.dependences.append(Dependence(column, values, scores))
    return found


def drop_of(number, experiment, folds, columns, seed):
    """By how much each shuffle of a column lowers the AUC of a fold; ``number`` is that of both."""
    j, k = divmod(number, len(folds))
    features, fold, rng = columns[j].features, folds[k], np.random.RandomState(seed)
    drops = np.zeros(SHUFFLES)
    if not _is_used(fold.model, features):
        return drops
    X, y = experiment.test_rows(k)
    sample = _sample(y, rng)
    cells = _cells(X, features)
    before = _auc(y[sample], fold.scores[sample])
    for i in range(SHUFFLES):
        shuffled = cells[rng.permutation(len(y))[sample]]
        moved = np.flatnonzero(_differ(shuffled, cells[sample]))
        scores = fold.scores[sample]
        if len(moved):
            scores[moved] = _score(fold, with_cells(X[sample[moved]], features, shuffled[moved]))
        drops[i] = before - _auc(y[sample], scores)
    return drops


def _score(fold, X):
    with np.errstate(invalid="ignore"):  # products may read, and not use, what lies beyond their rows
        return fold.model(X)


def _auc(y, scores):
    """The AUC, in which scores that are equal but for rounding are a tie."""
    (auc,) = auc_of_columns((scores - scores.mean())[:, None], y)
    return auc


def _sample(y, rng):
    """Some rows of each class, in order; an AUC minds no class's size."""
    of_classes = [np.flatnonzero(y == sign) for sign in (1, -1)]
    return np.sort(np.concatenate([rng.permutation(rows)[:MOST_ROWS] for rows in of_classes]))


def _cells(X, features):
    cells = X[:, features]
    return cells.toarray() if sp.issparse(cells) else cells


def _differ(A, B):
    """Whether each row of A is another than that of B; missing cells are alike."""
    return ((A != B) & ~((A != A) & (B != B))).any(axis=1)


def with_cells(X, features, cells):
    """A copy of X with these cells in the columns ``features``."""
    X = X.copy()
    if not sp.issparse(X):
        X[:, features] = cells
        return X
    X.data[np.isin(X.indices, features)] = 0
    i, j = np.nonzero(cells)
    return X + sp.csr_array((cells[i, j], (i, features[j])), shape=X.shape, dtype=X.dtype)


def _is_used(model, features):
    """Whether a model looks at any of these columns: some are constant, or copies of others, in its training rows."""
    if model.encoder is not None:  # the columns that it makes are others
        return True
    preprocessor = model.preprocessor
    return bool(np.isin(features, preprocessor.kept_).any() or np.isin(features, preprocessor.missing_).any())


# --- many columns ----------------------------------------------------------------------------------------------------


def _strongest(experiment, folds, columns, seed):
    """All columns, if they are not too many, or else those that move the scores the most."""
    columns = [column for column in columns if any(_is_used(fold.model, column.features) for fold in folds)]
    if len(columns) <= MOST_COLUMNS:
        return columns
    effects = np.mean([probe(experiment, fold, k, seed) for k, fold in enumerate(folds)], axis=0)
    strength = np.array([effects[column.features].max() for column in columns])
    strongest = np.sort(np.argsort(-strength, kind="stable")[:MOST_COLUMNS])
    return [columns[j] for j in strongest if strength[j] > 0]


def probe(experiment, fold, k, seed):
    """For each column of X: how far the scores of a few test rows move when it goes from its least to its greatest
    value among the test rows, times its standard deviation in units of that range."""
    X, _ = experiment.test_rows(k)
    n, d = X.shape
    low, high, deviation = _spread(X)
    effects = np.zeros(d)
    (varying,) = np.nonzero(high > low)
    size = max(PROBED_CELLS // d, 1)
    for i in np.random.RandomState(seed).permutation(n)[:PROBES]:
        for start in range(0, len(varying), size):
            some = varying[start : start + size]
            scores = [_score(fold, _moved(X[[i]], some, to[some])) for to in (high, low)]
            effects[some] += np.abs(scores[0] - scores[1])
    effects[varying] *= deviation[varying] / (high - low)[varying]
    return effects


def _spread(X):
    """The least and the greatest value and the standard deviation of each column, missing cells counted as zero."""
    X = X.astype(np.float64)
    cells = X.data if sp.issparse(X) else X
    cells[~np.isfinite(cells)] = 0
    low, high = X.min(axis=0), X.max(axis=0)
    if sp.issparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    square = np.asarray((X * X).mean(axis=0)).ravel() - np.asarray(X.mean(axis=0)).ravel() ** 2
    return low, high, np.sqrt(np.maximum(square, 0))


def _moved(row, columns, values):
    """The row as often as there are columns, each time with one of the values in one of the columns."""
    n = len(columns)
    X = row[np.zeros(n, int)]
    if not sp.issparse(X):
        X = X.astype(np.result_type(X.dtype, values.dtype))
        X[np.arange(n), columns] = values
        return X
    old = row[:, columns].toarray().ravel()
    change = values - np.where(np.isfinite(old), old, 0)
    return X + sp.csr_array((change, (np.arange(n), columns)), shape=X.shape)


# --- partial dependence ----------------------------------------------------------------------------------------------


def dependence_on(number, experiment, folds, columns, seed):
    """The mean score of some rows of a fold if a column had each of the values of its grid in all of them."""
    j, k = divmod(number, len(folds))
    X, _ = experiment.test_rows(k)
    X = X[np.random.RandomState(seed).permutation(X.shape[0])[:ROWS_OF_MEAN]]
    cells, _ = _grid(experiment.X_test, columns[j])
    features = columns[j].features
    return [_score(folds[k], with_cells(X, features, np.tile(row, (X.shape[0], 1)))).mean() for row in cells]


def _grid(X, column):
    """Cells that a column has in some rows, and what to call them: numbers in order, or values of text."""
    cells = _cells(X, column.features)
    if column.values is not None:
        counts = np.bincount(cells[~np.isnan(cells)].astype(np.intp), minlength=len(column.values))
        common = np.sort(np.argsort(-counts, kind="stable")[:MOST_VALUES])
        common = common[counts[common] > 0]
        return common[:, None].astype(float), np.array([column.values[v] for v in common], object)
    known = np.flatnonzero(np.isfinite(cells[:, 0]))
    order = known[np.argsort(cells[known, 0], kind="stable")]
    _, first = np.unique(cells[order, 0], return_index=True)
    if len(first) > GRID:
        places = np.unique(np.linspace(0.02, 0.98, GRID) * (len(order) - 1)).astype(int)
        _, again = np.unique(cells[order[places], 0], return_index=True)
        first = places[again]
    return cells[order[first]], cells[order[first], 0].astype(float)
