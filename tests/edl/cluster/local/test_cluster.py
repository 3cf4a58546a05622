"""The master's side of the connection, against a supervisor that says what the test says."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import msgspec
import pytest

from edl import exit_codes
from edl.cluster import Change, Cluster, Instance, NoRoomError
from edl.cluster.local import cluster as processes
from edl.cluster.local.cluster import ProcessCluster
from edl.cluster.local.messages import Answer, Changed, Hello, List, Start, request_decoder, to_line
from edl.errors import ClusterError

WORKER = Instance("worker-0", "worker")

Ends = tuple[ProcessCluster, socket.socket]


@pytest.fixture
def both() -> Iterator[Ends]:
    """A cluster, and the supervisor's end of its connection."""
    ours, theirs = socket.socketpair()
    theirs.sendall(to_line(Hello(2)))
    cluster = ProcessCluster(ours.detach())
    yield cluster, theirs
    cluster.close()
    theirs.close()


def answering(theirs: socket.socket, **answer: object) -> threading.Thread:
    """Answers one request."""

    def answer_one() -> None:
        request = request_decoder.decode(theirs.makefile().readline())
        theirs.sendall(to_line(msgspec.convert({"number": request.number, **answer}, Answer)))

    thread = threading.Thread(target=answer_one)
    thread.start()
    return thread


def test_it_is_a_cluster_and_knows_how_many_masters_there_were(
    both: Ends,
) -> None:
    cluster: Cluster = both[0]
    assert cluster is both[0]
    assert both[0].relaunches == 2


def test_what_the_supervisor_refuses_is_raised(both: Ends) -> None:
    cluster, theirs = both
    thread = answering(theirs, refused="no more room")
    with pytest.raises(ClusterError, match="no more room"):
        cluster.start(WORKER)
    thread.join()


def test_a_lack_of_room_is_told_from_other_refusals(both: Ends) -> None:
    cluster, theirs = both
    thread = answering(theirs, refused="all 2 slots are taken", no_room=True)
    with pytest.raises(NoRoomError, match="all 2 slots are taken"):
        cluster.start(WORKER)
    thread.join()


def test_a_supervisor_that_says_nothing_is_an_error(both: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "SECONDS", 0.01)
    with pytest.raises(ClusterError, match="did not answer"):
        both[0].list()


def test_changes_and_answers_do_not_wait_for_each_other(both: Ends) -> None:
    cluster, theirs = both
    changes = [Change(WORKER, "pending"), Change(WORKER, "running", "pid 7")]
    theirs.sendall(b"".join(to_line(Changed(change)) for change in changes))
    thread = answering(
        theirs, changes=[{"instance": {"name": "worker-0", "role": "worker"}, "state": "pending"}]
    )
    assert cluster.list() == changes[:1]
    thread.join()
    watching = cluster.watch()
    assert [next(watching), next(watching)] == changes
    cluster.close()
    assert list(watching) == []


def test_a_closed_cluster_says_so(both: Ends) -> None:
    cluster, _ = both
    cluster.close()
    assert list(cluster.watch()) == []
    with pytest.raises(ClusterError, match="closed"):
        cluster.stop(Instance("worker-0", "worker"), 1.0)


def test_requests_are_lines_that_are_read_as_they_were_written() -> None:
    for request in (Start(1, WORKER), List(2)):
        assert request_decoder.decode(to_line(request)) == request


@pytest.mark.parametrize("greeted", [True, False])
def test_a_master_ends_with_its_supervisor(greeted: bool) -> None:
    code = (
        "import sys, threading\n"
        "from edl.cluster.local.cluster import ProcessCluster\n"
        "cluster = ProcessCluster(int(sys.argv[1]))\n"
        "print('connected', flush=True)\n"
        "threading.Event().wait()\n"
    )
    ours, theirs = socket.socketpair()
    with ours, theirs:
        if greeted:
            theirs.sendall(to_line(Hello(0)))
        command = [sys.executable, "-c", code, str(ours.fileno())]
        with subprocess.Popen(command, pass_fds=(ours.fileno(),), stdout=subprocess.PIPE) as master:
            ours.close()
            assert master.stdout is not None
            if greeted:
                assert master.stdout.readline() == b"connected\n"
            theirs.close()
            assert master.wait(60) == exit_codes.ABANDONED
