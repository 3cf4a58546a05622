"""What a master remembers of each parameter server from call to call, and what a call to one is."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import msgspec

from edl.ps.messages import (
    Arrange,
    Arranged,
    CheckpointTaken,
    Figures,
    Progress,
    Revoke,
    Revoked,
    Status,
    TakeCheckpoint,
)

Header = Arrange | Status | Revoke | TakeCheckpoint
Answer = Arranged | Figures | Revoked | CheckpointTaken


class Call(msgspec.Struct, frozen=True):
    """What to ask of the server at an address, and the seconds that it has. life: which of those of its place it is."""

    index: int
    epoch: int
    address: str
    header: Header
    secs: float

    @property
    def name(self) -> str:
        return type(self.header).__name__


@dataclass
class ServerSlot:
    """What is not written down of the server that has a place.

    holds: it may hold parameters of this generation. arranged: as what, as far as it has answered. heard: the second of
    its last word. asked: of the last look at it. under_way: calls by name. not_before: the second of the next call that
    is not a look. revoked: leases that are void there and not yet everywhere, with what of them is in.
    """

    heard: float
    holds: bool = False
    arranged: Arrange | None = None
    figures: Figures | None = None
    asked: float = -math.inf
    under_way: set[str] = field(default_factory=set)
    not_before: float = 0.0
    revoked: dict[int, Progress | None] = field(default_factory=dict)

    @property
    def step(self) -> int:
        """Of its parameters, as it said last."""
        return self.figures.version.step if self.figures else 0
