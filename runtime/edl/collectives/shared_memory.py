"""Sums and exchanges of members on one machine in shared memory; a byte over a socket signals that a part is ready.

    copy the own array ─▶ a byte to each ─▶ a byte from each ─▶ add all parts in the order of ranks

For small models this is several times as fast as a sum over the loopback device, with its copies and context
switches. Each member's memory has two buffers, used in turns: a member that has received all bytes of a sum knows
that the others have finished the previous one, so no buffer is overwritten while it is read. No file name can be
left behind. A killed member's sockets are closed, which ends the sums of the others; a frozen one delays them.
"""

from __future__ import annotations

import contextlib
import ipaddress
import mmap
import os
import secrets
import socket
import struct
from collections.abc import Callable, Iterator

import numpy as np

from edl.arrays import Array
from edl.collectives.base import GroupError
from edl.errors import JobError

MOST_MEMBERS = 8  # each member reads what all have written
MOST_BYTES = 32 << 20  # size of an array: every member holds it twice more
_THERE, _GROWN = b"t", b"g"
_GONE = "it is gone"
_NAME = 16  # random bytes that identify a member
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


def is_possible(address: str, size: int) -> bool:
    """Return True if the members of a group at this address, host:port, are few and on one machine."""
    if not hasattr(os, "memfd_create") or not 1 < size <= MOST_MEMBERS:
        return False
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(address.rpartition(":")[0].strip("[]")).is_loopback
    return False


class SharedSums:
    """Shared-memory sums with the other members. For `gather` see `edl.collectives.base.Group`. Raises GroupError if
    they don't come in time.
    """

    def __init__(self, gather: Callable[[Array], Array], rank: int, size: int, timeout: float) -> None:
        self._rank = rank
        self._others: dict[int, socket.socket] = {}
        self._memory: list[mmap.mmap] = []
        self._room = 0  # bytes of a buffer
        self._turn = 0
        self._timeout = timeout
        with self._group_errors(), _socket(timeout) as listening:
            name = secrets.token_bytes(_NAME)
            listening.bind(_place(name))
            listening.listen(size)
            names = gather(np.frombuffer(name, np.uint8).copy())
            for other in range(rank):
                self._connect(other, names[other].tobytes())
            for _ in range(rank + 1, size):
                self._accept(listening)

    def sum(self, array: Array, timeout: float) -> None:
        """Replace a contiguous array by the sum of all members' arrays, bitwise equal on all members.

        `timeout` is in seconds per member. Raises GroupError if one is gone or late, and JobError if the system has
        no memory.
        """
        flat = array.reshape(-1)
        parts = self.gather(flat, timeout)
        np.add(parts[0], parts[1], out=flat)
        for part in parts[2:]:
            np.add(flat, part, out=flat)

    def gather(self, array: Array, timeout: float) -> list[Array]:
        """Return the members' arrays, each flat and as large as `array`, valid until the next call. Raises as `sum`."""
        with self._group_errors():
            self._wait_for(timeout)
            if not self._memory or array.nbytes > self._room:
                self._grow(array.nbytes)
            self._turn ^= 1
            parts = [
                np.frombuffer(memory, array.dtype, array.size, self._turn * self._room)
                for memory in self._memory
            ]
            parts[self._rank][:] = array
            for other in self._others.values():
                other.send(_THERE)
            for other in self._others.values():
                _expect(_THERE, other.recv(1))
        return parts

    def close(self) -> None:
        """Close the sockets; sums of the other members fail at once."""
        for other in self._others.values():
            with contextlib.suppress(OSError):
                other.shutdown(socket.SHUT_RDWR)
            other.close()
        self._memory = []

    def _connect(self, rank: int, name: bytes) -> None:
        other = self._others[rank] = _socket(self._timeout)
        other.connect(_place(name))
        _check_owner(other)
        other.send(bytes([self._rank]))

    def _accept(self, listening: socket.socket) -> None:
        other, _ = listening.accept()
        try:
            other.settimeout(self._timeout)
            _check_owner(other)
            rank = other.recv(1)
            if not rank:
                raise ConnectionError(_GONE)
        except BaseException:
            other.close()
            raise
        self._others[rank[0]] = other

    def _grow(self, least: int) -> None:
        """Enlarge the buffers. All members do so in the same sum, since their arrays have one size."""
        self._room = max(1, -(-least // mmap.PAGESIZE)) * mmap.PAGESIZE
        new_memory = _memory_of(2 * self._room)
        try:
            for other in self._others.values():
                socket.send_fds(other, [_GROWN], [new_memory])
            memory = {self._rank: mmap.mmap(new_memory, 2 * self._room)}
        finally:
            os.close(new_memory)
        for rank, other in self._others.items():
            said, descriptors, *_ = socket.recv_fds(other, 1, 1, socket.MSG_CMSG_CLOEXEC)
            _expect(_GROWN, said)
            memory[rank] = mmap.mmap(descriptors[0], 2 * self._room)
            os.close(descriptors[0])
        self._memory = [memory[rank] for rank in sorted(memory)]

    def _wait_for(self, timeout: float) -> None:
        if timeout != self._timeout:
            self._timeout = timeout
            for other in self._others.values():
                other.settimeout(timeout)

    @contextlib.contextmanager
    def _group_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.close()
            raise GroupError(f"a member of the group does not answer: {error}") from None


def _socket(timeout: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout)
    return connection


def _memory_of(size: int) -> int:
    """Create a file in memory. Raises JobError if that fails; a new group would fail alike."""
    try:
        descriptor = os.memfd_create("edl-sums", os.MFD_CLOEXEC)
        try:
            os.posix_fallocate(descriptor, 0, size)
        except OSError:
            os.close(descriptor)
            raise
    except OSError as error:
        raise JobError(f"no {size:,} bytes of memory to share gradients in: {error.strerror}") from None
    return descriptor


def _place(name: bytes) -> bytes:
    """Return the member's abstract socket address. It needs no file."""
    return b"\0edl-sums-" + name.hex().encode()


def _check_owner(other: socket.socket) -> None:
    """Raise ConnectionError if the socket is another user's."""
    credentials = other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    if _CREDENTIALS.unpack(credentials)[1] != os.getuid():
        raise ConnectionError("another user's process")


def _expect(expected: bytes, received: bytes) -> None:
    if received != expected:
        raise ConnectionError(_GONE if not received else "it is in another call")
