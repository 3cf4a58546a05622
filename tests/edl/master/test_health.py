"""Signs of life of a master's event loop, and of one that stands still."""

from __future__ import annotations

import asyncio
import socket
import threading
import urllib.request
from typing import Any

import pytest

from edl.errors import ClusterError
from edl.master.backend import Backend, ClientResultStore
from edl.master.reporting.health import life_shown
from tests.edl.master.test_state_loop import run


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def backend(**parts: Any) -> Backend:
    other: Any = None
    return Backend(other, other, other, ClientResultStore(), lambda snapshot: None, "", **parts)


def asked(port: int, timeout: float = 10.0) -> tuple[int, bytes]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=timeout) as answer:
        return answer.status, answer.read()


def test_a_probe_is_answered_while_the_event_loop_runs() -> None:
    port = free_port()

    async def probe() -> tuple[int, bytes]:
        async with life_shown(backend(health_port=port)):
            return await asyncio.to_thread(asked, port)

    assert run(probe()) == (200, b"ok\n")


def test_a_probe_fails_while_the_event_loop_stands_still() -> None:
    port, answers = free_port(), []

    def probe() -> None:
        try:
            answers.append(asked(port, timeout=0.2))
        except TimeoutError as error:
            answers.append(error)

    async def hang() -> None:
        async with life_shown(backend(health_port=port)):
            probing = threading.Thread(target=probe)
            probing.start()
            probing.join()

    run(hang())
    assert [type(answer) for answer in answers] == [TimeoutError]


def test_a_supervisor_gets_heartbeats_at_once() -> None:
    beats: list[int] = []

    async def live() -> None:
        async with life_shown(backend(beat=lambda: beats.append(1))):
            while not beats:
                await asyncio.sleep(0)

    run(live())
    assert beats


def test_a_port_of_the_probe_that_is_taken_ends_the_master_with_its_number() -> None:
    async def begin(port: int) -> None:
        async with life_shown(backend(health_port=port)):
            raise AssertionError("it began")

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ClusterError, match=f"the port {port} of the liveness probe"):
            run(begin(port))
