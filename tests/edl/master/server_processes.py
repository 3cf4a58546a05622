"""Parameter servers as `edl.ps` keeps its promises, and what outlives them, for random schedules."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from edl.ps.checkpoint.content import Progress, Shard
from edl.ps.messages import Arrange

Rows = Counter[tuple[int, int, int]]  # epoch, task, the first row of a piece: how often it is in


class Push(NamedTuple):
    """One push: sender and sequence identify it, piece is what it adds."""

    sender: tuple[str, int]
    sequence: int
    piece: tuple[int, int, int]
    progress: Progress


class Server:
    """One process. rows, progress, void, last, sealed, admitted: as `edl.ps` keeps them. counted: pushes that it has
    applied since it was arranged.
    """

    def __init__(self, name: str, incarnation: int) -> None:
        self.last: dict[tuple[str, int], int] = {}
        self.sealed = ""
        self.admitted: dict[tuple[str, int], int] = {}
        self.name = name
        self.incarnation = incarnation
        self.address = f"{self.name}:{incarnation}"
        self.alive = True
        self.registered = False
        self.arranged: Arrange | None = None
        self.open = False
        self.step = self.counted = 0
        self.rows: Rows = Counter()
        self.progress: dict[int, Progress] = {}
        self.void: set[int] = set()
        self.written: dict[str, Shard] = {}
        self.memory: set[tuple[str, int]] = set()  # cuts, and the owner of each shard that it has of them

    def refuses(self, lease: int) -> bool:
        """Return True if the lease was revoked, in its time or before."""
        assert self.arranged is not None
        before = lease <= self.arranged.leased and lease not in self.arranged.valid
        return before or lease in self.void

    def knows(self, push: Push) -> bool:
        return push.sequence <= self.last.get(push.sender, 0)

    def apply(self, push: Push) -> None:
        if not self.knows(push):
            self.last[push.sender] = push.sequence
            self.progress[push.progress.task.attempt] = push.progress
            self.step += 1
            self.counted += 1
            self.rows[push.piece] += 1

    def replay(self, log: list[tuple[int, Push | str]], generation: int, since: str) -> None:
        """Apply what the log has of the generation, behind the checkpoint if that is of it."""
        entries = [entry for at, entry in log if at == generation]
        for entry in entries[entries.index(since) + 1 if since else 0 :]:
            if isinstance(entry, Push):
                self.apply(entry)

    def takes(self, push: Push) -> bool:
        return self.knows(push) or not self.refuses(push.progress.task.attempt)

    def waits(self, push: Push) -> bool:
        """Return True if the push has to be repeated, as other servers may follow."""
        return bool(self.sealed) and push.sequence > max(
            self.last.get(push.sender, 0), self.admitted.get(push.sender, 0)
        )

    @property
    def at(self) -> tuple[int, int]:
        return (self.arranged.generation, self.arranged.epoch) if self.arranged else (-1, -1)


class Saved:
    """A cut on disk, or on its way there."""

    def __init__(self, servers: list[Server], *, last: bool = False) -> None:
        self.is_last = last  # it is a file in any case
        self.rows = [Counter(server.rows) for server in servers]
        self.last = [dict(server.last) for server in servers]
        self.progress = [dict(server.progress) for server in servers]
        self.void = [set(server.void) for server in servers]
        self.generation = servers[0].at[0]
        self.step = servers[0].step
        self.servers = list(servers)
        self.writing = list(servers)
        self.complete = False

    def rows_of(self, index: int, count: int) -> Rows:
        """Return the start of a server: its shard, or its part of all of them."""
        if count == len(self.rows):
            return Counter(self.rows[index])
        found: Rows = Counter()
        for each in self.rows:
            found |= each
        return found
