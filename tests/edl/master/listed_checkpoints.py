"""Checkpoints of a simulated job: which exist is said by a test, and so are the older ones with a state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from edl.master.state import Checkpoint


@dataclass
class ListedCheckpoints:
    """Checkpoints as a task manager sees them."""

    exists: Callable[[str], bool]
    kept: list[Checkpoint] = field(default_factory=list)
    damaged: dict[str, str] = field(default_factory=dict)

    def is_there(self, name: str) -> bool:
        return name not in self.damaged and self.exists(name)

    def mark(self, name: str, why: str) -> None:
        self.damaged[name] = why

    def older(self, name: str) -> Checkpoint | None:
        found = (each for each in reversed(self.kept) if each.folder != name and self.is_there(each.folder))
        return next(found, None)
