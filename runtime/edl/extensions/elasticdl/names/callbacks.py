"""Callbacks of ElasticDL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class LearningRateScheduler:
    """Rate of each step, by its number from 0 over the whole job: `schedule(step)`."""

    def __init__(self, schedule: Callable[[int], float]) -> None:
        self.schedule = schedule


class SavedModelExporter:
    """Export at the end of the training. Here `edl export` writes the SavedModel of a trained archive."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        pass
