"""Rows, network and record of steps that the scripts of this folder share.

A row takes `ROW_SECONDS` of the forward pass, as on a device of its own, so that several workers fit on few cores.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import TensorDataset

RECORD = "STEPS_RECORD"  # environment variable with the file of the steps
WORKERS = "WORKERS"  # environment variable with their number
BATCH_SIZE = 20 * int(os.environ.get(WORKERS, "3"))  # rows of a step, of all workers
EPOCHS = 1000
ROW_SECONDS = 0.005


class Network(nn.Sequential):  # type: ignore[misc]
    """Two dense layers whose forward pass takes `ROW_SECONDS` for each row."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        super().__init__(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(ROW_SECONDS * len(x))
        return super().forward(x).squeeze(1)


class Progress:
    """Number of steps that the weights have had. It is stored with them."""

    def __init__(self) -> None:
        self.steps = 0

    def step(self, rows: int = BATCH_SIZE) -> None:
        """Record a step with so many rows of all workers, in one write."""
        self.steps += 1
        told = {"pid": os.getpid(), "second": time.monotonic(), "step": self.steps, "rows": rows}
        with Path(os.environ[RECORD]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(told) + "\n")

    def state_dict(self) -> dict[str, Any]:
        return {"steps": self.steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.steps = int(state["steps"])


def data() -> TensorDataset:
    """Return 6,000 rows of 16 numbers, whose label is their sum."""
    x = torch.rand((6000, 16), generator=torch.Generator().manual_seed(1))
    return TensorDataset(x, x.sum(1))
