"""Compiled assignment of ids to servers. Imported for more than one server only, because numba imports slowly."""

from __future__ import annotations

from typing import Any

import numpy as np

from edl.embeddings.kernels import mix
from edl.embeddings.numba_cache import jit

Array = Any
_32 = np.uint64(32)


@jit
def owners(ids: Array, servers: int, result: Array) -> None:
    """Write the server index of each id, int64 (n,), into `result`."""
    for i in range(len(ids)):
        result[i] = np.int64((mix(np.uint64(ids[i])) >> _32) % np.uint64(servers))


@jit
def split(ids: Array, sorted_ids: Array, places: Array, ends: Array) -> None:
    """Write the ids ordered by server into `sorted_ids`, and their positions in `ids` into `places`.

    `ends` is zeros on entry, and on return the end of each server's ids in `sorted_ids`.
    """
    owner_of = np.empty(len(ids), np.int64)
    owners(ids, len(ends), owner_of)
    starts = np.zeros(len(ends), np.int64)
    for i in range(len(ids)):
        ends[owner_of[i]] += 1
    for server in range(1, len(ends)):
        starts[server] = ends[server - 1]
        ends[server] += ends[server - 1]
    for i in range(len(ids)):
        place = starts[owner_of[i]]
        sorted_ids[place] = ids[i]
        places[place] = i
        starts[owner_of[i]] += 1
