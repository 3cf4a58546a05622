"""The digits of `torch_net`, whose rows come by a Dataset: PyTorch's DataLoader makes minibatches of its items."""

import numpy as np
import torch
from torch.utils.data import Dataset

from .records import PIXELS
from .torch_net import LABEL, custom_model, eval_metrics_fn, loss, optimizer, scores

__all__ = ["LABEL", "custom_model", "dataset", "eval_metrics_fn", "loss", "optimizer", "scores"]


class Digits(Dataset):
    """Items are an image (1, 8, 8) from 0 to 1, and its digit."""

    def __init__(self, records):
        self.records = records

    def __len__(self):
        return len(self.records)

    def __getitem__(self, row):
        record = np.frombuffer(self.records[row], np.uint8)
        image = torch.from_numpy(record[:PIXELS].astype(np.float32)).reshape(1, 8, 8) / 16
        return image, int(record[PIXELS])


def dataset(reader, start, end, mode):
    batches = reader.read(start, end)
    return Digits([record for batch in batches for record in batch.column("record").to_pylist()])
