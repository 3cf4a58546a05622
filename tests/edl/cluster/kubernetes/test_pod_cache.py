"""What a master knows of the pods of its job."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from edl.cluster import Change, Instance
from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.deployment import Deployment, Policy
from edl.cluster.kubernetes.memory import Memory
from edl.cluster.kubernetes.pod_cache import OVERDUE_SECS, GivenUp, PodCache
from edl.cluster.kubernetes.pods import Pod

MANIFEST = {"spec": {"containers": [{"name": "main", "resources": {"limits": {"memory": "100Mi"}}}]}}
MEBI = 1 << 20


def worker(number: int = 0, incarnation: int = 0) -> Instance:
    return Instance(f"worker-{number}", "worker", incarnation)


def pod(
    instance: Instance,
    phase: str = "Running",
    code: int = 1,
    reason: str = "Error",
    memory: str = "100Mi",
    **told: Any,
) -> Pod:
    labels = {**names.labels("job", "id", instance.role), names.INSTANCE: instance.name}
    labels[names.INCARNATION] = str(instance.incarnation)
    ended = phase in ("Failed", "Succeeded")
    state = {"terminated": {"exitCode": code, "reason": reason}} if ended else {}
    return msgspec.convert(
        {
            "metadata": {"name": names.pod("job", instance), "labels": labels, **told},
            "spec": {"containers": [{"name": "main", "resources": {"limits": {"memory": memory}}}]},
            "status": {"phase": phase, "containerStatuses": [{"name": "main", "state": state}]},
        },
        Pod,
    )


@pytest.fixture
def roster() -> PodCache:
    return PodCache(Deployment("job", "ns", "id", MANIFEST, MANIFEST, policy=Policy()))


def told(change: Change | None) -> tuple[str, str | None] | None:
    return None if change is None else (change.state, change.reason)


def test_what_is_new_is_told_once(roster: PodCache) -> None:
    assert told(roster.update_pod(pod(worker(), "Pending"))) == ("pending", None)
    assert told(roster.update_pod(pod(worker()))) == ("running", None)
    assert roster.update_pod(pod(worker(), resourceVersion="9")) is None
    assert told(roster.update_pod(pod(worker(), "Failed"))) == ("ended", "failed")
    assert roster.update_pod(pod(worker(), "Failed", deletionTimestamp="now")) is None
    assert roster.delete_pod(pod(worker(), "Failed")) is None


def test_a_pod_that_goes_without_having_ended_is_lost_or_was_stopped(roster: PodCache) -> None:
    roster.stopping(worker(1).key)
    for number in range(2):
        roster.update_pod(pod(worker(number)))
    assert told(roster.delete_pod(pod(worker(0)))) == ("ended", "lost")
    assert told(roster.delete_pod(pod(worker(1)))) == ("ended", "stopped")


def test_pods_that_say_nothing_of_an_instance_are_none_of_ours(roster: PodCache) -> None:
    stranger = msgspec.convert({"metadata": {"name": "p", "labels": {names.ROLE: "worker"}}}, Pod)
    assert roster.update_pod(stranger) is None
    assert roster.delete_pod(stranger) is None
    assert roster.replace_pods([stranger]) == []


def test_a_list_tells_of_the_newest_pod_of_each_name_and_of_those_that_vanished(roster: PodCache) -> None:
    for number in range(3):
        roster.update_pod(pod(worker(number)))
    changes = roster.replace_pods([pod(worker(0), "Failed"), pod(worker(0, 1)), pod(worker(2))])
    assert [(change.instance, *told(change)) for change in changes] == [  # type: ignore[misc]
        (worker(0, 1), "running", None),
        (worker(1), "ended", "lost"),
        (worker(2), "running", None),
    ]
    assert [change.instance.name for change in roster.replace_pods([])] == ["worker-0", "worker-2"]


def test_the_last_to_end_is_kept_until_the_next_one_runs(roster: PodCache) -> None:
    def superseded() -> list[str]:
        return [each.metadata.name for each in roster.list_superseded()]

    roster.update_pod(pod(worker(0, 0), "Failed"))
    roster.update_pod(pod(worker(0, 1), "Pending"))
    roster.update_pod(pod(worker(1, 0), "Failed"))
    assert superseded() == []
    roster.update_pod(pod(worker(0, 1), "Failed"))
    assert superseded() == ["job-worker-0-0"]
    roster.update_pod(pod(worker(0, 2)))
    assert superseded() == ["job-worker-0-1"]
    assert superseded() == []


def test_who_is_given_up_has_ended_whatever_its_pod_does_then(roster: PodCache) -> None:
    leaving = pod(worker(), deletionTimestamp="now", deletionGracePeriodSeconds=1)
    roster.update_pod(leaving)
    assert roster.given_up(0.0) == []
    [(found, verdict)] = roster.given_up(2.0 + OVERDUE_SECS)
    assert told(roster.give_up(found, verdict)) == ("ended", "lost")
    assert roster.given_up(100.0) == []
    assert roster.give_up(found, verdict) is None
    assert roster.update_pod(pod(worker())) is None
    assert roster.delete_pod(pod(worker())) is None


def test_who_ended_before_it_was_given_up_is_not_given_up(roster: PodCache) -> None:
    roster.update_pod(pod(worker(), "Succeeded", 0))
    assert roster.give_up(pod(worker()), GivenUp("lost", "")) is None


def test_memory_grows_from_pod_to_pod_of_a_name(roster: PodCache) -> None:
    assert roster.memory("worker-0") is None
    change = roster.update_pod(pod(worker(), "Failed", 137, "OOMKilled"))
    assert change is not None
    assert change.detail == "out of memory (limit 100Mi); the next one gets 150Mi"
    assert change.hint == "WITH kubernetes.worker_memory = '150Mi' gives each more from the start"
    assert change.remedied
    assert roster.memory("worker-0") == Memory(0, 150 * MEBI)
    assert roster.memory("worker-1") is None
    roster.update_pod(pod(worker(0, 1), "Failed", 137, "OOMKilled", memory="400Mi"))
    change = roster.update_pod(pod(worker(0, 2), "Failed", 137, "OOMKilled", memory="400Mi"))
    assert change is not None
    assert change.detail == "out of memory (limit 400Mi), which is the permitted maximum"
    assert change.hint == "WITH kubernetes.worker_memory = '800Mi' gives each more from the start"
    assert not change.remedied


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_new_master_learns_it_from_the_pods(roster: PodCache, newest_first: bool) -> None:
    pods = [pod(worker(), "Failed", 137, "OOMKilled"), pod(worker(0, 1), memory="150Mi"), pod(worker(1))]
    pods.append(pod(worker(2, 4), "Failed", 137, "OOMKilled", memory="150Mi"))
    roster.replace_pods(reversed(pods) if newest_first else pods)
    assert roster.memory("worker-0") == Memory(0, 150 * MEBI)
    assert roster.memory("worker-1") is None
    assert roster.memory("worker-2") == Memory(0, 225 * MEBI)
