"""Online AUC maximization in ten seconds, from Python: the ranker, the learner, and readers of files."""

from contextlib import suppress

from tenfold.later import UNUSED, docstrings_as_they_are, loaded_later

with suppress(ImportError), loaded_later(UNUSED), docstrings_as_they_are():
    import sklearn.calibration
    import sklearn.ensemble
    import sklearn.feature_selection  # noqa: F401

from oam import OnlineAUC
from tenfold.ranker import AUCRanker, load_model
from tenfold.readers import load

__all__ = ["AUCRanker", "OnlineAUC", "load", "load_model"]
