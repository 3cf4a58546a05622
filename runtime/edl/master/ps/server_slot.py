"""State of each parameter server in memory, and calls to one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import msgspec

from edl.ps.checkpoint.content import Progress
from edl.ps.messages import (
    Arrange,
    Arranged,
    CheckpointTaken,
    Done,
    Figures,
    Reopen,
    Revoke,
    Revoked,
    Status,
    TakeCheckpoint,
)

Header = Arrange | Status | Revoke | TakeCheckpoint | Reopen
Answer = Arranged | Figures | Revoked | CheckpointTaken | Done


class ServerCall(msgspec.Struct, frozen=True):
    """Call to the server at `address`, with a timeout of `secs` seconds. `home` is the name of its slot, which may have
    another index when the answer comes; `epoch` identifies its process.
    """

    index: int
    home: str
    epoch: int
    address: str
    header: Header
    secs: float

    @property
    def name(self) -> str:
        return type(self.header).__name__


@dataclass
class ServerSlot:
    """State of a server that is not persisted.

    `holds`: it may hold parameters of this generation. `arranged` is its last confirmed arrangement. `answered` is the
    second of its last answer, `asked` the second of its last status call. `under_way` are pending calls by name.
    `not_before` is the second of the next call other than a status call. `revoked` are leases that this server, but not
    every server, has revoked, with their progress.
    """

    answered: float
    holds: bool = False
    arranged: Arrange | None = None
    figures: Figures | None = None
    asked: float = -math.inf
    under_way: set[str] = field(default_factory=set)
    not_before: float = 0.0
    revoked: dict[int, Progress | None] = field(default_factory=dict)

    @property
    def step(self) -> int:
        """Last reported optimizer step of this server."""
        return self.figures.version.step if self.figures else 0

    @property
    def sealed_checkpoint(self) -> str:
        """Last checkpoint that this server is sealed for, or empty."""
        return self.figures.sealed if self.figures else ""
