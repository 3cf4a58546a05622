"""TiDE, a dense encoder and decoder of time series (Das et al., 2023), in PyTorch, for generated programs.

A row is one step of a forecast: it has the values before the origin, and the columns of the time to forecast. Unlike in
the paper, the encoder sees the columns of that one time, not the columns of all times of the past and the horizon, so a
row needs no other row.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import nn

from edl.spec.forecast import DECODED, TEMPORAL_UNITS


class TiDE(nn.Module):
    """Outputs relative to the series: of values (rows, lags), NaN if unknown, known columns (rows, known) and steps
    (rows, 1), to (rows, outputs).

    Encoder and decoder are residual blocks; the decoder gives a vector for each step of the horizon. From the vector of
    the row's step, and its known columns, the temporal decoder makes the outputs. A linear function of the values is
    added to the first output, and to each other one; it begins as the mean of the values at the same place of each
    season, the seasonal naive forecast.
    """

    def __init__(
        self,
        lags: int,
        horizon: int,
        known: int = 0,
        outputs: int = 1,
        *,
        season: int = 1,
        hidden_size: int = 64,
        layers: int = 1,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        widths = [lags + known, *[hidden_size] * (2 * layers - 1), horizon * DECODED]
        self.blocks = nn.Sequential(
            *(Residual(width, hidden_size, after, dropout) for width, after in itertools.pairwise(widths))
        )
        self.temporal = Residual(DECODED + known, TEMPORAL_UNITS, outputs, dropout, normalised=False)
        self.linear = nn.Linear(lags, horizon)
        nn.init.zeros_(self.linear.bias)
        with torch.no_grad():
            self.linear.weight.copy_(seasonal_naive(lags, horizon, season))

    def forward(self, past: torch.Tensor, step: torch.Tensor, *known: torch.Tensor) -> torch.Tensor:
        past, place = past.nan_to_num(0.0), step.long() - 1
        decoded = self.blocks(torch.cat([past, *known], dim=1)).unflatten(1, (-1, DECODED))
        step_decoded = decoded.take_along_dim(place.unsqueeze(2), dim=1).squeeze(1)
        return self.temporal(torch.cat([step_decoded, *known], dim=1)) + self.linear(past).gather(1, place)


class Residual(nn.Module):
    """Residual block: a dense layer with ReLU and dropout, added to a linear function, then normalised."""

    def __init__(
        self, width: int, hidden_size: int, outputs: int, dropout: float, *, normalised: bool = True
    ) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, hidden_size)
        self.out = nn.Linear(hidden_size, outputs)
        self.skip = nn.Linear(width, outputs)
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(outputs) if normalised else nn.Identity()

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        hidden = self.dropout(self.out(self.hidden(rows).relu()))
        normed: torch.Tensor = self.norm(hidden + self.skip(rows))
        return normed


def seasonal_naive(lags: int, horizon: int, season: int) -> torch.Tensor:
    """Return the weights (horizon, lags) of the mean of the values at the same place of each season.

    Without a season, or with fewer lags than one, they select the last value.
    """
    steps = torch.arange(horizon).unsqueeze(1)
    same = (torch.arange(1, lags + 1) + steps) % season == 0
    if season == 1 or lags < season:
        same = (torch.arange(lags) == 0).expand(horizon, lags)
    return same / same.sum(dim=1, keepdim=True)


def quantile_losses(errors: torch.Tensor, quantiles: Sequence[float]) -> torch.Tensor:
    """Return the quantile loss of each error, label less forecast, (rows, quantiles)."""
    shares = errors.new_tensor(quantiles)
    return torch.maximum(shares * errors, (shares - 1) * errors)
