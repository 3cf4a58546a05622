"""Which members of a group that does not form cannot be reached."""

from __future__ import annotations

import socket

from edl.collectives.base import GroupError
from edl.tasks.protocol import WorkerGroup
from edl.worker.strategies.allreduce.member import unreachable_reason

NAMES = ("worker-0", "worker-1", "worker-2")


def test_members_that_cannot_be_reached_are_named_with_their_addresses() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        there = f"127.0.0.1:{listener.getsockname()[1]}"
        group = WorkerGroup(3, NAMES, 0, there, (there, "127.0.0.1:1", "worker-2.invalid:4000"))
        found = unreachable_reason(group, "worker-0", GroupError("timed out"))
        of_another = unreachable_reason(group, "worker-1", GroupError("timed out"))
    refused, unknown = found.split("; ")
    assert refused == "worker-1 at 127.0.0.1:1: the connection is refused: nothing listens there"
    assert unknown.startswith("worker-2 at worker-2.invalid:4000: the name is not found (")
    assert of_another == unknown


def test_a_group_that_does_not_form_though_all_can_be_reached() -> None:
    addresses = ("10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1")
    group = WorkerGroup(3, NAMES, 0, addresses[0], addresses)
    assert unreachable_reason(group, "worker-0", GroupError("timed out"), lambda address: "") == (
        "worker-1 at 10.0.0.2:1, worker-2 at 10.0.0.3:1 accept connections, and the group does not form: timed out"
    )
