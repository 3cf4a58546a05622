"""Client of a job's parameter servers: concurrent calls to all of them, repeated until they are answered.

An unreachable server is being replaced: the master reports its new address, and the call is repeated there with the
same sequence number. After a rollback to a checkpoint, calls of the previous generation fail with `LostError`, and
`connect` finds the servers of the new one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

from edl.ps.channel import Pending, ServerChannel
from edl.ps.messages import GenerationError, NotReadyError
from edl.ps.wire import Array
from edl.reachability import Peer
from edl.rpc.channel import AwayError
from edl.tasks.protocol import Servers
from edl.tasks.task import TaskType
from edl.worker.strategies.base import VoidError

CALL_SECS = 30.0  # for an answer, on top of the time that the server may wait
GRACE_SECS = 5.0  # wait for servers if this worker has to leave
SHORTEST_PAUSE, LONGEST_PAUSE = 0.05, 1.0  # seconds between attempts to reach a server
_LOOK_SECS = 0.1  # interval of checks for a replacement while a server does not answer

S = TypeVar("S", bound=msgspec.Struct)


class LostError(VoidError):
    """Error of servers that were rolled back to a checkpoint: later pushes and all leases are void."""


class ServerLocator(Protocol):
    """Source of the servers' addresses; see `edl.worker.master_client.RemoteTasks`."""

    @property
    def servers(self) -> Servers | None: ...

    def wait_for_servers(self, after: int, seconds: float) -> Servers | None: ...

    def is_over(self, kind: TaskType) -> bool: ...


class ServerRequest(NamedTuple):
    """Call to one server, with a timeout of `seconds`."""

    header: msgspec.Struct
    arrays: Sequence[Array] = ()
    seconds: float = CALL_SECS


class ParameterServers:
    """Connections to the parameter servers of a job; `token` authenticates them.

    `leaving` is set when this worker has to leave; then waiting ends with `VoidError`, as it does when the job is over.
    The caller sets `connected` once the servers know the model; it is reset when they are lost.
    """

    def __init__(self, source: ServerLocator, token: str, leaving: threading.Event) -> None:
        self._source = source
        self._token = token
        self._leaving = leaving
        self._left_at = 0.0
        self._known = Servers(-1, 0, ())
        self._channels: list[ServerChannel] = []
        self._peers: dict[int, Peer] = {}
        self.connected = False

    def __len__(self) -> int:
        return len(self._channels)

    @property
    def generation(self) -> int:
        return self._known.generation

    def connect(self) -> None:
        """Wait for servers that are ready, of any generation."""
        servers = None
        while servers is None:
            self._check()
            servers = self._source.wait_for_servers(self._known.number, LONGEST_PAUSE)
            servers = servers or self._source.wait_for_servers(-1, 0.0)
        self._move_to(servers)

    def begin(self, requests: Mapping[int, ServerRequest], kind: type[S]) -> PendingCalls[S]:
        """Start a call to each of these servers, which answer with `kind`. Raises VoidError if the job is over."""
        self._check_over()
        return PendingCalls(self, requests, kind)

    def call(self, requests: Mapping[int, ServerRequest], kind: type[S]) -> dict[int, tuple[S, list[Array]]]:
        """Return the answer of each of these servers."""
        return self.begin(requests, kind).results()

    def ask(self, header: msgspec.Struct, kind: type[S], seconds: float = CALL_SECS) -> S:
        """Return the answer of server 0."""
        return self.call({0: ServerRequest(header, (), seconds)}, kind)[0][0]

    def close(self) -> None:
        for channel in self._channels:
            channel.close()
        for peer in self._peers.values():
            peer.on_gone()

    # For calls under way ------------------------------------------------------------------------------------

    def send(self, server: int, request: ServerRequest) -> Pending:
        return self._channels[server].begin(request.header, request.arrays, request.seconds)

    def wait(self, server: int, pending: Pending) -> None:
        """Wait until the call is answered; cancel it if its server was replaced."""
        while not pending.wait(_LOOK_SECS):
            self._check()
            if self._is_replaced(server):
                pending.cancel()

    def wait_for_a_change(self, seconds: float) -> None:
        """Wait until the servers' addresses change, at most `seconds`. Raises LostError if their generation does."""
        self._check()
        servers = self._source.wait_for_servers(self._known.number, seconds)
        if servers is None:
            return
        if servers.generation != self._known.generation:
            raise self.make_lost_error()
        self._move_to(servers)

    def peer(self, server: int) -> Peer:
        """Return the server as a peer that may be unreachable."""
        if server not in self._peers:
            self._peers[server] = Peer(f"ps-{server}", "")
        record = self._peers[server]
        record.address = self._channels[server].address
        return record

    def make_lost_error(self) -> LostError:
        """Return the error for a generation that is over; `connect` then waits for the next."""
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
        for server in [server for server in self._peers if server >= len(servers.addresses)]:
            self._peers.pop(server).on_gone()
        self._known = servers

    def _is_replaced(self, server: int) -> bool:
        now, before = self._source.servers, self._known
        if now is None or now.number <= before.number:
            return False
        return now.generation != before.generation or now.addresses[server] != before.addresses[server]

    def _check(self) -> None:
        """Raise VoidError if the job is over, or this worker has to leave and its grace period has passed."""
        self._check_over()
        if not self._leaving.is_set():
            return
        self._left_at = self._left_at or time.monotonic()
        if time.monotonic() - self._left_at > GRACE_SECS:
            raise VoidError("this worker has to go")

    def _check_over(self) -> None:
        if self._source.is_over("export"):
            raise VoidError("the job is over")


class PendingCalls(Generic[S]):
    """Concurrent calls to some servers."""

    def __init__(
        self, servers: ParameterServers, requests: Mapping[int, ServerRequest], kind: type[S]
    ) -> None:
        self._servers = servers
        self._requests = requests
        self._kind = kind
        self._began = time.monotonic()
        self._pending = {server: servers.send(server, request) for server, request in requests.items()}

    @property
    def is_answered(self) -> bool:
        """True if all calls are complete."""
        return all(pending.wait(0) for pending in self._pending.values())

    def results(self) -> dict[int, tuple[S, list[Array]]]:
        """Return all answers. Raises LostError or VoidError if there will be none."""
        return {server: self._result(server) for server in self._requests}

    def _result(self, server: int) -> tuple[S, list[Array]]:
        pause = SHORTEST_PAUSE
        while True:
            pending = self._pending[server]
            try:
                self._servers.wait(server, pending)
                result = pending.result(self._kind)
                self._servers.peer(server).on_answer()
                if not self._asks_again(server, result[0], pause):
                    return result
            except GenerationError:
                raise self._servers.make_lost_error() from None
            except (AwayError, NotReadyError) as error:
                if isinstance(error, AwayError):
                    self._servers.peer(server).on_failure()
            self._servers.wait_for_a_change(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            self._pending[server] = self._servers.send(server, self._requests[server])

    def _asks_again(self, server: int, answer: S, pause: float) -> bool:
        """Return True if the server had no place for a call that waits, and the time to wait is not over."""
        seconds: float = getattr(self._requests[server].header, "wait_secs", 0.0)
        return getattr(answer, "crowded", False) and time.monotonic() + pause < self._began + seconds
