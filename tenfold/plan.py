"""How much to do in one fit, and what it costs. Both follow from the shape of the data and the budget, not the machine.

The price list below has the seconds that each kind of work takes on one core like those this was measured on. It is
checked against measured seconds by ``bench/cost.py``.
"""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils.random import sample_without_replacement

FEW_ROWS = 2_000  # that may be learned from in the space that they span: which pays if they are visited many times,
FEW_WIDE_ROWS = 1_000  # or if they are very few
MANY_ROWS = 300  # of the rarer class: enough to choose lanes and to weigh columns by without fitting noise
STEP_SIZES = 3
STEPS = 16  # at most, for each column
MOST_STEPS = 1_000  # of all columns
POSITIVES_PER_STEP = 10  # at least, lest single positives be told apart
RANKED_ROWS = 3_000  # training rows, in random order, that ranks and steps are found by
MOST_CURVES = 500  # columns of more than two values that may have ranks or steps: with more, there is no time for both
TREES = 20  # for each inner fold, with a budget of 1
FEWEST_TREES = 6
SMALL_BUDGET = 0.05  # with less, trees are as few as
FEWEST_OF_ALL = 3  # and look, if not at all columns, at as few as
FEWEST_COLUMNS = 16
LEAVES = 40  # of a tree, at most; fewer would find less
TREE_CELLS = 1e6  # to grow trees on
FEWEST_TREE_ROWS = 5_000  # with less of them, trees say little; better they look at fewer columns
TREE_COLUMNS = 50  # then: those in which the classes differ most
WIDE_CELLS = 3e7  # to visit, where there is time for the columns and trees on a few of them only,
WIDE_TREES = 10  # of these trees, with fewer leaves,
WIDE_LEAVES = 16
WIDE_TREE_ROWS = 3_000  # and the rows to grow them on,
WIDE_LOOKED_AT = 1_000  # the rows by which columns are cleaned and scaled,
WIDE_CHOSEN_BY = 2_000  # and chosen, and
WIDE_BUFFER = 4_000  # rows of each class to keep instead of
BUFFER = 2_000
EVEN_COLUMNS = 200  # of two values, at least, for a set in which each is divided by its deviation
SPARSE_COLUMNS = 30_000  # of sparse rows, at most, to learn from: those that are filled most often
FOREST = 50  # trees of a random forest, with a budget of 1, at most
FEWEST_FOREST = 40  # fewer say little
FOREST_ROWS = 500, 3_000  # to grow it on, at least and at most
FOREST_CELLS = 10_000  # that a tree looks at, with a budget of 1: of each row, as many as the root of the columns
ROOM = 1.15  # times the target, that a plan with a forest may cost
SPARSE_PRODUCT = 40  # how many times as long as dense ones take products of rows that are sparse
DRAWN, WIDE_DRAWN = 2, 1  # rows from each reservoir that a block is paired with, for each of its own
VISITS_OF_ONE = (
    2_000  # rows to learn from if there is one feature: whether it is for or against is all there is to learn
)
SIMILAR = 0.45  # share of the landmarks and visits where there are boosted trees, which then say more,
SIMILAR_OF_MANY = 0.8  # unless they look at some of the columns only,
LEAST_SIMILAR = 0.2  # and of these shares what is left if there is little time for all
LEAST_SCALE = 0.002
TARGET = 0.66  # seconds, by the price list, of a fit and the scores of a ninth as many rows, with a budget of 1


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
    block: int  # rows to a step,
    draw: int  # which are paired with so many of each reservoir,
    buffer: int  # that keeps so many
    folds: int  # inner folds: the more, the more rows each lane learns from
    small: bool  # whether there is time for more kinds of similarity
    most_ranked: int  # columns of more than two values for which there is time to use ranks
    trees: int  # boosted trees for each inner fold
    leaves: int  # of a tree, at most
    tree_rows: int  # of the training rows, those to grow them on; if wide, for each inner fold, and all are described
    tree_columns: int  # the same of the columns
    wide: bool  # whether there are too many cells for anything but the scaled columns
    looked_at: int  # of the training rows, those by which columns are cleaned and scaled
    even: bool  # whether rare columns are so many that there is another set, in which they speak as loud as others
    forest: int = 0  # trees of a random forest
    forest_rows: int = 0  # of the training rows, those to grow it on


def make_plan(shape, budget=1.0):
    """The plan that costs ``TARGET`` times the budget, or less if there is not so much to do.

    Four times the budget is twice as many rows, trees, landmarks and visits. If that costs too much, because there are
    many columns or many rows to score, the plan is made for less; but half of the target is for learning, whatever the
    rest costs. Where there are no boosted trees and there is room for it, a forest comes on top.
    """
    kind = _kind(shape, budget)
    scale, allowed = _affordable_scale(shape, budget, kind)
    return _with_forest(shape, _scaled_plan(shape, scale, kind), scale, ROOM * allowed)


@dataclass(frozen=True)
class Kind:
    """What a plan may consist of.

    ``wide`` says whether there are too many cells, or there is too little time, for more than the columns and trees on
    a few of them; ``least``, whether trees are as few as can be.
    """

    wide: bool
    least: bool


def _kind(shape, budget):
    usual = Kind(False, budget < SMALL_BUDGET)
    return replace(usual, wide=not shape.sparse and _is_wide(shape, budget, usual))


def _is_wide(shape, budget, usual):
    if shape.n_columns >= 1_000 and shape.n_rows * shape.n_columns > 1.2e7:
        return True
    fixed, most = _cost(shape, LEAST_SCALE * min(budget, 1), usual), 2 * budget
    if shape.n_columns > TREE_CELLS / FEWEST_TREE_ROWS:
        most = min(most, max(budget, 1) / 2)
    return bool(fixed > most * TARGET)


def _affordable_scale(shape, budget, kind):
    """The greatest scale that costs what it may, at most the budget, and what that is."""
    smallest, largest, target = LEAST_SCALE * min(budget, 1), max(budget, LEAST_SCALE), TARGET * budget
    allowed = max(target, _cost(shape, smallest, kind) + target / 2)
    if _cost(shape, largest, kind) <= allowed:
        return largest, allowed
    for _ in range(12):
        middle = (smallest * largest) ** 0.5
        if _cost(shape, middle, kind) <= allowed:
            smallest = middle
        else:
            largest = middle
    return smallest, allowed


def _with_forest(shape, plan, scale, allowed):
    """The plan with as large a forest as it takes, or as there is time for, unless that is none."""
    if plan.trees or plan.wide or shape.sparse:
        return plan
    n_rows = int(min(plan.rows, np.clip(FOREST_CELLS * scale**0.5 / shape.n_columns**0.5, *FOREST_ROWS)))
    without, richer = (sum(costs(shape, replace(plan, forest=n, forest_rows=n_rows)).values()) for n in (0, FOREST))
    n_trees = int(FOREST * min(scale, (allowed - without) / max(richer - without, 1e-9)))
    return replace(plan, forest=n_trees, forest_rows=n_rows) if n_trees >= FEWEST_FOREST else plan


def _cost(shape, scale, kind):
    return sum(costs(shape, _scaled_plan(shape, scale, kind)).values())


def _scaled_plan(shape, scale, kind):
    """More than four negatives to a positive add little to pairs, so they are the first to be left out."""
    n, d, root, wide = shape.n_rows, shape.n_columns, scale**0.5, kind.wide
    small = n <= 3_000
    many = min(shape.n_pos, n - shape.n_pos) >= MANY_ROWS
    rows = min(n, 20_000 * root, max(6_000 * root, min(5 * shape.n_pos, 4e6 * scale / shape.cells_per_row)))
    if wide:
        rows = min(n, WIDE_CELLS * scale / d, 30_000 * root)
    rows = int(max(rows, min(n, 200)))
    has_few_columns = TREE_CELLS * root / d >= min(rows, FEWEST_TREE_ROWS * root)
    tree_columns = d if has_few_columns else FEWEST_COLUMNS if kind.least else TREE_COLUMNS
    tree_rows = int(min(rows, TREE_CELLS * root / tree_columns))
    trees = max(int((WIDE_TREES if wide else TREES) * min(root, 4)), FEWEST_OF_ALL if kind.least else FEWEST_TREES)
    if wide:
        tree_rows = int(min(rows, WIDE_TREE_ROWS * root))
    if not many or small or shape.sparse or (wide and has_few_columns):  # then rows are too many
        trees = 0
    similar = root
    if trees and not wide:
        similar = (SIMILAR if has_few_columns else SIMILAR_OF_MANY) * min(root, max(scale, LEAST_SIMILAR))
    sample = int(min(rows, 6_000 * similar))
    landmarks = 0 if wide or shape.sparse else int(min(sample, (700 if small else 900) * similar))
    affordable = min(9e6, 4e9 / d) * scale / (sample + shape.n_test)  # similarities, those to score by included
    if affordable < landmarks:
        landmarks = int(affordable) if affordable >= 100 else 0
    visits = int((9_600 if small else 14_000) * similar)
    if wide:  # more than one pass helps where rows are fewer than columns
        visits = int(np.clip(WIDE_CELLS * scale / d, rows, 3 * rows)) if rows < d else rows
    # A product of sparse rows costs much the same for few of them as for many.
    block = 128 if shape.sparse and not has_few_rows(rows, d, FEW_ROWS) else 32
    folds = 6 if (small or shape.n_pos < MANY_ROWS) and d <= 1_000 else 5 if scale > 2 else 3
    return Plan(
        rows=rows,
        sample=sample,
        landmarks=landmarks,
        visits=visits,
        block=block,
        draw=(WIDE_DRAWN if wide else DRAWN) * block,
        buffer=WIDE_BUFFER if wide else BUFFER,
        folds=folds,
        small=small,
        most_ranked=int(min(3e8 * scale / ((sample + shape.n_test) * max(landmarks, 100)), MOST_CURVES)),
        trees=trees,
        leaves=int((WIDE_LEAVES if wide else LEAVES) * max(root, 1)),
        tree_rows=tree_rows,
        tree_columns=tree_columns,
        wide=wide,
        looked_at=min(rows, WIDE_LOOKED_AT) if wide else rows,
        even=many and not wide and (shape.sparse or d - shape.n_many >= EVEN_COLUMNS),
    )


def has_few_rows(n_rows, n_columns, most):
    """Whether the space that the rows span is so much smaller than that of the columns that the way there pays.

    The way there takes the longer the more rows there are: ``most`` are worth it.
    """
    return n_rows <= min(n_columns / 3, most)


def quantities(shape, plan):
    """How much there is to do of each kind of work, by the names of ``PRICES``."""
    d, many, n_test, lanes = shape.n_columns, shape.n_many, shape.n_test, STEP_SIZES * plan.folds
    cells, rows, m = shape.cells_per_row, plan.rows, plan.landmarks
    has_curves = not (plan.wide or shape.sparse) and 0 < many <= MOST_CURVES
    ranked = many if has_curves and many <= plan.most_ranked else 0
    steps = 0
    if has_curves:
        steps = min(STEPS, shape.n_pos // POSITIVES_PER_STEP, MOST_STEPS // many)
    linear = cells + ranked + many * steps
    few = FEW_WIDE_ROWS if plan.wide else FEW_ROWS
    in_row_space = has_few_rows(rows, d if shape.sparse else linear, few)
    sparse = shape.sparse and not in_row_space
    kernels = 0 if not m else 3 if plan.small else 1
    linear_visits, visits = max(plan.visits, rows), max(plan.visits, plan.sample) * kernels
    tree_visits = min(VISITS_OF_ONE, plan.tree_rows) * (plan.trees > 0)
    tree_visits += min(VISITS_OF_ONE, plan.forest_rows) * (plan.forest > 0)
    linear_products = rows if in_row_space else linear
    if plan.even:
        linear_visits, linear_products = 2 * linear_visits, (linear_products + min(cells, linear_products)) / 2
    distances = m * (plan.sample + m + n_test)
    described = rows if plan.wide else plan.tree_rows  # by trees
    met = 1 + 2 * plan.draw / plan.block  # rows that a step takes, for each of its block
    chosen_by = min(described, WIDE_CHOSEN_BY) if plan.wide else described
    trees, seen = plan.trees * plan.folds, min(plan.tree_rows, described * (1 - 1 / plan.folds))
    return {
        "a fit": 1,
        "all rows": shape.n_rows,
        "all columns": d,
        "cells to look at": (plan.looked_at + n_test * (not plan.wide)) * cells,
        "cells to clean and scale": (rows + n_test * (not plan.wide)) * cells,
        "raw cells to score": n_test * cells * plan.wide,
        "cells to sort": min(rows, RANKED_ROWS) * many * bool(ranked or steps),
        "cells of ranks": (rows + n_test) * ranked,
        "cells of steps": (rows + n_test) * many * steps,
        "steps": (linear_visits + visits + tree_visits) / plan.block * (1 + lanes / 9) * (not sparse),
        "sparse steps": linear_visits / plan.block * sparse,
        "weights in sparse steps": linear_visits / plan.block * min(d, SPARSE_COLUMNS) * lanes * sparse,
        "cells in steps": (linear_visits * linear_products * (not sparse) + visits * m) * met,
        "products": (linear_visits * linear_products + visits * m) * lanes,
        "held-out products": (rows * linear_products * (1 + plan.even) + plan.sample * m * kernels) * lanes,
        "products of rows": rows**2 * (linear * (SPARSE_PRODUCT if shape.sparse else 1) + rows) * in_row_space,
        "city-block distances": distances * ranked,
        "Euclidean distances": distances * d,
        "similarities": distances * kernels,
        "solved": plan.sample * m**2 * kernels,
        "trees": trees * plan.leaves / LEAVES,
        "cells to choose columns by": chosen_by * d * (plan.trees > 0 and plan.tree_columns < d),
        "columns of trees": trees * plan.leaves / LEAVES * plan.tree_columns,
        "cells of trees": trees * seen * plan.tree_columns,
        "rows through trees": (described + n_test * plan.folds) * plan.trees,
        "forest": plan.forest,
        "cells of a forest": plan.forest * plan.forest_rows * d**0.5,
        "rows through a forest": plan.forest * n_test,
    }


PRICES = {
    "a fit": 0.0155,
    "all rows": 1.2e-07,
    "all columns": 3e-07,
    "cells to look at": 5e-09,
    "cells to clean and scale": 8e-09,
    "raw cells to score": 3.5e-09,
    "cells to sort": 6.1e-08,
    "cells of ranks": 6.5e-08,
    "cells of steps": 8.3e-09,
    "steps": 6.1e-05,
    "sparse steps": 0.0011,
    "weights in sparse steps": 8e-09,
    "cells in steps": 8e-10,
    "products": 1.5e-10,
    "held-out products": 5e-10,
    "products of rows": 1.2e-11,
    "city-block distances": 1.1e-09,
    "Euclidean distances": 7.4e-11,
    "similarities": 9.8e-10,
    "solved": 1.5e-11,
    "trees": 0.0026,
    "cells to choose columns by": 2.4e-09,
    "columns of trees": 2e-05,
    "cells of trees": 1.4e-08,
    "rows through trees": 1.1e-07,
    "forest": 0.0017,
    "cells of a forest": 3.3e-07,
    "rows through a forest": 1.3e-07,
}


def costs(shape, plan):
    """The seconds that each kind of work takes, by the price list."""
    return {name: PRICES[name] * quantity for name, quantity in quantities(shape, plan).items()}


def thin(y, size):
    """Numbers of at most ``size`` rows, in order; the rarer class may make up to a third of them: pairs need both."""
    if len(y) <= size:
        return np.arange(len(y))
    (rare, n_rare), (common, n_common) = _shares(y, size)
    return np.sort(np.concatenate([rare[:n_rare], common[:n_common]]))


def draw_rows(y, size, rng):
    """Numbers of at most ``size`` rows, drawn at random and in random order, of the same classes as of `thin`."""
    if len(y) <= size:
        return rng.permutation(len(y))
    drawn = [rows[sample_without_replacement(len(rows), n, random_state=rng)] for rows, n in _shares(y, size)]
    return rng.permutation(np.concatenate(drawn))


def _shares(y, size):
    """The numbers of the rows of the rarer and of the commoner class, and how many of each make up ``size``."""
    rare, common = sorted((np.flatnonzero(y > 0), np.flatnonzero(y < 0)), key=len)
    n_rare = min(len(rare), max(size // 3, size * len(rare) // len(y)))
    return (rare, n_rare), (common, size - n_rare)
