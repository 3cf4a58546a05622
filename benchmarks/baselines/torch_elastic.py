"""Training of `torch_ddp` in the style of torchrun's guide: a checkpoint after each epoch, read at every start.

    torchrun --standalone --nproc-per-node 3 --max-restarts 3 \\
        -m benchmarks.baselines.torch_elastic FOLDER BATCH_SIZE SECS

FOLDER has features.npy and labels.npy, and the checkpoint. BATCH_SIZE: rows of a step, over all ranks. SECS:
timeout of a rank that waits for the others. The training runs until it is stopped; each rank reports its first
step in every epoch.
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from benchmarks.baselines.torch_ddp import network

CHECKPOINT = "checkpoint.pt"


def train(folder: Path, batch_size: int) -> None:
    rank, size = distributed.get_rank(), distributed.get_world_size()
    arrays = [np.load(folder / name) for name in ("features.npy", "labels.npy")]
    count = len(arrays[0]) // size
    x, y = (torch.from_numpy(array[rank * count : (rank + 1) * count]) for array in arrays)
    model = network(x.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001, fused=True)
    epoch = _resumed(folder, model, optimizer)
    parallel = DistributedDataParallel(model)
    while True:
        _epoch(parallel, optimizer, x, y, batch_size // size, epoch)
        epoch += 1
        if rank == 0:
            _keep(folder, model, optimizer, epoch)


def _epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    x: torch.Tensor,
    y: torch.Tensor,
    share: int,
    epoch: int,
) -> None:
    loss_of = nn.MSELoss()
    for start in range(0, len(x), share):
        optimizer.zero_grad()
        loss = loss_of(model(x[start : start + share]), y[start : start + share])
        loss.backward()
        optimizer.step()
        if start == 0:
            _tell(epoch)


def _tell(epoch: int) -> None:
    told = {
        "rank": distributed.get_rank(),
        "pid": os.getpid(),
        "start": int(os.environ["TORCHELASTIC_RESTART_COUNT"]),
        "epoch": epoch,
        "second": time.monotonic(),
    }
    sys.stdout.write(
        json.dumps(told) + "\n"
    )  # one call: torchrun's ranks write into one pipe, without a buffer
    sys.stdout.flush()


def _resumed(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Return the epoch to resume at."""
    path = folder / CHECKPOINT
    if not path.exists():
        return 0
    found = torch.load(path, weights_only=True)
    model.load_state_dict(found["model"])
    optimizer.load_state_dict(found["optimizer"])
    return int(found["epoch"])


def _keep(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, epoch: int) -> None:
    partial = folder / f"{CHECKPOINT}.partial"
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, partial)
    partial.replace(folder / CHECKPOINT)


def main() -> None:
    folder, batch_size, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", timeout=timedelta(seconds=seconds))
    train(folder, batch_size)


if __name__ == "__main__":
    main()
