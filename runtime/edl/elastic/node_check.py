"""Short check of the nodes of a group before its workers train: a matrix product on each, and a sum over all.

A node that is slow is said, and takes part all the same; a node that does not answer in time prevents the group from
forming.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence

import numpy as np

from edl.collectives.base import Group
from edl.logs import log

SIZE, TIMES = 256, 8  # rows and columns of the matrices; number of products, of which the fastest counts
FACTOR = 3.0  # times the median from which a product is slow
LEAST_SECS = 0.002  # more than the median, so that noise is not taken for a slow node
NUMBERS = 1 << 18  # float32 values in the sum
SUM_SECS, LIMIT_SECS = 2.0, 20.0  # time from which the sum is slow, and after which it fails


@functools.cache
def product_secs() -> float:
    """Return the seconds of a matrix product in this process."""
    matrix, times = np.ones((SIZE, SIZE), np.float32), []
    for _ in range(TIMES):
        began = time.perf_counter()
        matrix @ matrix
        times.append(time.perf_counter() - began)
    return min(times)


def check(group: Group, members: Sequence[str]) -> None:
    """Compare the members of a group, named by rank; the first one logs what is slow. Raises GroupError.

    The caller sets the timeout of the group anew.
    """
    seconds = group.gather(np.array([product_secs()]))[:, 0]
    group.timeout = LIMIT_SECS
    began = time.perf_counter()
    group.sum(np.zeros(NUMBERS, np.float32))
    took = time.perf_counter() - began
    if group.rank == 0:
        for line in findings(members, seconds.tolist(), took):
            log(line)


def findings(members: Sequence[str], seconds: Sequence[float], took: float) -> list[str]:
    """Return a sentence for each slow member, and for a slow sum. `seconds` are the times of each member's product."""
    median = sorted(seconds)[(len(seconds) - 1) // 2]
    sentences = [
        f"{name} is slow: a matrix product takes {1000 * secs:.1f} ms there, and {1000 * median:.1f} ms elsewhere"
        for name, secs in zip(members, seconds, strict=True)
        if secs > max(FACTOR * median, median + LEAST_SECS)
    ]
    if took > SUM_SECS:
        sentences.append(
            f"the network is slow: the sum of a megabyte over {len(members)} workers takes {took:.1f} s"
        )
    return sentences
