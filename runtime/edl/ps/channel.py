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

import contextlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError, wait
from queue import SimpleQueue
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

    def __init__(self, future: Future[bytes]) -> None:
        self._future = future

    def result(self, kind: type[S]) -> tuple[S, list[wire.Array]]:
        """Wait for the answer; return its header, a `kind`, and its arrays.

        Raises the errors of the module's docstring.
        """
        try:
            payload = self._future.result()
        except grpc.RpcError as error:
            raise _translate_error(error) from None
        return wire.decode(payload, kind)

    def wait(self, seconds: float) -> bool:
        """Wait at most so many seconds; return True if the call has ended."""
        return bool(wait([self._future], seconds).done)

    def then(self, call: Callable[[], object]) -> None:
        """Call `call` once there is an answer or an error, from another thread."""
        self._future.add_done_callback(lambda _: call())

    def cancel(self) -> None:
        """End the call for its caller; its thread waits until the deadline, or until the connection is closed."""
        with contextlib.suppress(InvalidStateError):
            self._future.set_exception(AwayError("the call to a parameter server was cancelled"))


class _CallThreads:
    """Threads that make calls and wait for their answers: as many as there are calls at a time.

    They encode and send while the caller computes. gRPC's own way to make a call without waiting starts a thread for
    each, and takes half as much processor time again.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Callable[[], bytes], Future[bytes]] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = self._busy = 0
        self._is_closed = False

    def begin(self, call: Callable[[], bytes]) -> Future[bytes]:
        """Make the call in a thread. Raises AwayError once they are closed: nobody would answer it."""
        future: Future[bytes] = Future()
        with self._lock:
            if self._is_closed:
                raise _closed_error()
            self._busy += 1
            if self._busy > self._threads:
                self._threads += 1
                threading.Thread(target=self._run, name="edl-calls", daemon=True).start()
            self._calls.put((call, future))
        return future

    def close(self) -> None:
        """Let the threads end after their calls."""
        with self._lock:
            self._is_closed = True
            for _ in range(self._threads):
                self._calls.put(None)

    def _run(self) -> None:
        while (item := self._calls.get()) is not None:
            call, future = item
            try:
                result, error = call(), None
            except Exception as raised:
                result, error = b"", raised
            with self._lock:
                self._busy -= 1
            with contextlib.suppress(InvalidStateError):  # it was cancelled
                if error is None:
                    future.set_result(result)
                else:
                    future.set_exception(error)


class ServerChannel:
    """Connection to one server, for any number of concurrent calls. Close it, or use it as a context manager."""

    def __init__(self, address: str, token: str) -> None:
        self.address = address
        sizes = dict(SIZES)
        others = [option for option in OPTIONS if option[0] not in sizes]
        self._channel = transport.connect(address, (*others, *SIZES))
        self._metadata = ((TOKEN, token),)
        self._methods: dict[str, Any] = {}
        self._threads = _CallThreads()

    def begin(self, header: msgspec.Struct, arrays: Sequence[wire.Array], seconds: float) -> Pending:
        """Begin a call with a deadline in seconds. The arrays must not change until it has ended.

        Raises AwayError if the connection was closed meanwhile.
        """
        name = type(header).__name__

        def call() -> bytes:
            payload = wire.encode(header, arrays)
            try:
                method = self._method(name)
                answer: bytes = method(payload, timeout=seconds, metadata=self._metadata)
            except ValueError:  # the connection was closed meanwhile
                raise _closed_error() from None
            return answer

        return Pending(self._threads.begin(call))

    def call(
        self, header: msgspec.Struct, arrays: Sequence[wire.Array], kind: type[S], seconds: float
    ) -> tuple[S, list[wire.Array]]:
        """Call the server, wait, and return the answer's header, a `kind`, and its arrays."""
        return self.begin(header, arrays, seconds).result(kind)

    def close(self) -> None:
        self._threads.close()
        self._channel.close()

    def __enter__(self) -> ServerChannel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _method(self, name: str) -> Any:
        if name not in self._methods:
            self._methods[name] = self._channel.unary_unary(f"/{SERVICE}/{name}")
        return self._methods[name]


def _closed_error() -> AwayError:
    return AwayError("the connection to a parameter server is closed")


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
