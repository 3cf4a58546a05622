"""A training loop of a user: `script.py FOLDER KILLS PAUSE LOADERS MICRO`.

KILLS are [rank, restart, epoch] at which a worker kills itself, in the third step of that epoch, before it takes it.
FOLDER gets the rows of each part with a step that was taken, the pids, and the final weights of rank 0. The environment
variable DEVICE says where the model is.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import edl

ROWS, EPOCHS = 610, int(os.environ.get("EPOCHS", "5"))
FOLDER, KILLS, PAUSE = Path(sys.argv[1]), json.loads(sys.argv[2]), float(sys.argv[3])
LOADERS, MICRO = map(int, sys.argv[4:])
RANK, RESTART = (int(os.environ.get(name, "0")) for name in ("RANK", "TORCHELASTIC_RESTART_COUNT"))
DEVICE = os.environ.get("DEVICE", "cpu")
WORKERS = int(os.environ.get("WORLD_SIZE", "1"))

features = torch.randn(ROWS, 4, generator=torch.Generator().manual_seed(0))
labels = features @ torch.tensor([[1.0], [2.0], [3.0], [4.0]])
data = TensorDataset(features, labels, torch.arange(ROWS))
model = nn.Linear(4, 1)
nn.init.constant_(model.weight, 0.1 if RESTART == 0 else 7.0)  # a replacement must get them from a peer
nn.init.zeros_(model.bias)
model.to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10, 0.8)
sampler = edl.elastic.sampler(len(data), batch_size=50, epochs=EPOCHS, micro_batch=MICRO)
edl.elastic.checkpoint(model, optimizer, scheduler)
(FOLDER / f"pid-{RANK}").write_text(str(os.getpid()))
for _ in range(600):  # 60 s for the other workers to start: a group of one would be done before
    if len([*FOLDER.glob("pid-*")]) >= WORKERS:
        break
    threading.Event().wait(0.1)


@edl.elastic.on_change
def changed(before: edl.elastic.World | None, now: edl.elastic.World) -> None:
    with (FOLDER / f"worlds-{RANK}-{RESTART}").open("a") as file:
        print(json.dumps([before and before.size, now.rank, now.size, now.members, now.restarts]), file=file)


@edl.elastic.on_leave
def write_seconds_left(seconds: float) -> None:
    (FOLDER / f"left-{RANK}-{RESTART}").write_text(json.dumps([seconds, edl.elastic.leaving()]))


@edl.elastic.run
def train() -> None:
    for epoch in sampler.epochs():
        for step, (x, y, rows) in enumerate(DataLoader(data, batch_sampler=sampler, num_workers=LOADERS)):
            missing = epoch == 0 and edl.elastic.world_size() < WORKERS
            threading.Event().wait(0.5 if missing else PAUSE)  # time for another worker to join
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x.to(DEVICE)), y.to(DEVICE)).backward()
            if step >= 2 and [RANK, RESTART, epoch] in KILLS:
                os.kill(os.getpid(), signal.SIGKILL)
            optimizer.step()
            scheduler.step()
            with (FOLDER / f"rows-{RANK}-{RESTART}").open("a") as file:
                print(json.dumps([epoch, edl.elastic.world_size(), rows.tolist()]), file=file)


train()
if edl.elastic.rank() == 0:
    found = [*model.weight[0].tolist(), *model.bias.tolist(), *scheduler.get_last_lr()]
    (FOLDER / "weights").write_text(json.dumps(found))
