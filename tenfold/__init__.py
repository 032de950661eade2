"""Online AUC maximization in ten seconds, from Python: the ranker, the learner, and readers of files."""

from oam import OnlineAUC
from tenfold.ranker import AUCRanker, load_model
from tenfold.readers import load

__all__ = ["AUCRanker", "OnlineAUC", "load", "load_model"]
