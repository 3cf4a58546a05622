"""Workers of a script that are pods."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable

import pytest

from edl.cluster import Change, Instance
from edl.cluster.kubernetes.api_calls import APIUnreachableError
from edl.master import script_pod
from edl.master.script_pod import Pods
from tests.edl.cluster.kubernetes.conftest import Site, site
from tests.kubernetes.faults import Fault

__all__ = ["site"]

Sites = Callable[..., Site]
WORKER = Instance("worker-0", "worker", 1)


@pytest.fixture
def place(site: Sites, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr(script_pod, "POLL_SECS", 0.0)
    return site()


@pytest.fixture
def pods(place: Site) -> Pods:
    """Pods of one worker, which was listed."""
    found = Pods(place.cluster(), lambda snapshot: None)
    found.start(WORKER)
    [change] = found.list()
    assert (change.instance, change.state == "ended") == (WORKER, False)
    return found


def ended(pods: Pods) -> str:
    """Reason of the worker's end, as soon as it has ended."""
    for _ in itertools.repeat(None, 10_000):
        [change] = pods.list()
        if change.state == "ended":
            assert pods.list() == [change]  # it stays so
            return str(change.reason)
    raise AssertionError("it does not end")


def test_a_pod_that_someone_deletes_is_lost(place: Site, pods: Pods) -> None:
    place.delete("worker-0-1")
    assert ended(pods) == "lost"


def test_a_pod_that_is_stopped_has_stopped(pods: Pods) -> None:
    pods.stop(WORKER, 0.0)
    assert ended(pods) == "stopped"


def test_a_pod_has_ended_if_someone_else_was_told_of_its_end(place: Site) -> None:
    cluster = place.cluster()
    pods = Pods(cluster, lambda snapshot: None)
    pods.start(WORKER)
    pods.list()
    place.delete("worker-0-1")
    while place.names():  # until it is gone
        pass
    cluster.list()
    assert ended(pods) == "lost"


def test_a_pod_ended_as_its_watch_was_told(place: Site) -> None:
    cluster = place.cluster()
    pods = Pods(cluster, lambda snapshot: None)
    pods.start(WORKER)
    pods.list()
    name = f"{place.deployment.name}-worker-0-1"
    eviction = {"metadata": {"name": name}, "deleteOptions": {"gracePeriodSeconds": 1}}
    place.double.ask("POST", f"{place.path}/{name}/eviction", eviction)
    with contextlib.closing(cluster.watch()) as changes:
        assert next(found for found in changes if isinstance(found, Change) and found.state == "ended")
    while place.names():  # until it is gone
        pass
    assert ended(pods) == "preempted"


def test_pods_for_which_there_is_no_room_are_requested_again_after_a_while(
    place: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pods = Pods(place.cluster(), lambda snapshot: None)
    words = "exceeded quota: small"
    place.double.requests()
    place.double.go_wrong(Fault("status", "POST.*/pods", status=403, message=words, times=2))
    for _ in range(100):
        pods.start(WORKER)
    requests = [
        each for each in place.double.requests() if each.startswith("POST") and each.endswith("/pods")
    ]
    assert len(requests) == 1
    assert capsys.readouterr().err.count("worker-0 waits for room: exceeded quota: small") == 1
    monkeypatch.setattr(script_pod, "ROOM_SECS", 0.0)
    pods._no_room_until = 0.0  # some seconds later
    pods.start(WORKER)
    pods.start(WORKER)
    assert [change.instance for change in pods.list()] == [WORKER]


def test_workers_go_on_while_the_api_server_is_away_unless_they_are_not_known_yet(place: Site) -> None:
    pods = Pods(place.cluster(patience=0.1), lambda snapshot: None)
    place.double.go_wrong(Fault("drop", "GET.*/pods", times=10**6))
    with pytest.raises(APIUnreachableError):  # the next master finds them
        pods.list()
    place.double.go_wrong()
    pods.start(WORKER)
    [before] = pods.list()
    place.double.go_wrong(Fault("drop", "GET.*/pods", times=10**6))
    assert pods.list() == [before]
