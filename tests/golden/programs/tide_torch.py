"""TiDE, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

import torch
from torch import nn
from torch.nn import functional as F

from edl import features as fc
from edl import forecasting, metrics
from edl.torch import Concatenated, TiDE, quantile_losses

SERIES = forecasting.Series(
    "income",
    time="hired",
    by=["department"],
    horizon=14,
    step="1 day",
    season=7,
    lags=2,
    windows=1,
    known=["age"],
)
FEATURES = fc.Inputs(
    past=fc.Features(*fc.lags(2)),
    known=fc.Features(
        fc.standardize("age", mean=38.58, std=13.64),
        fc.one_hot(fc.vocabulary("department", ["a", "b"])),
    ),
    scale=fc.Features(fc.raw("forecast.level"), fc.raw("forecast.scale"), fc.raw("forecast.step")),
)
LABEL = fc.forecast("income", quantiles=[0.1, 0.9])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.known = Concatenated(FEATURES["known"])
        self.network = TiDE(
            lags=2,
            horizon=14,
            known=self.known.width,
            outputs=3,
            season=7,
            hidden_size=64,
            layers=1,
            dropout=0.1,
        )
        self.register_buffer("shifts", torch.zeros(2))  # of the quantiles, by the backtest

    def forward(self, features):
        level, scale, step = features["scale_dense"].split(1, dim=1)
        relative = self.network(features["past_dense"], step, self.known(features))
        relative = relative + F.pad(self.shifts, (1, 0))
        return relative * scale + level


def custom_model():
    return Model()


def loss(labels, predictions):
    errors = (labels[:, :1] - predictions) / labels[:, 3:4]  # in units of the series
    return torch.cat([errors[:, :1].abs(), quantile_losses(errors[:, 1:], [0.1, 0.9])], dim=1).mean(dim=1)


def optimizer(parameters, lr=0.001):
    return torch.optim.Adam(parameters, lr, fused=True)


def examples(rows, mode):
    """Return a row for each time to forecast, with what was known at its origin."""
    return SERIES.examples(rows, mode, seed=0)


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # in units of the label


def eval_metrics_fn():
    return {"mase": metrics.MASE(), "seasonal_naive_mase": metrics.SeasonalNaiveMASE()}


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
