"""DeepEmbeddedClustering, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

import torch
from torch import nn

from edl import features as fc
from edl import metrics
from edl.torch import ClusterTargets, Concatenated, DeepClusters

FEATURES = fc.Features(
    fc.standardize("age", mean=38.58, std=13.64),
    fc.standardize("income", mean=60000.0, std=15000.0),
)
LABEL = fc.clusters(5)


TARGETS = ClusterTargets(5)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = Concatenated(FEATURES)
        self.distances = DeepClusters(
            5,
            FEATURES.width,
            dims=[10, 3],
            pretrain_epochs=30,
            pretrain_lr=1.0,
            starts=20,
        )
        self.targets = TARGETS  # with the sizes of the clusters

    def forward(self, features):
        return self.distances(self.features(features))


def custom_model():
    return Model()


def loss(labels, predictions):
    return TARGETS(predictions)  # divergence of the soft assignments from sharper ones


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
