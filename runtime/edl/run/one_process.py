"""State of a training in one process, stored as by a master with one worker.

So the same code continues both (`edl.master.resume`): a master and one worker go back to the last checkpoint, and end
with the weights that this process would have ended with. The files are the same as for a job with a master:

    cluster/spec.json     written by the client before the training begins: without it, the job is not kept
    cluster/state         with the first checkpoint, and replaced with each other; its lock is held from the start
    checkpoints/…         when they are due, but none in the first minute of a job; one when it is interrupted

A search has its trials in place of checkpoints, and its state from the start.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from edl.checkpoints import factory
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.job_folder import JobFolder
from edl.master.state_store import FileStateStore
from edl.metrics import merge_kind
from edl.spec import JobSpec
from edl.tasks import encoding
from edl.tasks.local import LocalTasks
from edl.tasks.task import Report
from edl.worker.checkpointing import Checkpointer
from edl.worker.trainer import Trainer

if TYPE_CHECKING:
    from edl.master.state import Checkpoint

FIRST_SECS = 60.0  # a job that takes less time writes no checkpoint, unless it has an interval of steps
WORKER = "worker-0"  # as which a master sees the trainer of this process: lost

Prepare = Callable[[Trainer, LocalTasks], None]


@contextlib.contextmanager
def keeping_state(job: JobFolder, spec: JobSpec, interrupted: threading.Event | None) -> Iterator[Prepare]:
    """Hold the job's state inside the context; yield what prepares its trainer to write checkpoints.

    A trainer leaves with a checkpoint when `interrupted` is set. Nothing is written without it, or without a run
    specification.
    """
    if interrupted is None or not ClusterFolder(job.path).has_run_spec:
        yield lambda trainer, tasks: None
        return
    with contextlib.closing(FileStateStore(ClusterFolder(job.path).state)) as store:
        kept: list[KeptTraining] = []

        def prepare(trainer: Trainer, tasks: LocalTasks) -> None:
            kept.append(KeptTraining(job, spec, store, trainer, tasks, interrupted))

        try:
            yield prepare
        finally:
            for resource in kept:
                resource.close()


@contextlib.contextmanager
def keeping_search(job: JobFolder, workers: int) -> Iterator[None]:
    """Hold the state of a search inside the context. So many workers of a master continue it: they find the trials that
    have ended in the job folder.
    """
    if not ClusterFolder(job.path).has_run_spec:
        yield
        return
    from edl.master.state import MasterState

    with contextlib.closing(FileStateStore(ClusterFolder(job.path).state)) as store:
        store.write(encoding.encode(MasterState(workers=workers)))
        yield


class KeptTraining:
    """Writer of the checkpoints of a training in this process, and of the job's state at each."""

    def __init__(
        self,
        job: JobFolder,
        spec: JobSpec,
        store: FileStateStore,
        trainer: Trainer,
        tasks: LocalTasks,
        interrupted: threading.Event,
    ) -> None:
        self._job = job
        self._spec = spec
        self._store = store
        self._tasks = tasks
        self._kinds: Mapping[str, str] = {
            name: merge_kind(metric) for name, metric in trainer.worker.metrics.items()
        }
        self._begun: Checkpoint | None = None  # is being written
        self._interrupted = interrupted
        self._first_secs = 0.0 if spec.checkpoints.steps else FIRST_SECS
        self._checkpointer = Checkpointer(
            factory.for_master(job.path),
            spec.checkpoints,
            writer=WORKER,
            begin=self._begin,
            on_written=self._write,
        )
        trainer.worker.draining = interrupted
        trainer.write_checkpoints(self._checkpointer, may=self._may_write)

    def close(self) -> None:
        """Wait until a checkpoint in progress is written: the job folder may be removed afterwards."""
        self._checkpointer.wait()

    def _may_write(self) -> bool:
        return self._interrupted.is_set() or self._tasks.seconds >= self._first_secs

    def _begin(self, name: str, done: Report) -> None:
        from edl.master.state import Checkpoint  # no short job needs it

        self._begun = Checkpoint(name, self._tasks.state_at(done))

    def _write(self, name: str) -> None:
        from edl.master.state import MasterState, Member
        from edl.master.stored_checkpoints import stored_checkpoints

        checkpoint = self._begun
        if checkpoint is None or checkpoint.folder != name:
            raise RuntimeError("a checkpoint is written after it has begun, one at a time")
        state = encoding.encode(
            MasterState(
                seconds=self._tasks.seconds,
                job=checkpoint.job,
                members={WORKER: Member(0, 0.0)},
                checkpoint=checkpoint,
                metric_kinds=dict(self._kinds),
                workers=1,
            )
        )
        self._store.write(state)
        stored_checkpoints(self._spec, factory.for_master(self._job.path)).add_state(name, state)
