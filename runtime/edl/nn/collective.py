"""What a strategy asks of an engine for collective calls. `edl.nn.gloo` is one; nothing is imported for it here."""

from __future__ import annotations

from typing import Protocol

from edl.nn.structure import Array


class RingError(Exception):
    """The ring is broken: a member is gone, has left, or did not come in time."""


class Store(Protocol):
    """Bytes by key, which all members of one ring see. Methods may be called from different threads."""

    def set(self, key: str, value: bytes) -> None:
        """value: not empty. RingError: the ring is gone."""
        ...

    def get(self, key: str) -> bytes:
        """Waits for the key. RingError: the ring is gone."""
        ...


class Group(Protocol):
    """The members of one ring. All of them make the same calls in the same order; any of these may raise RingError,
    and nothing else can be done with the group then but to close it."""

    rank: int
    size: int
    timeout: float  # seconds that a call waits for the others

    @property
    def store(self) -> Store: ...

    def sum(self, array: Array) -> None:
        """Make a contiguous array the sum of all members' arrays, in place; the same bits for all."""
        ...

    def gather(self, array: Array) -> Array:
        """The members' arrays, all of one shape, stacked by rank."""
        ...

    def broadcast(self, data: bytes | None, source: int) -> bytes:
        """The bytes that the member `source` gives, all at once; the others give None."""
        ...

    def fill(self, array: Array, source: int) -> None:
        """Make a contiguous array what that of the member `source` is, in place; all are of one size."""
        ...

    def close(self) -> None:
        """Leave, without waiting. Whoever waits for this member, in a call or in the store, knows at once, and is to
        leave too: another one may wait for that one."""
        ...


class Host(Protocol):
    """address: host:port where others find this worker, when it is the first of a ring."""

    address: str

    def meet(self, address: str, number: int, rank: int, size: int, timeout: float) -> Group:
        """Wait for the members of the ring of this number, at the first one's address. RingError: they do not come."""
        ...
