"""Isolation forest (Liu, Ting and Zhou, 2008) in PyTorch, for generated programs.

Each tree divides a small sample of rows by random columns and random splits until they are alone; rows that are soon
alone are unusual. The trees are made of the first rows that the model sees, in random order, and never change. What is
trained is the threshold, a quantile of the scores of all training rows, by the gradient of its quantile loss.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

Floats = npt.NDArray[np.float32]

BLOCK = 16  # trees through which the rows go at once
_LEAST = 1e-6  # mean path, as a share of the average one


class IsolationForest(nn.Module):
    """Log-odds of rows to be anomalies, from (rows, width) to (rows, 1): positive beyond the threshold.

    The score of the article is s = 2^(-path / average path). The output is the difference of its log-odds and the
    threshold's; this keeps the order.

    sample_rows: of each tree; the depth is limited to its logarithm. contamination: share of the rows beyond the
    threshold.
    """

    columns: torch.Tensor
    splits: torch.Tensor
    paths: torch.Tensor

    def __init__(self, trees: int, sample_rows: int, width: int, contamination: float) -> None:
        super().__init__()
        self._sample_rows, self._width, self._share = sample_rows, width, 1 - contamination
        self._depth = max(1, math.ceil(math.log2(sample_rows)))
        leaves = 1 << self._depth
        # The children of node i are 2 i + 1, for numbers up to its split, and 2 i + 2; leaves are the last nodes.
        self.register_buffer("columns", torch.zeros(trees, leaves - 1, dtype=torch.int64))
        self.register_buffer("splits", torch.full((trees, leaves - 1), torch.inf))
        self.register_buffer("paths", torch.ones(trees, leaves))
        self.threshold = nn.Parameter(torch.zeros(()))
        self._started = False

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        if not self._started:
            self._started = True
            with torch.no_grad():
                self._grow(rows)
        return (self.log_odds(rows) - self.threshold).unsqueeze(1)

    def log_odds(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the log-odds of the scores, (rows,)."""
        blocks = zip(
            self.columns.split(BLOCK), self.splits.split(BLOCK), self.paths.split(BLOCK), strict=True
        )
        total = sum(_path(rows, *block, self._depth) for block in blocks)
        path = (total / len(self.columns)).clamp(min=_LEAST)
        return -torch.log(torch.expm1(path * math.log(2)))

    def _grow(self, rows: torch.Tensor) -> None:
        generator = np.random.default_rng(int(torch.randint(1 << 31, ())))
        matrix = rows.numpy()
        size = min(self._sample_rows, len(matrix))
        average = max(float(average_path(np.array(size))), _LEAST)
        for tree in range(len(self.columns)):
            sample = matrix[generator.choice(len(matrix), size, replace=False)]
            columns, splits, paths = _grow_tree(sample, self._depth, generator)
            self.columns[tree] = torch.from_numpy(columns)
            self.splits[tree] = torch.from_numpy(splits)
            self.paths[tree] = torch.from_numpy(paths / average)
        self.threshold.copy_(self.log_odds(rows).quantile(self._share))


def _path(
    rows: torch.Tensor, columns: torch.Tensor, splits: torch.Tensor, paths: torch.Tensor, depth: int
) -> torch.Tensor:
    """Return the sum of the paths of each row in these trees, as shares of the average path."""
    trees, inner = columns.shape
    tree = torch.arange(trees, device=rows.device)
    node = rows.new_zeros(rows.shape[0], trees, dtype=torch.int64)  # len() would fix it in an export
    for _ in range(depth):
        numbers = rows.gather(1, columns.take(node + inner * tree))
        node = 2 * node + 1 + (numbers > splits.take(node + inner * tree)).long()
    return paths.take(node - inner + (inner + 1) * tree).sum(dim=1)


def average_path(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the average path of an unsuccessful search in a binary search tree of so many rows: equation 1."""
    more = np.maximum(rows, 3)
    lengths: npt.NDArray[np.float64] = 2 * (np.log(more - 1) + np.euler_gamma) - 2 * (more - 1) / more
    return np.asarray(np.where(rows > 2, lengths, rows == 2), dtype=np.float64)


def _grow_tree(
    rows: Floats, depth: int, generator: np.random.Generator
) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """Return column and split of each inner node of a tree, and the path to each leaf. All nodes of a level at once.

    A node of equal rows has an infinite split, so that all its rows go on to its first child; its path ends there.
    """
    inner = (1 << depth) - 1
    columns, splits = np.zeros(inner, np.int64), np.full(inner, np.inf, np.float32)
    node, steps = np.zeros(len(rows), np.int64), np.zeros(len(rows))
    every = np.arange(len(rows))
    for _ in range(depth):
        numbers, place_of_row, counts = np.unique(node, return_inverse=True, return_counts=True)
        by_node, starts = rows[np.argsort(place_of_row, kind="stable")], np.cumsum(counts) - counts
        low, high = np.minimum.reduceat(by_node, starts), np.maximum.reduceat(by_node, starts)
        differ = high > low
        column = (generator.random(differ.shape) * differ).argmax(axis=1)
        place = np.arange(len(numbers)), column
        split = low[place] + generator.random(len(numbers)) * (high[place] - low[place])
        below = np.nextafter(high[place], np.float32(-np.inf))
        divides = np.logical_or.reduce(differ, axis=1)
        split = np.where(divides, np.minimum(split, below), np.inf).astype(np.float32)
        columns[numbers], splits[numbers] = column, split
        steps += divides[place_of_row]
        node = 2 * node + 1 + (rows[every, column[place_of_row]] > split[place_of_row])
    leaf = node - inner
    paths = np.zeros(inner + 1)
    together = np.bincount(leaf, minlength=inner + 1)
    paths[leaf] = steps + average_path(together[leaf])
    return columns, splits, paths.astype(np.float32)
