"""Loop of PyTorch's tutorials: `torchrun --nproc-per-node 3 benchmarks/scripts/ddp.py`."""

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from benchmarks.scripts.workload import BATCH_SIZE, EPOCHS, Network, Progress, data

torch.set_num_threads(1)
distributed.init_process_group("gloo")
progress = Progress()
model = DistributedDataParallel(Network())
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
sampler = DistributedSampler(data())
loader = DataLoader(data(), batch_size=BATCH_SIZE // distributed.get_world_size(), sampler=sampler)

for epoch in range(EPOCHS):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        progress.step()
