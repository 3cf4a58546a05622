"""Calls that wait for others, more of them than a server has threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from edl.checkpoints.folder import SharedFolder
from edl.ps import messages as msg
from edl.ps.channel import ServerChannel
from edl.ps.checkpoint.content import Dense, ModelDefinition, Version
from edl.ps.server import Server
from edl.ps.servicer import serve
from edl.tasks.protocol import Servers
from edl.tasks.task import TaskType
from edl.worker.strategies.ps_client import ParameterServers, ServerRequest
from tests.edl.ps.servers import SGD, SYNC, TOKEN

MODEL = ModelDefinition(SGD, dense=(Dense("kernel", (3,)),))
THREADS, WAITING = 4, 3
WAIT_SECS = 60.0  # far more than a test takes
CALL_SECS = 20.0


@pytest.fixture
def address() -> Iterator[str]:
    server = Server(TOKEN, SharedFolder(Path("/")), threads=THREADS)
    served, port = serve(server, "127.0.0.1:0", TOKEN)
    found = f"127.0.0.1:{port}"
    server.answer(msg.Arrange(0, 0, 0, (found,), SYNC), ())
    server.answer(msg.Define(0, MODEL), (np.zeros(3, np.float32), np.zeros(0, np.float32)))
    server.answer(msg.Open(0), ())
    yield found
    server.close()
    served.stop(None).wait()


def commit_a_round(channel: ServerChannel) -> None:
    ticket, _ = channel.call(msg.Ticket(0, "w", 0, 1, Version()), (), msg.Ticketed, CALL_SECS)
    push = msg.Push(0, "w", 0, 1, 1.0, 10, ticket=ticket.ticket)
    channel.call(push, (np.ones(3, np.float32),), msg.Pushed, CALL_SECS)
    channel.call(msg.Confirm(0, ticket.ticket), (), msg.Confirmed, CALL_SECS)


def test_pulls_that_wait_do_not_keep_away_the_push_that_they_wait_for(address: str) -> None:
    pull = msg.Pull(0, dense=True, at_least=1, wait_secs=WAIT_SECS)
    with ServerChannel(address, TOKEN) as channel:
        waiting = [channel.begin(pull, (), WAIT_SECS) for _ in range(3 * THREADS)]
        commit_a_round(channel)
        found = [each.result(msg.Pulled)[0] for each in waiting]
    assert all(answer.version.step == (0 if answer.crowded else 1) for answer in found)
    assert WAITING <= sum(not answer.crowded for answer in found) < len(found)


class Locator:
    """The server at this address, for as long as a test may take."""

    def __init__(self, address: str) -> None:
        self.servers = Servers(1, 0, (address,), ready=True)
        self.end = time.monotonic() + CALL_SECS

    def wait_for_servers(self, after: int, seconds: float) -> Servers | None:
        if after < self.servers.number:
            return self.servers
        threading.Event().wait(seconds)
        return None

    def is_over(self, kind: TaskType) -> bool:
        return time.monotonic() > self.end


@pytest.mark.soak
def test_workers_for_whom_there_is_no_thread_ask_again_until_they_have_what_they_wait_for(
    address: str,
) -> None:
    workers = [ParameterServers(Locator(address), TOKEN, threading.Event()) for _ in range(2 * THREADS)]
    pull = ServerRequest(msg.Pull(0, dense=True, at_least=1, wait_secs=WAIT_SECS))
    for worker in workers:
        worker.connect()
    calls = [worker.begin({0: pull}, msg.Pulled) for worker in workers]
    committing = threading.Thread(target=lambda: commit_a_round(ServerChannel(address, TOKEN)))
    committing.start()
    steps = [call.results()[0][0].version.step for call in calls]
    committing.join()
    for worker in workers:
        worker.close()
    assert steps == [1] * len(workers)


def test_a_worker_does_not_ask_for_longer_than_it_wanted_to_wait(address: str) -> None:
    with ServerChannel(address, TOKEN) as channel:
        patient = msg.Pull(0, dense=True, at_least=1, wait_secs=WAIT_SECS)
        waiting = [channel.begin(patient, (), WAIT_SECS) for _ in range(THREADS)]
        refused = threading.Event()
        for each in waiting:
            each.then(refused.set)
        assert refused.wait(CALL_SECS)  # there is no place to wait any more
        worker = ParameterServers(Locator(address), TOKEN, threading.Event())
        worker.connect()
        hasty = ServerRequest(msg.Pull(0, dense=True, at_least=1, wait_secs=0.1))
        answer, _ = worker.begin({0: hasty}, msg.Pulled).results()[0]
        worker.close()
    assert answer.crowded and answer.version.step == 0
