"""Channels to the master: the job's token on every call, keepalive, and deadlines.

A call that fails because the master is away raises `AwayError`; who calls decides whether to try again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import grpc

from edl.errors import ClusterError
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
    # A master that is restarted is tried again soon, not after gRPC's two minutes.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
)
SERVER_OPTIONS = (
    ("grpc.max_send_message_length", LARGEST),
    ("grpc.max_receive_message_length", LARGEST),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.so_reuseport", 1),
)

R = TypeVar("R")


class AwayError(ClusterError):
    """The other side cannot be reached now, or did not answer in time."""


class MasterChannel:
    """A connection to the master of a job. Close it, or use it as a context."""

    def __init__(self, address: str, token: str) -> None:
        self._channel = grpc.insecure_channel(address, options=OPTIONS)
        self._metadata = ((TOKEN, token),)
        self.stub = MasterStub(self._channel)  # type: ignore[no-untyped-call]  # generated

    def call(self, method: Callable[..., R], request: Any, seconds: float) -> R:
        """Call a method of `stub`. AwayError: the master is away. ClusterError: it refuses."""
        try:
            return method(request, timeout=seconds, metadata=self._metadata)
        except grpc.RpcError as error:
            raise translated(error) from None

    def begin(self, method: Any, request: Any, seconds: float) -> Any:
        """Begin a call that may be cancelled; the future of its response, which raises `grpc.RpcError`."""
        return method.future(request, timeout=seconds, metadata=self._metadata)

    def close(self) -> None:
        self._channel.close()

    def __enter__(self) -> MasterChannel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def translated(error: grpc.RpcError) -> ClusterError:
    """The error in our words."""
    code = error.code()
    if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED):
        return AwayError(f"the master of the job does not answer ({code.name.lower().replace('_', ' ')})")
    return ClusterError(f"the master of the job refuses a call: {error.details()}")
