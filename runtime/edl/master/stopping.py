"""Orderly stop of a job before its end: workers give back their tasks and leave, and a checkpoint has what they did.

    all workers ─▶ the last of a group ─▶ none: it has written a checkpoint ─▶ servers have written one ─▶ no instance

A job that is interrupted has little time: all workers leave at once, and the leader of a group writes the checkpoint at
its step. Each step has a time limit. What a step does not complete is computed again from the checkpoint before.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable

from edl.cluster import Wishes
from edl.errors import ClusterError, JobError
from edl.jobs.failure import Failed
from edl.jobs.outcome import JobInterruptedError, JobPausedError
from edl.logs import log
from edl.master.instances.instance_manager import InstanceManager
from edl.master.instances.slots import STOP_GRACE, describe_wait
from edl.master.ps.ps_manager import Servers
from edl.master.tasks.task_manager import TaskManager

PAUSED = Failed(JobPausedError.code, "the job was paused")
INTERRUPTED = Failed(JobInterruptedError.code, "the job was interrupted by SIGTERM")
# All pods of a job are asked to leave together: its node is drained, or a queue takes back all that it gave.
LEAVING = Failed(JobInterruptedError.code, "all pods of the job are asked to leave")
LEAVING_SECS = 7.0  # until their last checkpoint; the master has 10 s to end
GROUP_SECS = 30.0  # time for the group of the last worker to form
STEP_SECS = STOP_GRACE + 10.0  # time of each other step
POLL = 0.02


class Deadline:
    """Deadline of a job, `seconds` after it began; 0 means none. `orderly`: it can be resumed, so its workers leave in
    order. `holds`: it is paused, because its checkpoints are lost when it ends. The time of a pause does not count.
    """

    def __init__(
        self, tasks: TaskManager, stopper: Stopper, seconds: float, *, orderly: bool, holds: bool = False
    ) -> None:
        self._tasks = tasks
        self._stopper = stopper
        self._seconds = seconds
        self._orderly = orderly
        self._holds = holds
        self._ticked = tasks.state.seconds

    def tick(self, now: float) -> None:
        """Stop the job if its time is over."""
        if self._stopper.has_begun:  # the state has it, because another master may see the end of a pause
            self._tasks.state.began += now - self._ticked
        self._ticked = now
        if not self._seconds or now - self._tasks.state.began < self._seconds:
            return
        why = Failed(JobError.code, f"the job did not end before its deadline of {self._seconds:,.9g} s")
        if self._holds:
            if not self._stopper.has_begun and not self._tasks.is_finished:
                self._tasks.state.held = why.message
                self._tasks.log(why.message)
                self._stopper.begin()
        elif self._orderly:
            self._stopper.begin(why)
        else:
            self._tasks.fail(why)

    def is_to_pause(self, wishes: Wishes, now: float) -> bool:
        """Return True if the job is to be paused. A wish to resume it ends what holds it, and the
        deadline counts anew.
        """
        state = self._tasks.state
        if state.held and wishes.resumed != state.resumed:
            state.held, state.began = "", now
        if not state.held:
            state.resumed = wishes.resumed
        return wishes.paused or bool(state.held)


class WaitLimit:
    """Limit of the time that a job stands still because instances wait for room, or for what they start with."""

    def __init__(
        self, tasks: TaskManager, instances: InstanceManager, stopper: Stopper, seconds: float
    ) -> None:
        self._tasks = tasks
        self._instances = instances
        self._stopper = stopper
        self._seconds = seconds
        self._since: float | None = None

    def tick(self, now: float) -> None:
        """Fail the job if it has stood still for too long. Time of a pause does not count."""
        waits = {} if self._stopper.has_begun or self._tasks.is_finished else self._instances.hindrances
        if not waits:
            self._since = None
            return
        self._since = now if self._since is None else self._since
        if now - self._since < self._seconds:
            return
        why = "; ".join(describe_wait(name, why) for name, why in waits.items())
        message = f"the job has waited for {self._seconds:,.9g} s, and its limit is over: {why}"
        hint = "kubernetes.wait_secs, or --wait-limit, lets it wait longer; smaller pods may find room sooner"
        self._tasks.fail(Failed(ClusterError.code, message, hint=hint))


class Stopper:
    """Stops a job. Call it in the event loop: it asks the instance manager for its actions."""

    def __init__(self, tasks: TaskManager, instances: InstanceManager, servers: Servers | None) -> None:
        self._tasks = tasks
        self._instances = instances
        self._servers = servers
        self._begun = asyncio.Event()
        self._why = PAUSED

    @property
    def has_begun(self) -> bool:
        """True if the job is being stopped, or is stopped."""
        return self._begun.is_set()

    def begin(self, why: Failed = PAUSED) -> None:
        """Begin to stop the job for that reason, unless it is being stopped or has ended."""
        if not self.has_begun and not self._tasks.is_finished:
            log(f"{why.message}: its workers leave")
            self._why = why
            self._set_begun(True)
            if why in (INTERRUPTED, LEAVING):  # before another worker is started
                self._instances.keep("servers")

    def begin_stopped(self) -> None:
        """Begin with a job that an earlier master has stopped: start no instance."""
        self._instances.keep("none")
        self._set_begun(True)

    def withdraw(self) -> None:
        """Let the instances of a stopped job start again."""
        log("the job is resumed")
        self._set_begun(False)
        self._instances.keep("all")

    async def stop(self) -> Failed:
        """Wait for `begin`, and until no worker runs and the servers have a checkpoint; return the reason."""
        await self._begun.wait()
        if self._instances.kept == "none":  # as an earlier master left it
            return self._why
        rendezvous = self._tasks.rendezvous
        hurries = self._why in (INTERRUPTED, LEAVING)
        clock = asyncio.get_running_loop().time
        end = clock() + LEAVING_SECS if self._why is LEAVING else math.inf
        if not hurries and len(rendezvous.members) > 1 and not rendezvous.complete:
            self._instances.keep("one worker")
            await wait_until(lambda: self._is_alone or not self._instances.workers, GROUP_SECS)
        self._instances.keep("servers")
        await wait_until(lambda: not self._instances.workers, min(STEP_SECS, end - clock()))
        if self._servers is not None and not self._tasks.is_finished:
            await self._write_checkpoint(self._servers, lambda: min(STEP_SECS, max(0.0, end - clock())))
        if self._servers is not None:
            self._servers.all_end = True
        self._instances.keep("none")
        return self._why

    def _set_begun(self, begun: bool) -> None:
        (self._begun.set if begun else self._begun.clear)()
        if self._servers is not None:
            self._servers.stopping = begun
            self._servers.all_end = False

    @property
    def _is_alone(self) -> bool:
        """True if one worker runs, and is the group."""
        return len(self._instances.workers) == 1 == len(self._tasks.rendezvous.members)

    async def _write_checkpoint(self, servers: Servers, left: Callable[[], float]) -> None:
        """Let the servers write a checkpoint. left: seconds of each step.

        Copies in their memory are of no use to those that come after all servers have left.
        """
        checkpoints = servers.checkpoints
        if not (servers.is_ready and servers.is_open):
            return
        if checkpoints.in_memory:
            if self._why is not LEAVING:
                return
            checkpoints.leave_memory()
        await wait_until(lambda: not checkpoints.under_way, left())
        checkpoints.request()
        await wait_until(lambda: not checkpoints.requested, left())


async def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    """Wait for the condition, for `seconds` at most."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(POLL)
