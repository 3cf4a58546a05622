"""DNNRegressor, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

import torch
from torch import nn
from torch.nn import functional as F

from edl import features as fc
from edl import metrics
from edl.torch import Concatenated

FEATURES = fc.Features(
    fc.standardize("age", mean=38.58, std=13.64),
    fc.one_hot(fc.vocabulary("department", ["engineering", "finance", "sales"])),
    fc.embedding(fc.hash_bucket("address", 1000), dim=16),
)
LABEL = fc.label("income", mean=60000.0, std=15000.0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = Concatenated(FEATURES)
        layers, width = [], FEATURES.width
        for units in (100, 150, 50):
            layers += [nn.Linear(width, units), nn.ReLU()]
            width = units
        self.hidden = nn.Sequential(*layers)
        self.output = nn.Linear(width, 1)

    def forward(self, features):
        return self.output(self.hidden(self.features(features))) * LABEL.std + LABEL.mean


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
