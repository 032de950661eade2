"""The sets of features of a stream, and which of them to learn from, as its first rows suggest."""

import numpy as np

from oam import FEW_COLUMNS
from preprocess import Preprocessor
from tenfold.columns import Columns
from tenfold.features import FeatureSets, LinearFeatures, StandardColumns, Versions, rich_feature_sets
from tenfold.lanes import LaneEnsemble, inner_folds
from tenfold.models import ScoreFunction, one_thread
from tenfold.plan import MOST_CURVES, thin
from tenfold.reliability import compare_aucs

TRIAL_ROWS = 2_000, 6_000  # by which it is found out whether landmarks pay: if not by the first, without the others
TRIAL_PASSES = 1.5
TRIAL_FOLDS = 3
DOUBT = 2.0  # standard errors by which they must be better
LANDMARKS = 400
MOST_RANKED = 100  # columns of many values of which there may be ranks


def fit_features(head, features, settings, seed):
    """A `ScoreFunction` that has no weights yet, fitted to the first rows.

    ``features`` is "auto" or "linear". With settings of its own, the published algorithm takes scaled columns, and as
    they are if C is among these.
    """
    many = head.data.X.shape[1] > FEW_COLUMNS  # of fewer, sparse rows are quicker to learn from when dense
    preprocessor = Preprocessor().fit_rows(head.data.X)
    keep_sparse = many and not isinstance(head.data.X, np.ndarray)
    function = ScoreFunction(preprocessor, None, keep_sparse)
    rng = np.random.RandomState([seed, 2])
    Z = function.scale(head.data.X)
    linear = LinearFeatures("scaled") if settings or keep_sparse else StandardColumns()
    linear.fit(Versions(None, Z))
    if "C" in settings:
        linear.scale_ = np.float32(1)
    function.feature_sets = FeatureSets(None, {"linear": linear})
    if features == "auto" and not settings and not many:
        with one_thread(), np.errstate(invalid="ignore"):
            function.feature_sets = _try_landmarks(function.feature_sets, Z, head.y, rng)
    return function


def _try_landmarks(plain, Z, y, rng):
    """Curves and similarities to landmarks, if they rank rows held out of the first ones better beyond doubt."""
    order = rng.permutation(len(y))
    for n_rows in TRIAL_ROWS:
        rows = order[thin(y[order], n_rows)]
        rich, lead, error = _trial(plain, Z[rows], y[rows], rng)
        if lead <= 0:
            return plain
    return rich if lead > DOUBT * error else plain


def _trial(plain, Z, y, rng):
    """Richer sets of features, fitted to these rows, by how much they are better on rows held out, and its error."""
    n_pos = np.count_nonzero(y > 0)
    if min(n_pos, len(y) - n_pos) < TRIAL_FOLDS:
        return None, 0, 0
    columns = Columns(MOST_RANKED).fit(Z, n_pos)
    if not 0 < len(columns.varying_) <= MOST_CURVES:
        return None, 0, 0
    rich = rich_feature_sets(columns, min(LANDMARKS, len(y)), small=False)
    fold, every = inner_folds(y, TRIAL_FOLDS, rng), np.arange(len(y))
    (linear,) = plain.sets.values()
    scores = [
        _held_out_scores(sets, y, fold, np.random.RandomState(rng.randint(2**31 - 1)))
        for sets in ([(linear.features(Versions(None, Z)), every)], rich.fit_transform(Z, y, fold, {}, rng))
    ]
    for feature_set in rich.sets.values():
        feature_set.rows_ = None  # there will be more rows than columns
    return rich, *compare_aucs(y, *scores)


def _held_out_scores(feature_sets, y, fold, rng):
    """The scores of all rows, by lanes that have not learned from them."""
    ensemble = LaneEnsemble(int(TRIAL_PASSES * len(y)), rng).fit(feature_sets, y, fold)
    scores = np.empty(len(y))
    scores[ensemble.held_out_rows_] = ensemble.held_out_scores_
    return scores
