"""Centres of clusters in PyTorch, for generated programs.

Mini-batch k-means is stochastic gradient descent on the squared distance of each row to its nearest centre (Bottou and
Bengio, 1995), so it trains like any network, on one worker or several.
"""

from __future__ import annotations

import torch
from torch import nn

STARTS = 4  # of which the best is taken
ITERATIONS = 100  # at most; they end when no row changes its cluster


class Centres(nn.Module):
    """Squared distances of rows to the centres of clusters: (rows, width) to (rows, clusters).

    The first rows that it sees give the centres: k-means++ (Arthur and Vassilvitskii, 2007) and iterations of Lloyd's
    algorithm, the best of several starts.
    """

    def __init__(self, clusters: int, width: int) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.zeros(clusters, width))
        self._started = False

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        if not self._started:
            self._started = True
            with torch.no_grad():
                self.centres.copy_(first_centres(rows, len(self.centres)))
        return squared_distances(rows, self.centres)


def squared_distances(rows: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    """Return the squared distance of each row to each centre, (rows, centres).

    It is a small difference of large numbers, and so float32 in any precision.
    """
    lengths = rows.square().sum(dim=1, keepdim=True) + centres.square().sum(dim=1)
    with torch.autocast(rows.device.type, enabled=False):
        return (lengths - 2 * rows @ centres.T).clamp(min=0)


def first_centres(rows: torch.Tensor, clusters: int, starts: int = STARTS) -> torch.Tensor:
    """Return centres for these rows, (clusters, width): of several starts the one with the least squared distance."""
    candidates = [_improve_centres(rows, _choose_centres(rows, clusters)) for _ in range(starts)]
    return min(candidates, key=lambda centres: float(_to_nearest(rows, centres).sum()))


def _choose_centres(rows: torch.Tensor, clusters: int) -> torch.Tensor:
    """Choose rows as centres: each with a probability that grows with its squared distance to those before it."""
    centres = rows[torch.randint(len(rows), (1,), device=rows.device)]
    while len(centres) < clusters:
        distances = _to_nearest(rows, centres)
        weights = distances if float(distances.sum()) > 0 else torch.ones_like(distances)
        centres = torch.cat([centres, rows[torch.multinomial(weights, 1)]])
    return centres


def _improve_centres(rows: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    """Move each centre to the mean of its rows until no row changes its cluster; one without rows stays."""
    before = None
    for _ in range(ITERATIONS):
        nearest = squared_distances(rows, centres).argmin(dim=1)
        if before is not None and torch.equal(nearest, before):
            break
        before, members = nearest, nn.functional.one_hot(nearest, len(centres)).T
        counts = members.sum(dim=1, keepdim=True)
        means = members.to(rows.dtype) @ rows / counts.clamp(min=1)
        centres = torch.where(counts > 0, means, centres)
    return centres


def _to_nearest(rows: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    return squared_distances(rows, centres).min(dim=1).values
