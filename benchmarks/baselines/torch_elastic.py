"""Elastic training as PyTorch's guide writes it: every rank starts anew when one is lost, from the last snapshot.

    torchrun --standalone --nproc-per-node 3 --max-restarts 3 -m benchmarks.baselines.torch_elastic FOLDER SECONDS

FOLDER gets a file for each process, named by its id, to which each optimizer step appends its second of the monotonic
clock. SECONDS: how long to train. Calls of a step have a timeout of 2 s, as ours; the default of half an hour would be
waited for when a rank is frozen.
"""

from __future__ import annotations

import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

BATCH, SNAPSHOT_STEPS = 64, 50


def main() -> None:
    folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    steady = distributed.new_group(timeout=timedelta(seconds=2))  # once all are there
    network = nn.Sequential(nn.Linear(1, 256), nn.ReLU(), nn.Linear(256, 1))
    snapshot = folder / "snapshot"
    if snapshot.exists():
        network.load_state_dict(torch.load(snapshot, weights_only=True))
    model = DistributedDataParallel(network, process_group=steady)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    x = torch.randn(BATCH // distributed.get_world_size(), 1)
    end = torch.tensor([time.monotonic() + seconds])
    with (folder / f"{os.getpid()}.steps").open("a", buffering=1) as steps:
        for step in range(sys.maxsize):
            if step % SNAPSHOT_STEPS == 0:
                if distributed.get_rank() == 0:
                    torch.save(network.state_dict(), snapshot.with_suffix(".partial"))
                    snapshot.with_suffix(".partial").replace(snapshot)
                distributed.broadcast(end, 0, group=steady)
                if time.monotonic() > end:
                    break
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), 3 * x + 1).backward()
            optimizer.step()
            steps.write(f"{time.monotonic()}\n")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
