"""Who clicks: DeepFM in PyTorch, a weight and a vector for each of 2.6 million ids, in row tables.

The log-odds are the sum of the weights, the products of all pairs of vectors, and what a network makes of the vectors.
With `linear = True` they are the weights alone.
"""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as PyTorch writes it

from edl import metrics
from edl.torch import Embedding

from .rows import FIELDS, IDS, LABEL, ids_and_clicks


class DeepFM(nn.Module):
    def __init__(self, dim=8, hidden_units=(128, 64), linear=False):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1))
        self.weights = Embedding("weights", 1, "sum", initial="zeros", num_ids=FIELDS * IDS)
        self.linear = linear
        if linear:
            return
        self.vectors = Embedding("vectors", dim, num_ids=FIELDS * IDS)
        self.deep = network(FIELDS * dim, hidden_units)

    def forward(self, ids):
        log_odds = self.weights(ids) + self.bias
        if self.linear:
            return log_odds
        vectors = self.vectors(ids)
        return log_odds + products(vectors) + self.deep(vectors)


def network(width, hidden_units):
    """From vectors (n, fields, dim) of `width` numbers together to (n, 1)."""
    layers = [nn.Flatten()]
    for units in hidden_units:
        layers += [nn.Linear(width, units), nn.ReLU()]
        width = units
    return nn.Sequential(*layers, nn.Linear(width, 1))


def products(vectors):
    """Return the sum of the products of all pairs: (n, fields, dim) to (n, 1)."""
    return (vectors.sum(1).square() - vectors.square().sum(1)).sum(1, keepdim=True) / 2


def loss(labels, predictions):
    return F.binary_cross_entropy_with_logits(predictions, labels, reduction="none")


def optimizer(parameters, lr=0.001):
    return torch.optim.Adam(parameters, lr)


def feed(batch, mode):
    return ids_and_clicks(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)


def eval_metrics_fn():
    return {"auc": metrics.AUC()}
