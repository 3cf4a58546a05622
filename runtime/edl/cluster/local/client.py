"""Client of a job that a supervisor runs: start, follow, detach, interrupt, cancel."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import IO

from edl.cluster.local.master_process import INTERRUPT_SECONDS
from edl.cluster.local.messages import DETACH
from edl.cluster.local.standby import Standby
from edl.cluster.logs import open_log
from edl.errors import ClusterError, JobError
from edl.jobs.cluster_folder import ClusterFolder, Process, RunSpec, with_surroundings
from edl.jobs.event_log import Event, EventReader
from edl.jobs.events import JobEvent, JobObserver, TrialEnd
from edl.jobs.failure import Failed, to_error
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import JobCancelledError, JobDiedError, Outcome
from edl.jobs.termination import TerminatedError

POLL = 0.05  # seconds between two reads of the events
START_SECONDS = 20.0  # time for a supervisor to take over its job
END_SECONDS = 15.0  # time for a supervisor to end its job before it is killed

# Supervisors of detached jobs: children of this process, to be reaped.
_left: list[subprocess.Popen[bytes]] = []


class SupervisedJob:
    """Job with a child of this process as its supervisor. It ends with this process, unless it is detached.

    Call `follow` from one thread; `cancel` and `detach` from any.
    """

    def __init__(self, job: JobFolder, process: subprocess.Popen[bytes]) -> None:
        self.job = job
        self._process = process
        self._lifeline: IO[bytes] | None = process.stdin

    @classmethod
    def start(cls, job: JobFolder, spec: RunSpec, standby: Standby | None = None) -> SupervisedJob:
        """Start the supervisor; it starts the master; return at once. The program and the rows must be in place.

        standby: a supervisor that waits for such a job.
        """
        spec = with_surroundings(spec)
        ClusterFolder(job.path).write_run_spec(spec)
        ClusterFolder(job.path).withdraw_cancel()
        if standby is not None and (waiting := standby.hand_over(job.path)) is not None:
            return cls(job, waiting)
        command = [sys.executable, "-P", "-m", "edl.cluster.local.supervisor", str(job.path)]
        log = open_log(ClusterFolder(job.path).log("supervisor"))
        try:
            process = subprocess.Popen(  # noqa: S603 (our own module, in a list)
                command,
                stdin=subprocess.DEVNULL if spec.detached else subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=spec.folder,
            )
        finally:
            os.close(log)
        return cls(job, process)

    @property
    def pid(self) -> int:
        return self._process.pid

    def follow(self, on_event: JobObserver, *, keeps_best: bool = False) -> Outcome:
        """Pass the job's events to `on_event` until the job and all its processes have ended; return its result.

        An error of the job is raised as it was there; JobCancelledError if it was cancelled; ClusterError if its
        supervisor died. Any other exception (a KeyboardInterrupt, an error of `on_event`) cancels the job, and
        TerminatedError interrupts it, unless that `cancels`; it is raised when the job has ended, and a second one
        kills it. For a detached job, it ends the wait only.
        `keeps_best`: the first KeyboardInterrupt ends a search early, if one of its trials has a model.
        """
        has_model = False

        def noted(event: JobEvent) -> None:
            nonlocal has_model
            has_model = has_model or (isinstance(event, TrialEnd) and event.value is not None)
            on_event(event)

        def interrupted() -> bool:
            if not (keeps_best and has_model) or self.job.ends_early:
                return False
            self.job.end_early()
            return True

        try:
            return follow(self.job, noted, runs=lambda: self.runs, interrupted=interrupted)
        except BaseException as error:
            if self._lifeline is not None:
                if isinstance(error, TerminatedError) and not error.cancels:
                    self._end(self.interrupt, INTERRUPT_SECONDS + END_SECONDS)
                else:
                    self._end(self.cancel)
            raise

    def cancel(self) -> None:
        """Request the end of the job; `follow` then raises JobCancelledError."""
        if self._process.poll() is None:
            try:
                ClusterFolder(self.job.path).request_cancel()
            except OSError:  # a full disk: without the request, the job would be kept
                self._process.kill()
            self._process.send_signal(signal.SIGTERM)

    def interrupt(self) -> None:
        """Request the end of the job after a checkpoint, so that it can be resumed; `follow` then raises
        JobInterruptedError.
        """
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def detach(self) -> None:
        """Keep the job running when this process ends. Idempotent; no effect on an ended job."""
        if self._lifeline is not None:
            with contextlib.suppress(OSError):
                self._lifeline.write(DETACH)
            with contextlib.suppress(OSError):
                self._lifeline.close()
            self._lifeline = None

    def close(self) -> None:
        """End the job, unless it is detached or has ended, and wait for its end."""
        if self._lifeline is not None:
            with contextlib.suppress(OSError):
                self._lifeline.close()
            self._lifeline = None
            self._end(lambda: None)
        _left.append(self._process)
        _left[:] = [process for process in _left if process.poll() is None]

    def __enter__(self) -> SupervisedJob:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def runs(self) -> bool:
        """True if the supervisor has not ended."""
        return self._process.poll() is None

    def _end(self, tell: Callable[[], None], seconds: float = END_SECONDS) -> None:
        """Ask the supervisor to end and wait; kill it if it takes too long or the wait is interrupted."""
        try:
            tell()
            self._process.wait(seconds)
        except BaseException as error:
            self._process.kill()
            self._process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise


def is_supervised(job: JobFolder) -> bool:
    """Return True if a supervisor runs or ran the job, not the process of its client."""
    return ClusterFolder(job.path).process("supervisor") is not None


def attach(job: JobFolder, on_event: JobObserver) -> Outcome:
    """Follow a job from its start to its end, whichever client started it; see `SupervisedJob.follow`.

    An interrupt leaves the job as it is. Raises ClusterError if the job has no supervisor.
    """
    if job.status().state == "cancelled":
        raise JobCancelledError
    supervisor = _supervisor(job)
    return follow(job, on_event, runs=lambda: supervisor.runs)


def cancel(job: JobFolder) -> bool:
    """End the job and wait; return True if it was running.

    A job that takes too long is killed. Raises ClusterError if the job has no supervisor.
    """
    supervisor = _supervisor(job)
    if not supervisor.runs:
        return False
    numbers = [signal.SIGTERM, signal.SIGKILL]
    try:
        ClusterFolder(job.path).request_cancel()
    except OSError:  # a full disk: without the request, SIGTERM would keep the job
        numbers.remove(signal.SIGTERM)
    for number in numbers:
        deadline = time.monotonic() + END_SECONDS
        with contextlib.suppress(ProcessLookupError):
            os.kill(supervisor.pid, number)
        while supervisor.runs and time.monotonic() < deadline:
            time.sleep(POLL)
        if not supervisor.runs:
            break
    if job.status().state == "running":
        job.end("cancelled")
    return True


def follow(
    job: JobFolder,
    on_event: JobObserver,
    *,
    runs: Callable[[], bool],
    interrupted: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Pass the job's events to `on_event` until its supervisor has ended; return the result. `runs` returns False
    then. `interrupted` is called for a KeyboardInterrupt; it returns True if the job is to be followed further.
    """
    end: Outcome | Failed | None = None
    with EventReader(ClusterFolder(job.path).events) as events:
        running, unread = True, deque[Event]()
        while running or unread:
            try:
                if not unread:
                    running = runs()  # before the last read, so that no event is missed
                    unread.extend(events.read())
                end = _pass(unread, on_event, end)
                if running:
                    time.sleep(POLL)
            except KeyboardInterrupt as interrupt:
                if type(interrupt) is not KeyboardInterrupt or not interrupted():
                    raise
    if end is None:
        raise _death(job)
    if isinstance(end, Failed):
        raise to_error(end)
    return end


def _pass(
    unread: deque[Event], on_event: JobObserver, end: Outcome | Failed | None
) -> Outcome | Failed | None:
    """Pass events on until the job's end; return that."""
    while unread:
        event = unread.popleft()
        if isinstance(event, Outcome | Failed):
            end = end or event
        elif end is None:
            on_event(event)
    return end


def _death(job: JobFolder) -> JobError | ClusterError:
    """Return the error for a job without an end in its events."""
    status = job.status()
    if status.state == "cancelled":
        return JobCancelledError()
    log = ClusterFolder(job.path).log("supervisor")
    if status.error:
        return ClusterError(status.error)
    return JobDiedError("the job's supervisor died, and the job with it", hint=f"its log is {log}")


def start_detached(job: JobFolder, spec: RunSpec) -> None:
    """Start the job. It continues when this process ends. Raises ClusterError if it does not start."""
    with SupervisedJob.start(job, spec) as running:
        try:
            _wait_for_start(job, running)
        except BaseException:  # it must not start later, unnoticed
            running.cancel()
            raise


def _wait_for_start(job: JobFolder, running: SupervisedJob) -> None:
    deadline = time.monotonic() + START_SECONDS
    while job.status().pid != running.pid:  # until then the job counts as ours, and would be dead when we are
        if not running.runs or time.monotonic() > deadline:
            raise ClusterError(f"the supervisor of job {job.id} does not start", hint="see its log")
        time.sleep(0.01)


def _supervisor(job: JobFolder) -> Process:
    process = ClusterFolder(job.path).process("supervisor")
    if process is None:
        raise ClusterError(f"job {job.id} is not run by a supervisor", hint="its own client runs it")
    return process
