"""Work of a worker by its job: inference, or training alone, with parameter servers, or with all-reduce."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from edl.arrays import Array
from edl.checkpoints import CheckpointStore, factory
from edl.checkpoints.trainer import checkpoint_to_resume
from edl.cluster import Instance
from edl.cluster.environment import own_host
from edl.cluster.kubernetes.output_maps import TOO_LARGE
from edl.errors import JobError
from edl.evaluation.measuring import training_metrics
from edl.evaluation.reports import finding
from edl.frameworks import Adapter
from edl.frameworks.adapter import PartitionedAdapter, has_gradients, keeps_rounds, with_gradients
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.events import PHASES, ignore
from edl.jobs.job_folder import JobFolder
from edl.metrics import Metric, merge_kind
from edl.program import Program
from edl.run import initial_weights, job_runner
from edl.run.search import driver
from edl.run.search.trial_store import TrialStore
from edl.run.search.worker import SearchWorker
from edl.run.storage import Storage
from edl.spec import TREES
from edl.spec.precision import FLOAT16_ON_SERVERS
from edl.tasks.job_state import MOST_EPOCHS
from edl.tasks.task import Report, TaskSource
from edl.worker.checkpointing import Checkpointer
from edl.worker.inference import Measuring, scoring_worker, wanted_results
from edl.worker.master_client import RemoteTasks
from edl.worker.progress import Meter
from edl.worker.strategies.allreduce.member import GroupMember
from edl.worker.strategies.allreduce.strategy import AllReduce
from edl.worker.strategies.allreduce.task_source import GroupTasks
from edl.worker.strategies.allreduce.training import GroupParameters
from edl.worker.strategies.allreduce.trees import TreeGroup
from edl.worker.strategies.base import Local, Strategy
from edl.worker.strategies.factory import on_servers
from edl.worker.strategies.ps_base import ServerStrategy
from edl.worker.trainer import Trainer

MOST_KEPT = 1 << 30  # bytes of weights that are kept of epochs which end while no master answers
AHEAD_IN_GROUP, LEAST_IN_GROUP = 6, 2  # of a group; the minimum lets a task be read while another is trained


@dataclass(frozen=True, slots=True)
class WorkerJob:
    """Work of one worker; the master reports the job's progress, so its own events are ignored.

    `draining` is set when it must stop; `resume` names the checkpoint to start from, or is empty.
    """

    program: Program
    folder: ClusterFolder
    storage: Storage
    instance: Instance
    tasks: RemoteTasks
    draining: threading.Event
    resume: str

    def run(self) -> None:
        """Do tasks until there are none."""
        spec = self.program.spec
        if spec.search is not None:
            self._search()
        elif spec.kind != "train":
            self._score()
        elif spec.cluster.parameter_servers:
            self._train_on_servers()
        elif spec.cluster.strategy == "allreduce":
            self._train_in_groups()
        else:
            self._train_alone()

    @property
    def _job(self) -> JobFolder:
        return JobFolder(self.folder.job)

    @property
    def _store(self) -> CheckpointStore:
        return factory.for_instance(self._job.path, self.instance)

    def _search(self) -> None:
        self._describe({})
        # Pods do not see each other's job folder.
        trials = TrialStore(self._job, self._store) if self.folder.is_deployed else None
        workers, threads = self.program.spec.cluster.workers, self.folder.run_spec().threads
        if not workers:  # it began in one process
            workers = driver.slots_of(self.program.spec, threads)
            threads = max(1, threads // workers)
        SearchWorker(
            self.program,
            self._job,
            self.tasks,
            self.draining,
            threads=threads,
            workers=workers,
            keep=self.storage.keep,
            store=trials,
        ).run()

    def _score(self) -> None:
        program, kind = self.program, self.program.spec.kind
        _, reader = job_runner.rows_of(program, self._job)
        weights = initial_weights.trained_weights(self.storage.model())
        background = initial_weights.trained_background(self.storage.model(), program.spec)
        staged = self.storage.results()
        worker = scoring_worker(
            program, reader, weights, self.tasks, ignore, threading.Event(), self.draining, background
        )
        self._describe(worker.metrics)
        meter = Meter(ignore, PHASES[kind], reader.rows)
        if program.spec.work == "predict":
            worker.predict(wanted_results(program), staged, meter)
        else:
            worker.finish(Measuring(kind, finding(program), staged), meter)

    def _train_alone(self) -> None:
        trainer, store = self._trainer(self.tasks, weights=self._fresh_weights()), self._store
        if (checkpoint := checkpoint_to_resume(store, self.resume)) is not None:
            trainer.resume(checkpoint)
        local = cast(Local, trainer.worker.strategy)
        trainer.write_checkpoints(
            self._checkpointer(store, self.tasks.begin_checkpoint), may=lambda: not local.postponed
        )
        self.tasks.most_postponed = self._most_postponed(trainer)
        self._train(trainer)

    def _train_on_servers(self) -> None:
        """Train with the parameters on parameter servers; the master coordinates their checkpoints."""
        spec = self.program.spec
        if spec.precision == "float16":  # the size of its tables has chosen the strategy
            raise JobError(FLOAT16_ON_SERVERS[0], hint=FLOAT16_ON_SERVERS[1])

        def strategy(adapter: Adapter) -> ServerStrategy:
            return on_servers(
                spec.cluster,
                with_gradients(adapter),
                self.tasks,
                self.folder.token(),
                (self.instance.name, self.instance.incarnation),
                start=self._initial_weights,
                store=self._store,
                leaving=self.draining,
            )

        self._train(self._trainer(self.tasks, strategy=strategy))

    def _train_in_groups(self) -> None:
        """Train in groups: all workers hold the parameters, and the first of the group writes checkpoints."""
        from edl.collectives.gloo import GlooHost  # imports torch

        spec, host = self.program.spec, GlooHost(own_host())
        ahead = LEAST_IN_GROUP if spec.evaluation.steps or spec.evaluation.secs else AHEAD_IN_GROUP
        tasks = GroupTasks(self.tasks, host.address, spec.training, self.draining, ahead=ahead)

        def strategy(adapter: Adapter) -> GroupMember:
            if spec.framework in TREES:
                return TreeGroup(cast(PartitionedAdapter, adapter), tasks, host, self.instance.name)
            return AllReduce(with_gradients(adapter), tasks, host, self.instance.name)

        with contextlib.closing(tasks):
            trainer = self._trainer(tasks, weights=self._fresh_weights(), strategy=strategy)
            store = self._store
            tasks.parameters = GroupParameters(trainer, store, self.resume)
            tasks.parameters.warm_up()
            trainer.write_checkpoints(
                self._checkpointer(store, tasks.begin_checkpoint),
                may=lambda: tasks.leads and not tasks.has_postponed,
                unconcluded=lambda: tasks.unconcluded_epoch,
            )
            self.tasks.most_postponed = self._most_postponed(trainer)
            self._train(trainer)

    # Training ------------------------------------------------------------------------------------------------

    def _trainer(
        self,
        tasks: TaskSource,
        *,
        weights: Mapping[str, Array] | None = None,
        strategy: Callable[[Adapter], Strategy] = Local,
    ) -> Trainer:
        """Return the trainer of the job's rows; its model goes to the storage."""
        pinned, reader = job_runner.rows_of(self.program, self._job)
        rows, write = job_runner.training(self.program, self._job, pinned, reader)
        self._describe(training_metrics(self.program))
        return Trainer(
            self.program,
            reader,
            rows,
            tasks,
            ignore,
            lambda outcome, weights: self.storage.keep(write(outcome, weights)),
            weights=weights,
            strategy=strategy,
        )

    def _train(self, trainer: Trainer) -> None:
        """Train to the end. Raises JobError at once if the model is larger than what can be stored."""
        size = (
            sum(array.nbytes for array in trainer.adapter.get_weights().values()) if self.storage.most else 0
        )
        if size > self.storage.most:
            raise JobError(
                f"the model has {size / 1e6:,.0f} MB; {self.storage.most / 1e6:.0f} MB come back through the cluster",
                hint=TOO_LARGE,
            )
        trainer.worker.draining = self.draining
        trainer.run()

    def _most_postponed(self, trainer: Trainer) -> int:
        """Return the number of epochs that may end without a master. If rows are measured, their weights are kept.

        Trees that change in later rounds (DART) would have to be loaded again for that, and then grow otherwise.
        """
        if not self.program.spec.rows.validation or keeps_rounds(trainer.adapter):
            return MOST_EPOCHS
        if not has_gradients(trainer.adapter):
            return 0
        size = sum(array.nbytes for array in trainer.adapter.get_weights().values())
        return min(MOST_EPOCHS, MOST_KEPT // max(1, size))

    def _checkpointer(self, store: CheckpointStore, begin: Callable[[str, Report], None]) -> Checkpointer:
        """Return the writer of this worker's checkpoints; `begin` reports to the master."""
        # If they are on the master's disk, another master may have another one.
        with_master = factory.are_with_master(self._job.path)
        return Checkpointer(
            store,
            self.program.spec.checkpoints,
            # Two incarnations of an instance may write at the same time.
            writer=f"{self.instance.name}-{self.instance.incarnation}",
            disk=lambda: self.tasks.master_epoch if with_master else 0,
            begin=begin,
            on_written=self.tasks.end_checkpoint,
        )

    def _fresh_weights(self) -> Mapping[str, Array] | None:
        """Return the initial weights unless training resumes from a checkpoint."""
        return None if self.resume else self._initial_weights()

    def _initial_weights(self) -> Mapping[str, Array] | None:
        """Return the initial weights, or None for a new model's weights."""
        return job_runner.starting_weights(self.program, self.storage.model())

    def _describe(self, metrics: Mapping[str, Metric]) -> None:
        """Report to the master how the metrics' states merge."""
        self.tasks.describe({name: merge_kind(metric) for name, metric in metrics.items()})
