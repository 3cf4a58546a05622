"""IsolationForest, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

import torch
from torch import nn

from edl import features as fc
from edl import metrics
from edl.torch import Concatenated, IsolationForest

FEATURES = fc.Features(
    fc.standardize("age", mean=38.58, std=13.64),
    fc.standardize("income", mean=60000.0, std=15000.0),
)
LABEL = fc.anomalies()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = Concatenated(FEATURES)
        self.forest = IsolationForest(100, 256, FEATURES.width, contamination=0.05)

    def forward(self, features):
        return self.forest(self.features(features))


def custom_model():
    return Model()


def loss(labels, predictions):
    odds = predictions.squeeze(1)  # quantile loss of the threshold
    return torch.maximum((1 - 0.05) * odds, -0.05 * odds)


def optimizer(parameters, lr=0.001):
    return torch.optim.Adam(parameters, lr, fused=True)


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # from 0 to 1, above 0.5 for an anomaly


def eval_metrics_fn():
    return {"anomaly_rate": metrics.AnomalyRate()}


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
