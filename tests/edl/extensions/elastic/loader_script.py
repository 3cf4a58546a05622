"""A script for torchrun that goes on from its own checkpoint: `loader_script.py FOLDER LAST`.

It ends before step LAST with exit code 1. FOLDER has the checkpoint, and the rows of each step that is in it.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.utils.data import ConcatDataset, TensorDataset

from edl.elastic.data import DataLoader

FOLDER, LAST = Path(sys.argv[1]), int(sys.argv[2])
CHECKPOINT = FOLDER / "checkpoint.json"
dist.init_process_group("gloo")
pages = TensorDataset(torch.arange(40))
images = TensorDataset(torch.arange(100, 137))
loader = DataLoader(ConcatDataset([pages, images]), batch_size=3, shuffle=True, num_workers=2)
start = steps = 0
if CHECKPOINT.exists():
    checkpoint = json.loads(CHECKPOINT.read_text())
    loader.load_state_dict(checkpoint["loader"])
    start, steps = loader.epoch, checkpoint["steps"]
for epoch in range(start, 2):
    loader.set_epoch(epoch)
    for (rows,) in loader:
        if steps == LAST:
            sys.exit(1)
        gathered: list[list[int]] = [[] for _ in range(dist.get_world_size())]
        dist.all_gather_object(gathered, rows.tolist())
        steps += 1
        if dist.get_rank() == 0:
            with (FOLDER / "rows").open("a") as file:
                print(json.dumps([epoch, [*itertools.chain(*gathered)]]), file=file)
            partial = FOLDER / "partial"
            partial.write_text(json.dumps({"loader": loader.state_dict(), "steps": steps}))
            partial.replace(CHECKPOINT)
        dist.barrier()
