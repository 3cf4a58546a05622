"""Which pods are given up, and when."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from edl.cluster import Instance
from edl.cluster.kubernetes.deployment import Policy
from edl.cluster.kubernetes.pod_cache import OVERDUE_SECS, PodWaits
from edl.cluster.kubernetes.pods import Gate, Pod

WORKER, SERVER = Instance("worker-0", "worker"), Instance("ps-0", "ps")
UNSCHEDULED = [{"type": "PodScheduled", "status": "False", "message": "1 Insufficient cpu."}]


def pod(
    name: str = "p", phase: str = "Pending", *, waiting: str = "", image: str = "i:1", **told: Any
) -> Pod:
    state = {"waiting": {"reason": waiting, "message": "no route"}} if waiting else {}
    status = {"phase": phase, "containerStatuses": [{"name": "main", "image": image, "state": state}]}
    status |= {"conditions": told.pop("conditions", [])}
    return msgspec.convert({"metadata": {"name": name, **told}, "status": status}, Pod)


@pytest.fixture
def waits() -> PodWaits:
    return PodWaits(Policy(pending_secs=300.0, image_secs=120.0))


def test_a_server_may_wait_for_a_node_and_not_for_ever(waits: PodWaits) -> None:
    waiting = pod(conditions=UNSCHEDULED)
    assert waits.look(waiting, SERVER, 0.0) is None
    assert waits.look(waiting, SERVER, 300.0) is None
    given_up = waits.look(waiting, SERVER, 301.0)
    assert given_up is not None
    assert (given_up.reason, given_up.detail, given_up.withdraw) == ("no room", "1 Insufficient cpu.", True)


def test_a_worker_waits_for_a_node_as_long_as_it_takes(waits: PodWaits) -> None:
    waiting = pod(conditions=UNSCHEDULED)
    assert all(waits.look(waiting, WORKER, now) is None for now in (0.0, 1e6))


def test_who_has_a_gate_waits_as_long_as_it_takes_and_then_for_a_node_from_then_on(waits: PodWaits) -> None:
    gated = pod(conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}])
    gated.spec.scheduling_gates = [Gate("kueue.x-k8s.io/admission")]
    assert all(waits.look(gated, SERVER, now) is None for now in (0.0, 1e6))
    assert waits.look(pod(conditions=UNSCHEDULED), SERVER, 1e6) is None
    assert waits.look(pod(conditions=UNSCHEDULED), SERVER, 1e6 + 300.0) is None
    assert waits.look(pod(conditions=UNSCHEDULED), SERVER, 1e6 + 301.0) is not None


def test_a_server_does_not_wait_for_a_node_while_its_node_gets_its_image(waits: PodWaits) -> None:
    assert waits.look(pod(conditions=UNSCHEDULED), SERVER, 0.0) is None
    assert waits.look(pod(waiting="ContainerCreating"), SERVER, 299.0) is None
    assert waits.look(pod(waiting="ContainerCreating"), SERVER, 1e6) is None


def test_an_image_may_be_out_of_reach_for_a_while(waits: PodWaits) -> None:
    for now, reason in ((0.0, "ErrImagePull"), (60.0, "ImagePullBackOff"), (120.0, "ErrImagePull")):
        assert waits.look(pod(waiting=reason), WORKER, now) is None
    given_up = waits.look(pod(waiting="ImagePullBackOff"), WORKER, 121.0)
    assert given_up is not None
    assert (given_up.reason, given_up.detail) == ("failed", "ImagePullBackOff: no route")


def test_an_image_that_comes_late_is_no_fault(waits: PodWaits) -> None:
    waits.look(pod(waiting="ErrImagePull"), WORKER, 0.0)
    assert waits.look(pod(phase="Running"), WORKER, 119.0) is None
    assert waits.look(pod(phase="Running"), WORKER, 1e6) is None


def test_an_image_that_never_will_come_is_given_up_at_once(waits: PodWaits) -> None:
    assert waits.look(pod(waiting="InvalidImageName"), WORKER, 0.0) is not None


def test_pods_with_an_image_that_was_given_up_wait_no_more_until_one_runs(waits: PodWaits) -> None:
    """A job that nobody can pull the image of fails soon, and not after as many waits as it has patience."""
    waits.look(pod("a", waiting="ErrImagePull"), WORKER, 0.0)
    assert waits.look(pod("a", waiting="ErrImagePull"), WORKER, 121.0) is not None
    assert waits.look(pod("b", waiting="ErrImagePull"), WORKER, 122.0) is not None
    assert waits.look(pod("c", waiting="ErrImagePull", image="other:1"), WORKER, 122.0) is None
    assert waits.look(pod("d", phase="Running"), WORKER, 123.0) is None
    assert waits.look(pod("e", waiting="ErrImagePull"), WORKER, 124.0) is None


def test_a_pod_that_is_not_gone_long_after_its_grace_is_lost_and_needs_no_deletion(waits: PodWaits) -> None:
    leaving = pod(phase="Running", deletionTimestamp="2026-01-01T00:00:00Z", deletionGracePeriodSeconds=20)
    assert waits.look(leaving, WORKER, 100.0) is None
    assert waits.look(leaving, WORKER, 120.0 + OVERDUE_SECS) is None
    given_up = waits.look(leaving, WORKER, 121.0 + OVERDUE_SECS)
    assert given_up is not None
    assert (given_up.reason, given_up.withdraw) == ("lost", False)


def test_who_is_forgotten_waits_anew(waits: PodWaits) -> None:
    waits.look(pod(conditions=UNSCHEDULED), SERVER, 0.0)
    waits.forget("p")
    assert waits.look(pod(conditions=UNSCHEDULED), SERVER, 301.0) is None
