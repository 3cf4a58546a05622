"""Work of a worker by its job: inference, or training alone, with parameter servers, or with all-reduce."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from edl.arrays import Array
from edl.checkpoints import factory
from edl.cluster import Instance
from edl.cluster.environment import own_host
from edl.cluster.kubernetes.output_maps import TOO_LARGE
from edl.data import Reader
from edl.errors import JobError
from edl.frameworks import Adapter
from edl.frameworks.adapter import PartitionedAdapter, with_gradients
from edl.jobs.events import PHASES, ProcessEvent
from edl.jobs.job_folder import JobFolder
from edl.jobs.run_folder import ClusterFolder
from edl.metrics import Metric, merge_kind
from edl.program import Program
from edl.run import initial_weights, job_runner
from edl.run.search.trial_store import TrialStore
from edl.run.search.worker import SearchWorker
from edl.run.storage import Storage
from edl.spec import TREES, Rows
from edl.spec.precision import FLOAT16_ON_SERVERS
from edl.worker.checkpointing import keep_only, read_checkpoint
from edl.worker.evaluation.inference import Measuring, scoring_worker, wanted_results
from edl.worker.evaluation.measuring import training_metrics
from edl.worker.evaluation.reports import finding
from edl.worker.master_client import RemoteTasks
from edl.worker.progress import Meter
from edl.worker.strategies.allreduce.member import GroupMember
from edl.worker.strategies.allreduce.strategy import AllReduce
from edl.worker.strategies.allreduce.task_source import GroupTasks
from edl.worker.strategies.allreduce.training import GroupParameters
from edl.worker.strategies.allreduce.trees import TreeGroup
from edl.worker.strategies.factory import on_servers
from edl.worker.strategies.ps_base import ServerStrategy
from edl.worker.trainer import Export, Trainer

AHEAD_IN_GROUP, LEAST_IN_GROUP = 6, 2  # of a group; the minimum lets a task be read while another is trained


@dataclass(frozen=True, slots=True)
class Duty:
    """Job of a worker. `draining` is set when the worker must stop; `resume` names the checkpoint, empty for none."""

    program: Program
    folder: ClusterFolder
    storage: Storage
    instance: Instance
    tasks: RemoteTasks
    draining: threading.Event
    resume: str

    @property
    def job(self) -> JobFolder:
        return JobFolder(self.folder.job)

    def do(self) -> None:
        """Run tasks until there are none."""
        spec = self.program.spec
        if spec.search is not None:
            _search(self)
        elif spec.kind != "train":
            _score(self)
        elif spec.cluster.parameter_servers:
            _train_on_servers(self)
        elif spec.cluster.strategy == "allreduce":
            _train_in_groups(self)
        else:
            _train(self)

    def describe(self, metrics: Mapping[str, Metric]) -> None:
        """Report to the master how the metrics' states merge."""
        self.tasks.describe({name: merge_kind(metric) for name, metric in metrics.items()})

    @property
    def start(self) -> dict[str, Array] | None:
        """Initial weights, or None for those of a new model."""
        found = job_runner.starting_weights(self.program, self.storage.model())
        return dict(found) if found is not None else None

    @property
    def writer(self) -> str:
        """Name of this writer of checkpoints: two incarnations of an instance may write at the same time."""
        return f"{self.instance.name}-{self.instance.incarnation}"

    @property
    def disk(self) -> Callable[[], int]:
        """Disk of the checkpoints: if they are on the master's, another master may have another disk."""
        with_master = factory.are_with_master(self.job.path)
        return lambda: self.tasks.master_epoch if with_master else 0


def _score(duty: Duty) -> None:
    program, storage = duty.program, duty.storage
    _, reader = job_runner.rows_of(program, duty.job)
    weights = initial_weights.trained_weights(storage.model())
    staged = storage.results()
    worker = scoring_worker(program, reader, weights, duty.tasks, _silent, threading.Event(), duty.draining)
    duty.describe(worker.metrics)
    meter = Meter(_silent, PHASES[program.spec.kind], reader.rows)
    if program.spec.work == "predict":
        worker.predict(wanted_results(program), staged, meter)
    else:
        worker.finish(Measuring(program.spec.kind, finding(program), staged), meter)


def _search(duty: Duty) -> None:
    duty.describe({})
    SearchWorker(
        duty.program,
        duty.job,
        duty.tasks,
        duty.draining,
        threads=duty.folder.spec().threads,
        workers=duty.program.spec.cluster.workers,
        keep=duty.storage.keep,
        store=_trial_store(duty),
    ).run()


def _trial_store(duty: Duty) -> TrialStore | None:
    """Return the store of trials, or None if all workers see the job folder."""
    if not duty.folder.is_deployed:
        return None
    return TrialStore(duty.job, factory.for_instance(duty.job.path, duty.instance))


def _train(duty: Duty) -> None:
    reader, rows, export = _training(duty)
    weights = None if duty.resume else duty.start
    duty.describe(training_metrics(duty.program))
    trainer = Trainer(
        duty.program, reader, rows, duty.tasks, _silent, export, cancelled=threading.Event(), weights=weights
    )
    store = factory.for_instance(duty.job.path, duty.instance)
    keep_only(store, duty.resume)
    if duty.resume:
        trainer.resume(read_checkpoint(store.fetch(duty.resume)))
    trainer.write_checkpoints(
        store,
        writer=duty.writer,
        disk=duty.disk,
        begin=duty.tasks.begin_checkpoint,
        written=duty.tasks.end_checkpoint,
    )
    _run(duty, trainer)


def _train_on_servers(duty: Duty) -> None:
    """Train with parameter servers, which hold the parameters; the master coordinates their checkpoints."""
    program, tasks, instance = duty.program, duty.tasks, duty.instance
    if program.spec.precision == "float16":  # the size of its tables has chosen the strategy
        raise JobError(FLOAT16_ON_SERVERS[0], hint=FLOAT16_ON_SERVERS[1])
    reader, rows, export = _training(duty)
    duty.describe(training_metrics(program))

    def strategy(adapter: Adapter) -> ServerStrategy:
        return on_servers(
            program.spec.cluster,
            with_gradients(adapter),
            tasks,
            duty.folder.token(),
            (instance.name, instance.incarnation),
            start=lambda: duty.start,
            store=factory.for_instance(duty.job.path, instance),
            leaving=duty.draining,
        )

    trainer = Trainer(
        program, reader, rows, tasks, _silent, export, cancelled=threading.Event(), strategy=strategy
    )
    _run(duty, trainer)


def _train_in_groups(duty: Duty) -> None:
    """Train in groups: all workers hold the parameters, and the first of the group writes checkpoints."""
    from edl.collectives.gloo import Host  # imports torch

    reader, rows, export = _training(duty)
    weights = None if duty.resume else duty.start
    duty.describe(training_metrics(duty.program))
    host = Host(own_host())
    when = duty.program.spec.evaluation
    ahead = LEAST_IN_GROUP if when.steps or when.secs else AHEAD_IN_GROUP
    tasks = GroupTasks(duty.tasks, host.address, duty.program.spec.training, duty.draining, ahead=ahead)

    def strategy(adapter: Adapter) -> GroupMember:
        if duty.program.spec.framework in TREES:
            return TreeGroup(cast(PartitionedAdapter, adapter), tasks, host, duty.instance.name)
        return AllReduce(with_gradients(adapter), tasks, host, duty.instance.name)

    with contextlib.closing(tasks):
        trainer = Trainer(
            duty.program,
            reader,
            rows,
            tasks,
            _silent,
            export,
            cancelled=threading.Event(),
            weights=weights,
            strategy=strategy,
        )
        store = factory.for_instance(duty.job.path, duty.instance)
        tasks.parameters = GroupParameters(trainer, store, duty.resume)
        tasks.parameters.warm_up()
        trainer.write_checkpoints(
            store,
            writer=duty.writer,
            disk=duty.disk,
            begin=tasks.begin_checkpoint,
            written=duty.tasks.end_checkpoint,
            may=lambda: tasks.leads,
            unconcluded=lambda: tasks.unconcluded,
        )
        _run(duty, trainer)


def _training(duty: Duty) -> tuple[Reader, Rows, Export]:
    """Return the rows, their split, and the function that writes and stores the model."""
    pinned, reader = job_runner.rows_of(duty.program, duty.job)
    rows, write = job_runner.training(duty.program, duty.job, pinned, reader)
    return reader, rows, lambda outcome, weights: duty.storage.keep(write(outcome, weights))


def _run(duty: Duty, trainer: Trainer) -> None:
    """Train to the end. Raises JobError at once if the model is larger than what can be stored."""
    size = sum(each.nbytes for each in trainer.adapter.get_weights().values()) if duty.storage.most else 0
    if size > duty.storage.most:
        raise JobError(
            f"the model has {size / 1e6:,.0f} MB; {duty.storage.most / 1e6:.0f} MB come back through the cluster",
            hint=TOO_LARGE,
        )
    trainer.worker.draining = duty.draining
    trainer.run()


def _silent(event: ProcessEvent) -> None:
    """Ignore the event: the master reports the job's progress."""
