"""DNNLinearCombinedClassifier, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from edl import features as fc
from edl import metrics
from edl.torch import Concatenated, WeightedSum

STORED = Path(__file__).parent / "vocabulary"
FEATURES = fc.Inputs(
    wide=fc.Features(
        fc.one_hot(fc.vocabulary("city", fc.stored(STORED / "wide_f0.json"))),
        fc.one_hot(fc.cross(["city", "team"], 1000)),
    ),
    deep=fc.Features(
        fc.standardize("age", mean=38.58, std=13.64),
        fc.embedding(fc.vocabulary("city", fc.stored(STORED / "wide_f0.json")), dim=4),
    ),
)
LABEL = fc.class_label("kind", ["a", "b", "c"])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = WeightedSum(FEATURES["wide"], units=3)
        self.deep = Concatenated(FEATURES["deep"])
        layers, width = [], FEATURES["deep"].width
        for units in (100, 50):
            layers += [nn.Linear(width, units), nn.ReLU(), nn.Dropout(0.1)]
            width = units
        self.hidden = nn.Sequential(*layers)
        self.output = nn.Linear(width, 3)

    def forward(self, features):
        deep = self.output(self.hidden(self.deep(features)))
        return self.wide(features) + deep  # logits


def custom_model():
    return Model()


def loss(labels, predictions):
    return F.cross_entropy(predictions, labels, reduction="none")


def optimizer(parameters, lr=0.001):
    return torch.optim.Adam(parameters, lr, fused=True)


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # probabilities of the classes


def eval_metrics_fn():
    return {"accuracy": metrics.Accuracy()}


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
