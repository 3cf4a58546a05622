"""Loop with `edl.elastic`: `edl run --workers 3 benchmarks/scripts/elastic.py`."""

import torch
from torch import nn
from torch.utils.data import DataLoader

import edl
from benchmarks.scripts.workload import BATCH_SIZE, EPOCHS, Network, Progress, data

torch.set_num_threads(1)
progress = Progress()
model = Network()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
sampler = edl.elastic.sampler(len(data()), batch_size=BATCH_SIZE, epochs=EPOCHS)
loader = DataLoader(data(), batch_sampler=sampler)
edl.elastic.checkpoint(model, optimizer, progress)


@edl.elastic.run
def train() -> None:
    for _ in sampler.epochs():
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            progress.step()


train()
