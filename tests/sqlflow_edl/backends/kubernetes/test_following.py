"""Following a job on Kubernetes, whatever happens to its master, its pods and the connection."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import replace

from edl.cluster.kubernetes import names
from edl.errors import ClusterError, SemanticError
from edl.jobs.events import EpochEnd, Tally
from edl.jobs.failure import Failed
from edl.jobs.outcome import JobCancelledError, JobPausedError, Outcome
from edl.jobs.snapshot import Snapshot
from edl.logs import add_time
from sqlflow_edl.backends.base import LostSightError, UnseenEndError
from sqlflow_edl.backends.find import summaries
from sqlflow_edl.backends.kubernetes.following import CALM_LOOK, LOOK, Following
from sqlflow_edl.backends.kubernetes.submit import follow_job
from tests.edl.cluster.local.conftest import wait_until
from tests.kubernetes.faults import Fault
from tests.kubernetes.queues import NO_ROOM
from tests.sqlflow_edl.backends.kubernetes.play import Play, Told

FIRST, SECOND, TALLY = EpochEnd(1, 10, 0.5, {}, 1.0), EpochEnd(2, 20, 0.4, {}, 2.0), Tally(1, 1, 0)
DONE = Outcome("train", 20, 2.0)
SNAPSHOT = Snapshot("2026-11-30T12:00:00+00:00", "2026-11-30T12:00:01.000+00:00")


def test_events_come_in_order_and_then_what_the_job_came_to(play: Play, told: Told) -> None:
    play.start()
    play.says(FIRST, add_time("a line of its log"), TALLY, DONE, "exit 0")
    assert play.handle.follow(told) == DONE
    assert told.events == [FIRST, TALLY]
    assert told.notes == ["master: a line of its log"]
    assert play.folder.status().state == "done"


def test_events_come_while_the_job_runs(play: Play, told: Told) -> None:
    play.start()
    play.says(FIRST)
    told.on(FIRST, lambda: play.says(SECOND, DONE))
    assert play.handle.follow(told) == DONE
    assert told.events == [FIRST, SECOND]


@pytest.mark.soak
def test_the_next_master_is_followed_when_one_ends_or_is_deleted(play: Play, told: Told) -> None:
    play.start()
    play.says(FIRST, "exit 1", SECOND)

    def replace() -> None:
        play.replace_master()
        play.says(TALLY, DONE)

    told.on(SECOND, replace)
    assert play.handle.follow(told) == DONE
    assert told.events == [FIRST, SECOND, TALLY]


def test_an_error_of_the_job_is_raised_as_it_was_there(play: Play, told: Told) -> None:
    play.start()
    play.says(Failed("semantic", "there is no column y", "did you mean x?"), "exit 5")
    with pytest.raises(SemanticError, match="there is no column y") as raised:
        play.handle.follow(told)
    assert raised.value.hint == "did you mean x?"
    assert (play.folder.status().state, play.folder.status().error) == ("failed", "there is no column y")


def test_a_master_that_ends_too_often_is_told_with_its_last_end(play: Play, told: Told) -> None:
    play.start(retries=0)
    play.says("exit 7")
    with pytest.raises(ClusterError, match=r"ended once, and the job was given up; .*exit code 7"):
        play.handle.follow(told)
    assert play.folder.status().state == "failed"


def test_a_master_that_runs_out_of_memory_is_told_with_what_helps(play: Play, told: Told) -> None:
    play.start()
    play.says(FIRST)
    told.on(FIRST, play.starve_master)
    told.on("the master ran out of memory", lambda: play.says(SECOND, DONE))
    assert play.handle.follow(told) == DONE
    assert told.events == [FIRST, SECOND]
    assert told.notes == [
        "the master ran out of memory (that of its node); WITH kubernetes.master_memory sets its memory"
    ]


def test_a_master_that_hangs_is_told_until_it_goes_on(
    play: Play, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlflow_edl.backends.kubernetes.waiting.QUIET_SECS", 0.5)
    play.start()
    play.says(FIRST)
    told.on(FIRST, lambda: play.writes(snapshot_json=SNAPSHOT))
    told.on("the master is silent: ", lambda: play.says(SECOND, DONE))
    assert play.handle.follow(told) == DONE
    assert [note.partition(":")[0] for note in told.notes] == ["the master is silent"]


def test_the_end_is_in_the_config_map_when_no_log_says_it(play: Play, told: Told) -> None:
    play.start()
    play.writes(end_json=DONE)
    play.says("exit 0")
    assert play.handle.follow(told) == DONE


def test_a_job_that_is_cancelled_from_another_terminal_is_said_to_be(play: Play, told: Told) -> None:
    play.start()
    play.says(FIRST)
    path = f"/apis/batch/v1/namespaces/{play.namespace}/jobs/{play.name}"

    def cancel() -> None:
        """As `sqlflow cancel` begins, and the master answers to its signal."""
        job = play.cluster.ask("GET", path)
        job["metadata"]["annotations"] = {names.CANCELLED: "true"}
        play.cluster.ask("PUT", path, job)
        play.says(add_time("terminated: the next master continues from here"))

    told.on(FIRST, cancel)
    with pytest.raises(JobCancelledError, match="cancelled from another terminal"):
        play.handle.follow(told)
    assert told.notes == []
    assert play.folder.status().state == "cancelled"


def test_lines_of_libraries_stay_in_the_log(play: Play, told: Told) -> None:
    play.start()
    handshake = "E0000 00:00:1795999663.063471   14249 ssl_transport_security.cc:2563] Handshake failed"
    play.says(handshake, "WARNING: All log messages before absl::InitializeLog() is called", "ours", DONE)
    assert play.handle.follow(told) == DONE
    assert told.notes == ["master: ours"]


def test_a_job_that_somebody_deletes_was_cancelled(play: Play, told: Told) -> None:
    play.start()
    play.says(FIRST)
    told.on(FIRST, play.delete_job)
    with pytest.raises(JobCancelledError, match="deleted from the cluster"):
        play.handle.follow(told)
    assert play.folder.status().state == "cancelled"


def test_the_end_of_a_job_that_was_gone_before_anybody_looked_is_unknown(play: Play, told: Told) -> None:
    play.start()
    play.delete_job()
    wait_until(lambda: play.handle.details().status.state == "unknown")
    play.folder.update(state="running")
    with pytest.raises(UnseenEndError, match="no longer in the cluster"):
        play.handle.follow(told)
    assert play.folder.status().state == "unknown"


def test_a_follower_that_slept_through_the_end_of_a_job_does_not_say_that_it_was_deleted(
    play: Play, told: Told
) -> None:
    dates = itertools.count(0.0, 3600.0)
    play.start()
    play.says(FIRST)
    told.on(FIRST, play.delete_job)
    objects = play.handle._objects
    with pytest.raises(UnseenEndError, match="nothing shows whether it was done"):
        Following(objects, play.folder, told, date=lambda: next(dates)).until_end()


def test_a_job_that_is_done_has_not_failed_though_nothing_tells_what_it_came_to(
    play: Play, told: Told
) -> None:
    play.start()
    play.says("exit 0")
    with pytest.raises(UnseenEndError, match="the job is done"):
        play.handle.follow(told)
    assert (play.folder.status().state, play.folder.status().error) == ("done", "")


def test_why_a_pod_waits_is_said_once_and_in_words(play: Play, told: Told) -> None:
    play.start()
    play.worker("worker-1", "true", cpu="900")
    told.on("worker-1 waits", lambda: play.says(FIRST))
    told.on(FIRST, lambda: play.says("exit 1", SECOND))  # which is looked at
    told.on(SECOND, lambda: play.says(DONE))
    assert play.handle.follow(told) == DONE
    assert told.notes == ["worker-1 waits: 0/1 nodes are available: 1 Insufficient cpu."]


def test_who_waits_in_a_queue_is_said_and_goes_on_when_it_has_room(play: Play, told: Told) -> None:
    play.cluster.queue(play.namespace, "q", pods="0")
    play.start(queue="q")
    play.handle.wait_for_start(told)  # which does not wait for the queue
    waits = f"the master waits in queue q: {NO_ROOM}, as number 1 of 1"
    assert told.notes == [waits]
    assert play.handle.details().notes == (waits,)
    assert [each.remark for each in summaries()] == ["waits in queue q"]
    play.worker("worker-1", "true", queue="q")
    told.on("the master waits in queue q", lambda: play.cluster.queue(play.namespace, "q", pods="1"))
    told.on("worker-1 waits in queue q", lambda: play.says(DONE))
    assert play.handle.follow(told) == DONE
    [worker] = [row for row in play.handle.details().instances if row.name == "worker-1"]
    assert (worker.state, worker.note) == ("pending", "waits in queue q")


@pytest.mark.variants(1)
@pytest.mark.parametrize("follow", ["follow", "wait_for_start"])
def test_a_job_is_given_up_if_its_master_cannot_start(play: Play, told: Told, follow: str) -> None:
    play.start(image="missing/ours", image_secs=0.0)
    with pytest.raises(ClusterError, match=r"the master of the job cannot start: .*missing/ours"):
        getattr(play.handle, follow)(told)
    assert play.folder.status().state == "failed"
    wait_until(lambda: play.pods() == [])


@pytest.mark.soak
def test_a_job_that_has_begun_waits_for_its_next_master_whatever_keeps_that_from_starting(
    play: Play, told: Told
) -> None:
    play.start(image="Ours")  # no image can be called so
    play.worker("worker-0", "sleep 60")
    told.on("master waits", play.delete_job)
    with pytest.raises(JobCancelledError):
        play.handle.follow(told)


def test_a_log_that_breaks_is_taken_up_behind_the_last_line(play: Play, told: Told) -> None:
    play.start()
    play.cluster.go_wrong(Fault("cut", "/log", events=1))
    play.says(FIRST)
    told.on(FIRST, lambda: play.says(SECOND, DONE))
    assert play.handle.follow(told) == DONE
    assert told.events == [FIRST, SECOND]


def test_a_cluster_that_does_not_answer_for_a_while_is_asked_again(
    play: Play, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlflow_edl.backends.kubernetes.handle.PATIENCE", 0.0)
    monkeypatch.setattr("edl.cluster.kubernetes.outage.TELL_SECS", 0.0)
    play.start()
    play.says(FIRST)

    def fall_silent() -> None:
        play.cluster.go_wrong(Fault("drop", "GET", times=1000))

    told.on(FIRST, fall_silent)
    told.on("the API server of the cluster does not answer", play.cluster.go_wrong)
    told.on("the API server of the cluster answers again", lambda: play.says(DONE))
    assert play.handle.follow(told) == DONE
    assert len(told.notes) == 2


RESTARTED = (
    Fault(
        "status",
        "GET .*/(jobs|pods)",
        times=1000,
        status=403,
        message='jobs.batch "j" is forbidden: User "ann" cannot get resource "jobs" in API group "batch"',
    ),
    Fault("status", "GET .*/(jobs|pods)", times=1000, status=401, message="Unauthorized"),
)


@pytest.mark.variants(1)
@pytest.mark.parametrize("refusal", RESTARTED, ids=["403", "401"])
def test_an_api_server_that_has_just_started_may_refuse_what_it_allowed_before(
    play: Play, told: Told, monkeypatch: pytest.MonkeyPatch, refusal: Fault
) -> None:
    monkeypatch.setattr("edl.cluster.kubernetes.outage.TELL_SECS", 0.0)
    play.start()
    play.says(FIRST)

    def restart() -> None:
        play.cluster.go_wrong(refusal)
        play.cluster.cut_watches()

    told.on(FIRST, restart)
    told.on(refusal.message, play.cluster.go_wrong)
    told.on("the API server of the cluster answers again", lambda: play.says(SECOND, DONE))
    assert play.handle.follow(told) == DONE
    assert told.events == [FIRST, SECOND]
    assert refusal.message in told.notes[0]
    play.cluster.go_wrong()


def test_a_client_whose_right_is_withdrawn_says_so_after_a_minute(
    play: Play, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlflow_edl.backends.kubernetes.following.REFUSAL_SECS", 0.5)
    play.start()
    play.says(FIRST)
    told.on(FIRST, lambda: play.cluster.go_wrong(RESTARTED[0]))
    with pytest.raises(LostSightError, match="cannot get resource") as raised:
        follow_job(play.handle, told, cancels=False)
    assert "unless its namespace is being deleted" in (raised.value.hint or "")
    play.cluster.go_wrong()


def test_an_outage_is_waited_for_as_long_as_the_setting_says(
    play: Play, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlflow_edl.backends.kubernetes.handle.PATIENCE", 0.0)
    play.start(outage_secs=0.5)
    play.says(FIRST)
    told.on(FIRST, lambda: play.cluster.go_wrong(Fault("drop", "GET", times=1000)))
    with pytest.raises(LostSightError, match="does not answer"):
        follow_job(play.handle, told, cancels=False)
    assert play.folder.status().is_alive
    play.cluster.go_wrong()


@pytest.mark.soak
def test_epochs_that_a_second_master_tells_again_are_passed_on_once(play: Play, told: Told) -> None:
    play.start()
    retrained = replace(SECOND, loss=0.3)
    play.says(FIRST, SECOND, "exit 1", replace(FIRST, seconds=9.0), retrained, DONE)
    assert play.handle.follow(told) == DONE
    assert told.events == [FIRST, SECOND, retrained]


def test_a_namespace_that_is_deleted_is_named(play: Play, told: Told) -> None:
    play.start()
    play.says(FIRST)
    path = f"/api/v1/namespaces/{play.namespace}"
    told.on(FIRST, lambda: play.cluster.ask("DELETE", path))
    with pytest.raises(ClusterError, match=f"the namespace {play.namespace} was deleted"):
        play.handle.follow(told)
    assert play.folder.status().state == "failed"


def test_a_training_that_was_kept_when_its_namespace_was_deleted_continues_elsewhere(
    play: Play, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("following", "handle"):
        monkeypatch.setattr(f"sqlflow_edl.backends.kubernetes.{module}.has_checkpoint", lambda job: True)
    monkeypatch.setattr("sqlflow_edl.backends.kubernetes.following.REFUSAL_SECS", 0.5)
    play.start()
    play.says(FIRST)
    told.on(FIRST, lambda: play.cluster.go_wrong(RESTARTED[0]))  # as for a user who may not read namespaces
    with pytest.raises(ClusterError, match="you may no longer see jobs in the namespace"):
        play.handle.follow(told)
    play.cluster.go_wrong()
    assert play.folder.can_resume
    assert f"`sqlflow move {play.folder.id} --to kubernetes --namespace NAME` continues" in told.notes[-1]


def test_a_job_that_its_user_may_no_longer_see_is_given_up_when_no_job_lasts_so_long(play: Play) -> None:
    play.start()
    play.cluster.go_wrong(RESTARTED[0])
    [summary] = summaries()
    assert "you may no longer see jobs in the namespace" in summary.remark
    assert "this was its last known state" in play.handle.details().notes[0]
    assert play.folder.status().state == "running"
    play.folder.update(started="2026-01-01T00:00:00.000+00:00")
    summaries()
    assert play.folder.status().state == "unknown"
    play.cluster.go_wrong()


def test_a_follower_leaves_a_job_that_is_paused_at_its_deadline_unless_it_was_resumed_since(
    play: Play, told: Told
) -> None:
    late = "the job did not end before its deadline of 8 s"
    play.start()
    play.says(Failed("paused", late, ""))
    with pytest.raises(JobPausedError, match=f"{late}; it is paused") as raised:
        play.handle.follow(told)
    assert f"sqlflow resume {play.folder.id}" in (raised.value.hint or "")
    assert play.folder.status().state == "paused"
    path = f"/apis/batch/v1/namespaces/{play.namespace}/jobs/{play.name}"
    job = play.cluster.ask("GET", path)
    job["metadata"]["annotations"] = {names.RESUMED: "today"}
    play.cluster.ask("PUT", path, job)
    play.says(DONE)
    assert play.handle.follow(told) == DONE


@pytest.mark.parametrize(("pause", "is_seldom"), [(CALM_LOOK, True), (LOOK, False)])
def test_a_job_is_polled_seldom_while_its_master_tells_all(
    play: Play, told: Told, monkeypatch: pytest.MonkeyPatch, pause: float, is_seldom: bool
) -> None:
    monkeypatch.setattr("sqlflow_edl.backends.kubernetes.following.CALM_LOOK", pause)
    clock = itertools.count()  # a hundredth of a second each time it is asked
    play.start()
    play.says(FIRST)
    following = Following(play.handle._objects, play.folder, told, clock=lambda: next(clock) / 100)
    told.on(FIRST, lambda: play.says(*[TALLY] * 600, DONE))
    play.cluster.requests()
    assert following.until_end() == DONE
    polls = [
        line
        for line in play.cluster.requests()
        if line.startswith("GET") and line.endswith(f"/jobs/{play.name}")
    ]
    assert (len(polls) <= 4) == is_seldom
