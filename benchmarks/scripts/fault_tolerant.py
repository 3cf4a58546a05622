"""Loop with torchft, whose `torchft_lighthouse` runs: `torchrun --nproc-per-node 1 …`, once for each worker.

The gradients are averaged by the manager: with gloo, torchft 0.2.0's `DistributedDataParallel` ends the survivors of
a lost worker by an AssertionError.
"""

import os
from typing import Any

import torch
from torch import nn, optim
from torch.utils.data import DataLoader
from torchft import DistributedSampler, Manager, Optimizer, ProcessGroupGloo  # type: ignore[import-not-found]

from benchmarks.scripts.workload import BATCH_SIZE, EPOCHS, Network, Progress, data

torch.set_num_threads(1)
progress = Progress()
number, workers = int(os.environ["REPLICA_GROUP_ID"]), int(os.environ["NUM_REPLICA_GROUPS"])
model = Network()


def load_state_dict(state: dict[str, Any]) -> None:
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])


def state_dict() -> dict[str, Any]:
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}


manager = Manager(
    pg=ProcessGroupGloo(),
    load_state_dict=load_state_dict,
    state_dict=state_dict,
    min_replica_size=1,
    replica_id=f"worker-{number}",
)
optimizer = Optimizer(manager, optim.SGD(model.parameters(), lr=0.01))
sampler = DistributedSampler(
    data(), replica_rank=number, num_replica_groups=workers, group_rank=0, num_replicas=1
)
loader = DataLoader(data(), batch_size=BATCH_SIZE // workers, sampler=sampler)

for epoch in range(EPOCHS):
    sampler.set_epoch(epoch)
    for x, y in loader:
        before = manager.current_step()
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        for parameter in model.parameters():
            manager.allreduce(parameter.grad).wait()
        optimizer.step()
        if manager.current_step() > before:  # all have committed the step
            progress.steps = manager.current_step() - 1
            progress.step(manager.num_participants() * (BATCH_SIZE // workers))
