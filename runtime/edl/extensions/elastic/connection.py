"""Connection of a worker's script to its job: tasks of the master, the group, checkpoints.

`current_place` tells whether this process is a worker of `edl run` or a process of its own; it imports nothing for
that."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from edl.checkpoints import CheckpointStore, factory
from edl.checkpoints.trainer import TrainerCheckpoint, TrainerPosition, checkpoint_to_resume
from edl.cluster import Instance
from edl.cluster.environment import own_host
from edl.cluster.local.signals import end_hung
from edl.errors import DamagedError, SQLFlowError
from edl.extensions.elastic.member import ScriptMember
from edl.extensions.elastic.state import ScriptState
from edl.extensions.elastic.steps import AHEAD, Steps
from edl.frameworks import Adapter
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.failure import to_failed
from edl.jobs.job_folder import JobFolder
from edl.program import read_spec
from edl.rpc.channel import MasterChannel
from edl.spec import Training
from edl.tasks.task import Report
from edl.worker.ahead import Ahead
from edl.worker.checkpointing import Checkpointer
from edl.worker.master_client import RemoteTasks
from edl.worker.strategies.allreduce.task_source import GroupTasks

GATHER_SECS = 0.2  # between two exchanges with the master


class JobConnection:
    """Connection of one worker. `steps` is set before the first group is joined."""

    steps: Steps

    def __init__(self, worker: ElasticWorker, state: ScriptState, draining: threading.Event) -> None:
        from edl.collectives.gloo import GlooHost  # imports torch

        folder = ClusterFolder(worker.job)
        instance = worker.instance
        self._state = state
        self._channel = MasterChannel(folder.address(), folder.token())
        self._tasks = RemoteTasks(
            self._channel,
            instance.name,
            instance.incarnation,
            ahead=Ahead("train"),
            trainer=True,
            grouped=True,
            gather_secs=GATHER_SECS,
            draining=draining,
            log=folder.shown_log(instance.name),
            end_hung=end_hung,
        )
        joined = self._tasks.join()
        host = GlooHost(own_host())
        self.source = GroupTasks(self._tasks, host.address, Training(), draining, ahead=AHEAD)
        self.member = ScriptMember(
            cast(Adapter, state), self.source, host, instance.name, instance.incarnation
        )
        store = factory.for_instance(worker.job, instance)
        self.source.parameters = _Parameters(self.member, state, store, joined.resume)
        self._checkpointer = Checkpointer(
            store,
            read_spec(JobFolder(worker.job).program).checkpoints,
            writer=f"{instance.name}-{instance.incarnation}",
            begin=self.source.begin_checkpoint,
            on_written=self._tasks.end_checkpoint,
        )

    @property
    def is_over(self) -> bool:
        """True if the job has nothing left to do."""
        return self.source.is_over("export")

    def on_step(self, done: Report) -> None:
        """Write a checkpoint if one is due, on the first member of the group. `done` is the progress of the task."""
        step = self.member.step
        if self.source.leads and self._checkpointer.is_due(step) and self.steps.report_settled():
            self._checkpointer.take(self._checkpoint, step, done)

    def leaving(self, done: Report) -> None:
        """Write a checkpoint on the first member of the group, in case no other worker holds the state."""
        if self.source.leads:
            self._checkpointer.take(self._checkpoint, self.member.step, done)
            self._checkpointer.wait()

    def give_up(self, error: SQLFlowError) -> None:
        """Fail the job, unless the error is a damaged checkpoint: then it goes on from another one."""
        damaged = error.checkpoint if isinstance(error, DamagedError) else ""
        self._tasks.give_up(to_failed(error, ""), damaged)

    def close(self) -> None:
        """Leave the group and the job."""
        self.member.leave()
        self.source.close()
        self._tasks.leave()
        self._tasks.close()
        self._channel.close()

    def _checkpoint(self) -> Callable[[], TrainerCheckpoint]:
        position = TrainerPosition(self.member.step, unconcluded=self.source.unconcluded_epoch)
        cut = self._state.cut()
        return lambda: TrainerCheckpoint(position, *cut())


class _Parameters:
    """Operations of the task log on the script's objects. `resume` is the checkpoint to start from, "" for none."""

    def __init__(self, member: ScriptMember, state: ScriptState, store: CheckpointStore, resume: str) -> None:
        self._member = member
        self._state = state
        self._store = store
        self._resume = resume

    def begin(self) -> int:
        checkpoint = checkpoint_to_resume(self._store, self._resume)
        if checkpoint is None:
            return 0
        self._state.set_weights(checkpoint.weights)
        self._state.set_state(checkpoint.state)
        self._member.step = checkpoint.position.step
        return checkpoint.position.unconcluded

    def keep(self, epoch: int) -> None:
        """Keep nothing: the script decides which weights it saves."""

    def postpone(self, epoch: int) -> None:
        """Keep nothing: no rows are measured."""

    def keep_best(self, best: int, epoch: int) -> None:
        """Drop nothing."""


@dataclass
class ElasticWorker:
    """Worker of a job. `at_end` are called with the exit code of its script, and our error that has ended it."""

    job: Path
    instance: Instance
    at_end: list[Callable[[int, SQLFlowError | None], None]] = field(default_factory=list)


_worker: ElasticWorker | None = None


def enter_worker(job: Path, instance: Instance) -> None:
    """Record that this process is a worker of the job."""
    global _worker
    _worker = ElasticWorker(job, instance)


def leave_worker(code: int, error: SQLFlowError | None = None) -> None:
    """End what the worker has begun, at the end of its script."""
    while _worker is not None and _worker.at_end:
        _worker.at_end.pop()(code, error)


def current_worker() -> ElasticWorker | None:
    """Return the worker that this process is, or None."""
    return _worker
