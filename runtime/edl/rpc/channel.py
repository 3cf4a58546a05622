"""Channels to the master: the job's token on every call, keepalive, and deadlines.

A call that fails because the master is away raises `AwayError`; the caller decides if it is retried.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import grpc

from edl.errors import ClusterError
from edl.reachability import MASTER, Peer
from edl.rpc import transport
from edl.rpc.control_pb2_grpc import MasterStub

TOKEN = "edl-token"  # noqa: S105 (the name of the metadata, not a token)
LARGEST = 256 << 20  # bytes of a message
OPTIONS = (
    ("grpc.max_send_message_length", LARGEST),
    ("grpc.max_receive_message_length", LARGEST),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.enable_http_proxy", 0),
    # Retry a restarted master soon, not after gRPC's two minutes.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
    # A master in another pod has another address.
    ("grpc.dns_min_time_between_resolutions_ms", 500),
    ("grpc.service_config_disable_resolution", 1),
)
SERVER_OPTIONS = (
    ("grpc.max_send_message_length", LARGEST),
    ("grpc.max_receive_message_length", LARGEST),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.so_reuseport", 1),
)

RENEW_SECS = 5.0  # absence of a master after which a new channel looks up its name

R = TypeVar("R")


class AwayError(ClusterError):
    """Error of a peer that cannot be reached at present, or did not answer in time."""


class MasterChannel:
    """Connection to the master of a job. Thread-safe. Close it, or use it as a context manager.

    gRPC looks up an unknown name less and less often, down to once in two minutes; and a master in a pod has none until
    its successor runs. So a channel without an answer for a while is replaced. `peer` is told of answers and their
    absence.
    """

    def __init__(
        self, address: str, token: str, *, renew_secs: float = RENEW_SECS, peer: Peer | None = None
    ) -> None:
        self._address = address
        self._metadata = ((TOKEN, token),)
        self._renew_secs = renew_secs
        self._peer = peer
        self._lock = threading.Lock()
        self._channels: list[Any] = []  # the present one last; another thread may use the previous one
        self._open()

    @property
    def stub(self) -> MasterStub:
        """Stub with the methods for `call` and `begin`; get it anew for each call."""
        with self._lock:
            if self._away and time.monotonic() - self._since > self._renew_secs:
                self._open()
            return self._stub

    def call(self, method: Callable[..., R], request: Any, seconds: float) -> R:
        """Call a method of `stub`. Raises AwayError if the master is away, ClusterError if it refuses."""
        try:
            response = method(request, timeout=seconds, metadata=self._metadata)
        except grpc.RpcError as error:
            self._record(error.code())
            raise translate_error(error) from None
        self._record(grpc.StatusCode.OK)
        return response

    def begin(self, method: Any, request: Any, seconds: float) -> Any:
        """Begin a cancellable call; return the future of its response, which raises `grpc.RpcError`."""
        future = method.future(request, timeout=seconds, metadata=self._metadata)
        future.add_done_callback(lambda done: self._record(done.code()))
        return future

    def close(self) -> None:
        for channel in self._channels:
            channel.close()

    def __enter__(self) -> MasterChannel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> None:
        """Replace the channel by a new one."""
        self._channels.append(transport.connect(self._address, OPTIONS))
        self._stub = MasterStub(self._channels[-1])  # type: ignore[no-untyped-call]  # generated
        self._away, self._since = False, 0.0
        for channel in self._channels[:-2]:
            channel.close()
        self._channels = self._channels[-2:]

    def _record(self, code: grpc.StatusCode) -> None:
        """Record the status of a call: if the master is away, and since when."""
        with self._lock:
            away = code is grpc.StatusCode.UNAVAILABLE
            if away and not self._away:
                self._since = time.monotonic()
            self._away = away
        if self._peer is None or code is grpc.StatusCode.CANCELLED:
            return
        if away or code is grpc.StatusCode.DEADLINE_EXCEEDED:
            self._peer.on_failure()
        else:
            self._peer.on_answer()


def channel_of_instance(address: str, token: str) -> MasterChannel:
    """Return the channel of a worker or server. It logs why it cannot reach the master."""
    return MasterChannel(address, token, peer=Peer(MASTER, address))


def translate_error(error: grpc.RpcError) -> ClusterError:
    """Return the exception of this package for an error of gRPC."""
    code = error.code()
    if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED):
        return AwayError(
            f"the master of the job does not answer ({transport.describe_missing_answer(error)})"
        )
    return ClusterError(f"the master of the job refuses a call: {error.details()}")
