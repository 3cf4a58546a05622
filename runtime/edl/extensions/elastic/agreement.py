"""Agreement of a script's workers on the rows that they train on: in their common folder, or through the master."""

from __future__ import annotations

from pathlib import Path

import msgspec

from edl.jobs import script_run
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.job_folder import JobFolder
from edl.jobs.script_run import WORKLOAD, Workload
from edl.run.script_files import fetch_file, send
from edl.run.storage import relay_of


def agree(job: Path, workload: Workload) -> None:
    """Record the workload unless another worker has. Raises JobError if that has another one."""
    if not ClusterFolder(job).is_spread:
        script_run.agree(job, workload)
        return
    relay = relay_of(JobFolder(job))
    if fetch_file(relay, WORKLOAD) is None:
        send(relay, WORKLOAD, msgspec.json.encode(workload))
    first = fetch_file(relay, WORKLOAD)
    script_run.check(msgspec.json.decode(first, type=Workload) if first is not None else None, workload)
