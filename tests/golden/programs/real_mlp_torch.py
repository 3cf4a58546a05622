"""RealMLPClassifier, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

import torch
from torch import nn
from torch.nn import functional as F

from edl import features as fc
from edl import metrics, schedules
from edl.torch import Concatenated, FeatureScales, NTPLinear

FEATURES = fc.Features(
    fc.standardize("carat", mean=0.8, std=0.5, limit=4.0),
    fc.piecewise_linear("carat", [0.25, 0.5, 1.0, 5.0]),
    fc.one_hot(fc.vocabulary("cut", ["good", "ideal"])),
)
LABEL = fc.class_label("kind", ["a", "b", "c"])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        layers, width = [Concatenated(FEATURES), FeatureScales(FEATURES.width)], FEATURES.width
        for units in (256, 256, 256):
            layers += [NTPLinear(width, units), nn.SELU(), nn.Dropout(0.15)]
            width = units
        self.layers = nn.Sequential(*layers, NTPLinear(width, 3))  # logits

    def forward(self, features):
        return self.layers(features)


def custom_model():
    return Model()


def loss(labels, predictions):
    return F.cross_entropy(predictions, labels, reduction="none", label_smoothing=0.1)


def optimizer(parameters, lr=0.04):
    return torch.optim.AdamW(parameters, lr, weight_decay=0.02, betas=(0.9, 0.95), fused=True)


def learning_rate(steps):
    return schedules.coslog(steps, 0.04, over=4000)


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # probabilities of the classes


def eval_metrics_fn():
    return {"accuracy": metrics.Accuracy(), "log_loss": metrics.LogLoss()}


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
