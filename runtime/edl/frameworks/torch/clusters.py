"""Centres of clusters in PyTorch, for generated programs.

Mini-batch k-means is stochastic gradient descent on the squared distance of each row to its nearest centre (Bottou and
Bengio, 1995), so it trains like any network, on one worker or several.

Deep embedded clustering (Xie, Girshick and Farhadi, 2016): an autoencoder learns codes of the first rows that the model
sees; k-means gives the centres of their clusters. Encoder and centres are then trained like any network: the soft
assignment of each row moves towards a sharper one.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence

import torch
from torch import nn

STARTS = 4  # of which the best is taken
ITERATIONS = 100  # at most; they end when no row changes its cluster


class Centres(nn.Module):
    """Squared distances of rows to the centres of clusters: (rows, width) to (rows, clusters).

    The first rows that it sees give the centres: k-means++ (Arthur and Vassilvitskii, 2007) and iterations of Lloyd's
    algorithm, the best of several starts.

    cosine: rows and centres have the length 1, so that the squared distance is twice the cosine distance. initial:
    (clusters, width) features of the rows from which Lloyd's algorithm starts instead.
    """

    def __init__(
        self,
        clusters: int,
        width: int,
        *,
        cosine: bool = False,
        initial: Sequence[Sequence[float]] | None = None,
    ) -> None:
        super().__init__()
        self._cosine = cosine
        self._initial = initial
        self.centres = nn.Parameter(torch.zeros(clusters, width))
        self._started = False

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        rows = nn.functional.normalize(rows, dim=1) if self._cosine else rows
        if not self._started:
            self._started = True
            with torch.no_grad():
                self.centres.copy_(self._start(rows))
        centres = nn.functional.normalize(self.centres, dim=1) if self._cosine else self.centres
        return squared_distances(rows, centres)

    def _start(self, rows: torch.Tensor) -> torch.Tensor:
        if self._initial is None:
            return first_centres(rows, len(self.centres))
        initial = torch.tensor(self._initial, dtype=rows.dtype, device=rows.device)
        return _improve_centres(rows, nn.functional.normalize(initial, dim=1) if self._cosine else initial)


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


BATCH, MOMENTUM = 256, 0.9  # of the pretraining
SLOWER = 10.0  # divides its rate after an epoch that did not lower the error
WINDOW = 4096  # rows over which the sizes of clusters are averaged


class DeepClusters(nn.Module):
    """Squared distances of the codes of rows to the centres of clusters: (rows, width) to (rows, clusters).

    dims: units of the encoder's layers; the last number is the width of the codes. starts: of k-means.
    """

    def __init__(
        self,
        clusters: int,
        width: int,
        *,
        dims: Sequence[int] = (100, 100, 10),
        pretrain_epochs: int = 30,
        pretrain_lr: float = 1.0,
        starts: int = 20,
    ) -> None:
        super().__init__()
        self.encoder = dense(width, *dims)
        self.centres = nn.Parameter(torch.zeros(clusters, dims[-1]))
        self._pretraining = pretrain_epochs, pretrain_lr
        self._decoded = *reversed(dims[:-1]), width
        self._starts = starts
        self._started = False

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        if not self._started:
            self._started = True
            decoder = dense(self.centres.shape[1], *self._decoded).to(rows.device)
            with torch.enable_grad():
                pretrain(nn.Sequential(self.encoder, decoder), rows, *self._pretraining)
            with torch.no_grad():
                self.centres.copy_(first_centres(self.encoder(rows), len(self.centres), self._starts))
        return squared_distances(self.encoder(rows), self.centres)


class ClusterTargets(nn.Module):
    """Divergence of each row's soft assignment from its target: squared distances (rows, clusters) to (rows,).

    The assignment q follows Student's t distribution; the target is q² divided by the size of each cluster, the mean of
    q over the last rows of the training, so that large clusters do not swallow small ones.
    """

    sizes: torch.Tensor

    def __init__(self, clusters: int) -> None:
        super().__init__()
        self.register_buffer("sizes", torch.full((clusters,), 1 / clusters))

    def forward(self, distances: torch.Tensor) -> torch.Tensor:
        near = 1 / (1 + distances)
        assigned = near / near.sum(dim=1, keepdim=True)
        with torch.no_grad():
            if self.training:
                self.sizes.lerp_(assigned.mean(dim=0), min(1.0, len(assigned) / WINDOW))
            target = assigned.square() / self.sizes
            target /= target.sum(dim=1, keepdim=True)
        return (target * (target.clamp(min=1e-12) / assigned).log()).sum(dim=1)


def dense(*widths: int) -> nn.Sequential:
    """Return dense layers with ReLU between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def pretrain(autoencoder: nn.Module, rows: torch.Tensor, epochs: int, rate: float) -> None:
    """Train the autoencoder by the squared error of its reconstruction, with gradient descent and momentum.

    After an epoch that did not lower the error, its weights go back to the best epoch's weights, and the rate is
    divided by 10: the rate 1 of the paper is too high for most tables.
    """
    rows = rows.detach()
    best, kept = _error(autoencoder, rows), copy.deepcopy(autoencoder.state_dict())
    optimizer = torch.optim.SGD(autoencoder.parameters(), rate, MOMENTUM)
    for _ in range(epochs):
        for part in torch.randperm(len(rows), device=rows.device).split(BATCH):
            optimizer.zero_grad()
            (autoencoder(rows[part]) - rows[part]).square().mean().backward()
            optimizer.step()
        error = _error(autoencoder, rows)
        if error < best:
            best, kept = error, copy.deepcopy(autoencoder.state_dict())
        else:
            rate /= SLOWER
            autoencoder.load_state_dict(kept)
            optimizer = torch.optim.SGD(autoencoder.parameters(), rate, MOMENTUM)
    autoencoder.load_state_dict(kept)
    autoencoder.zero_grad()


def _error(autoencoder: nn.Module, rows: torch.Tensor) -> float:
    with torch.no_grad():
        return float((autoencoder(rows) - rows).square().mean())
