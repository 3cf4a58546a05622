"""Masters of a job: restarted one after another, until one ends the job or restarts are pointless.

A master that died is replaced at once; if it dies again without progress, after increasing pauses. A master is killed,
and counts as died, if its event loop stands still (frozen, or hanging). Its silence is the time that passed while this
process ran too: if the machine is suspended, neither counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from dataclasses import dataclass
from typing import Literal

from edl import exit_codes
from edl.cluster import Order
from edl.cluster.exit_reason import Exit
from edl.cluster.local.children import kill, kill_group
from edl.cluster.local.instances import Instances
from edl.cluster.local.launcher import LaunchSettings
from edl.cluster.local.master_connection import MasterConnection
from edl.cluster.local.signals import DUMP_SECS, DUMP_SIGNAL
from edl.jobs.cluster_folder import Process
from edl.jobs.event_log import read_end
from edl.jobs.failure import Failed
from edl.jobs.outcome import JobInterruptedError, Outcome
from edl.jobs.snapshot import read_snapshot

DEATHS = 5  # deaths in a row without progress after which the job has failed
PAUSES = (0.0, 0.2, 0.5, 1.0)  # seconds before the next master, after each death in a row
LAST_WORDS = 1.0  # time for a dead master's connection to close, if another process still holds it
START_SECONDS = 120.0  # time for a master to read its state, before its first heartbeat
CHECK_SECONDS = 0.5  # interval of looks at its heartbeats
CANCEL_SECONDS = 5.0  # time for a master to end its job when it is cancelled
# The same when the job is interrupted, for a checkpoint. A machine that is taken away gives 30 to 120 s, and kills all
# processes then.
INTERRUPT_SECONDS = 100.0
INTERRUPTED = "the job was interrupted by SIGTERM"


@dataclass(frozen=True, slots=True)
class End:
    """End of the job, with its status."""

    state: Literal["finished", "failed", "cancelled", "died", "paused", "interrupted"]
    error: str = ""


class Silence:
    """Time since the last heartbeat of a master that may be silent for `longest` seconds, at first START_SECONDS.

    `heartbeats` is their present number, `now` the time. Between two looks, no more counts than twice their interval.
    """

    def __init__(self, longest: float, heartbeats: int, now: float) -> None:
        self.seconds = 0.0
        self._after_start, self._longest = longest, max(START_SECONDS, longest)
        self._heartbeats, self._looked = heartbeats, now

    def is_too_long(self, heartbeats: int, now: float) -> bool:
        """Look at the number of heartbeats; return True if none has come for too long."""
        self.seconds += min(now - self._looked, 2 * CHECK_SECONDS)
        self._looked = now
        if heartbeats != self._heartbeats:
            self.seconds, self._heartbeats, self._longest = 0.0, heartbeats, self._after_start
        return self.seconds >= self._longest


class Masters:
    """Starter of masters. After `end`, no other is started."""

    def __init__(
        self, setting: LaunchSettings, connection: MasterConnection, instances: Instances, port: int
    ) -> None:
        self._setting = setting
        self._connection = connection
        self._instances = instances
        self._port = port
        self._pid = 0
        self._last_end: End | None = None
        self._interrupted = False
        self._ending = asyncio.Event()

    def end(self, end: End, grace: float) -> None:
        """End the job with this status: order the master to cancel it, and kill it after `grace` seconds."""
        if self._last_end is None:
            self._last_end = end
            self._ending.set()
        if self._pid and grace > 0:
            self._connection.order(Order("cancel"))
            asyncio.get_running_loop().call_later(grace, self._kill, self._pid)
        elif self._pid:
            kill_group(self._pid)

    def interrupt(self) -> None:
        """Order the master, or the next one, to stop the job after a checkpoint. Idempotent."""
        if not self._interrupted:
            self._interrupted = True
            self._connection.order(Order("interrupt"))
            end = End("interrupted", INTERRUPTED)
            asyncio.get_running_loop().call_later(INTERRUPT_SECONDS, self.end, end, 0.0)

    async def serve(self) -> End:
        """Run masters until the job has ended."""
        deaths, relaunches, done = 0, 0, self._progress()
        while self._last_end is None:
            how = await self._one(relaunches)
            if end := self._end(how.code):
                return end
            deaths, done = (1, self._progress()) if self._progress() > done else (deaths + 1, done)
            self._setting.say(f"the master died: {how} ({deaths} times in a row; the limit is {DEATHS})")
            if deaths >= DEATHS:
                return self._given_up(how)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), PAUSES[min(deaths, len(PAUSES)) - 1])
            relaunches += 1
        return self._last_end

    async def _one(self, relaunches: int) -> Exit:
        """Start a master and wait for its end. One that cannot be started counts as failed."""
        ended: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        try:
            self._pid, ours = self._start()
        except OSError as error:
            self._setting.say(f"no master can be started: {error}")
            return Exit(exit_codes.FAILED)
        self._setting.children.watch(self._pid, ended.set_result)
        self._setting.folder.write_process("master", Process.of(self._pid))
        self._setting.say(f"master: pid {self._pid}")
        serving = asyncio.create_task(self._connection.serve(ours, self._instances, relaunches))
        watching = asyncio.create_task(self._end_silent(self._pid))
        try:
            return await ended
        finally:
            self._pid = 0
            watching.cancel()
            await asyncio.wait({serving}, timeout=LAST_WORDS)  # reads the last requests of the dead master
            serving.cancel()

    async def _end_silent(self, pid: int) -> None:
        """Kill the master when its event loop has not run for too long."""
        silence = Silence(self._setting.spec.master_timeout, self._connection.heartbeats, time.monotonic())
        while not silence.is_too_long(self._connection.heartbeats, time.monotonic()):
            await asyncio.sleep(CHECK_SECONDS)
        self._setting.say(
            f"the master (pid {pid}) has not answered for {silence.seconds:.0f} s and is killed"
        )
        kill(pid, DUMP_SIGNAL)
        await asyncio.sleep(DUMP_SECS)
        self._kill(pid)

    def _start(self) -> tuple[int, socket.socket]:
        """Start a master, or let the one begin that waits for its job; return its pid and its connection."""
        if (prepared := self._setting.prepared) and (child := prepared.begin_master(self._arguments)):
            return child.pid, child.socket
        ours, theirs = socket.socketpair()
        with theirs:
            descriptor = theirs.fileno()
            try:
                pid = self._setting.spawn(
                    self._setting.spec.master,
                    *self._arguments(descriptor),
                    log="master",
                    descriptors=(descriptor,),
                )
            except OSError:
                ours.close()
                raise
        return pid, ours

    def _arguments(self, descriptor: int) -> tuple[str, ...]:
        connection = ("--port", str(self._port), "--cluster-fd", str(descriptor))
        return (str(self._setting.job), *connection, *self._setting.spec.master_arguments)

    def _end(self, code: int) -> End | None:
        """Return the job's end, or None if the master died and the job goes on."""
        if self._last_end is not None:
            return (
                End("finished")
                if isinstance(read_end(self._setting.folder.events), Outcome)
                else self._last_end
            )
        if code == exit_codes.OK:
            return End("finished")
        if code == exit_codes.JOB_FAILED:
            end = read_end(self._setting.folder.events)
            error = end.message if isinstance(end, Failed) else "the master gave no reason; see its log"
            return End("failed", error)
        if code == exit_codes.PAUSED:
            end = read_end(self._setting.folder.events)
            is_interrupted = isinstance(end, Failed) and end.code == JobInterruptedError.code
            return End("interrupted", INTERRUPTED) if is_interrupted else End("paused")
        if code == exit_codes.USAGE:
            return End("failed", f"the master cannot be started; see {self._setting.folder.log('master')}")
        return None

    def _given_up(self, how: Exit) -> End:
        log = self._setting.folder.log("master")
        return End(
            "failed",
            f"the master died {DEATHS} times in a row without progress; the last time: "
            f"{how}; its log is {log}",
        )

    def _progress(self) -> tuple[int, int]:
        snapshot = read_snapshot(self._setting.folder.snapshot)
        return snapshot.progress if snapshot else (0, 0)

    def _kill(self, pid: int) -> None:
        if pid == self._pid:  # otherwise another master has its pid
            kill_group(pid)
