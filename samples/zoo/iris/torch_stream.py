"""The irises of `torch_dnn`, whose rows come by an IterableDataset: it walks over a task's record batches."""

import numpy as np
from torch.utils.data import DataLoader, IterableDataset

from .torch_dnn import LABEL, Net, eval_metrics_fn, loss, optimizer, scores

__all__ = ["LABEL", "Net", "eval_metrics_fn", "loss", "optimizer", "scores", "stream"]

LENGTHS = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
CENTIMETRES = 10.0  # about the largest


class Irises(IterableDataset):
    """Items are the lengths and the species of many irises at a time."""

    def __init__(self, batches, mode):
        self.batches = batches
        self.mode = mode

    def __iter__(self):
        for batch in self.batches:
            lengths = np.column_stack([batch.column(name).to_numpy() for name in LENGTHS])
            yield lengths / CENTIMETRES, LABEL.transform(batch, self.mode)


def stream(batches, mode):
    return DataLoader(Irises(batches, mode), batch_size=None)  # what it yields is many rows already
