"""Curves of a folder as TensorBoard reads them; its stand-in for TensorFlow is enough for that, and quick."""

from __future__ import annotations

import sys
import types
from pathlib import Path


def read(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Steps and numbers by tag."""
    sys.modules.setdefault("tensorboard.compat.notf", types.ModuleType("tensorboard.compat.notf"))
    from tensorboard.backend.event_processing.event_accumulator import SCALARS, EventAccumulator

    found = EventAccumulator(str(folder), size_guidance={SCALARS: 0}).Reload()
    return {
        tag: [(event.step, event.value) for event in found.Scalars(tag)] for tag in found.Tags()["scalars"]
    }
