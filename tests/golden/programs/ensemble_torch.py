"""DNNClassifier, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

import torch
from torch import nn
from torch.nn import functional as F

from edl import features as fc
from edl import metrics, schedules
from edl.torch import Concatenated, MemberOutputs, Members

FEATURES = fc.Features(
    fc.piecewise_linear("carat", [0.25, 0.5, 1.0, 5.0]),
    fc.one_hot(fc.vocabulary("cut", ["good", "ideal"])),
)
LABEL = fc.class_label("kind", ["a", "b", "c"])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = Concatenated(FEATURES)
        self.members = Members(8, FEATURES.width)  # an ensemble: (rows, 8, width)
        layers, width = [], FEATURES.width
        for units in (256, 128):
            layers += [nn.Linear(width, units), nn.ReLU(), nn.Dropout(0.1)]
            width = units
        self.hidden = nn.Sequential(*layers)
        self.output = MemberOutputs(8, width, 3)  # logits

    def forward(self, features):
        return self.output(self.hidden(self.members(self.features(features))))


def custom_model():
    return Model()


def loss(labels, predictions):
    return F.cross_entropy(predictions, labels, reduction="none")


def optimizer(parameters, lr=0.002):
    return torch.optim.AdamW(parameters, lr, fused=True)


def learning_rate(steps):
    return schedules.cosine(steps, 0.002, over=4000)


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # probabilities of the classes


def eval_metrics_fn():
    return {"accuracy": metrics.Accuracy(), "log_loss": metrics.LogLoss()}


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
