"""The shape of data, and the sizes that all parts of a fit share. They follow from the shape and from the effort.

An effort of 1 is an ordinary fit, 4 is about four times the work: twice as many rows, visits, landmarks and trees.
Sizes bound the cells that a part works through as well as its rows, so that the same effort costs about the same for
data of any shape, but for the rows to score.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.utils.random import sample_without_replacement

MANY_ROWS = 300  # of both classes: enough for boosted trees, and for columns that are each divided by its deviation
SMALL = 3_000  # rows, up to which there is time for more kinds of similarity
WIDE = 1.2e10  # rows times columns, times columns (at most 1,000), from which on data is wide:
WIDE_CELLS = 3e7  # so many cells are visited, by the columns and by trees on a few of them only
WIDE_LOOKED_AT = 1_000  # rows by which its columns are cleaned and scaled
WIDE_BUFFER, BUFFER = 4_000, 2_000  # rows that are kept of each class
TREE_CELLS = 1e6  # to grow boosted trees on
FEWEST_TREE_ROWS = 5_000  # with less of them trees find little; better they look at fewer columns
TREE_COLUMNS = 50  # then: those in which the classes differ most
BESIDE_TREES, BESIDE_FEW_COLUMNS = (0.45, 0.8)  # share of landmarks and visits beside boosted trees, which then count
# more: on all columns, or on some of them only
SMALLEST_SHARE = 0.2  # and of these shares what is left if the effort is small
VISITED_CELLS = 1e8  # at most, if rows are few and columns many
VISITS_OF_ONE = 2_000  # rows to learn from if there is one feature, of which only the sign is to be learned


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

    @property
    def has_many(self):
        """Whether there are many rows of both classes."""
        return min(self.n_pos, self.n_rows - self.n_pos) >= MANY_ROWS


@dataclass(frozen=True)
class Plan:
    """The sizes that all sets of features share; those of one set are its own."""

    effort: float
    rows: int  # training rows to learn from
    looked_at: int  # of these, rows by which columns are cleaned and scaled
    visits: int  # rows to learn from for a set of features, pass after pass
    similar: float  # how much of their usual size landmarks have
    block: int  # rows to a step,
    draw: int  # which are paired with so many of each reservoir,
    buffer: int  # that keeps so many
    folds: int  # inner folds: the more, the more rows each lane learns from
    small: bool  # whether rows are so few that there are more kinds of similarity
    wide: bool  # whether there are too many cells for anything but the scaled columns and trees on a few of them
    plain: bool  # whether only the scaled columns are wanted
    tree_columns: int  # columns for boosted trees; 0: there are none

    @property
    def root(self):
        """By how much rows, landmarks and trees are more than with an effort of 1."""
        return self.effort**0.5


def make_plan(shape, effort=1.0, plain=False):
    """The `Plan` for data of this shape.

    More than four negatives to a positive add little to pairs, so they are the first to be left out.
    """
    n, d, root = shape.n_rows, shape.n_columns, effort**0.5
    small = n <= SMALL
    wide = not shape.sparse and n * d * min(d, 1_000) > WIDE
    rows = min(n, 20_000 * root, max(6_000 * root, min(5 * shape.n_pos, 4e6 * effort / shape.cells_per_row)))
    if wide:
        rows = min(n, WIDE_CELLS * effort / d, 30_000 * root)
    rows = int(max(rows, min(n, 200)))
    tree_columns = 0
    if shape.has_many and not (small or shape.sparse or plain):
        few = not wide and TREE_CELLS * root / d >= min(rows, FEWEST_TREE_ROWS * root)
        tree_columns = d if few else min(d, TREE_COLUMNS)
    similar = root
    if tree_columns and not wide:
        share = BESIDE_TREES if tree_columns == d else BESIDE_FEW_COLUMNS
        similar = share * min(root, max(effort, SMALLEST_SHARE))
    usual = int((9_600 if small else 14_000) * similar)
    visits = max(min(usual, int(VISITED_CELLS * effort / shape.cells_per_row)), rows)
    if wide:  # more than one pass helps where rows are fewer than columns
        visits = int(np.clip(WIDE_CELLS * effort / d, rows, 3 * rows)) if rows < d else rows
    block = 128 if shape.sparse else 32  # a product of sparse rows costs much the same for few of them as for many
    return Plan(
        effort=effort,
        rows=rows,
        looked_at=min(rows, WIDE_LOOKED_AT) if wide else rows,
        visits=visits,
        similar=similar,
        block=block,
        draw=(1 if wide else 2) * block,
        buffer=WIDE_BUFFER if wide else BUFFER,
        folds=6 if (small or shape.n_pos < MANY_ROWS) and d <= 1_000 else 5 if effort > 2 else 3,
        small=small,
        wide=wide,
        plain=plain,
        tree_columns=tree_columns,
    )


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
