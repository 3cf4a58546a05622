"""Runs programs in a training process on this machine: one per framework, started early, kept between statements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Outcome:
    metrics: Mapping[str, float | None]
    archive: Path
    tasks: int


class LocalSubmitter:
    def warm(self, framework: str) -> None: ...
    def close(self) -> None: ...
