"""Margins of LightGBM's trees by compiled code, equal to the library's to the last bit: the comparisons are the same,
and the leaves of a row are added in the same order.
"""

from __future__ import annotations

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from edl.arrays import Array
from edl.frameworks.trees.forest import Forest, Ints

# Rows times trees from which compiled code pays: loading it takes half a second, and the first time on a machine some
# seconds more.
ENOUGH = 30_000_000


def is_available() -> bool:
    return importlib.util.find_spec("numba") is not None


class CompiledForest:
    """Evaluation of a forest that compares numbers as float64, by `<=`."""

    def __init__(self, forest: Forest) -> None:
        from edl.frameworks.trees.kernels import add_up

        if not (forest.inclusive and forest.doubles):
            raise ValueError("XGBoost compares float32, by <, and evaluates its trees fast enough")
        nodes = forest.nodes
        sets = {node: _words(categories) for node, categories in nodes.sets.items()}
        sizes = np.zeros(len(nodes.first), dtype=np.uint32)
        sizes[list(sets)] = [len(words) for words in sets.values()]
        starts = np.zeros(len(nodes.first), dtype=np.uint32)
        starts[list(sets)] = np.cumsum(sizes[list(sets)]) - sizes[list(sets)]
        tree = np.searchsorted(forest.roots, list(sets), side="right") - 1
        with_sets = np.zeros(len(forest.roots), dtype=bool)
        with_sets[tree] = True
        self._outputs = len(forest.base)
        self._add_up = partial(
            add_up,
            roots=forest.roots.astype(np.uint32),
            depths=_depths(forest),
            with_sets=with_sets,
            outputs=forest.outputs,
            columns=nodes.column.astype(np.uint32),
            thresholds=nodes.threshold,
            firsts=nodes.first.astype(np.uint32),
            missing=nodes.missing_first,
            values=nodes.value,
            starts=starts,
            sizes=sizes,
            words=np.concatenate([*sets.values(), np.zeros(1, dtype=np.uint32)]),
        )

    def margins(self, matrix: Array, threads: int) -> Array:
        """Return the margins of the rows of a float64 matrix, (n, outputs)."""
        rows = np.ascontiguousarray(matrix, dtype=np.float64)
        sums = np.zeros((len(rows), self._outputs))
        if threads == 1 or len(rows) < threads:
            self._add_up(rows, sums=sums)
            return sums
        parts = zip(np.array_split(rows, threads), np.array_split(sums, threads), strict=True)  # views
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda part: self._add_up(part[0], sums=part[1]), parts))
        return sums


def _words(categories: Ints) -> Array:
    """Return the set as bits, in words of 32."""
    bits = np.zeros((int(categories.max(initial=0)) // 32 + 1) * 32, dtype=bool)
    bits[categories] = True
    return np.packbits(bits, bitorder="little").view("<u4").astype(np.uint32)


def _depths(forest: Forest) -> Ints:
    """Return the number of comparisons on the longest way through each tree."""
    first, leaf = forest.nodes.first, forest.nodes.is_leaf
    depths = np.zeros(len(forest.roots), dtype=np.int64)
    tree, level = np.arange(len(forest.roots)), forest.roots
    while (inner := ~leaf[level]).any():
        tree, level = np.tile(tree[inner], 2), first[level[inner]]
        level = np.concatenate([level, level + 1])
        depths[np.unique(tree)] += 1
    return depths
