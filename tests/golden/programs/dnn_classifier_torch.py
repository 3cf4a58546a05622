"""DNNClassifier, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

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
    fc.standardize("age", mean=38.58, std=13.64),
    fc.one_hot(fc.vocabulary("department", fc.stored(STORED / "f1.json"))),
    fc.embedding(fc.hash_bucket("address", 1000), dim=16),
)
LABEL = fc.class_label("kind", ["a", "b", "c"])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = Concatenated(FEATURES)
        layers, width = [], FEATURES.width
        for units in (10,):
            layers += [
                nn.Linear(width, units),
                nn.BatchNorm1d(units, eps=1e-3, momentum=0.01),
                nn.Tanh(),
                nn.Dropout(0.2),
            ]
            width = units
        self.hidden = nn.Sequential(*layers)
        self.output = nn.Linear(width, 3)  # logits

    def forward(self, features):
        return self.output(self.hidden(self.features(features)))


def custom_model():
    return Model()


def loss(labels, predictions):
    cost = F.cross_entropy(predictions, labels, reduction="none")
    return cost * (1 - torch.exp(-cost)) ** 2.0


def optimizer(parameters, lr=0.1):
    return torch.optim.SGD(parameters, lr, momentum=0.9, nesterov=True, fused=True)


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # probabilities of the classes


def eval_metrics_fn():
    return {"accuracy": metrics.Accuracy(), "log_loss": metrics.LogLoss()}


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
