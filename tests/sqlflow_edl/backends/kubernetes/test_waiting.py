"""Waits of a followed job: told at once, and again; and masters that can never start, or end in vain."""

from __future__ import annotations

from functools import partial

import msgspec
import pytest

from edl.cluster.kubernetes.pods import Pod
from edl.errors import ClusterError
from edl.jobs.outcome import Outcome
from edl.jobs.snapshot import Snapshot
from sqlflow_edl.backends.kubernetes.waiting import NO_NEXT_POD, NO_POD, SilentMaster, Waits
from tests.edl.cluster.local.conftest import wait_until
from tests.kubernetes.faults import Fault
from tests.kubernetes.queues import NO_ROOM
from tests.sqlflow_edl.backends.kubernetes.play import Play, Told

DONE = Outcome("train", 20, 2.0)
ROOM = "0/1 nodes are available: 1 Insufficient cpu."


class Hours:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_wait_is_told_again_every_minute_with_its_length_and_its_present_reason() -> None:
    told: list[str] = []
    clock = Hours()
    waits = Waits(told.append, clock)
    for second in range(130):
        clock.now = float(second)
        waits.look([("worker-1", ROOM)])
    waits.look([])
    waits.look([("worker-1", ROOM)])
    clock.now += 60.0
    waits.look([("worker-1", ROOM)])
    assert told == [
        f"worker-1 waits: {ROOM}",
        f"for 60.0 s, worker-1 waits: {ROOM}",
        f"for 2 min 0 s, worker-1 waits: {ROOM}",
        f"for 60.0 s, worker-1 waits: {ROOM}",
    ]


def test_a_place_in_a_queue_is_told_with_the_wait_and_its_change_only_every_minute() -> None:
    told: list[str] = []
    clock = Hours()
    waits = Waits(told.append, clock)
    for clock.now, place in ((0.0, 9), (10.0, 8), (61.0, 5)):
        waits.look([("worker-1", f"waits in queue q, as number {place} of 9")])
    assert told == [
        "worker-1 waits in queue q, as number 9 of 9",
        "for 61.0 s, worker-1 waits in queue q, as number 5 of 9",
    ]


def test_pods_that_wait_in_a_queue_have_their_places_where_kueue_shows_them(play: Play) -> None:
    play.cluster.queue(play.namespace, "q", pods="1")
    play.start(queue="q")
    wait_until(lambda: any(pod["status"]["phase"] == "Running" for pod in play.pods()))
    for name in ("worker-0", "worker-1"):
        play.worker(name, "true", queue="q")
    wait_until(lambda: len(play.handle.details().notes) == 2)
    assert play.handle.details().notes == (
        f"worker-0 waits in queue q: {NO_ROOM}, as number 1 of 2",
        f"worker-1 waits in queue q: {NO_ROOM}, as number 2 of 2",
    )


def test_a_queue_that_is_not_shown_has_no_places(play: Play) -> None:
    play.cluster.queue(play.namespace, "q", pods="0")
    play.start(queue="q")
    play.cluster.go_wrong(
        Fault("status", "GET .*pendingworkloads", status=404, times=9),
        Fault("status", "GET .*/workloads", status=403, times=9),
    )
    assert play.handle.details().notes == ("the master waits in queue q",)


def test_a_master_without_a_pod_is_told_after_a_while() -> None:
    clock = Hours()
    waits = Waits(lambda text: None, clock)
    assert waits.without_pod([]) == ""
    clock.now = 11.0
    assert waits.without_pod([]) == NO_POD


def test_a_master_whose_pod_was_deleted_waits_for_the_next_one() -> None:
    clock = Hours()
    waits = Waits(lambda text: None, clock)
    master = msgspec.convert({"metadata": {"name": "m"}, "spec": {}, "status": {"phase": "Running"}}, Pod)
    assert waits.without_pod([master]) == waits.without_pod([]) == ""
    clock.now = 11.0
    assert waits.without_pod([]) == NO_NEXT_POD


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("resourcequotas", "exceeded quota: few, requested: requests.memory=512Mi"),
        ("limitranges", "maximum memory usage per Container is 300Mi, but limit is 512Mi"),
    ],
)
def test_a_master_that_no_room_would_help_ends_the_job_with_the_words_of_the_cluster(
    play: Play, told: Told, kind: str, why: str
) -> None:
    play.limit_memory("300Mi", kind)
    if kind == "resourcequotas":
        path = f"/api/v1/namespaces/{play.namespace}/resourcequotas/few"
        wait_until(lambda: play.cluster.ask("GET", path).get("status", {}).get("hard"))
    play.start(memory="512Mi")
    with pytest.raises(ClusterError, match="the master of the job can never start: ") as raised:
        play.handle.follow(told)
    assert why in raised.value.message
    assert "kubernetes.master_memory" in (raised.value.hint or "")
    assert play.folder.status().state == "failed"
    wait_until(lambda: play.pods() == [])


def test_a_service_account_that_does_not_exist_ends_the_job_after_a_while(
    play: Play, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlflow_edl.backends.kubernetes.waiting.ACCOUNT_SECS", 0.5)
    play.start(account="nobody")
    with pytest.raises(ClusterError, match='serviceaccount "nobody" not found') as raised:
        play.handle.follow(told)
    assert "kubernetes.service_account" in (raised.value.hint or "")


def test_a_master_that_finds_no_room_within_the_limit_ends_the_job_with_the_reason(
    play: Play, told: Told
) -> None:
    play.start(memory="900Gi", wait_secs=2.0)
    with pytest.raises(ClusterError, match="the job has waited for its master for ") as raised:
        play.handle.follow(told)
    assert "Insufficient memory" in raised.value.message
    assert play.folder.status().state == "failed"
    wait_until(lambda: play.pods() == [])


def test_the_limit_of_a_wait_counts_without_a_client_too_and_the_next_look_ends_the_job(play: Play) -> None:
    play.start(memory="900Gi", wait_secs=2.0)
    wait_until(lambda: play.handle.details().status.state == "failed")
    assert "the job has waited for its master for 2.00 s" in play.folder.status().error
    wait_until(lambda: play.pods() == [])


def test_a_job_in_a_queue_counts_its_wait_from_its_suspension(play: Play) -> None:
    play.start(suspend=True, queue="team", wait_secs=1.0)
    wait_until(lambda: play.handle.details().status.state == "failed")
    assert ": waits in queue team" in play.folder.status().error


def test_a_master_that_runs_is_not_waited_for(play: Play) -> None:
    play.start(wait_secs=0.5)
    wait_until(lambda: any(pod["status"]["phase"] == "Running" for pod in play.pods()))
    clock = Hours()
    waits = Waits(lambda text: None, clock, 0.5)
    masters = msgspec.convert(play.pods(), list[Pod])
    for clock.now in (0.0, 100.0):
        assert waits.check_limit(masters, "", paused=False) is None
    assert waits.check_limit([], "", paused=False) is None
    clock.now = 101.0
    assert waits.check_limit([], "", paused=True) is None
    assert waits.check_limit([], "", paused=False) is None
    clock.now = 102.0
    assert waits.check_limit([], ROOM, paused=False) is not None
    assert play.handle.details().status.state == "running"


def test_three_masters_that_fail_without_progress_end_the_job_with_the_reason(play: Play, told: Told) -> None:
    play.start(retries=20)
    play.says(*["error: there is no room", "exit 1"] * 3)
    with pytest.raises(
        ClusterError, match="3 masters in a row ended without progress; the last ended with exit code 1"
    ) as raised:
        play.handle.follow(told)
    assert raised.value.message.endswith(": there is no room")
    assert play.folder.status().state == "failed"


def test_masters_that_fail_without_progress_end_a_job_that_nobody_follows_at_the_next_look(
    play: Play,
) -> None:
    play.start(retries=20)
    play.says(*["error: there is no room", "exit 1"] * 3)
    wait_until(lambda: play.handle.details().status.state == "failed")
    assert "masters in a row ended without progress" in play.folder.status().error
    assert play.folder.status().error.endswith(": there is no room")


@pytest.mark.soak
def test_masters_that_fail_between_steps_of_progress_do_not_end_the_job(play: Play, told: Told) -> None:
    play.start(retries=20)

    def advance(rows: int) -> None:
        play.writes(snapshot_json=Snapshot("", "", rows=rows))
        play.says(f"failure {rows}", "exit 1")

    for rows in range(1, 4):
        told.on(f"master: failure {rows}", partial(advance, rows + 1))
    told.on("master: failure 4", lambda: play.says(DONE))
    advance(1)
    assert play.handle.follow(told) == DONE


def test_a_master_that_still_tells_its_status_is_not_silent() -> None:
    now, dates = iter(range(0, 1000, 10)), iter(range(1000))
    silence = SilentMaster(lambda: float(next(now)))
    live = (silence.has_lasted(lambda: Snapshot("", str(next(dates)))) for _ in range(10))
    assert not any(live)
    assert [silence.has_lasted(lambda: Snapshot("", "12:00")) for _ in range(4)] == [False, False, True, True]
    assert not silence.has_lasted(lambda: None)
