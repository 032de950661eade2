"""How much to do in one fit. It follows from the shape of the data and the budget, and is the same on every machine."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Plan:
    """How much to do in a fit."""

    rows: int  # training rows to learn from
    sample: int  # of these, rows to learn from through landmarks
    landmarks: int
    visits: int  # rows to learn from for each set of features, pass after pass
    block: int  # rows to a step, which are paired with twice as many from the reservoirs
    folds: int  # inner folds: the more, the more rows each lane learns from
    small: bool  # whether there is time for more kinds of similarity
    quick: bool  # whether to do without what is dear in many columns
    wide: bool  # whether there are too many columns for all but the scaled columns


def make_plan(n_train, n_pos, n_columns, cells_per_row, sparse=False, budget=1.0):
    """Sized so that, with a budget of 1, ten folds end in about 5 s on two cores and under 9 s on one.

    A larger budget goes half into more rows and landmarks, half into more visits. More than four negatives to a
    positive add little to pairs, so they are the first to be left out.
    """
    n_test = n_train / 9  # as in a fold of ten
    root = budget**0.5
    rows = int(min(n_train, 20_000 * budget, max(6_000 * root, min(5 * n_pos, 4e6 * budget / cells_per_row))))
    sample = int(min(rows, 6_000 * root))
    small = n_train <= 3_000
    affordable = min(9e6, 4e9 / n_columns) * budget / (sample + n_test)
    landmarks = int(min(sample, (700 if small else 1_000) * root, max(affordable, 100)))
    quick = (sample + n_test) * landmarks * n_columns > 3e8 * budget
    visits = int((9_600 if small else 16_000) * root)
    folds = 6 if (small or n_pos < 300) and n_columns <= 1_000 else 3
    wide = not sparse and n_columns > 1_000 and n_train * n_columns > 1.2e7
    if wide:
        rows = int(min(n_train, 2.2e7 * budget / n_columns))
        sample = rows
        visits = rows
    block = 128 if sparse else 32  # a product of sparse rows costs much the same for few of them as for many
    return Plan(rows, sample, landmarks, visits, block, folds, small, quick, wide)


def thin(y, size):
    """Numbers of at most ``size`` rows, in order; the rarer class may make up to a third of them: pairs need both."""
    if len(y) <= size:
        return np.arange(len(y))
    rare, common = sorted((np.flatnonzero(y > 0), np.flatnonzero(y < 0)), key=len)
    n_rare = min(len(rare), max(size // 3, size * len(rare) // len(y)))
    return np.sort(np.concatenate([rare[:n_rare], common[: size - n_rare]]))
