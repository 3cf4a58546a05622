"""A state store in a ConfigMap: one master has it at a time, and what was written is not lost with an answer."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

import pytest

from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.api_calls import LackingRightError
from edl.cluster.kubernetes.state_store import ConfigMapStateStore
from edl.errors import ClusterError, JobError, SpecError
from tests.edl.cluster.kubernetes.conftest import Site
from tests.edl.cluster.local.conftest import wait_until
from tests.kubernetes.faults import Fault

Sites = Callable[..., Site]
WRITE = "PUT.*/configmaps/.*-state"


def state_store(site: Site, patience: float = 30.0) -> ConfigMapStateStore:
    return ConfigMapStateStore(site.double.client(), site.deployment, patience)


def change(site: Site, **fields: Any) -> None:
    """As somebody who writes over it."""
    name = names.state_store(site.deployment.name)
    path = f"/api/v1/namespaces/{site.namespace}/configmaps/{name}"
    site.double.ask("PUT", path, {**site.kept(name), **fields})


def test_the_next_master_reads_what_the_last_one_wrote(site: Sites) -> None:
    place = site()
    first = state_store(place)
    assert first.read() is None
    first.write(b"one")
    first.write(b"two")
    assert state_store(place).read() == b"two"
    assert place.kept(names.state_store(place.deployment.name))["metadata"]["labels"] == {"team": "a"}


def test_a_master_that_another_one_followed_can_write_no_more(site: Sites) -> None:
    place = site()
    first = state_store(place)
    first.write(b"one")
    second = state_store(place)
    with pytest.raises(ClusterError, match="this job has another master"):
        first.write(b"late")
    second.write(b"two")
    assert state_store(place).read() == b"two"


@pytest.mark.variants(2)
@pytest.mark.parametrize(
    "fault",
    [
        Fault("lose", WRITE),
        Fault("lose", WRITE, times=2),
        Fault("drop", WRITE),
        Fault("throttle", WRITE),
        Fault("status", WRITE, status=500),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.times}",
)
def test_a_write_that_the_server_fumbles_is_no_conflict(site: Sites, fault: Fault) -> None:
    place = site()
    mine = state_store(place)
    place.double.go_wrong(fault)
    mine.write(b"one")
    mine.write(b"two")
    assert state_store(place).read() == b"two"


def test_a_master_takes_over_though_the_answer_is_lost(site: Sites) -> None:
    place = site()
    state_store(place).write(b"one")
    place.double.go_wrong(Fault("lose", WRITE))
    mine = state_store(place)
    assert mine.read() == b"one"
    mine.write(b"two")


def test_who_only_labels_the_map_is_no_other_master(site: Sites) -> None:
    place = site()
    mine = state_store(place)
    change(
        place,
        metadata={**place.kept(names.state_store(place.deployment.name))["metadata"], "labels": {"a": "b"}},
    )
    mine.write(b"one")
    assert state_store(place).read() == b"one"
    assert place.kept(names.state_store(place.deployment.name))["metadata"]["labels"] == {"a": "b"}


def test_a_server_that_stays_away_is_said_to(site: Sites) -> None:
    place = site()
    mine = state_store(place, patience=0.2)
    place.double.go_wrong(Fault("drop", WRITE, times=100))
    with pytest.raises(ClusterError, match="does not answer"):
        mine.write(b"one")


def test_a_state_store_is_small_because_it_is_packed_and_one_that_is_not_is_refused(site: Sites) -> None:
    place = site()
    mine = state_store(place)
    mine.write(b"0123456789" * 500_000)
    with pytest.raises(JobError, match=r"grown to 2\.0 MiB, more than a ConfigMap takes"):
        mine.write(os.urandom(2 << 20))


@pytest.mark.parametrize(
    ("key", "said"),
    [("state_store.9", "is of another version: state_store.9"), ("state.1", "is damaged")],
)
def test_one_that_cannot_be_read_is_said_to_be(site: Sites, key: str, said: str) -> None:
    place = site()
    change(place, binaryData={key: "AAAA"})
    with pytest.raises(SpecError, match=said):
        state_store(place).read()


def test_a_master_says_that_its_job_is_deleted(site: Sites) -> None:
    place = site()
    running = state_store(place)
    path = f"/apis/batch/v1/namespaces/{place.namespace}/jobs/{place.deployment.name}"
    place.double.ask("DELETE", path, {"propagationPolicy": "Background"})
    wait_until(lambda: not place.double.ask("GET", f"/api/v1/namespaces/{place.namespace}/pods")["items"])
    delete_state(place)
    with pytest.raises(ClusterError, match="the job was deleted from the cluster"):
        running.write(b"late")
    with pytest.raises(ClusterError, match="the job was deleted from the cluster"):
        state_store(place)


def test_a_master_says_that_only_its_state_is_gone_and_that_no_other_master_can_go_on(site: Sites) -> None:
    place = site()
    running = state_store(place)
    delete_state(place)
    for late in (lambda: running.write(b"late"), lambda: state_store(place)):
        with pytest.raises(JobError, match=r"the ConfigMap \S+-state is gone, and with it the state"):
            late()


def delete_state(site: Site) -> None:
    name = names.state_store(site.deployment.name)
    with contextlib.suppress(AssertionError):  # it went with the Job
        site.double.ask("DELETE", f"/api/v1/namespaces/{site.namespace}/configmaps/{name}")


LACKING = (
    'configmaps "s" is forbidden: User "system:serviceaccount:team:robot" cannot {} resource "configmaps" '
    'in API group "" in the namespace "team"'
)


@pytest.mark.parametrize(("verb", "method"), [("get", "GET"), ("update", "PUT")])
def test_a_right_that_stays_away_is_named_with_the_account_and_the_role(
    site: Sites, monkeypatch: pytest.MonkeyPatch, verb: str, method: str
) -> None:
    monkeypatch.setattr("edl.cluster.kubernetes.api_calls.LACKING_SECS", 0.3)
    place = site()
    refusal = LACKING.format(verb)
    place.double.go_wrong(Fault("status", f"{method}.*-state", times=8, status=403, message=refusal))
    with pytest.raises(LackingRightError, match=f"the account robot .* may not {verb} configmaps") as raised:
        state_store(place)
    assert f"resources [configmaps], verbs [{verb}]" in (raised.value.hint or "")


@pytest.mark.parametrize("status", [401, 403])
def test_a_right_that_an_api_server_forgets_while_it_starts_is_waited_for(site: Sites, status: int) -> None:
    place = site()
    mine = state_store(place)
    place.double.go_wrong(Fault("status", WRITE, times=3, status=status, message=LACKING.format("update")))
    mine.write(b"one")
    assert state_store(place).read() == b"one"
