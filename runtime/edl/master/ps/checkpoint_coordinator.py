"""Schedule of the parameter servers' checkpoints, and the job state that belongs to each.

A pure state machine. A checkpoint is

    due        by steps or seconds; the first as soon as the servers are open, and after the last one is lost; the
               second after FIRST_SECS at most
    taken      each server has copied its state, and server 0 has reported the progress of the leases
    written    every shard is on disk, or on its server's replica peer
    complete   its manifest exists and the state store refers to it: the job goes back to it from now on

A checkpoint that fails on the way is forgotten, and its folder is removed later. That includes the failed checkpoints
of earlier masters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from edl.checkpoints import FIRST_SECS
from edl.jobs.retention import superseded_checkpoints
from edl.master.state import Checkpoint
from edl.master.tasks.lease_table import report_of
from edl.master.tasks.task_manager import TaskManager
from edl.ps.checkpoint.content import Manifest, Progress, Shard, Version
from edl.ps.messages import Arrange, CheckpointTaken
from edl.spec import Checkpoints
from edl.tasks.job_state import Job, JobState

SHARES = 200  # checkpoints of a job in which a lost server loses updates
LEAST_SECS = 0.5  # between two of them
QUICK_SECS = 1.0  # duration of one that costs little: most of it is the wait for the next status call
COST = 20.0  # least interval of longer ones, as a multiple of what they take beyond that
AGAIN_SECS = 5.0  # pause after a failed checkpoint


class PendingCheckpoint(msgspec.Struct):
    """Checkpoint in progress. `begun` is the job when it was begun, `job` the job state at the checkpoint, `steps` the
    approximate step of each server. `last`: other servers begin with it, so it is no checkpoint in memory. `in_memory`:
    it is one, whatever those that follow are.
    """

    name: str
    begun: Job
    steps: tuple[int, ...]
    job: JobState | None = None
    version: Version = Version()
    shards: dict[int, Shard] = {}
    completing: bool = False
    last: bool = False
    in_memory: bool = False


class CheckpointCoordinator:
    """Checkpoints of one job. `servers` is the number of shards, `steps_per_version` the number of optimizer steps per
    server version. `versions` is the number of versions of the whole job if the loss of a server loses the updates
    since the last checkpoint, else 0: then one is also due after each 200th of them, at most every `LEAST_SECS`, and
    less often if one takes longer than `QUICK_SECS`. A setting in steps, or none in seconds, replaces that.
    """

    def __init__(
        self,
        tasks: TaskManager,
        when: Checkpoints,
        servers: int,
        *,
        steps_per_version: int = 1,
        versions: int = 0,
    ) -> None:
        self._tasks = tasks
        self.steps_per_version = steps_per_version
        self._every = when.steps // steps_per_version or 1 if when.steps else 0
        by_default = when.secs and not when.steps
        self._share = max(1, versions // SHARES) if versions and by_default else 0
        self.resize(servers, when)
        self._took = 0.0  # seconds of the last complete checkpoint
        self._taking: PendingCheckpoint | None = None
        self._counter = 0
        self._not_before = 0.0
        self._lost = tasks.checkpoint_is_lost  # it was on the disk of the previous master
        self._is_first = True  # no checkpoint but the one of the beginning is complete
        self._at: tuple[float, int] | None = None  # second and step of the last checkpoint
        self.requested = False  # one is due as soon as possible
        self.durable = ""  # name of the last one that the state store refers to, as far as this master knows
        self.steps: tuple[int, ...] = ()  # step of each server at the last complete checkpoint of this master

    def resize(self, servers: int, when: Checkpoints) -> None:
        """Set the number of servers, and where so many keep their checkpoints."""
        self._servers, self._when = servers, when
        self.in_memory = when.copies == "neighbours"

    def leave_memory(self) -> None:
        """Make a checkpoint due that is no copy in the memory of servers, because all of them are about to end."""
        self.in_memory, self._lost = False, True

    @property
    def closing(self) -> str:
        """Name of the last checkpoint of these servers while it is in progress, or empty."""
        return self._taking.name if self._taking is not None and self._taking.last else ""

    def may_begin(self, now: float) -> bool:
        """Return True unless a checkpoint is in progress or has just failed."""
        return self._taking is None and now >= self._not_before

    @property
    def under_way(self) -> str:
        """Name of the checkpoint in progress, or empty."""
        return self._taking.name if self._taking is not None else ""

    def request(self) -> None:
        """Make a checkpoint due now, unless nothing was trained since the last one."""
        self.requested = True

    def is_due(self, step: int, now: float) -> bool:
        """Return True if a checkpoint is due at the parameters' step `step`."""
        alone = self.in_memory and self._servers == 1
        if alone or not self.may_begin(now):
            return False
        if self._tasks.state.checkpoint is None or self._lost:
            return True
        if self._at is None or step < self._at[1]:  # first call, or the job was rolled back
            self._at = (now, step)
        second, before = self._at
        if step == before:
            self.requested = False
            return False
        return bool(
            self.requested
            or (self._every and step - before >= self._every)
            or (self._secs and now - second >= self._secs)
            or (self._share and step - before >= self._share and now - second >= self._pause)
        )

    @property
    def _secs(self) -> float:
        """Seconds until the next checkpoint; less for the first one with something learned."""
        return min(self._when.secs, FIRST_SECS) if self._is_first else self._when.secs

    @property
    def _pause(self) -> float:
        return max(LEAST_SECS, COST * (self._took - QUICK_SECS))

    def begin(self, steps: tuple[int, ...], now: float, *, last: bool = False) -> str:
        """Begin a checkpoint and return its name; names sort by time. `steps` is the step of each server, `last` as in
        `PendingCheckpoint`.
        """
        self._counter += 1
        name = f"{self._tasks.state.epoch:06d}-{self._counter:06d}"
        in_memory = self.in_memory and not last
        self._taking = PendingCheckpoint(name, self._tasks.copy(), steps, last=last, in_memory=in_memory)
        self._at = (now, steps[0])
        return name

    def on_taken(self, name: str, answer: CheckpointTaken) -> None:
        """Record that server 0 has taken the checkpoint."""
        taking = self._taking
        if taking is None or taking.name != name:
            return
        taking.job = state_at_checkpoint(self._tasks, taking.begun, answer.progress)
        taking.version = answer.version

    def record_shard(self, index: int, name: str, shard: Shard) -> str:
        """Record a written shard. Return the reason if it could not be written; the checkpoint then fails."""
        taking = self._taking
        if taking is None or taking.name != name or index in taking.shards:
            return ""
        taking.shards[index] = shard
        return shard.error

    def to_complete(self) -> PendingCheckpoint | None:
        """Return the checkpoint if all its shards are written and its manifest is to be made; once."""
        taking = self._taking
        if taking is None or taking.job is None or taking.completing or len(taking.shards) < self._servers:
            return None
        taking.completing = True
        return taking

    def complete(self, taking: PendingCheckpoint, manifest: Manifest) -> bool:
        """Make the checkpoint the one to go back to. Return False if it was dropped meanwhile."""
        if self._taking is not taking or taking.job is None:
            return False
        state = self._tasks.state
        self._is_first = self._is_first and state.checkpoint is None
        state.checkpoint = Checkpoint(taking.name, taking.job)
        if taking.in_memory:  # the loss of a server meanwhile drops the checkpoint
            state.checkpoint.manifest, state.checkpoint.epochs = (
                manifest,
                [place.epoch for place in state.servers],
            )
        self.steps = taking.steps
        self._took = max(0.0, self._tasks.state.seconds - self._at[0]) if self._at else 0.0
        self._lost = (
            taking.in_memory and not self.in_memory
        )  # the memory was left meanwhile: one in files is due
        self._taking, self.requested = None, self.requested and self._lost
        return True

    def is_readable(self) -> bool:
        """Return True if there is no complete checkpoint, or every shard of it still exists somewhere."""
        checkpoint, places = self._tasks.state.checkpoint, self._tasks.state.servers
        if checkpoint is None or checkpoint.manifest is None:
            return True
        here = [
            bool(place.address) and place.epoch == epoch
            for place, epoch in zip(places, checkpoint.epochs, strict=True)
        ]
        return all(one or after for one, after in zip(here, here[1:] + here[:1], strict=True))

    def on_held(self, arranged: Arrange) -> None:
        """Record that a server was arranged and has restored its shards in memory."""
        checkpoint = self._tasks.state.checkpoint
        if (
            checkpoint is not None
            and checkpoint.manifest is not None
            and arranged.restore == checkpoint.folder
        ):
            checkpoint.epochs[arranged.index] = arranged.epoch

    def drop(self, now: float, *, at_once: bool = False) -> None:
        """Drop the checkpoint in progress; the next one may follow `at_once`, or after a pause."""
        if self._taking is not None:
            self._taking = None
            self._not_before = now if at_once else now + AGAIN_SECS

    def list_kept_folders(self, complete: Mapping[str, object]) -> set[str]:
        """Return the names of the folders to keep.

        `complete` are the sound checkpoints with a manifest, each with something that is equal for those that share
        files: damage of a shared file is damage of all of them, so the newest of the others stays as well.
        """
        last = self._tasks.state.checkpoint
        resumable = sorted(name for name in complete if last is not None and name <= last.folder)
        gone = superseded_checkpoints(resumable, self._when.keep, resumable=resumable)
        others = [name for name in resumable if complete[name] != complete[resumable[-1]]]
        return {*resumable} - {*gone} | {*others[-1:], *([self._taking.name] if self._taking else [])}


def state_at_checkpoint(tasks: TaskManager, job: Job, progress: Iterable[Progress]) -> JobState:
    """Return the state of the job at a checkpoint taken after the copy `job`. `progress` is each lease's progress then.

    A task may have two leases: a revoked one, and its successor.
    """
    for part in sorted(progress, key=lambda part: part.task.attempt):
        number = part.task.attempt
        whole = part.rows >= part.task.rows
        if whole and number in tasks.state.leases:
            tasks.state.leases[number].pushed = part
        task = job.claim(part.task, number)
        if task is None:
            continue
        # The part of an earlier lease was counted when that was revoked.
        if task.skip != part.task.skip:
            job.give_back(task)
        elif whole:
            job.finish_task(report_of(part), tasks.state.seconds)
        else:
            job.give_back(task, report_of(part) if part.rows else None)
    return job.to_state()
