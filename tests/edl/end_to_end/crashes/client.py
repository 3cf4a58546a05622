"""Client of a job that is recorded: it runs the job of a kind as `edl train` does, and stores the model.

With `--resume` in place of a kind, it resumes the job that is there.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from edl.cli.output import write_model
from edl.cluster.local.client import SupervisedJob
from edl.jobs import job_folder
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.event_log import record_end
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.master import resume
from edl.models.pending import Intent, write_intent
from edl.run import foreground
from tests.edl.end_to_end.crashes.kinds import KINDS

RESUME = "--resume"


def main(kind: str, file: Path) -> None:
    if kind == RESUME:
        [job] = job_folder.jobs()
        resume.prepare(job)
        with (
            foreground.remove_at_end(job),
            SupervisedJob.start(job, ClusterFolder(job.path).run_spec()) as running,
        ):
            store(job, running.follow(lambda event: None), file)
    else:
        made = KINDS[kind]()
        with foreground.remove_at_end(made.folder):
            write_intent(made.folder.path, Intent("train", "", "", file=str(file)))
            store(made.folder, made.run(), file)


def store(job: JobFolder, outcome: Outcome, file: Path) -> None:
    """Store the model. Record that the command could say so, and copy what is recorded: the processes of the job have
    ended, and its folder is whole.
    """
    record_end(ClusterFolder(job.path).events, outcome)
    write_model(job.path / outcome.archive, file)
    recorder: Any = sys.modules["sitecustomize"]
    shutil.copytree(recorder.ROOT, f"{recorder.ROOT}.copy", symlinks=True)
    recorder.ack("stored")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
