"""The parameter servers of a job, as one worker calls them: a call to each at once, repeated until it is answered.

A server that is away is being replaced: the master says where it is then, and the call is repeated there, with the
same sequence number. When the servers went back to a cut, calls of the generation before come to nothing (`LostError`),
and `connect` finds the servers of the new one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

from edl.ps.channel import GenerationError, NotReadyError, Pending, ServerChannel
from edl.ps.wire import Array
from edl.rpc.channel import AwayError
from edl.tasks.exchange import Servers
from edl.tasks.task import TaskType
from edl.worker.strategy import VoidError

CALL_SECS = 30.0  # that a server may take to answer, on top of what it was asked to wait
GRACE_SECS = 5.0  # that a worker which has to go waits for servers
SHORTEST_PAUSE, LONGEST_PAUSE = 0.05, 1.0  # until a server that is away is tried again
_LOOK_SECS = 0.1  # between two looks at whether a server that does not answer has been replaced

S = TypeVar("S", bound=msgspec.Struct)


class LostError(VoidError):
    """The servers went back to a cut: what was pushed since then, and every lease, is void."""


class Whereabouts(Protocol):
    """Who knows where the servers are; see `edl.worker.remote.RemoteTasks`."""

    @property
    def servers(self) -> Servers | None: ...

    def wait_for_servers(self, after: int, seconds: float) -> Servers | None: ...

    def over(self, kind: TaskType) -> bool: ...


class Request(NamedTuple):
    """A call to one server. seconds: that it may take."""

    header: msgspec.Struct
    arrays: Sequence[Array] = ()
    seconds: float = CALL_SECS


class ParameterServers:
    """token: of the job. leaving: set when this worker has to go; then waiting ends with `VoidError`, as it does when
    the job is over. connected: set by who has seen to it that the servers know the model, until they are lost."""

    def __init__(self, source: Whereabouts, token: str, leaving: threading.Event) -> None:
        self._source = source
        self._token = token
        self._leaving = leaving
        self._left_at = 0.0
        self._known = Servers(-1, 0, ())
        self._channels: list[ServerChannel] = []
        self.connected = False

    def __len__(self) -> int:
        return len(self._channels)

    @property
    def generation(self) -> int:
        return self._known.generation

    def connect(self) -> None:
        """Wait for servers that are ready, of whichever generation."""
        found = None
        while found is None:
            self._check()
            found = self._source.wait_for_servers(self._known.number, LONGEST_PAUSE)
            found = found or self._source.wait_for_servers(-1, 0.0)
        self._move_to(found)

    def begin(self, requests: Mapping[int, Request], kind: type[S]) -> Calls[S]:
        """Begin a call to each of these servers; `kind` is what they answer. VoidError: the job is over."""
        self._check_over()
        return Calls(self, requests, kind)

    def call(self, requests: Mapping[int, Request], kind: type[S]) -> dict[int, tuple[S, list[Array]]]:
        """What each of these servers answers."""
        return self.begin(requests, kind).results()

    def ask(self, header: msgspec.Struct, kind: type[S], seconds: float = CALL_SECS) -> S:
        """What server 0 answers."""
        return self.call({0: Request(header, (), seconds)}, kind)[0][0]

    def close(self) -> None:
        for channel in self._channels:
            channel.close()

    # For calls under way ------------------------------------------------------------------------------------

    def send(self, server: int, request: Request) -> Pending:
        return self._channels[server].begin(request.header, request.arrays, request.seconds)

    def wait(self, server: int, pending: Pending) -> None:
        """Until it is answered; a server that was replaced will not answer any more."""
        while not pending.wait(_LOOK_SECS):
            self._check()
            if self._replaced(server):
                pending.cancel()

    def wait_for_a_change(self, seconds: float) -> None:
        """Until servers are somewhere else, so long at most. LostError: they are of another generation."""
        self._check()
        found = self._source.wait_for_servers(self._known.number, seconds)
        if found is None:
            return
        if found.generation != self._known.generation:
            raise self.lost()
        self._move_to(found)

    def lost(self) -> LostError:
        """The generation is over; `connect` waits for the next."""
        self.connected = False
        return LostError(f"generation {self.generation} is over")

    def _move_to(self, servers: Servers) -> None:
        before = dict(zip(self._known.addresses, self._channels, strict=True))
        self._channels = [
            before.pop(address) if address in before else ServerChannel(address, self._token)
            for address in servers.addresses
        ]
        for channel in before.values():
            channel.close()
        self._known = servers

    def _replaced(self, server: int) -> bool:
        now, known = self._source.servers, self._known
        if now is None or now.number <= known.number:
            return False
        return now.generation != known.generation or now.addresses[server] != known.addresses[server]

    def _check(self) -> None:
        """VoidError: the job is over, or this worker has to go and was patient."""
        self._check_over()
        if not self._leaving.is_set():
            return
        self._left_at = self._left_at or time.monotonic()
        if time.monotonic() - self._left_at > GRACE_SECS:
            raise VoidError("this worker has to go")

    def _check_over(self) -> None:
        if self._source.over("export"):
            raise VoidError("the job is over")


class Calls(Generic[S]):
    """A call to each of some servers, under way."""

    def __init__(self, servers: ParameterServers, requests: Mapping[int, Request], kind: type[S]) -> None:
        self._servers = servers
        self._requests = requests
        self._kind = kind
        self._pending = {server: servers.send(server, request) for server, request in requests.items()}

    @property
    def answered(self) -> bool:
        """Whether `results` would not wait, if all went well."""
        return all(pending.wait(0) for pending in self._pending.values())

    def results(self) -> dict[int, tuple[S, list[Array]]]:
        """The answers of all. LostError, VoidError: there will be none."""
        return {server: self._result(server) for server in self._requests}

    def _result(self, server: int) -> tuple[S, list[Array]]:
        pause = SHORTEST_PAUSE
        while True:
            pending = self._pending[server]
            try:
                self._servers.wait(server, pending)
                return pending.result(self._kind)
            except GenerationError:
                raise self._servers.lost() from None
            except (AwayError, NotReadyError):
                self._servers.wait_for_a_change(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                self._pending[server] = self._servers.send(server, self._requests[server])
