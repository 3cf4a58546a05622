"""Losses that several modules of the zoo may take, with `--loss losses.smoothed`."""

from torch.nn import functional as F  # noqa: N812 - as PyTorch writes it


def smoothed(labels, predictions):
    return F.cross_entropy(predictions, labels, reduction="none", label_smoothing=0.1)
