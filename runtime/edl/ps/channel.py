"""Calls to a parameter server: the job's token on every call, and a deadline.

gRPC carries payloads of `edl.ps.wire` as they are. The method of a call is named after its header's struct. The error
of a call determines the reaction:

    AwayError         the server is gone or frozen: ask the master for its present address
    NotReadyError     the server is not arranged, defined or open yet: retry
    GenerationError   the call belongs to parameters that were rolled back
    DamagedError      the checkpoint to restore is not as it was written
    JobError          the model differs from the servers' model
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import grpc
import msgspec

from edl.errors import ClusterError, DamagedError, JobError
from edl.ps import wire
from edl.ps.messages import GenerationError, NotReadyError
from edl.rpc import transport
from edl.rpc.channel import OPTIONS, TOKEN, AwayError

SERVICE = "edl.ps.v1.ParameterServer"
# Maximum size of a message, and of an HTTP/2 frame.
LARGEST = (1 << 31) - 1
FRAME = (1 << 24) - 1
SIZES = (
    ("grpc.max_send_message_length", LARGEST),
    ("grpc.max_receive_message_length", LARGEST),
    ("grpc.http2.max_frame_size", FRAME),
)

S = TypeVar("S", bound=msgspec.Struct)


class Pending:
    """Call in progress."""

    def __init__(self, future: Any) -> None:
        self._future = future

    def result(self, kind: type[S]) -> tuple[S, list[wire.Array]]:
        """Wait for the answer; return its header, a `kind`, and its arrays.

        Raises the errors of the module's docstring.
        """
        try:
            payload = self._future.result()
        except grpc.RpcError as error:
            raise _translate_error(error) from None
        except grpc.FutureCancelledError:
            raise AwayError("the call to a parameter server was cancelled") from None
        return wire.decode(payload, kind)

    def wait(self, seconds: float) -> bool:
        """Wait at most so many seconds; return True if the call has ended."""
        try:
            self._future.exception(timeout=seconds)
        except grpc.FutureTimeoutError:
            return False
        except grpc.FutureCancelledError:
            pass
        return True

    def then(self, call: Callable[[], object]) -> None:
        """Call `call` once there is an answer or an error, from a thread of gRPC."""
        self._future.add_done_callback(lambda _: call())

    def cancel(self) -> None:
        self._future.cancel()


class ServerChannel:
    """Connection to one server, for any number of concurrent calls. Close it, or use it as a context manager."""

    def __init__(self, address: str, token: str) -> None:
        self.address = address
        sizes = dict(SIZES)
        others = [option for option in OPTIONS if option[0] not in sizes]
        self._channel = transport.connect(address, (*others, *SIZES))
        self._metadata = ((TOKEN, token),)
        self._methods: dict[str, Any] = {}

    def begin(self, header: msgspec.Struct, arrays: Sequence[wire.Array], seconds: float) -> Pending:
        """Begin a call with a deadline in seconds. Raises AwayError if the connection was closed meanwhile."""
        method = self._method(type(header).__name__)
        payload = wire.encode(header, arrays)
        try:
            return Pending(method.future(payload, timeout=seconds, metadata=self._metadata))
        except ValueError:
            raise AwayError("the connection to a parameter server is closed") from None

    def call(
        self, header: msgspec.Struct, arrays: Sequence[wire.Array], kind: type[S], seconds: float
    ) -> tuple[S, list[wire.Array]]:
        """Call the server, wait, and return the answer's header, a `kind`, and its arrays."""
        return self.begin(header, arrays, seconds).result(kind)

    def close(self) -> None:
        self._channel.close()

    def __enter__(self) -> ServerChannel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _method(self, name: str) -> Any:
        if name not in self._methods:
            self._methods[name] = self._channel.unary_unary(f"/{SERVICE}/{name}")
        return self._methods[name]


def _translate_error(error: grpc.RpcError) -> ClusterError | JobError | DamagedError:
    """Return the exception of this package for an error of gRPC."""
    code, details = error.code(), error.details()
    if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED):
        return AwayError(f"a parameter server does not answer ({transport.describe_missing_answer(error)})")
    if code is grpc.StatusCode.FAILED_PRECONDITION:
        return NotReadyError(details)
    if code is grpc.StatusCode.ABORTED:
        return GenerationError(details)
    if code is grpc.StatusCode.DATA_LOSS:
        return DamagedError(details)
    if code is grpc.StatusCode.INVALID_ARGUMENT:
        return JobError(details)
    return ClusterError(f"a parameter server refuses a call: {details}")
