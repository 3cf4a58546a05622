"""DeepFMClassifier, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

import torch
from torch import nn
from torch.nn import functional as F

from edl import features as fc
from edl import metrics
from edl.torch import Concatenated, WeightedSum

FEATURES = fc.Features(
    fc.standardize("age", mean=38.58, std=13.64),
    fc.embedding(fc.vocabulary("city", ["oslo", "rome"]), dim=8),
    fc.embedding(fc.hash_bucket("flat", 3600), dim=8),
)
LABEL = fc.class_label("left", [False, True])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first_order = WeightedSum(FEATURES)
        self.features = Concatenated(FEATURES)  # the number, then the vectors
        layers, width = [], FEATURES.width
        for units in (100, 50):
            layers += [nn.Linear(width, units), nn.ReLU()]
            width = units
        self.hidden = nn.Sequential(*layers)
        self.output = nn.Linear(width, 1)

    def forward(self, features):
        hidden = self.features(features)
        pairs = pairwise_products(hidden[:, 1:].unflatten(1, (2, 8)))
        outputs = self.first_order(features) + pairs + self.output(self.hidden(hidden))
        return outputs  # logits


def pairwise_products(vectors):
    """Sum the inner products of all pairs of a row's vectors: (square of sum - sum of squares) / 2."""
    square_of_sum = vectors.sum(dim=1).square()
    sum_of_squares = vectors.square().sum(dim=1)
    return 0.5 * (square_of_sum - sum_of_squares).sum(dim=1, keepdim=True)


def custom_model():
    return Model()


def loss(labels, predictions):
    return F.binary_cross_entropy_with_logits(predictions, labels, reduction="none")


def optimizer(parameters, lr=0.001):
    return torch.optim.Adam(parameters, lr, fused=True)


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # probabilities of the classes


def eval_metrics_fn():
    return {"auc": metrics.AUC()}


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
