"""How much to do in one fit, and what it costs. Both follow from the shape of the data and the budget, not the machine.

The price list below has the seconds that each kind of work takes on one core like those this was measured on. It is
checked against measured seconds by ``bench/cost.py``.
"""

from dataclasses import dataclass

import numpy as np

MANY_ROWS = 300  # of the rarer class: enough to choose lanes and to weigh columns by without fitting noise
STEP_SIZES = 3
STEPS = 16  # at most, for each column
POSITIVES_PER_STEP = 10  # at least, lest single positives be told apart
RANKED_ROWS = 3_000  # training rows, in random order, that ranks and steps are found by
MOST_CURVES = 1_000  # columns of more than two values that may have ranks or steps
LEAST_SCALE = 0.002
TARGET = 0.75  # seconds, by the price list, of a fit and the scores of a ninth as many rows, with a budget of 1


@dataclass(frozen=True)
class Shape:
    """What a plan follows from. ``sparse`` says whether rows stay sparse while they are learned from."""

    n_rows: int
    n_pos: int
    n_columns: int
    n_many: int  # columns of more than two values
    cells_per_row: float
    sparse: bool = False

    @property
    def n_test(self):
        """Rows that a fold of ten is tested on."""
        return self.n_rows / 9


@dataclass(frozen=True)
class Plan:
    """How much to do in a fit."""

    rows: int  # training rows to learn from
    sample: int  # of these, rows to learn from through landmarks
    landmarks: int  # 0: the columns alone
    visits: int  # rows to learn from for each set of features, pass after pass
    block: int  # rows to a step, which are paired with twice as many from the reservoirs
    folds: int  # inner folds: the more, the more rows each lane learns from
    small: bool  # whether there is time for more kinds of similarity
    most_ranked: int  # columns of more than two values for which there is time to use ranks
    weighted: bool  # whether there are rows enough to tell which columns matter
    wide: bool  # whether there are too many columns for all but the scaled columns


def make_plan(shape, budget=1.0):
    """The plan that costs ``TARGET`` times the budget, or less if there is not so much to do.

    Four times the budget is twice as many rows, landmarks and visits. If that costs too much, because there are many
    columns or many rows to score, the plan is made for less; but half of the target is for learning, whatever the rest
    costs.
    """
    smallest, largest = LEAST_SCALE * min(budget, 1), max(budget, LEAST_SCALE)
    target = TARGET * budget
    allowed = max(target, _cost(shape, smallest) + target / 2)
    if _cost(shape, largest) > allowed:
        for _ in range(12):
            middle = (smallest * largest) ** 0.5
            if _cost(shape, middle) <= allowed:
                smallest = middle
            else:
                largest = middle
        largest = smallest
    return _scaled_plan(shape, largest)


def _cost(shape, scale):
    return sum(costs(shape, _scaled_plan(shape, scale)).values())


def _scaled_plan(shape, scale):
    """More than four negatives to a positive add little to pairs, so they are the first to be left out."""
    n, d, root = shape.n_rows, shape.n_columns, scale**0.5
    small = n <= 3_000
    many = min(shape.n_pos, n - shape.n_pos) >= MANY_ROWS
    wide = not shape.sparse and d >= 1_000 and n * d > 1.2e7
    rows = min(n, 20_000 * scale, max(6_000 * root, min(5 * shape.n_pos, 4e6 * scale / shape.cells_per_row)))
    if wide:
        rows = min(n, 2.4e7 * scale / d)
    rows = int(max(rows, min(n, 200)))
    sample = int(min(rows, 6_000 * root))
    landmarks = 0 if wide or shape.sparse else int(min(sample, (700 if small else 900) * root))
    affordable = min(9e6, 4e9 / d) * scale / (sample + shape.n_test)  # similarities, those to score by included
    if affordable < landmarks:
        landmarks = int(affordable) if affordable >= 100 else 0
    visits = rows if wide else int((9_600 if small else 14_000) * root)
    return Plan(
        rows=rows,
        sample=sample,
        landmarks=landmarks,
        visits=visits,
        block=128 if shape.sparse else 32,  # a product of sparse rows costs much the same for few of them as for many
        folds=6 if (small or shape.n_pos < MANY_ROWS) and d <= 1_000 else 3,
        small=small,
        most_ranked=int(min(3e8 * scale / ((sample + shape.n_test) * max(landmarks, 100)), MOST_CURVES)),
        weighted=many,
        wide=wide,
    )


def quantities(shape, plan):
    """How much there is to do of each kind of work, by the names of ``PRICES``."""
    d, many, n_test, lanes = shape.n_columns, shape.n_many, shape.n_test, STEP_SIZES * plan.folds
    cells, rows, m = shape.cells_per_row, plan.rows, plan.landmarks
    columns = 0 if plan.wide or shape.sparse else d
    ranked = many if columns and many <= plan.most_ranked else 0
    steps = (
        min(STEPS, shape.n_pos // POSITIVES_PER_STEP, MOST_CURVES // many) if columns and 0 < many <= MOST_CURVES else 0
    )
    curves = ranked + many * steps
    linear = cells + curves
    in_row_space = not shape.sparse and rows <= min(linear / 3, 2_000)
    kernels = 0 if not m else 3 if plan.small else 1
    linear_visits, visits = max(plan.visits, rows), max(plan.visits, plan.sample) * kernels
    linear_products = min(linear, rows) if in_row_space else linear
    far = linear_products > 4_000  # too long for the cache
    distances = m * (plan.sample + m + n_test)
    return {
        "a fit": 1,
        "all rows": shape.n_rows,
        "cells to clean and scale": (rows + n_test) * cells,
        "cells to standardise": (rows + n_test) * columns,
        "cells to sort": min(rows, RANKED_ROWS) * many * bool(ranked or steps),
        "cells of curves": (rows + n_test) * curves,
        "steps": (linear_visits + visits) / plan.block * (1 + lanes / 9) * (not shape.sparse),
        "sparse steps": linear_visits / plan.block * shape.sparse,
        "weights in sparse steps": linear_visits / plan.block * d * lanes * shape.sparse,
        "products": (linear_visits * linear_products * (not far) + visits * m) * lanes,
        "products of long rows": linear_visits * linear_products * lanes * far,
        "held-out products": (rows * linear_products + plan.sample * m * kernels) * lanes,
        "products of rows": rows**2 * linear * in_row_space,
        "city-block distances": distances * ranked,
        "Euclidean distances": distances * d,
        "similarities": distances * kernels,
        "solved": plan.sample * m**2 * kernels,
        "weights of columns": (min(rows, 2_500) * 250 + 2e5) * (plan.weighted and m > 0),
    }


PRICES = {
    "a fit": 0.0276,
    "all rows": 9.02e-08,
    "cells to clean and scale": 4.87e-09,
    "cells to standardise": 1.2e-08,
    "cells to sort": 3.46e-08,
    "cells of curves": 5.99e-09,
    "steps": 4.14e-05,
    "sparse steps": 0.00136,
    "weights in sparse steps": 6e-09,
    "products": 4.09e-10,
    "products of long rows": 5.94e-09,
    "held-out products": 1.04e-09,
    "products of rows": 2.5e-11,
    "city-block distances": 4.96e-10,
    "Euclidean distances": 5.76e-11,
    "similarities": 1e-09,
    "solved": 5.91e-11,
    "weights of columns": 2.42e-07,
}


def costs(shape, plan):
    """The seconds that each kind of work takes, by the price list."""
    return {name: PRICES[name] * quantity for name, quantity in quantities(shape, plan).items()}


def thin(y, size):
    """Numbers of at most ``size`` rows, in order; the rarer class may make up to a third of them: pairs need both."""
    if len(y) <= size:
        return np.arange(len(y))
    rare, common = sorted((np.flatnonzero(y > 0), np.flatnonzero(y < 0)), key=len)
    n_rare = min(len(rare), max(size // 3, size * len(rare) // len(y)))
    return np.sort(np.concatenate([rare[:n_rare], common[: size - n_rare]]))
