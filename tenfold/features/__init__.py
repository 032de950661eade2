"""The sets of features that a ranker learns from: a new one is a module of this folder, and a name in the list.

Their order is that in which they are learned from; the last may change the scaled rows, which are too many for a copy.
"""

from tenfold.features.boosting import Boosting
from tenfold.features.forest import Forest
from tenfold.features.landmarks import Mixed, Rough, Smooth
from tenfold.features.linear import Even, Linear

FEATURE_SETS = [Boosting, Forest, Mixed, Smooth, Rough, Even, Linear]
SETS = {kind.name: kind for kind in FEATURE_SETS}
