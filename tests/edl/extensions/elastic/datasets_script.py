"""A loop over several datasets: `datasets_script.py FOLDER KILLS`.

KILLS are [rank, restart, place] at which a worker kills itself: in the second step of a dataset, or in the second
evaluation. FOLDER gets the rows of each step that was taken, the sums of evaluations, and the final weights of rank 0.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import edl

FOLDER, KILLS = Path(sys.argv[1]), json.loads(sys.argv[2])
RANK, RESTART = (int(os.environ.get(name, "0")) for name in ("RANK", "TORCHELASTIC_RESTART_COUNT"))
WORKERS = int(os.environ.get("WORLD_SIZE", "1"))
STEPS = 60
seen = dict.fromkeys(("pretrain", "train", "extra", "events", "evaluate"), 0)


class Events:
    """A source with two partitions. Its records are their offsets, from 0 and from 100."""

    def partitions(self) -> list[int]:
        return [0, 100]

    def latest(self, partition: Any) -> int:
        return 30

    def read(self, partition: Any, offset: int, rows: int) -> list[int]:
        return [*range(partition + offset, partition + offset + rows)]


features = torch.randn(130, 3, generator=torch.Generator().manual_seed(0))
labels = features.sum(1, keepdim=True)
model = nn.Linear(3, 1)
nn.init.constant_(model.weight, 0.1 if RESTART == 0 else 7.0)
nn.init.zeros_(model.bias)
optimizer = torch.optim.SGD(model.parameters(), lr=0.004)
pretrain = edl.elastic.dataset(130, batch_size=20, epochs=2, name="pretrain")
train = edl.elastic.dataset(100, batch_size=16, epochs=None)
extra = edl.elastic.dataset(50, batch_size=10, epochs=None, seed=1, name="extra")
events = edl.elastic.stream(Events(), batch_size=12, name="events")
evaluation = edl.elastic.evaluation(90, batch_size=7)
edl.elastic.checkpoint(model, optimizer)


def pass_by(name: str) -> None:
    """Wait for a replacement, or die, where that is wanted."""
    threading.Event().wait(0.3 if edl.elastic.world_size() < WORKERS else 0.005)
    seen[name] += 1
    if seen[name] == 2 and [RANK, RESTART, name] in KILLS:
        os.kill(os.getpid(), signal.SIGKILL)


def step(name: str, epoch: int, rows: Any) -> None:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(features[rows]), labels[rows]).backward()
    pass_by(name)
    optimizer.step()
    with (FOLDER / f"rows-{RANK}-{RESTART}").open("a") as file:
        print(json.dumps([name, epoch, [*map(int, rows)]]), file=file)


def measure(rows: Any) -> dict[str, Any]:
    pass_by("evaluate")
    with torch.no_grad():
        errors = (model(features[rows]) - labels[rows]) ** 2
    return {"rows": len(rows), "loss": errors.sum(), "counts": np.bincount(rows % 3, minlength=3)}


@edl.elastic.run
def loop() -> dict[str, Any]:
    for epoch in pretrain.epochs():
        for rows in pretrain:
            step("pretrain", epoch, rows)
    endless = {"train": endlessly(train), "extra": endlessly(extra), "events": ((0, each) for each in events)}
    while True:
        if (now := edl.elastic.step()) % 10 == 0:
            sums = evaluation.sums(measure)
            if edl.elastic.broadcast(
                now >= STEPS
            ):  # all workers know that alike, but the workers of a script need not
                return sums
        name = "events" if now % 10 == 9 else "extra" if now % 3 == 2 else "train"
        step(name, *next(endless[name]))


def endlessly(dataset: Any) -> Iterator[tuple[int, Any]]:
    return ((epoch, rows) for epoch in dataset.epochs() for rows in dataset)


sums = loop()
if edl.elastic.rank() == 0:
    result = {"weights": [*model.weight[0].tolist(), *model.bias.tolist()], "steps": edl.elastic.step()}
    result |= {
        "offsets": [*events.offsets.values()],
        "rows": sums["rows"],
        "loss": sums["loss"],
        "counts": sums["counts"].tolist(),
    }
    (FOLDER / "result").write_text(json.dumps(result))
