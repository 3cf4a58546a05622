"""Layers of generated PyTorch programs: principal components, autoencoders, and products of factors.

Components and codes stand before three numbers of each row, with which the model is measured: the mean squared and the
mean absolute error with which they restore the features, and the mean squared feature less its mean. Means are over
the features of the row.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import torch
from torch import nn

from edl.features import Features

_ACTIVATIONS = {
    "relu": nn.ReLU,
    "elu": nn.ELU,
    "selu": nn.SELU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "mish": nn.Mish,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "linear": nn.Identity,
}


class PrincipalComponents(nn.Module):
    """Principal components of rows and their errors: (rows, width) to float64 (rows, components + 3).

    `ExactComponents` gives the weights. means: of the features. variances: of the rows along each component; total:
    of all features together. kept: the number of components that explain the wanted share of the variance.
    """

    means: torch.Tensor
    variances: torch.Tensor
    total: torch.Tensor
    kept: torch.Tensor

    def __init__(self, components: int, width: int) -> None:
        super().__init__()
        self.components = nn.Linear(width, components, bias=False, dtype=torch.float64)
        nn.init.zeros_(self.components.weight)
        self.register_buffer("means", torch.zeros(width, dtype=torch.float64))
        self.register_buffer("variances", torch.zeros(components, dtype=torch.float64))
        self.register_buffer("total", torch.zeros(1, dtype=torch.float64))
        self.register_buffer("kept", torch.tensor([components]))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        rows = features.double()
        weight = self.components.weight
        numbers = (
            self.components(rows) - self.means @ weight.T
        )  # the layer has the rows: the solver asks for its inputs
        return _with_errors(numbers, rows - self.means, numbers @ weight)


class Autoencoder(nn.Module):
    """Codes of rows and their errors: (rows, width) to (rows, units of the smallest layer + 3).

    units: of the hidden layers, of which the smallest one, the middle of several such, has the codes.
    """

    def __init__(
        self, units: Sequence[int], width: int, activation: str = "relu", dropout: float = 0.0
    ) -> None:
        super().__init__()
        place = code_layer(units)
        sizes = [width, *units, width]
        layers: list[list[nn.Module]] = [[], []]
        for number, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
            part = layers[number > place]
            part.append(nn.Linear(inputs, outputs))
            if number not in (place, len(units)):  # codes and restored features are any numbers
                part.append(_ACTIVATIONS[activation]())
                part += [nn.Dropout(dropout)] if dropout else []
        self.encoder, self.decoder = nn.Sequential(*layers[0]), nn.Sequential(*layers[1])

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        codes = self.encoder(features)
        return _with_errors(codes, features, self.decoder(codes))


def code_layer(units: Sequence[int]) -> int:
    """Return the place of the layer with the codes among the hidden layers."""
    places = [place for place, number in enumerate(units) if number == min(units)]
    return places[len(places) // 2]


def _with_errors(numbers: torch.Tensor, features: torch.Tensor, restored: torch.Tensor) -> torch.Tensor:
    errors = restored - features
    of_rows = (errors.square(), errors.abs(), features.square())
    return torch.cat([numbers, *(part.mean(dim=1, keepdim=True) for part in of_rows)], dim=1)


class FactorProducts(nn.Module):
    """Products of the factors of two categories: (rows, 1), with a bias for each value unless feedback is implicit.

    `AlternatingLeastSquares` gives the weights, which are zeros for unknown values.
    """

    def __init__(self, features: Features, factors: int, *, implicit: bool = False) -> None:
        super().__init__()
        user, item = features.entries
        self.entries = user.name, item.name
        self.implicit = implicit
        self.users = nn.Embedding(user.num_ids, factors + 1)
        self.items = nn.Embedding(item.num_ids, factors + 1)
        nn.init.zeros_(self.users.weight)
        nn.init.zeros_(self.items.weight)

    def forward(self, features: Mapping[str, torch.Tensor]) -> torch.Tensor:
        users, items = self.users(features[self.entries[0]]), self.items(features[self.entries[1]])
        products = (users[:, :-1] * items[:, :-1]).sum(dim=1, keepdim=True)
        return products if self.implicit else products + users[:, -1:] + items[:, -1:]
