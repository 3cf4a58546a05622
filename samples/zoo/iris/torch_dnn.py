"""The species of an iris from four lengths: a dense network in PyTorch, on a CSV file."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as PyTorch writes it

from edl import features as fc
from edl import metrics

LABEL = fc.class_label("species", ["setosa", "versicolor", "virginica"])
FEATURES = fc.Features(
    fc.standardize("sepal_length", mean=5.84, std=0.83),
    fc.standardize("sepal_width", mean=3.06, std=0.43),
    fc.standardize("petal_length", mean=3.76, std=1.76),
    fc.standardize("petal_width", mean=1.2, std=0.76),
)


class Net(nn.Module):
    def __init__(self, units=(16,), dropout=0.0):
        super().__init__()
        layers, width = [], 4
        for each in units:
            layers += [nn.Linear(width, each), nn.ReLU(), nn.Dropout(dropout)]
            width = each
        self.layers = nn.Sequential(*layers, nn.Linear(width, 3))

    def forward(self, features):
        return self.layers(features)


def loss(labels, predictions):
    return F.cross_entropy(predictions, labels, reduction="none")


def optimizer(parameters, lr=0.01):
    return torch.optim.Adam(parameters, lr)


def feed(batch, mode):
    return FEATURES.transform(batch)["dense"], LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)


def eval_metrics_fn():
    return {"accuracy": metrics.Accuracy()}
