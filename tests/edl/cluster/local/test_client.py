"""Following a job, leaving it, coming back to it and cancelling it."""

from __future__ import annotations

import signal
import threading
from typing import Any

import msgspec
import pytest

from edl import exit_codes
from edl.cluster.local import client
from edl.errors import ClusterError
from edl.jobs import job_folder
from edl.jobs.event_log import EventLog
from edl.jobs.events import Progress, Tally
from edl.jobs.outcome import JobCancelledError, Outcome
from tests.edl.cluster.local.conftest import Player, Stage, ends

DONE = Outcome("predict", 10, 1.0)
EVENTS = [Tally(2, 1, 0, instances=1), Progress("prediction", 5, 10, 1.0), Tally(0, 0, 3, relaunches=2)]


def tell(stage: Stage, *events: Any) -> None:
    with EventLog(stage.folder.events) as log:
        for event in events:
            log.write(event)


class Observed(list[Any]):
    """Keeps events; `reached` is set when there are so many."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.reached = threading.Event()

    def __call__(self, event: Any) -> None:
        self.append(event)
        if len(self) == self._count:
            self.reached.set()


def leave(master: Player) -> None:
    """Have the master end its job, done."""
    master.send("exit", code=exit_codes.OK)


def test_events_come_in_order_while_the_job_runs_and_to_a_second_client_from_the_start(stage: Stage) -> None:
    master = stage.opening()
    tell(stage, *EVENTS[:2])
    seen, outcomes = Observed(2), []
    second = threading.Thread(
        target=lambda: outcomes.append(client.attach(job_folder.find(stage.job.id), seen))
    )
    followed: list[Any] = []

    def on_event(event: Any) -> None:
        followed.append(event)
        if event == EVENTS[1]:
            second.start()
            assert seen.reached.wait(60)
            tell(stage, EVENTS[2], DONE)
            leave(master)

    assert stage.running.follow(on_event) == DONE
    second.join()
    assert followed == seen == EVENTS
    assert outcomes == [DONE]


def test_an_interrupt_cancels_the_job(stage: Stage) -> None:
    master = stage.opening()
    worker = stage.worker(master)
    master.do("obey", code=exit_codes.JOB_FAILED)
    tell(stage, EVENTS[0])

    def interrupt(event: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stage.running.follow(interrupt)
    worker.wait()
    assert stage.job.status().state == "cancelled"


@pytest.mark.soak
def test_a_second_interrupt_kills_the_job(stage: Stage) -> None:
    master = stage.opening()
    worker = stage.worker(master)
    tell(stage, EVENTS[0])
    main = threading.main_thread().ident
    assert main is not None

    def interrupt_again() -> None:
        assert master.do("changed", count=1) == [{"end": "cancel"}]  # it stays
        signal.pthread_kill(main, signal.SIGINT)

    again = threading.Thread(target=interrupt_again)

    def interrupt(event: Any) -> None:
        again.start()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stage.running.follow(interrupt)
    again.join()
    for player in (master, worker):
        player.wait()
    stage.running.close()
    assert not stage.job.status().is_alive


@pytest.mark.soak
def test_a_detached_job_goes_on_when_the_wait_is_interrupted(stage: Stage) -> None:
    master = stage.opening()
    tell(stage, EVENTS[0])
    stage.running.detach()
    stage.running.detach()

    def interrupt(event: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stage.running.follow(interrupt)
    stage.running.close()
    assert stage.job.status().is_alive
    assert stage.worker(master).name == "worker-0"
    tell(stage, DONE)
    leave(master)
    assert client.attach(stage.job, lambda event: None) == DONE


def test_a_job_that_was_started_detached_belongs_to_its_supervisor(stage: Stage) -> None:
    stage.spec = msgspec.structs.replace(stage.spec, detached=True)
    master = stage.opening()
    stage.running.close()
    assert stage.job.status().pid == stage.running.pid
    leave(master)
    ends(stage.running.pid)
    assert stage.job.status().state == "finished"


def test_cancelling_reaches_a_job_of_another_client(stage: Stage) -> None:
    stage.opening().do("obey", code=exit_codes.OK)
    assert client.cancel(job_folder.find(stage.job.id))
    with pytest.raises(JobCancelledError):
        stage.running.follow(lambda event: None)
    with pytest.raises(ClusterError, match="not run by a supervisor"):
        client.cancel(stage.job)


@pytest.mark.soak
def test_a_second_client_hears_that_the_job_was_cancelled(stage: Stage) -> None:
    stage.opening().do("obey", code=exit_codes.JOB_FAILED)
    tell(stage, EVENTS[0])
    with pytest.raises(JobCancelledError):
        client.attach(stage.job, lambda event: stage.running.cancel())


@pytest.mark.soak
def test_a_job_that_was_done_before_it_was_cancelled_is_done(stage: Stage) -> None:
    master = stage.opening()
    tell(stage, DONE)
    master.do("obey", code=exit_codes.OK)
    stage.running.cancel()
    assert stage.running.follow(lambda event: None) == DONE
    assert not client.cancel(stage.job)


def test_a_job_without_a_supervisor_is_a_named_error() -> None:
    job = job_folder.create("train")
    with pytest.raises(ClusterError, match="is not run by a supervisor"):
        client.attach(job, lambda event: None)
