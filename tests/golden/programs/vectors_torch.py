"""LinearRegressor, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from edl import features as fc
from edl import metrics
from edl.torch import Concatenated

STORED = Path(__file__).parent / "vocabulary"
FEATURES = fc.Features(
    fc.vector("point", mean=[24.5, 49.0, 7.0]),
    fc.vector(
        'a "b"',
        mean=fc.stored(STORED / "f1_mean.json"),
        std=fc.stored(STORED / "f1_std.json"),
        delimiter="|",
    ),
)
LABEL = fc.label("income", mean=60000.0, std=15000.0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = Concatenated(FEATURES)
        self.output = nn.Linear(FEATURES.width, 1)

    def forward(self, features):
        return self.output(self.features(features)) * LABEL.std + LABEL.mean


def custom_model():
    return Model()


def loss(labels, predictions):
    return F.mse_loss(predictions / LABEL.std, labels / LABEL.std, reduction="none")


def optimizer(parameters, lr=0.001):
    return torch.optim.Adam(parameters, lr, fused=True)


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # in units of the label


def eval_metrics_fn():
    return {"rmse": metrics.RMSE(), "mae": metrics.MAE()}


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
