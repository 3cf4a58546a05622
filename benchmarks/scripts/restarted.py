"""Loop that reads its last checkpoint at every start, in the style of torchrun's guide; one each `EACH` steps."""

import os
from pathlib import Path

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from benchmarks.scripts.workload import BATCH_SIZE, EPOCHS, Network, Progress, data

EACH = 50  # steps
CHECKPOINT = Path(os.environ["CHECKPOINT"])

torch.set_num_threads(1)
distributed.init_process_group("gloo")
progress = Progress()
model = DistributedDataParallel(Network())
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
sampler = DistributedSampler(data())
loader = DataLoader(data(), batch_size=BATCH_SIZE // distributed.get_world_size(), sampler=sampler)
if CHECKPOINT.exists():
    found = torch.load(CHECKPOINT, weights_only=True)
    for each, state in zip((model, optimizer, progress), found, strict=True):
        each.load_state_dict(state)

begun, done = divmod(progress.steps, len(loader))
for epoch in range(begun, EPOCHS):
    sampler.set_epoch(epoch)
    for number, (x, y) in enumerate(loader):
        if epoch == begun and number < done:
            continue
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        progress.step()
        if progress.steps % EACH == 0 and distributed.get_rank() == 0:
            partial = CHECKPOINT.with_suffix(".partial")
            torch.save([each.state_dict() for each in (model, optimizer, progress)], partial)
            partial.replace(CHECKPOINT)
