"""Test of whole numbers that name groups: the label differs by number, in no order.

The mean labels of adjacent numbers tell a quantity from a name. Along a quantity they change steadily, so that each is
near the middle of its two neighbours; adjacent names differ as much as any two names. The part of that difference
beyond the noise of means over few rows is an unbiased estimate of the label's variance between groups.
"""

from __future__ import annotations

import numpy as np

from edl.features.arrays import Floats, Ints

FEWEST_NUMBERS = 12  # distinct numbers; of fewer, a step or a peak looks like disorder
FEWEST_REPEATS = 30  # rows beyond the first of each number, from which the noise is known
BY_CHANCE = 6.0  # deviations that chance gives where the label does not differ by number
ERRORS = 1.5  # standard errors above 0: a step or a peak among ordered numbers is a large difference at a few of them
MOST_OF = 0.6  # of the variance between the numbers; a quantity with twins among the rows has 0.2 to 0.5
ERRORS_OF_PART = 6.0  # the same, where the numbers are ordered in part: twins among the rows give 5
MOST_ROWS = 3.0  # times the mean number of rows that a number weighs as


def disorder(values: Floats, labels: Floats) -> float:
    """Return the share of the labels' variance that lies between the numbers in no order; 0 if it may be chance.

    values: (n,), without NaN. labels: (n, k), numbers or a column per class.
    """
    distinct, codes, sizes = np.unique(values, return_inverse=True, return_counts=True)
    repeats = len(values) - len(distinct)
    if len(distinct) < FEWEST_NUMBERS or repeats < FEWEST_REPEATS:
        return 0.0
    labels = labels / (np.abs(labels).max() or 1.0)  # the square of a large label would be infinite
    total = float(labels.var(axis=0).sum())
    if not total > 0:
        return 0.0
    means = np.stack([np.bincount(codes, column) / sizes for column in labels.T], axis=1)
    noise = float(np.square(labels - means[codes]).sum()) / repeats
    weights = np.minimum(sizes, MOST_ROWS * sizes.mean())  # or a few frequent numbers would decide
    weights = weights / weights.sum()
    measured, by_chance, error = _in_no_order(means, sizes, noise, weights)
    spread = float(
        (weights * np.square(means - weights @ means).sum(axis=1)).sum() - noise * (weights / sizes).sum()
    )
    errors = ERRORS if measured > MOST_OF * spread else ERRORS_OF_PART
    return measured / total if measured > BY_CHANCE * by_chance and measured > errors * error else 0.0


def _in_no_order(means: Floats, sizes: Ints, noise: float, weights: Floats) -> tuple[float, float, float]:
    """Return the variance between groups in no order, its deviation if there is none, and its standard error.

    means: (groups, k), in the order of the numbers. noise: variance of a label within a group.
    """
    apart = np.square(means[1:-1] - (means[:-2] + means[2:]) / 2).sum(axis=1)
    by_chance = noise * (1 / sizes[1:-1] + 0.25 / sizes[:-2] + 0.25 / sizes[2:])
    inner = weights[1:-1] / weights[1:-1].sum()
    excess = (apart - by_chance) / 1.5  # of three independent means: 1 + 1/4 + 1/4
    statistic = float((inner * excess).sum())
    # The variance of a squared deviation is twice its square, and neighbouring terms share means: another 2.
    deviation = 2 * np.sqrt(np.square(inner * by_chance / 1.5).sum())
    return statistic, float(deviation), float(np.sqrt(2 * np.square(inner * (excess - statistic)).sum()))
