"""nets.Heads, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

import torch
from torch import nn
from torch.nn import functional as F

from edl import features as fc
from edl import metrics
from edl.torch import Concatenated, checked_model, joined, rescaled

from nets import Heads

FEATURES = fc.Features(
    fc.standardize("age", mean=38.58, std=13.64),
    fc.one_hot(fc.vocabulary("department", ["engineering", "finance", "sales"])),
    fc.embedding(fc.hash_bucket("address", 1000), dim=16),
)
LABEL = fc.labels(fc.label("cost", mean=10.0, std=2.5), fc.class_label("left", [False, True]))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = Concatenated(FEATURES)
        self.model = checked_model(Heads(in_features=FEATURES.width))

    def forward(self, features):
        return rescaled(joined(self.model(self.features(features)), LABEL), LABEL)


def custom_model():
    return Model()


def loss_0(labels, predictions):
    return F.mse_loss(predictions / LABEL[0].std, labels / LABEL[0].std, reduction="none")


def loss_1(labels, predictions):
    return F.binary_cross_entropy_with_logits(predictions, labels, reduction="none")


def loss(labels, predictions):
    losses = loss_0(labels[:, 0:1], predictions[:, 0:1]).flatten()  # "cost"
    losses += loss_1(labels[:, 1:2], predictions[:, 1:2]).flatten()  # "left"
    return losses


def optimizer(parameters, lr=0.001):
    return torch.optim.Adam(parameters, lr, fused=True)


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # of each label: a number, or the probabilities of its classes


def eval_metrics_fn():
    return {
        "cost.rmse": metrics.of_label(LABEL, 0, metrics.RMSE()),
        "left.auc": metrics.of_label(LABEL, 1, metrics.AUC()),
    }


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
