"""DNNRegressor, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

import torch
from torch import nn
from torch.nn import functional as F

from edl import features as fc
from edl import metrics
from edl.torch import Concatenated, rescaled

FEATURES = fc.Features(
    fc.standardize("age", mean=38.58, std=13.64),
    fc.one_hot(fc.vocabulary("department", ["engineering", "finance", "sales"])),
    fc.embedding(fc.hash_bucket("address", 1000), dim=16),
)
LABEL = fc.labels(
    fc.label("cost", mean=10.0, std=2.5),
    fc.class_label("left", [False, True]),
    fc.class_label("kind", ["a", "b", "c"]),
)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = Concatenated(FEATURES)
        layers, width = [], FEATURES.width
        for units in (10,):
            layers += [nn.Linear(width, units), nn.ReLU()]
            width = units
        self.hidden = nn.Sequential(*layers)
        self.output = nn.Linear(width, 5)

    def forward(self, features):
        return rescaled(self.output(self.hidden(self.features(features))), LABEL)


def custom_model():
    return Model()


def loss_0(labels, predictions):
    return F.mse_loss(predictions / LABEL[0].std, labels / LABEL[0].std, reduction="none")


def loss_1(labels, predictions):
    return F.binary_cross_entropy_with_logits(predictions, labels, reduction="none")


def loss_2(labels, predictions):
    return F.cross_entropy(predictions, labels, reduction="none")


def loss(labels, predictions):
    losses = loss_0(labels[:, 0:1], predictions[:, 0:1]).flatten()  # "cost"
    losses += 0.5 * loss_1(labels[:, 1:2], predictions[:, 1:2]).flatten()  # "left"
    losses += 2.0 * loss_2(labels[:, 2:5].argmax(dim=1), predictions[:, 2:5]).flatten()  # "kind"
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
        "kind.top_k_accuracy@2": metrics.of_label(LABEL, 2, metrics.TopKAccuracy(2)),
    }


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
