"""LinearClassifier, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

import torch
from torch import nn
from torch.nn import functional as F

from edl import features as fc
from edl import metrics
from edl.torch import Concatenated, by_class

FEATURES = fc.Features(
    fc.standardize("age", mean=38.58, std=13.64),
    fc.one_hot(fc.vocabulary("department", ["engineering", "finance", "sales"])),
    fc.embedding(fc.hash_bucket("address", 1000), dim=16),
)
LABEL = fc.class_label("left", [False, True])
WEIGHTS = fc.weights('how "often"', mean=2.5)
CLASS_WEIGHTS = [0.55, 5.43]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = Concatenated(FEATURES)
        self.output = nn.Linear(FEATURES.width, 1)  # logits

    def forward(self, features):
        return self.output(self.features(features))


def custom_model():
    return Model()


def loss(labels, predictions):
    cost = F.binary_cross_entropy_with_logits(predictions, labels, reduction="none")
    losses = cost * (1 - torch.exp(-cost)) ** 2.0
    return losses * by_class(labels, CLASS_WEIGHTS)


def optimizer(parameters, lr=0.001):
    return torch.optim.Adam(parameters, lr, fused=True)


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode), WEIGHTS.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # probabilities of the classes


def eval_metrics_fn():
    return {"auc": metrics.AUC()}


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
