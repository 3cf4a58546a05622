"""Calls to a server, and what they raise."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import numpy as np
import pytest

from edl.errors import ClusterError, JobError, SpecError
from edl.ps import messages as msg
from edl.ps import wire
from edl.ps.channel import SERVICE, ServerChannel
from edl.ps.checkpoint.content import Version
from edl.ps.messages import GenerationError, NotReadyError
from edl.rpc import transport
from edl.rpc.channel import TOKEN, AwayError

Method = Callable[[bytes, Any], bytes]


class Answering(grpc.GenericRpcHandler):
    """Answers calls by the function that the test sets."""

    def __init__(self) -> None:
        self.answer: Method = lambda payload, context: b""
        self.asked: list[str] = []

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        self.asked.append(details.method)
        return grpc.unary_unary_rpc_method_handler(lambda payload, context: self.answer(payload, context))


@pytest.fixture
def handler() -> Answering:
    return Answering()


@pytest.fixture
def channel(handler: Answering, calls: None) -> Iterator[ServerChannel]:
    server = grpc.server(ThreadPoolExecutor(2), handlers=(handler,))
    port = transport.listen(server, "127.0.0.1:0")
    server.start()
    with ServerChannel(f"127.0.0.1:{port}", "secret") as channel:
        yield channel
    server.stop(None).wait()


def test_a_call_brings_header_and_arrays_and_the_token(handler: Answering, channel: ServerChannel) -> None:
    def answer(payload: bytes, context: Any) -> bytes:
        pull, arrays = wire.decode(payload, msg.Pull)
        assert dict(context.invocation_metadata())[TOKEN] == "secret"
        return wire.encode(msg.Pulled(Version(pull.generation)), [array * 2 for array in arrays])

    handler.answer = answer
    pulled, arrays = channel.call(msg.Pull(3, ("t",)), [np.arange(4)], msg.Pulled, 10)
    assert pulled.version.generation == 3
    assert arrays[0].tolist() == [0, 2, 4, 6]
    assert handler.asked == [f"/{SERVICE}/Pull"]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.UNAVAILABLE, AwayError),
        (grpc.StatusCode.DEADLINE_EXCEEDED, AwayError),
        (grpc.StatusCode.FAILED_PRECONDITION, NotReadyError),
        (grpc.StatusCode.ABORTED, GenerationError),
        (grpc.StatusCode.INVALID_ARGUMENT, JobError),
        (grpc.StatusCode.UNAUTHENTICATED, ClusterError),
    ],
)
def test_a_refusal_says_what_to_do(
    handler: Answering, channel: ServerChannel, code: grpc.StatusCode, kind: type[Exception]
) -> None:
    handler.answer = lambda payload, context: context.abort(code, "because")
    with pytest.raises(kind) as error:
        channel.call(msg.Status(), (), msg.Figures, 10)
    assert type(error.value) is kind


def test_a_server_that_is_gone_is_away() -> None:
    with ServerChannel("127.0.0.1:1", "secret") as channel, pytest.raises(AwayError):
        channel.call(msg.Status(), (), msg.Figures, 10)


def test_a_call_that_is_cancelled_is_away(handler: Answering, channel: ServerChannel) -> None:
    handler.answer = lambda payload, context: b"\0" * (30 << 20)
    pending = channel.begin(msg.Status(), (), 10)
    pending.cancel()
    with pytest.raises(AwayError):
        pending.result(msg.Figures)


def test_calls_wait_at_the_same_time_and_their_threads_are_used_again(
    handler: Answering, channel: ServerChannel
) -> None:
    together = threading.Barrier(2)

    def answer(payload: bytes, context: Any) -> bytes:
        together.wait(20)
        return wire.encode(msg.Done())

    def list_threads() -> list[int | None]:
        return [thread.ident for thread in threading.enumerate() if thread.name == "edl-calls"]

    handler.answer = answer
    before, seen = list_threads(), set[int | None]()
    for _ in range(3):
        pending = [channel.begin(msg.Retire(), (), 20) for _ in range(2)]
        assert [call.result(msg.Done)[0] for call in pending] == [msg.Done()] * 2
        seen |= set(list_threads()) - set(before)
    assert len(seen) == 2


def test_a_connection_that_was_closed_is_away(channel: ServerChannel) -> None:
    channel.close()
    with pytest.raises(AwayError):
        channel.begin(msg.Status(), (), 5.0)


def test_an_answer_that_is_damaged_is_named(handler: Answering, channel: ServerChannel) -> None:
    handler.answer = lambda payload, context: b"\xff" * 40
    with pytest.raises(SpecError, match="damaged"):
        channel.call(msg.Status(), (), msg.Figures, 10)
