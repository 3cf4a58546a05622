"""Jobs of the `edl` command with a master and workers."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import msgspec

from edl import reachability
from edl.cluster.local.client import SupervisedJob
from edl.cluster.quota.quota import use_of
from edl.jobs.cluster_folder import ClusterFolder, RunSpec, master_timeout, with_surroundings
from edl.jobs.cores import available_cores
from edl.jobs.events import JobObserver
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.program import SPEC_FILE
from edl.run.initial_weights import take
from edl.spec import JobSpec, to_json


def run(job: JobFolder, spec: JobSpec, options: argparse.Namespace, on_event: JobObserver) -> Outcome:
    """Run the program in the job folder with the workers of the JobSpec; the folder's rows are pinned."""
    if options.weights is not None:
        take(job, options.weights)
    return follow(job, with_checkpoints(spec, options), options.threads, on_event, options.quota)


def follow(
    job: JobFolder, spec: JobSpec, threads: int | None, on_event: JobObserver, quota: Path | None = None
) -> Outcome:
    """Run the job of the spec in its complete folder.

    `threads` is the size of each instance's pools; None divides the cores. `quota` is the folder of a shared quota of
    slots; None uses the environment's quota, if any.
    """
    reachability.limit()  # else each process would fail
    (job.program / SPEC_FILE).write_bytes(to_json(spec))
    threads = threads or max(1, available_cores() // spec.cluster.workers)
    how = RunSpec(
        spec.framework,
        threads=threads,
        quota=use_of(spec.cluster, quota),
        master_timeout=master_timeout(os.environ),
    )
    return _start_and_follow(job, how, on_event)


def prepare_resumption(job: JobFolder, spec: JobSpec, options: argparse.Namespace) -> None:
    """Let a worker continue a training of this process later. Its program and rows are in the job folder."""
    if options.weights is not None:
        take(job, options.weights)
    (job.program / SPEC_FILE).write_bytes(to_json(with_checkpoints(spec, options)))
    run = RunSpec(spec.framework, threads=options.threads or available_cores())
    ClusterFolder(job.path).write_run_spec(with_surroundings(run))


def follow_again(job: JobFolder, on_event: JobObserver) -> Outcome:
    """Run a job that `edl.master.resume` has prepared."""
    how = msgspec.structs.replace(ClusterFolder(job.path).run_spec(), detached=False)
    return _start_and_follow(job, how, on_event)


def _start_and_follow(job: JobFolder, how: RunSpec, on_event: JobObserver) -> Outcome:
    with SupervisedJob.start(job, how) as running:
        return running.follow(on_event)


def with_checkpoints(spec: JobSpec, options: argparse.Namespace) -> JobSpec:
    """Return the JobSpec with the settings of checkpoints on the command line."""
    flags = {
        "steps": getattr(options, "checkpoint_steps", None),
        "keep": getattr(options, "keep_checkpoint_max", None),
    }
    changes = {name: value for name, value in flags.items() if value is not None}
    return msgspec.structs.replace(spec, checkpoints=msgspec.structs.replace(spec.checkpoints, **changes))
