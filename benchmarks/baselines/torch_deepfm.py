"""DeepFM in the style of PyTorch's tutorials, with an `nn.Embedding` for each column: DataLoader, Adam."""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.baselines.clicks import DIM, HIDDEN_UNITS, IDS, Clicks, main_clicks


class DeepFM(nn.Module):  # type: ignore[misc]
    def __init__(self, columns: int, sparse: bool) -> None:
        super().__init__()
        self.vectors = nn.ModuleList(nn.Embedding(IDS, DIM, sparse=sparse) for _ in range(columns))
        self.weights = nn.ModuleList(nn.Embedding(IDS, 1, sparse=sparse) for _ in range(columns))
        layers: list[nn.Module] = [nn.Flatten()]
        width = columns * DIM
        for units in HIDDEN_UNITS:
            layers += [nn.Linear(width, units), nn.ReLU()]
            width = units
        self.deep = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        columns = ids.unbind(1)
        vectors = torch.stack([layer(each) for layer, each in zip(self.vectors, columns, strict=True)], 1)
        weights = torch.stack([layer(each) for layer, each in zip(self.weights, columns, strict=True)]).sum(0)
        pairs = vectors.sum(1).square() - vectors.square().sum(1)
        outputs: torch.Tensor = weights + 0.5 * pairs.sum(1, keepdim=True) + self.deep(vectors)
        return outputs


def train(rows: Clicks, epochs: int, batch_size: int, sparse: bool = False) -> list[float]:
    dataset = TensorDataset(torch.from_numpy(np.column_stack(rows.ids)), torch.from_numpy(rows.clicks))
    loader = DataLoader(dataset, batch_size=batch_size, shuffle=True)
    model = DeepFM(len(rows.ids), sparse)
    optimizers = optimizers_of(model, sparse)
    loss_of = nn.BCEWithLogitsLoss()
    seconds = []
    for _ in range(epochs):
        began = time.perf_counter()
        for ids, clicks in loader:
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss_of(model(ids), clicks).backward()
            for optimizer in optimizers:
                optimizer.step()
        seconds.append(time.perf_counter() - began)
    return seconds


def optimizers_of(model: DeepFM, sparse: bool) -> list[torch.optim.Optimizer]:
    if not sparse:
        return [torch.optim.Adam(model.parameters(), lr=0.001)]
    tables = [*model.vectors.parameters(), *model.weights.parameters()]
    return [torch.optim.SparseAdam(tables, lr=0.001), torch.optim.Adam(model.deep.parameters(), lr=0.001)]


if __name__ == "__main__":
    main_clicks(train)
