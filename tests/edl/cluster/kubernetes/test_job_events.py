"""Notes of a master as events of its Job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from edl.cluster.kubernetes.job_events import OTHER, JobEvents, reason_of
from tests.edl.cluster.kubernetes.conftest import Site
from tests.edl.cluster.local.conftest import wait_until
from tests.kubernetes.faults import Fault

RIGHT = 'events is forbidden: User "m" cannot create resource "events" in API group ""'


def events_of(site: Site) -> list[dict[str, Any]]:
    found = site.double.ask("GET", f"/api/v1/namespaces/{site.namespace}/events")["items"]
    return [event for event in found if event["source"].get("component") == "sqlflow-edl"]


def test_a_note_becomes_an_event_of_the_job_with_its_reason(
    site: Callable[..., Site], capfd: pytest.CaptureFixture[str]
) -> None:
    place = site()
    events = JobEvents(place.double.client(), place.deployment)
    events.log("worker-1 preempted (exit code 4): it was evicted")
    events.log("training resumes from step 12")
    events.close()
    first, second = sorted(events_of(place), key=lambda event: str(event["reason"]))
    assert first["involvedObject"]["name"] == place.deployment.name
    assert (first["reason"], first["type"]) == ("Preempted", "Normal")
    assert (second["reason"], second["message"]) == ("Resumed", "training resumes from step 12")
    assert "training resumes from step 12" in capfd.readouterr().err


def test_an_account_without_the_right_to_events_is_asked_once(site: Callable[..., Site]) -> None:
    place = site()
    place.double.go_wrong(Fault("status", "POST .*/events", status=403, message=RIGHT, times=9))
    place.double.requests()
    events = JobEvents(place.double.client(), place.deployment)
    events.log("the job is paused")
    wait_until(lambda: not events._thread.is_alive())
    events.log("the job is resumed")
    events.close()
    assert sum("/events" in request for request in place.double.requests()) == 1


@pytest.mark.parametrize(
    ("note", "reason"),
    [
        ("worker-0 ran out of memory (limit 120Mi); the next one gets 180Mi", ("OutOfMemory", "Warning")),
        ('worker-0 waits: pods "w" is forbidden: exceeded quota: small', ("NoRoom", "Warning")),
        ("training restarts", ("Resumed", "Normal")),
        ("terminated: the next master continues from here", ("MasterReplaced", "Normal")),
        ("ps-0 is to end: another server follows", ("Preempted", "Normal")),
        ("the job is paused", ("Paused", "Normal")),
        ("workers: 2 → 4", ("Scaled", "Normal")),
        ("ps-0 lost: its pod was deleted, and its exit code is unknown", ("InstanceLost", "Warning")),
        ("worker-1 does not reach the data source: refused; it failed", ("Unreachable", "Warning")),
        ("worker-0 is left out of the group for 10 s: two groups failed", ("Unreachable", "Warning")),
        ("old checkpoints cannot be removed", OTHER),
    ],
)
def test_the_reason_of_an_event_is_found_in_the_words_of_the_note(note: str, reason: tuple[str, str]) -> None:
    assert reason_of(note) == reason
