"""Training in the style of PyTorch's tutorials: TensorDataset, a shuffling DataLoader, Adam."""

from __future__ import annotations

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.baselines import Arrays, main


def train(arrays: Arrays, epochs: int, batch_size: int) -> list[float]:
    x, y = (torch.from_numpy(array) for array in arrays)
    loader = DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True)
    model = nn.Sequential(
        nn.Linear(x.shape[1], 100),
        nn.ReLU(),
        nn.Linear(100, 150),
        nn.ReLU(),
        nn.Linear(150, 50),
        nn.ReLU(),
        nn.Linear(50, 1),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    loss_of = nn.MSELoss()
    seconds = []
    for _ in range(epochs):
        began = time.perf_counter()
        for features, labels in loader:
            optimizer.zero_grad()
            loss = loss_of(model(features), labels)
            loss.backward()
            optimizer.step()
        seconds.append(time.perf_counter() - began)
    return seconds


if __name__ == "__main__":
    main(train)
