"""Sequences of ids and other features as one tensor, for generated PyTorch programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from edl.features import Features
from edl.frameworks.torch.layers import Concatenated


class SequenceFeatures(nn.Module):
    """Features and what is read of each sequence, side by side: (rows, width).

    The ids of a sequence are vectors of `dim` numbers, of which a layer makes one: `bilstm`, stacked bidirectional
    LSTMs of these units, the last one's states after the first and the last id; or `attention`, a mean of what a layer
    makes of each vector and its position, with learned weights. Sequences stand behind the other features.
    """

    def __init__(self, features: Features, layer: str, dim: int, units: Sequence[int]) -> None:
        super().__init__()
        others = [column for column in features.columns if column.array != "sequence"]
        entries = [entry for entry in features.entries if entry.kind == "sequence"]
        self.others = Concatenated(Features(*others)) if others else None
        self.entries = [entry.name for entry in entries]
        dims = [getattr(entry.feature, "vector", 0) or dim for entry in entries]  # 0 where it is unset
        self.vectors = nn.ModuleList(
            nn.Embedding(entry.num_ids, size, padding_idx=0)
            for entry, size in zip(entries, dims, strict=True)
        )
        self.readers = nn.ModuleList(
            BidirectionalLSTM(size, units) if layer == "bilstm" else AttentionPooling(size, entry.width)
            for entry, size in zip(entries, dims, strict=True)
        )
        widths = [2 * units[-1]] * len(entries) if layer == "bilstm" else dims
        self.width = sum(widths) + (0 if self.others is None else self.others.width)

    def forward(self, features: Mapping[str, torch.Tensor]) -> torch.Tensor:
        blocks = [] if self.others is None else [self.others(features)]
        for name, vectors, reader in zip(self.entries, self.vectors, self.readers, strict=True):
            ids = features[name]
            blocks.append(reader(vectors(ids), ids > 0))
        return blocks[0] if len(blocks) == 1 else torch.cat(blocks, dim=1)


class BidirectionalLSTM(nn.Module):
    """States of stacked bidirectional LSTMs at both ends of a sequence: (rows, length, dim) to (rows, 2 units)."""

    def __init__(self, dim: int, units: Sequence[int]) -> None:
        super().__init__()
        widths = [dim, *(2 * number for number in units)]
        self.layers = nn.ModuleList(
            nn.LSTM(width, number, batch_first=True, bidirectional=True)
            for width, number in zip(widths, units, strict=False)
        )

    def forward(self, vectors: torch.Tensor, is_id: torch.Tensor) -> torch.Tensor:
        lengths = is_id.sum(dim=1).clamp(min=1).cpu()  # an empty sequence is one of a single zero vector
        packed = nn.utils.rnn.pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
        for layer in self.layers:
            packed, (states, _) = layer(packed)
        return torch.cat([states[0], states[1]], dim=1)


class AttentionPooling(nn.Module):
    """Mean of the vectors of a sequence, weighted by a softmax of learned scores: (rows, length, dim) to (rows, dim).

    To each vector the vector of its position is added, so that the order has an influence.
    """

    def __init__(self, dim: int, length: int) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.randn(length, dim) / dim**0.5)
        self.inner = nn.Linear(dim, dim)
        self.scores = nn.Linear(dim, 1)

    def forward(self, vectors: torch.Tensor, is_id: torch.Tensor) -> torch.Tensor:
        vectors = torch.relu(self.inner(vectors + self.positions))
        scores = self.scores(vectors).squeeze(2).masked_fill(~is_id, -1e9)
        weights = torch.softmax(scores, dim=1) * is_id
        return (weights.unsqueeze(2) * vectors).sum(dim=1)
