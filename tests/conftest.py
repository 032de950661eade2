"""What the tests share: where the code and the data sets are, and a small data set."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def make_rows(n=60, d=4, n_pos=15, seed=0):
    """Rows, and labels of which ``n_pos``, evenly spread, are 1, the others -1; positives lie a little higher."""
    rng = np.random.RandomState(seed)
    y = np.where(np.arange(n) % (n // n_pos) == 0, 1, -1)
    return rng.randn(n, d) + (y[:, None] > 0), y


@pytest.fixture
def rows():
    return make_rows()


@pytest.fixture
def assignment():
    """The assignment's file, if it is at hand."""
    path = Path(os.environ.get("OAM_DATA", ROOT.parent / "shared" / "data")) / "train.mat"
    if not path.exists():
        pytest.skip(f"{path} is not here; the environment variable OAM_DATA names its directory")
    return path
