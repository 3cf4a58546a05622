"""The `edl` command's jobs with a master and workers."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import msgspec

from edl.cluster.client import SupervisedJob
from edl.cluster.folder import Spec
from edl.cluster.quota import use_of
from edl.data.jobs import JobFolder
from edl.instance.client import available_cores
from edl.instance.given import take
from edl.spec import Checkpoints, JobSpec, to_json
from edl.tasks.events import EpochEnd, Progress, Tally
from edl.tasks.outcome import Outcome

Tell = Callable[[Progress | EpochEnd | Tally], None]


def run(job: JobFolder, spec: JobSpec, options: argparse.Namespace, tell: Tell) -> Outcome:
    """Run the program in the job folder, whose rows are pinned, with the workers that the JobSpec asks for."""
    if options.weights is not None:
        take(job, options.weights)
    changed = msgspec.structs.replace(spec, checkpoints=_checkpoints(spec.checkpoints, options))
    (job.program / "job.json").write_bytes(to_json(changed))
    threads = options.threads or max(1, available_cores() // spec.cluster.workers)
    quota = use_of(spec.cluster, options.quota)

    with SupervisedJob.start(job, Spec(spec.framework, threads=threads, quota=quota)) as running:
        return running.follow(tell)


def _checkpoints(written: Checkpoints, options: argparse.Namespace) -> Checkpoints:
    given = {
        "steps": getattr(options, "checkpoint_steps", None),
        "keep": getattr(options, "keep_checkpoint_max", None),
    }
    return msgspec.structs.replace(
        written, **{name: value for name, value in given.items() if value is not None}
    )
