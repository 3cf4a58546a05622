"""A worker that cannot reach its parameter server."""

from __future__ import annotations

import threading
import time

import pytest

from edl import reachability
from edl.ps import messages as msg
from edl.tasks.protocol import Servers
from edl.tasks.task import TaskType
from edl.worker.strategies.base import VoidError
from edl.worker.strategies.ps_client import ParameterServers, ServerRequest

SECONDS = 10.0


class Locator:
    """Two servers, at addresses where nothing listens, until the job is over."""

    servers = Servers(1, 1, ("127.0.0.1:1", "127.0.0.1:2"), ready=True)

    def wait_for_servers(self, after: int, seconds: float) -> Servers | None:
        return self.servers if after < self.servers.number else None

    def is_over(self, kind: TaskType) -> bool:
        return bool(reachability.obstacle()) or time.monotonic() > self._end

    def __init__(self) -> None:
        self._end = time.monotonic() + SECONDS


def test_what_a_worker_does_not_reach_is_reported_as_long_as_it_needs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(reachability.VARIABLE, "0.01")
    locator = Locator()
    servers = ParameterServers(locator, "token", threading.Event())
    servers.connect()
    with pytest.raises(VoidError):  # it is reported, and the job is over for this test
        servers.ask(msg.Status(), msg.Figures)
    why = "the connection is refused: nothing listens there"
    assert reachability.obstacle() == f"does not reach ps-0 at 127.0.0.1:1: {why}"
    servers.close()
    assert reachability.obstacle() == ""


def test_a_server_that_is_no_more_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(reachability.VARIABLE, "0.01")
    locator = Locator()
    servers = ParameterServers(locator, "token", threading.Event())
    servers.connect()
    with pytest.raises(VoidError):
        servers.call({1: ServerRequest(msg.Status())}, msg.Figures)
    assert "ps-1" in reachability.obstacle()
    monkeypatch.setattr(locator, "is_over", lambda kind: False)
    locator.servers = Servers(2, 2, locator.servers.addresses[:1], ready=True)
    servers.connect()
    assert reachability.obstacle() == ""
    servers.close()
