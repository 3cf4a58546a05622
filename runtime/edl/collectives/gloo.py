"""Collective calls by gloo without global state, so that several groups may follow each other in one process.

A worker has one store for its lifetime, which listens at its own address (`GlooHost`). The members of a group meet in
the store of rank 0, under the group's number. Failure is detected quickly: the system closes the connections of a
killed member, which ends the calls of the others; a frozen member delays them by the group's timeout. On one
machine, members sum in shared memory.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator, Sequence
from datetime import timedelta
from queue import SimpleQueue

import numpy as np
import torch
from torch import distributed

from edl.arrays import Array
from edl.collectives import shared_memory
from edl.collectives.base import GroupError
from edl.collectives.shared_memory import SharedSums

_GONE = b""  # value of a key that will never have another
_FOR_EVER = timedelta(days=1)


class GlooHost:
    """Listener at `host`, this worker's own address, on a free port."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, 0), family=family)
        port = listening.getsockname()[1]
        self.address = f"{host}:{port}"
        self._host = host.strip("[]")
        self._device = distributed.ProcessGroupGloo.create_device(hostname=host)
        self._server = distributed.TCPStore(
            host, port, is_master=True, wait_for_workers=False, master_listen_fd=listening.detach()
        )

    def meet(self, address: str, number: int, rank: int, size: int, timeout: float) -> GlooGroup:
        return GlooGroup(self._device, self._host, address, number, rank, size, timeout)


class GlooGroup:
    def __init__(
        self, device: object, host: str, address: str, number: int, rank: int, size: int, timeout: float
    ) -> None:
        self.rank = rank
        self.size = size
        self.timeout = timeout
        self.host = host
        self.store = GlooStore(address, number, timeout)
        self._summing = distributed.AllreduceOptions()  # the quickest way to pass a timeout
        options = distributed.ProcessGroupGloo._Options()
        options._timeout = timedelta(seconds=timeout)
        options._devices = [device]
        with _group_errors():
            self._gloo = distributed.ProcessGroupGloo(self.store.writing, rank, size, options)
        self._shared: SharedSums | None = None
        if shared_memory.is_possible(address, size):
            try:
                self._shared = SharedSums(self.gather, rank, size, timeout)
            except GroupError:
                self.close()
                raise

    def sum(self, array: Array) -> None:
        if shared := self._shared_for(array.nbytes):
            shared.sum(array, self.timeout)
            return
        self._summing.timeout = self._limit
        with _group_errors():
            self._gloo.allreduce([torch.from_numpy(array)], self._summing).wait()

    def gather(self, array: Array) -> Array:
        tensor_here = torch.from_numpy(array)
        tensors = [torch.empty_like(tensor_here) for _ in range(self.size)]
        with _group_errors():
            self._gloo.allgather(tensors, tensor_here, timeout=self._limit).wait()
        return np.stack([tensor.numpy() for tensor in tensors])

    def broadcast(self, data: bytes | None, source: int) -> bytes:
        size = np.array([0 if data is None else len(data)], np.int64)
        self.fill(size, source)
        array = np.empty(size[0], np.uint8) if data is None else np.frombuffer(data, np.uint8).copy()
        if len(array):
            self.fill(array, source)
        return array.tobytes() if data is None else data

    def fill(self, array: Array, source: int) -> None:
        with _group_errors():
            self._gloo.broadcast(torch.from_numpy(array), source, timeout=self._limit).wait()

    def all_gather(self, block: Array, sizes: Sequence[int]) -> list[Array]:
        longest = max(sizes)
        if shared := self._shared_for(longest):
            padded = np.zeros(longest, np.uint8)
            padded[: len(block)] = block
            return [
                part[:size] for part, size in zip(shared.gather(padded, self.timeout), sizes, strict=True)
            ]
        return self._exchange(np.tile(block, self.size), [len(block)] * self.size, sizes)

    def all_to_all(self, blocks: Array, sizes: Sequence[int]) -> list[Array]:
        size_here = sizes[self.rank]
        if shared := self._shared_for(blocks.nbytes):
            first = sum(sizes[: self.rank])
            return [part[first : first + size_here] for part in shared.gather(blocks, self.timeout)]
        return self._exchange(blocks, sizes, [size_here] * self.size)

    def _exchange(self, blocks: Array, sent: Sequence[int], received: Sequence[int]) -> list[Array]:
        output = np.empty(sum(received), np.uint8)
        options = distributed.AllToAllOptions()
        options.timeout = self._limit
        with _group_errors():
            self._gloo.alltoall_base(
                torch.from_numpy(output), torch.from_numpy(blocks), list(received), list(sent), options
            ).wait()
        return np.split(output, np.cumsum(received)[:-1])

    def _shared_for(self, nbytes: int) -> SharedSums | None:
        """Return the shared memory for calls of so many bytes, or None to send them."""
        return self._shared if nbytes <= shared_memory.MOST_BYTES else None

    def close(self) -> None:
        if self.store.closed:
            return
        if self._shared is not None:
            self._shared.close()
        self.store.close()
        threading.Thread(target=self._tear_down, name="edl-group-close", daemon=True).start()

    def _tear_down(self) -> None:
        """Wait for the device's thread and for members that don't answer."""
        with contextlib.suppress(RuntimeError):
            self._gloo.abort()
        del self._gloo  # closes the connections
        self.store.let_go()

    @property
    def _limit(self) -> timedelta:
        return timedelta(seconds=self.timeout)


class GlooStore:
    """Keys of one group in a shared store.

    A helper thread waits for a key, because a frozen host answers nothing, not even that the time is over. Its
    connection is busy meanwhile; so `writing` is a second one, and there are no more: the host's single thread looks
    up a host name for each.
    """

    def __init__(self, address: str, number: int, timeout: float) -> None:
        with _group_errors():
            self._reading, self.writing = (_connect(address, number, timeout) for _ in range(2))
        self._lock = threading.Lock()
        self._waiting: dict[str, SimpleQueue[bytes]] = {}
        self.closed = False

    def set(self, key: str, value: bytes) -> None:
        self._check()
        with _group_errors():
            self.writing.set(key, value)

    def get(self, key: str) -> bytes:
        with self._lock:
            self._check()
            queue = self._waiting.setdefault(key, SimpleQueue())
        threading.Thread(target=self._wait, args=(key, queue), name="edl-group-store", daemon=True).start()
        value = queue.get()
        if value == _GONE:
            raise GroupError("the group is gone")
        return value

    def close(self) -> None:
        with self._lock:
            self.closed = True
            for queue in self._waiting.values():
                queue.put(_GONE)

    def let_go(self) -> None:
        """End the waiting threads if the host still answers; it may take long to find that it does not."""
        with contextlib.suppress(RuntimeError):
            for key in list(self._waiting):
                self.writing.set(key, _GONE)

    def _wait(self, key: str, queue: SimpleQueue[bytes]) -> None:
        try:
            self._reading.wait([key], _FOR_EVER)
            queue.put(self._reading.get(key))
        except RuntimeError:
            queue.put(_GONE)
        with self._lock:
            del self._waiting[key]

    def _check(self) -> None:
        if self.closed:
            raise GroupError("this group was left")


def _connect(address: str, number: int, timeout: float) -> distributed.Store:
    host, _, port = address.rpartition(":")
    client = distributed.TCPStore(
        host, int(port), is_master=False, wait_for_workers=False, timeout=timedelta(seconds=timeout)
    )
    return distributed.PrefixStore(str(number), client)


@contextlib.contextmanager
def _group_errors() -> Iterator[None]:
    """Turn the RuntimeErrors of torch.distributed into GroupErrors."""
    try:
        yield
    except RuntimeError as error:
        raise GroupError(str(error).partition("\n")[0]) from None
