"""Contract of the engines for collective calls, such as `edl.collectives.gloo`. Nothing is imported for it here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from edl.arrays import Array


class GroupError(Exception):
    """Error of a broken group: a member died, left, or did not answer in time."""


class Store(Protocol):
    """Key-value store of bytes, shared by all members of one group. Thread-safe."""

    def set(self, key: str, value: bytes) -> None:
        """Set a non-empty value. Raises GroupError if the group is gone."""
        ...

    def get(self, key: str) -> bytes:
        """Wait for the key. Raises GroupError if the group is gone."""
        ...


class Group(Protocol):
    """Members of one worker group. All of them make the same calls in the same order. After a GroupError the group
    can only be closed.
    """

    rank: int
    size: int
    timeout: float  # seconds to wait for the other members in a call
    host: str  # name or address at which the others reach this member

    @property
    def store(self) -> Store: ...

    def sum(self, array: Array) -> None:
        """Replace a contiguous array by the sum of all members' arrays, bitwise equal on all members."""
        ...

    def gather(self, array: Array) -> Array:
        """Return the members' arrays, all of one shape, stacked by rank."""
        ...

    def broadcast(self, data: bytes | None, source: int) -> bytes:
        """Return the bytes of the member `source`; the others pass None."""
        ...

    def fill(self, array: Array, source: int) -> None:
        """Replace a contiguous array by the member `source`'s array of the same size."""
        ...

    def all_gather(self, block: Array, sizes: Sequence[int]) -> list[Array]:
        """Return the members' blocks of bytes, uint8 of these sizes, valid until the next call."""
        ...

    def all_to_all(self, blocks: Array, sizes: Sequence[int]) -> list[Array]:
        """Return the blocks that the members have for this one, valid until the next call.

        `blocks` are the bytes for each member, uint8, one block after another. All members give blocks of these sizes.
        """
        ...

    def close(self) -> None:
        """Leave without waiting. Members that wait for this one, in a call or in the store, fail at once and must
        leave too, since others may wait for them.
        """
        ...


class Host(Protocol):
    """Rendezvous point of this worker. `address` is the host:port of its store, where the others meet it."""

    address: str

    def meet(self, address: str, number: int, rank: int, size: int, timeout: float) -> Group:
        """Wait for the members of group `number` at the address of one of them, of any rank.

        Raises GroupError if they don't come.
        """
        ...
