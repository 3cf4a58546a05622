"""Why a peer cannot be reached, found at real sockets."""

from __future__ import annotations

import errno
import queue
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import grpc
import pytest

from edl import reachability
from edl.errors import SpecError
from edl.reachability import REPEAT_SECS, Peer, describe_failure, limit, probe, probe_calls
from tests.certificates import Authority

SECONDS = 10.0


def unused() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def answering(answer: Callable[[socket.socket], object]) -> Iterator[str]:
    """An address that gives its connections that answer."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with closing(connection), suppress(OSError):
                    answer(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.fixture
def tls(tmp_path: Path) -> Callable[[socket.socket], object]:
    certificate, key = Authority(tmp_path, "authority").sign("server", "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return lambda connection: context.wrap_socket(connection, server_side=True).close()


def test_a_name_that_is_not_found() -> None:
    assert probe("master.invalid:50001") == probe_calls("master.invalid:50001")
    assert probe("master.invalid:50001").startswith("the name is not found (")


def test_a_port_where_nothing_listens() -> None:
    assert probe_calls(unused()) == "the connection is refused: nothing listens there"


def test_packets_that_get_lost() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, socket.socket() as first:
        first.connect(listener.getsockname())  # the system drops those that find no room in the queue
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        assert "NetworkPolicy" in probe(address, 0.05)


@pytest.mark.parametrize("number", [errno.EHOSTUNREACH, errno.ENETUNREACH])
def test_a_network_without_a_route(number: int) -> None:
    assert describe_failure(OSError(number, "x")).startswith("there is no route (")


def test_a_proxy_that_expects_tls(tls: Callable[[socket.socket], object]) -> None:
    with answering(tls) as address:
        assert probe_calls(address).startswith("it expects TLS")
        assert probe(address) == ""


def test_another_program_and_one_that_closes_connections() -> None:
    with answering(lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as address:
        assert probe_calls(address) == "another program answers there"
    with answering(lambda connection: None) as address:
        assert probe_calls(address) == "connections are accepted and closed at once"


def test_a_process_that_hangs() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = probe_calls(f"127.0.0.1:{listener.getsockname()[1]}", 0.05)
    assert found.startswith("it accepts connections and does not answer")


def test_a_peer_that_speaks_the_protocol() -> None:
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        assert probe_calls(f"127.0.0.1:{port}") == "it accepts connections, and has not answered calls"
    finally:
        server.stop(0).wait()


class Stage:
    """A peer with a clock in the test's hands."""

    def __init__(self) -> None:
        self.now = 100.0
        self.reason = "it is away"
        self._told: queue.Queue[str] = queue.Queue()
        self.peer = Peer(
            "the master", "10.0.0.1:50001", tell=self._told.put, seconds=30.0, clock=lambda: self.now
        )

    def fails(self, after: float) -> None:
        self.now += after
        self.peer.on_failure(lambda: self.reason)

    @property
    def told(self) -> str:
        """The next line."""
        return self._told.get(timeout=SECONDS)

    @property
    def silent(self) -> bool:
        return self._told.empty()


@pytest.fixture
def stage() -> Iterator[Stage]:
    found = Stage()
    yield found
    found.peer.on_gone()


def test_a_peer_is_reported_when_it_has_been_away_for_long_enough(stage: Stage) -> None:
    stage.fails(0.0)
    stage.fails(29.0)
    assert stage.silent
    stage.fails(2.0)
    assert stage.told == "has not reached the master at 10.0.0.1:50001 for 31 s: it is away"
    assert reachability.obstacle() == "does not reach the master at 10.0.0.1:50001: it is away"
    assert reachability.obstacle(to="the master") == ""
    stage.now += 9.0
    stage.peer.on_answer()
    assert stage.told == "reaches the master again, after 40 s"
    assert reachability.obstacle() == ""


def test_an_answer_in_between_begins_anew(stage: Stage) -> None:
    stage.fails(0.0)
    stage.now += 29.0
    stage.peer.on_answer()
    stage.fails(2.0)
    stage.fails(29.0)
    assert stage.silent
    assert reachability.obstacle() == ""


def test_a_reason_is_repeated_when_it_changes_or_after_a_while(stage: Stage) -> None:
    stage.fails(0.0)
    stage.fails(30.0)
    assert stage.told.endswith("it is away")
    stage.reason = "it is back, and deaf"
    stage.fails(30.0)
    assert stage.told.endswith("for 60 s: it is back, and deaf")
    stage.fails(REPEAT_SECS)
    assert stage.told.endswith("for 360 s: it is back, and deaf")


def test_in_a_pod_it_is_said_what_to_look_at(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDL_MASTER", "job.team-a.svc:50001")
    stage.fails(0.0)
    stage.fails(30.0)
    assert "it is away; check the name service of the cluster, its NetworkPolicies" in stage.told


def test_the_time_is_a_setting() -> None:
    assert limit({}) == limit({"EDL_UNREACHABLE_SECS": ""}) == 30.0
    assert limit({"EDL_UNREACHABLE_SECS": "2.5"}) == 2.5


@pytest.mark.parametrize("text", ["soon", "0", "-1", "inf", "nan"])
def test_a_time_that_is_none_is_an_error(text: str) -> None:
    with pytest.raises(SpecError, match=f"EDL_UNREACHABLE_SECS is '{text}', not a number of seconds"):
        limit({"EDL_UNREACHABLE_SECS": text})
