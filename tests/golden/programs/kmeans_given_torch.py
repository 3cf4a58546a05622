"""KMeans, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

import torch
from torch import nn

from edl import features as fc
from edl import metrics
from edl.torch import Centres, Concatenated

FEATURES = fc.Features(
    fc.standardize("age", mean=38.58, std=13.64),
    fc.standardize("income", mean=60000.0, std=15000.0),
)
LABEL = fc.clusters(5)


INITIAL = (  # features of the rows that the statement marks
    [0.5, -1.0, 1.0],
    [2.25, 0.0, 0.0],
)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = Concatenated(FEATURES)
        self.distances = Centres(5, FEATURES.width, initial=INITIAL)

    def forward(self, features):
        return self.distances(self.features(features))


def custom_model():
    return Model()


def loss(labels, predictions):
    return predictions.min(dim=1).values  # squared distances to the nearest centres


def optimizer(parameters, lr=0.001):
    return torch.optim.Adam(parameters, lr, fused=True)


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # distances to the centres


def eval_metrics_fn():
    return {"inertia": metrics.Inertia(), "silhouette": metrics.Silhouette()}


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
