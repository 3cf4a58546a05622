"""DistributedDataParallel on gloo in the style of PyTorch's guide: tensors in memory, a part for each rank.

    torchrun --standalone --nproc-per-node 2 -m benchmarks.baselines.torch_ddp JOB EPOCHS BATCH_SIZE

BATCH_SIZE: rows of a step, over all ranks.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from benchmarks.baselines import Arrays, training_arrays


def network(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(width, 100),
        nn.ReLU(),
        nn.Linear(100, 150),
        nn.ReLU(),
        nn.Linear(150, 50),
        nn.ReLU(),
        nn.Linear(50, 1),
    )


def train(arrays: Arrays, epochs: int, batch_size: int) -> list[float]:
    rank, size = distributed.get_rank(), distributed.get_world_size()
    count = len(arrays[0]) // size
    x, y = (torch.from_numpy(array[rank * count : (rank + 1) * count]) for array in arrays)
    share = batch_size // size
    model = DistributedDataParallel(network(x.shape[1]))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001, fused=True)
    loss_of = nn.MSELoss()
    seconds = []
    for _ in range(epochs):
        began = time.perf_counter()
        for start in range(0, count, share):
            optimizer.zero_grad()
            loss = loss_of(model(x[start : start + share]), y[start : start + share])
            loss.backward()
            optimizer.step()
        seconds.append(time.perf_counter() - began)
    return seconds


def main() -> None:
    job, epochs, batch_size = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    arrays = training_arrays(job)
    distributed.init_process_group("gloo")
    seconds = train(arrays, epochs, batch_size)
    if distributed.get_rank() == 0:
        print(json.dumps({"rows": len(arrays[0]), "seconds": seconds}), flush=True)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
