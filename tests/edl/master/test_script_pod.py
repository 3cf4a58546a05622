"""Workers of a script that are pods."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from edl.cluster import Instance
from edl.master import script_pod
from edl.master.script_pod import Pods
from tests.edl.cluster.kubernetes.conftest import Site, site

__all__ = ["site"]

Sites = Callable[..., Site]
WORKER = Instance("worker-0", "worker", 1)


@pytest.fixture
def place(site: Sites, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr(script_pod, "POLL_SECS", 0.0)
    return site()


@pytest.fixture
def pods(place: Site) -> Pods:
    """Of one worker, which was listed."""
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
    pods.stop(*WORKER.key, 0.0)
    assert ended(pods) == "stopped"


def test_a_pod_whose_end_someone_else_was_told_of_has_ended(place: Site) -> None:
    cluster = place.cluster()
    pods = Pods(cluster, lambda snapshot: None)
    pods.start(WORKER)
    pods.list()
    place.delete("worker-0-1")
    while place.names():  # until it is gone
        pass
    cluster.list()
    assert ended(pods) == "lost"
