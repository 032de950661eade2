"""Online AUC maximization in ten seconds, from Python: the ranker, the learner, and readers of files."""

from contextlib import suppress

from tenfold.later import loaded_later

# Of all that scikit-learn imports, scipy.stats takes a third of the time, and what we use of it never asks for it.
with loaded_later("scipy.stats", ("chi2", "gmean", "rankdata", "spearmanr")), suppress(ImportError):
    import sklearn.calibration
    import sklearn.ensemble
    import sklearn.feature_selection  # noqa: F401

from oam import OnlineAUC
from tenfold.ranker import AUCRanker, load_model
from tenfold.readers import load

__all__ = ["AUCRanker", "OnlineAUC", "load", "load_model"]
