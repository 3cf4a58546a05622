"""Who clicks: wide and deep in PyTorch. The network alone has to find what pairs of ids have to do with each other."""

from torch import nn

from edl.torch import Embedding

from .rows import FIELDS, IDS
from .torch_deepfm import LABEL, eval_metrics_fn, feed, loss, network, optimizer, scores

__all__ = ["LABEL", "WideDeep", "eval_metrics_fn", "feed", "loss", "optimizer", "scores"]


class WideDeep(nn.Module):
    def __init__(self, dim=8, hidden_units=(256, 128)):
        super().__init__()
        self.weights = Embedding("weights", 1, "sum", initial="zeros", num_ids=FIELDS * IDS)
        self.vectors = Embedding("vectors", dim, num_ids=FIELDS * IDS)
        self.deep = network(FIELDS * dim, hidden_units)

    def forward(self, ids):
        return self.weights(ids) + self.deep(self.vectors(ids))
