"""Handwritten digits with a training loop of your own, which loses and gets workers while it runs.

python samples/python/digits_elastic.py               # in this process
edl run --workers 3 samples/python/digits_elastic.py  # in three; kill one of them: kill -9 PID
"""

import argparse
import os

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import edl

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=15)
options = parser.parse_args()

torch.manual_seed(0)
images, digits = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits))
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
sampler = edl.elastic.sampler(len(data), batch_size=64, epochs=options.epochs)  # 64 rows of all workers
edl.elastic.checkpoint(model, optimizer)


@edl.elastic.run
def train():
    for epoch in sampler.epochs():
        for x, y in DataLoader(data, batch_sampler=sampler):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        print(f"pid {os.getpid()}, epoch {epoch}: rank {edl.elastic.rank()} of {edl.elastic.world_size()}")


train()
if edl.elastic.rank() == 0:
    right = (model(data.tensors[0]).argmax(1) == data.tensors[1]).float().mean()
    print(f"accuracy on the training rows: {right:.3f}")
