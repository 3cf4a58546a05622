"""Entry point of a worker of a job with a master: it runs assigned tasks until there are none.

The cluster runs `main` in a process of its own, forked from one that has imported the framework. An error that would
occur in every other worker too (the program cannot be loaded, the model cannot be built) ends the job; other errors
end this worker, and a new one takes its name. After a damaged checkpoint that one resumes from another.
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
from edl.cluster.local.signals import end_hung, leave
from edl.entrypoints.worker_job import WorkerJob
from edl.errors import DamagedError
from edl.frameworks.device import set_ranks
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.failure import to_failed
from edl.jobs.job_folder import JobFolder
from edl.program import Program, read_spec
from edl.rpc.channel import MasterChannel, channel_of_instance
from edl.run import job_runner
from edl.run.storage import storage_of
from edl.scripting import script
from edl.spec import JobSpec
from edl.worker.ahead import Ahead
from edl.worker.master_client import RefusedError, RemoteTasks

AHEAD = 3  # tasks assigned to a sole trainer: one in training, two being read
AHEAD_ALONE = 32  # if no round begins with a report
GATHER_SECS = 0.2  # between two exchanges of a worker that has reports


def main(job: Path, instance: Instance) -> int:
    """Run a worker of the job. Return the exit code, or `TAKE_OVER`."""
    begun, draining = threading.Event(), threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: draining.set() if begun.is_set() else leave())
    folder = ClusterFolder(job)
    set_ranks(instance.name, in_pods=folder.is_deployed)
    spec = read_spec(JobFolder(job).program)
    log = folder.shown_log(instance.name)
    with (
        channel_of_instance(folder.address(), folder.token()) as channel,
        _tasks(spec, channel, instance, draining, log) as tasks,
    ):
        try:
            joined = tasks.join()

            def do(program: Program) -> None:
                begun.set()
                storage = storage_of(JobFolder(job), program.spec)
                WorkerJob(program, folder, storage, instance, tasks, draining, joined.resume).run()

            _with_program(spec, folder, do)
        except (RefusedError, GoneError) as error:  # GoneError: its master is gone, with the checkpoint
            logs.log(f"stopping: {error}")
            return exit_codes.PREEMPTED
        except Exception as error:
            traceback.print_exc()
            if not tasks.is_reported(error):
                damaged = error.checkpoint if isinstance(error, DamagedError) else ""
                tasks.give_up(to_failed(error, log), damaged)
            return exit_codes.FAILED
        tasks.leave()
    if tasks.takes_over:
        return TAKE_OVER
    return exit_codes.PREEMPTED if draining.is_set() else exit_codes.OK


def _tasks(
    spec: JobSpec, channel: MasterChannel, instance: Instance, draining: threading.Event, log: str
) -> RemoteTasks:
    """Return the source of tasks for the job's kind and strategy."""
    holds = spec.work == "train" and not spec.cluster.parameter_servers  # the weights
    grouped = holds and spec.cluster.strategy == "allreduce"
    alone = holds and not grouped
    by_reports = spec.evaluation.steps or spec.evaluation.secs  # rounds begin with a report
    gathers = spec.work != "search" and not (spec.work == "train" and by_reports)
    least = (AHEAD_ALONE if gathers else AHEAD) if alone else 0
    return RemoteTasks(
        channel,
        instance.name,
        instance.incarnation,
        ahead=Ahead(spec.work, least) if spec.work != "search" else None,  # a trial takes long
        trainer=holds,
        grouped=grouped,
        gather_secs=GATHER_SECS if gathers else 0.0,
        draining=draining,
        log=log,
        end_hung=end_hung,
    )


def _with_program(spec: JobSpec, folder: ClusterFolder, do: Callable[[Program], None]) -> None:
    """Call `do` with the job's program: of a folder, of a module, or of the script that called for the job."""
    job, threads = JobFolder(folder.job), folder.run_spec().threads
    called = script.read_script(job)
    if called is None:
        with job_runner.load_program(job.program, spec, threads=threads) as program:
            do(program)
        return
    job_runner.prepare(spec, threads)
    script.run(called, spec, job.program, do)
