"""Training in the style of PyTorch's tutorials, with an `nn.Embedding` for each category: DataLoader, Adam."""

from __future__ import annotations

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.baselines import Embedded, main_embedded


class Model(nn.Module):  # type: ignore[misc]
    def __init__(self, rows: Embedded, sparse: bool) -> None:
        super().__init__()
        self.pairs = rows.pairs
        self.vectors = nn.ModuleList(nn.Embedding(*size, sparse=sparse) for size in rows.deep.sizes)
        self.weights = nn.ModuleList(nn.Embedding(size, 1, sparse=sparse) for size, _ in rows.linear.sizes)
        width = rows.numbers.shape[1]
        self.linear = nn.Linear(width, 1)
        width += sum(dim for _, dim in rows.deep.sizes)
        layers: list[nn.Module] = []
        for units in rows.hidden_units:
            layers += [nn.Linear(width, units), nn.ReLU()]
            width = units
        self.deep = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, numbers: torch.Tensor, *ids: torch.Tensor) -> torch.Tensor:
        deep_ids, linear_ids = ids[: len(self.vectors)], ids[len(self.vectors) :]
        vectors = [layer(each) for layer, each in zip(self.vectors, deep_ids, strict=True)]
        outputs: torch.Tensor = self.deep(torch.cat([numbers, *vectors], dim=1))
        if self.weights:
            weights = [layer(each) for layer, each in zip(self.weights, linear_ids, strict=True)]
            outputs = outputs + self.linear(numbers) + torch.stack(weights).sum(0)
        if self.pairs:
            stacked = torch.stack(vectors, dim=1)
            squares = stacked.sum(1).square() - stacked.square().sum(1)
            outputs = outputs + 0.5 * squares.sum(1, keepdim=True)
        return outputs


def train(rows: Embedded, epochs: int, batch_size: int, sparse: bool = False) -> list[float]:
    labels = torch.from_numpy((rows.labels - rows.mean) / rows.std)
    dataset = TensorDataset(*map(torch.from_numpy, rows.arrays), labels)
    loader = DataLoader(dataset, batch_size=batch_size, shuffle=True)
    model = Model(rows, sparse)
    loss_of = nn.BCEWithLogitsLoss() if rows.linear.ids else nn.MSELoss()
    seconds = []
    optimizers = optimizers_of(model, sparse)
    for _ in range(epochs):
        began = time.perf_counter()
        for *features, label in loader:
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss_of(model(*features), label).backward()
            for optimizer in optimizers:
                optimizer.step()
        seconds.append(time.perf_counter() - began)
    return seconds


def optimizers_of(model: Model, sparse: bool) -> list[torch.optim.Optimizer]:
    if not sparse:
        return [torch.optim.Adam(model.parameters(), lr=0.001)]
    tables = [*model.vectors.parameters(), *model.weights.parameters()]
    rest = [*model.linear.parameters(), *model.deep.parameters()]
    return [torch.optim.SparseAdam(tables, lr=0.001), torch.optim.Adam(rest, lr=0.001)]


if __name__ == "__main__":
    main_embedded(train)
