"""Online AUC maximization in ten seconds, from Python: the ranker, the learner, and readers of files."""

__version__ = "1.4.0"
__all__ = ["AUCRanker", "OnlineAUC", "load", "load_model"]


def __getattr__(name):
    """Import what is asked for when it is: the command must not wait for what it does not use."""
    if name == "OnlineAUC":
        from oam import OnlineAUC as found
    elif name == "AUCRanker":
        from tenfold.ranker import AUCRanker as found
    elif name == "load_model":
        from tenfold.ranker import load_model as found
    elif name == "load":
        from tenfold.readers import load as found
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


def __dir__():
    return sorted([*globals(), *__all__])
