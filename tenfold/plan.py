"""How much to do in one fit: the sizes of all its parts, which follow from the shape of the data and from the effort.

An effort of 1 is an ordinary fit, 4 is about four times the work: twice as many rows, visits, landmarks and trees.
Sizes bound the cells that a part works through as well as its rows, so that the same effort costs about the same for
data of any shape, but for the rows to score.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.utils.random import sample_without_replacement

FEW_ROWS = 2_000  # up to this many rows, and a third of the columns, learn from the Gram matrix
FEW_WIDE_ROWS = 1_000  # the same where rows are visited only once
MANY_ROWS = 300  # of the rarer class: enough to choose lanes and to weigh columns by without fitting noise
STEPS = 16  # at most, for each column
MOST_STEPS = 1_000  # of all columns
POSITIVES_PER_STEP = 10  # at least, so that single positives are not told apart
RANKED_ROWS = 3_000  # training rows, in random order, that ranks and steps are found by
MOST_CURVES = 500  # columns of more than two values that may have ranks or steps
TREES = 20  # for each inner fold, with an effort of 1
FEWEST_TREES = 6
LEAVES = 40  # of a tree, at most; fewer would find less
TREE_CELLS = 1e6  # to grow trees on
FEWEST_TREE_ROWS = 5_000  # with less of them trees find little; better they look at fewer columns
TREE_COLUMNS = 50  # then: those in which the classes differ most
WIDE = 1.2e10  # rows times columns, times columns (at most 1,000), from which on data is wide:
WIDE_CELLS = 3e7  # so many cells are visited, by the columns and by trees on a few of them only,
WIDE_TREES = 10  # of these trees, with fewer leaves,
WIDE_LEAVES = 16
WIDE_TREE_ROWS = 3_000  # and the rows to grow them on,
WIDE_LOOKED_AT = 1_000  # the rows by which columns are cleaned and scaled,
WIDE_CHOSEN_BY = 2_000  # and chosen, and
WIDE_BUFFER = 4_000  # rows of each class to keep instead of
BUFFER = 2_000
EVEN_COLUMNS = 200  # of two values, at least, for a set in which each is divided by its deviation
SPARSE_COLUMNS = 30_000  # of sparse rows, at most, to learn from: those that are filled most often
FOREST = 50  # trees of a random forest, with an effort of 1,
MOST_FOREST = 800  # and at most
FEWEST_FOREST = 40  # fewer find little
FOREST_ROWS = 500, 3_000  # to grow it on, at least and at most
FOREST_CELLS = 10_000  # that a tree looks at, with an effort of 1: of each row, as many as the root of the columns
DRAWN, WIDE_DRAWN = 2, 1  # rows from each reservoir that a block is paired with, for each of its own
VISITS_OF_ONE = 2_000  # rows to learn from if there is one feature, of which only the sign is to be learned
SIMILAR = 0.45  # share of the landmarks and visits where there are boosted trees, which then count more,
SIMILAR_OF_MANY = 0.8  # unless they look at some of the columns only,
LEAST_SIMILAR = 0.2  # and of these shares what is left if the effort is small


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
    small: bool  # whether rows are so few that there are more kinds of similarity
    most_ranked: int  # columns of more than two values for which there may be ranks
    trees: int  # boosted trees for each inner fold
    leaves: int  # of a tree, at most
    tree_rows: int  # of the training rows, those to grow them on; if wide, for each inner fold, and all are described
    tree_columns: int  # the same of the columns
    wide: bool  # whether there are too many cells for anything but the scaled columns and trees on a few of them
    looked_at: int  # of the training rows, those by which columns are cleaned and scaled
    even: bool  # whether there is another set, in which rare columns count as much as others
    forest: int  # trees of a random forest
    forest_rows: int  # of the training rows, those to grow it on


def make_plan(shape, effort=1.0):
    """The plan for data of this shape.

    More than four negatives to a positive add little to pairs, so they are the first to be left out.
    """
    n, d, root = shape.n_rows, shape.n_columns, effort**0.5
    small = n <= 3_000
    wide = not shape.sparse and n * d * min(d, 1_000) > WIDE
    many = min(shape.n_pos, n - shape.n_pos) >= MANY_ROWS
    rows = min(n, 20_000 * root, max(6_000 * root, min(5 * shape.n_pos, 4e6 * effort / shape.cells_per_row)))
    if wide:
        rows = min(n, WIDE_CELLS * effort / d, 30_000 * root)
    rows = int(max(rows, min(n, 200)))
    has_few_columns = TREE_CELLS * root / d >= min(rows, FEWEST_TREE_ROWS * root)
    tree_columns = d if has_few_columns else TREE_COLUMNS
    tree_rows = int(min(rows, TREE_CELLS * root / tree_columns))
    trees = max(int((WIDE_TREES if wide else TREES) * min(root, 4)), FEWEST_TREES)
    if wide:
        tree_rows = int(min(rows, WIDE_TREE_ROWS * root))
    if not many or small or shape.sparse or (wide and has_few_columns):  # then rows are too many
        trees = 0
    similar = root
    if trees and not wide:
        similar = (SIMILAR if has_few_columns else SIMILAR_OF_MANY) * min(root, max(effort, LEAST_SIMILAR))
    sample = int(min(rows, 6_000 * similar))
    landmarks = 0 if wide or shape.sparse else int(min(sample, (700 if small else 900) * similar))
    affordable = min(9e6, 4e9 / d) * effort / (sample + shape.n_test)  # similarities, those to score by included
    if affordable < landmarks:
        landmarks = int(affordable) if affordable >= 100 else 0
    visits = int((9_600 if small else 14_000) * similar)
    if wide:  # more than one pass helps where rows are fewer than columns
        visits = int(np.clip(WIDE_CELLS * effort / d, rows, 3 * rows)) if rows < d else rows
    # A product of sparse rows costs much the same for few of them as for many.
    block = 128 if shape.sparse and not has_few_rows(rows, d, FEW_ROWS) else 32
    folds = 6 if (small or shape.n_pos < MANY_ROWS) and d <= 1_000 else 5 if effort > 2 else 3
    forest = min(int(FOREST * effort), MOST_FOREST) if not (trees or wide or shape.sparse) else 0
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
        most_ranked=int(min(3e8 * effort / ((sample + shape.n_test) * max(landmarks, 100)), MOST_CURVES)),
        trees=trees,
        leaves=int((WIDE_LEAVES if wide else LEAVES) * max(root, 1)),
        tree_rows=tree_rows,
        tree_columns=tree_columns,
        wide=wide,
        looked_at=min(rows, WIDE_LOOKED_AT) if wide else rows,
        even=many and not wide and (shape.sparse or d - shape.n_many >= EVEN_COLUMNS),
        forest=forest if forest >= FEWEST_FOREST else 0,
        forest_rows=int(min(rows, np.clip(FOREST_CELLS * root / d**0.5, *FOREST_ROWS))),
    )


def has_few_rows(n_rows, n_columns, most):
    """Whether the space that the rows span is so much smaller than that of the columns that the way there pays.

    The way there takes the longer the more rows there are: ``most`` are worth it.
    """
    return n_rows <= min(n_columns / 3, most)


def thin(y, size):
    """Numbers of at most ``size`` rows, in order; the rarer class may make up to a third of them: pairs need both."""
    if len(y) <= size:
        return np.arange(len(y))
    (rare, n_rare), (common, n_common) = _shares(y, size)
    return np.sort(np.concatenate([rare[:n_rare], common[:n_common]]))


def draw_rows(y, size, rng, rarest=1 / 3):
    """Numbers of at most ``size`` rows, drawn at random and in random order, of the same classes as of `thin`.

    ``rarest`` is the share of these rows that the rarer class may make up.
    """
    if len(y) <= size:
        return rng.permutation(len(y))
    drawn = [rows[sample_without_replacement(len(rows), n, random_state=rng)] for rows, n in _shares(y, size, rarest)]
    return rng.permutation(np.concatenate(drawn))


def _shares(y, size, rarest=1 / 3):
    """The numbers of the rows of the rarer and of the commoner class, and how many of each make up ``size``."""
    rare, common = sorted((np.flatnonzero(y > 0), np.flatnonzero(y < 0)), key=len)
    n_rare = min(len(rare), max(int(size * rarest), size * len(rare) // len(y)))
    return (rare, n_rare), (common, size - n_rare)
