"""A worker of a job with a master: it does the tasks that it is given, until there are none.

`main` is what the cluster runs in a process of its own, forked from one that has imported the framework. An error that
would meet every other worker too (the program cannot be loaded, the model cannot be built) ends the job; anything else
ends this worker, and another one takes its name.
"""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

from edl import exit_codes, logs
from edl.checkpoints import GoneError
from edl.cluster import Instance
from edl.cluster.local.instance_process import TAKE_OVER
from edl.cluster.local.signals import leave
from edl.entrypoints.worker_job import Duty
from edl.jobs.failure import to_failed
from edl.jobs.job_folder import JobFolder
from edl.jobs.run_folder import ClusterFolder
from edl.program import Program, read_spec
from edl.rpc.channel import MasterChannel
from edl.run import job_runner
from edl.run.storage import storage_of
from edl.scripting import script
from edl.spec import JobSpec
from edl.worker.master_client import RefusedError, RemoteTasks
from edl.worker.strategies.allreduce.rendezvous_client import GroupMember

AHEAD = 3  # training tasks in hands of who trains alone: one that is done, two that are read
AHEAD_ALONE = 32  # where nobody else could do them
GATHER_SECS = 0.2  # between two exchanges of a worker that trains alone


def main(job: Path, instance: Instance) -> int:
    """Be a worker of the job; the exit code, or `TAKE_OVER`."""
    begun, draining = threading.Event(), threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: draining.set() if begun.is_set() else leave())
    folder = ClusterFolder(job)
    spec = read_spec(JobFolder(job).program)
    log = folder.shown_log(instance.name)
    with (
        MasterChannel(folder.address(), folder.token()) as channel,
        _tasks(spec, channel, instance, draining, log) as tasks,
    ):
        try:
            joined = tasks.join()

            def do(program: Program) -> None:
                begun.set()
                storage = storage_of(JobFolder(job), program.spec)
                Duty(program, folder, storage, instance, tasks, draining, joined.resume).do()

            _with_program(spec, folder, do)
        except (RefusedError, GoneError) as error:  # the latter: its master is gone, with the checkpoint
            logs.log(f"leaving: {error}")
            return exit_codes.PREEMPTED
        except Exception as error:
            traceback.print_exc()
            if not tasks.is_reported(error):
                tasks.give_up(to_failed(error, log))
            return exit_codes.FAILED
        tasks.leave()
    if tasks.takes_over:
        return TAKE_OVER
    return exit_codes.PREEMPTED if draining.is_set() else exit_codes.OK


def _tasks(
    spec: JobSpec, channel: MasterChannel, instance: Instance, draining: threading.Event, log: str
) -> RemoteTasks:
    """Where the tasks come from."""
    holds = spec.kind == "train" and not spec.cluster.parameter_servers  # the weights
    alone = holds and spec.cluster.strategy != "allreduce"
    gathers = holds and not (spec.evaluation.steps or spec.evaluation.secs)  # a round begins with a report
    hoard = AHEAD_ALONE if gathers else AHEAD
    source = GroupMember if holds and not alone else RemoteTasks
    return source(
        channel,
        instance.name,
        instance.incarnation,
        ahead={"train": hoard} if alone else {},  # what is shared, nobody hoards
        trainer=holds,
        gather_secs=GATHER_SECS if gathers else 0.0,
        draining=draining,
        log=log,
    )


def _with_program(spec: JobSpec, folder: ClusterFolder, do: Callable[[Program], None]) -> None:
    """Do it with the program of the job: a folder's, a module's, or that of the script whose call the job is."""
    job, threads = JobFolder(folder.job), folder.spec().threads
    called = script.of(job)
    if called is None:
        with job_runner.loaded(job.program, spec, threads=threads) as program:
            do(program)
        return
    job_runner.prepare(spec, threads)
    script.run(called, spec, job.program, do)
