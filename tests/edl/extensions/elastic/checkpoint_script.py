"""A loop that also writes its own checkpoints: `checkpoint_script.py FOLDER STEPS`. All fail twice, after STEPS."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import torch

import edl

FOLDER, STEPS = Path(sys.argv[1]), int(sys.argv[2])
CHECKPOINT = FOLDER / "checkpoint.json"
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
sampler = edl.elastic.sampler(100, batch_size=8, epochs=3)
edl.elastic.checkpoint(model, optimizer)
if CHECKPOINT.exists():
    sampler.load_state_dict(json.loads(CHECKPOINT.read_text()))


@edl.elastic.run
def train() -> None:
    for epoch in sampler.epochs():
        for rows in sampler:
            model(torch.ones(len(rows), 1)).mean().backward()
            optimizer.step()
            with (FOLDER / f"rows-{os.getpid()}").open("a") as file:
                print(json.dumps([epoch, rows]), file=file)
            if edl.elastic.rank() == 0:
                CHECKPOINT.write_text(json.dumps(sampler.state_dict()))
            if edl.elastic.step() == STEPS and int(os.environ["TORCHELASTIC_RESTART_COUNT"]) < 2:
                os._exit(3)


train()
