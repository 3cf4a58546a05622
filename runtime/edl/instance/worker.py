"""A worker of a job with a master: it does the tasks that it is given, until there are none.

`main` is what the cluster runs in a process of its own, forked from one that has imported the framework. An error that
would meet every other worker too (the program cannot be loaded, the model cannot be built) ends the job; anything else
ends this worker, and another one takes its name.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

from edl import exit_codes
from edl.checkpoints import GoneError, opening
from edl.cluster import Instance
from edl.cluster.body import TAKE_OVER
from edl.cluster.environment import own_host
from edl.cluster.folder import ClusterFolder
from edl.cluster.leaving import leave
from edl.data import Reader
from edl.data.jobs import JobFolder
from edl.instance import given, script, work
from edl.instance.storage import Storage, storage_of
from edl.metrics import merge_kind
from edl.nn import Adapter
from edl.nn.structure import Array
from edl.program import Program, read_spec
from edl.rpc.channel import MasterChannel
from edl.spec import JobSpec, Rows
from edl.tasks.events import EpochEnd, Progress
from edl.tasks.failed import to_failed
from edl.worker.allreduce import AllReduce
from edl.worker.checkpoints import keep_only, read_cut
from edl.worker.inference import Measuring, scoring_worker
from edl.worker.measuring import program_metrics
from edl.worker.meter import Meter
from edl.worker.modes import on_servers
from edl.worker.parameter_server import OnServers
from edl.worker.prediction import results
from edl.worker.remote import RefusedError, RemoteTasks
from edl.worker.ring_member import RingMember
from edl.worker.ring_tasks import RingTasks
from edl.worker.ring_training import RingParameters
from edl.worker.training import Export, Trainer

AHEAD = 3  # training tasks in hands of who trains alone: one that is done, two that are read
AHEAD_ALONE = 32  # where nobody else could do them
AHEAD_IN_RING, LEAST_IN_RING = 6, 2  # of a ring; the least lets a task be read while another is trained
GATHER_SECS = 0.2  # between two exchanges of a worker that trains alone


def main(job: Path, instance: Instance) -> int:
    """Be a worker of the job; the exit code, or `TAKE_OVER`."""
    begun, draining = threading.Event(), threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: draining.set() if begun.is_set() else leave())
    folder = ClusterFolder(job)
    spec = read_spec(JobFolder(job).program)
    log = folder.shown_log(instance.name)
    holds = spec.kind == "train" and not spec.cluster.parameter_servers  # the weights
    alone = holds and spec.cluster.strategy != "allreduce"
    gathers = holds and not (spec.evaluation.steps or spec.evaluation.secs)  # a round begins with a report
    hoard = AHEAD_ALONE if gathers else AHEAD
    source = RingMember if holds and not alone else RemoteTasks
    with (
        MasterChannel(folder.address(), folder.token()) as channel,
        source(
            channel,
            instance.name,
            instance.incarnation,
            ahead={"train": hoard} if alone else {},  # what is shared, nobody hoards
            trainer=holds,
            gather_secs=GATHER_SECS if gathers else 0.0,
            draining=draining,
            log=log,
        ) as tasks,
    ):
        try:
            joined = tasks.join()

            def do(program: Program) -> None:
                begun.set()
                _work(program, folder, instance, tasks, draining, joined.resume)

            _with_program(spec, folder, do)
        except (RefusedError, GoneError) as error:  # the latter: its master is gone, with the checkpoint
            print(f"leaving: {error}", file=sys.stderr)
            return exit_codes.PREEMPTED
        except Exception as error:
            traceback.print_exc()
            if not tasks.told_of(error):
                tasks.give_up(to_failed(error, log))
            return exit_codes.FAILED
        tasks.leave()
    if tasks.takes_over:
        return TAKE_OVER
    return exit_codes.PREEMPTED if draining.is_set() else exit_codes.OK


def _with_program(spec: JobSpec, folder: ClusterFolder, do: Callable[[Program], None]) -> None:
    """Do it with the program of the job: a folder's, a module's, or that of the script whose call the job is."""
    job, threads = JobFolder(folder.job), folder.spec().threads
    called = script.of(job)
    if called is None:
        with work.loaded(job.program, spec, threads=threads) as program:
            do(program)
        return
    work.prepare(spec, threads)
    script.run(called, spec, job.program, do)


def _work(
    program: Program,
    folder: ClusterFolder,
    instance: Instance,
    tasks: RemoteTasks,
    draining: threading.Event,
    resume: str,
) -> None:
    job = JobFolder(folder.job)
    storage = storage_of(job, program.spec)
    if program.spec.kind == "train":
        if program.spec.cluster.parameter_servers:
            _train_on_servers(program, folder, storage, instance, tasks, draining)
        elif isinstance(tasks, RingMember):
            _train_in_rings(program, job, storage, instance, tasks, draining, resume)
        else:
            _train(program, job, storage, instance, tasks, draining, resume)
        return
    _, reader = work.rows_of(program, job)
    weights = given.trained_weights(storage.model())
    staged = storage.results()
    wanted = results(program) if program.spec.kind == "predict" else None
    worker = scoring_worker(
        program, reader, weights, program.spec.kind, tasks, _silent, threading.Event(), draining
    )
    tasks.describe({name: merge_kind(metric) for name, metric in worker.metrics.items()})
    meter = Meter(_silent, "prediction", reader.rows)
    if wanted:
        worker.predict(wanted, staged, meter)
    else:
        worker.finish(Measuring(worker.metrics, staged), meter)


def _train(
    program: Program,
    job: JobFolder,
    storage: Storage,
    instance: Instance,
    tasks: RemoteTasks,
    draining: threading.Event,
    resume: str,
) -> None:
    reader, rows, export = _training(program, job, storage)
    weights = None if resume else _starting(program, storage)
    tasks.describe({name: merge_kind(metric) for name, metric in program_metrics(program).items()})
    trainer = Trainer(
        program, reader, rows, tasks, _silent, export, cancelled=threading.Event(), weights=weights
    )
    store = opening.for_instance(job.path, instance)
    keep_only(store, resume)
    if resume:
        trainer.resume(read_cut(store.fetch(resume)))
    trainer.keep_cuts(
        store,
        writer=_writer(instance),
        disk=_disk(job, tasks),
        begin=tasks.cut,
        written=tasks.cut_written,
    )
    trainer.worker.draining = draining
    trainer.run()


def _train_on_servers(
    program: Program,
    folder: ClusterFolder,
    storage: Storage,
    instance: Instance,
    tasks: RemoteTasks,
    draining: threading.Event,
) -> None:
    """The servers hold what is trained, and the master has them write it down."""
    job = JobFolder(folder.job)
    reader, rows, export = _training(program, job, storage)
    tasks.describe({name: merge_kind(metric) for name, metric in program_metrics(program).items()})

    def strategy(adapter: Adapter) -> OnServers:
        return on_servers(
            program.spec.cluster,
            adapter,
            tasks,
            folder.token(),
            (instance.name, instance.incarnation),
            start=lambda: _starting(program, storage),
            store=opening.for_instance(job.path, instance),
            leaving=draining,
        )

    trainer = Trainer(
        program, reader, rows, tasks, _silent, export, cancelled=threading.Event(), strategy=strategy
    )
    trainer.worker.draining = draining
    trainer.run()


def _train_in_rings(
    program: Program,
    job: JobFolder,
    storage: Storage,
    instance: Instance,
    member: RingMember,
    draining: threading.Event,
    resume: str,
) -> None:
    """All workers hold what is trained, and the first of the ring writes it down."""
    from edl.nn.gloo import Host  # imports torch

    reader, rows, export = _training(program, job, storage)
    weights = None if resume else _starting(program, storage)
    member.describe({name: merge_kind(metric) for name, metric in program_metrics(program).items()})
    host = Host(own_host())
    when = program.spec.evaluation
    ahead = LEAST_IN_RING if when.steps or when.secs else AHEAD_IN_RING
    tasks = RingTasks(member, host.address, program.spec.training, draining, ahead=ahead)
    with contextlib.closing(tasks):
        trainer = Trainer(
            program,
            reader,
            rows,
            tasks,
            _silent,
            export,
            cancelled=threading.Event(),
            weights=weights,
            strategy=lambda adapter: AllReduce(adapter, tasks, host, member.name),
        )
        store = opening.for_instance(job.path, instance)
        tasks.parameters = RingParameters(trainer, store, resume)
        tasks.parameters.warm_up()
        trainer.keep_cuts(
            store,
            writer=_writer(instance),
            disk=_disk(job, member),
            begin=tasks.cut,
            written=member.cut_written,
            may=lambda: tasks.leads,
            unconcluded=lambda: tasks.unconcluded,
        )
        trainer.worker.draining = draining
        trainer.run()


def _training(program: Program, job: JobFolder, storage: Storage) -> tuple[Reader, Rows, Export]:
    """The rows, which of them are trained on, and what writes the model and stores it."""
    pinned, reader = work.rows_of(program, job)
    rows, write = work.training(program, job, pinned, reader)
    return reader, rows, lambda outcome, weights: storage.keep(write(outcome, weights))


def _writer(instance: Instance) -> str:
    """What is in the names of its checkpoints: two starts of an instance may write at the same time."""
    return f"{instance.name}-{instance.incarnation}"


def _disk(job: JobFolder, tasks: RemoteTasks) -> Callable[[], int]:
    """Where the master keeps them, another master may have another disk."""
    with_master = opening.are_with_master(job.path)
    return lambda: tasks.master_epoch if with_master else 0


def _starting(program: Program, storage: Storage) -> dict[str, Array] | None:
    found = work.starting_weights(program, storage.model())
    return dict(found) if found is not None else None


def _silent(event: Progress | EpochEnd) -> None:
    """The master tells of the job, from what its workers report."""
