"""Bare PyTorch loop: tensors in memory, a permutation per epoch, fused Adam."""

from __future__ import annotations

import time

import torch
from torch import nn

from benchmarks.baselines import Arrays, main


def train(arrays: Arrays, epochs: int, batch_size: int) -> list[float]:
    x, y = (torch.from_numpy(array) for array in arrays)
    model = nn.Sequential(
        nn.Linear(x.shape[1], 100),
        nn.ReLU(),
        nn.Linear(100, 150),
        nn.ReLU(),
        nn.Linear(150, 50),
        nn.ReLU(),
        nn.Linear(50, 1),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001, fused=True)
    loss_of = nn.MSELoss()
    seconds = []
    for _ in range(epochs):
        began = time.perf_counter()
        order = torch.randperm(len(x))
        features, labels = x[order], y[order]
        for start in range(0, len(x), batch_size):
            optimizer.zero_grad()
            loss = loss_of(model(features[start : start + batch_size]), labels[start : start + batch_size])
            loss.backward()
            optimizer.step()
        seconds.append(time.perf_counter() - began)
    return seconds


if __name__ == "__main__":
    main(train)
