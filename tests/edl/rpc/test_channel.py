"""Channels find a master again, wherever it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import grpc
import pytest

from edl.rpc import control_pb2 as pb
from edl.rpc import transport
from edl.rpc.channel import AwayError, MasterChannel
from edl.rpc.control_pb2_grpc import MasterServicer, add_MasterServicer_to_server
from tests.edl.rpc.names import name_server

CALL_SECS = 10.0
TRIES = 400


class Named(MasterServicer):
    """Says where it is."""

    def __init__(self, address: str) -> None:
        self._address = address

    def JobStatus(self, request: Any, context: Any) -> pb.JobStatusResponse:  # noqa: N802
        return pb.JobStatusResponse(snapshot=self._address.encode())


@contextmanager
def master(address: str, port: int = 0) -> Iterator[int]:
    """A master at that address of this machine; its port."""
    server = grpc.server(ThreadPoolExecutor(2))
    add_MasterServicer_to_server(Named(address), server)  # type: ignore[no-untyped-call]
    try:
        found = transport.listen(server, f"{address}:{port}")
        server.start()
        yield found
    finally:
        server.stop(0).wait()


def where(channel: MasterChannel) -> bytes:
    answer: bytes = channel.call(channel.stub.JobStatus, pb.JobStatusRequest(), CALL_SECS).snapshot
    return answer


def away(channel: MasterChannel) -> Iterator[int]:
    """Counts calls that find no master, up to `TRIES`."""
    for number in range(TRIES):
        try:
            where(channel)
        except AwayError:
            time.sleep(0.02)
            yield number
        else:
            return


@pytest.mark.usefixtures("calls")
def test_a_master_is_found_at_its_new_address_however_long_its_name_was_unknown() -> None:
    with name_server() as names, ExitStack() as channels:
        with master("127.0.0.2") as port:
            names.address = "127.0.0.2"
            target = f"dns://127.0.0.1:{names.port}/name.space.svc:{port}"
            channel = channels.enter_context(MasterChannel(target, "token", renew_secs=0.02))
            assert where(channel) == b"127.0.0.2"
        names.address, asked = None, names.asked
        assert any(
            names.asked > asked + 20 for _ in away(channel)
        )  # gRPC alone would ask a few times meanwhile
        names.address = "127.0.0.3"
        with master("127.0.0.3", port):
            assert sum(1 for _ in away(channel)) < TRIES
            assert where(channel) == b"127.0.0.3"
