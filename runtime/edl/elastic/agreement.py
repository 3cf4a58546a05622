"""Agreement of a script's workers on the rows that they train on: in the job folder, or in pods through the master."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from edl.checkpoints import GoneError
from edl.jobs import script_run
from edl.jobs.cluster_folder import SCRIPT, ClusterFolder
from edl.jobs.job_folder import JobFolder
from edl.jobs.script_run import Workload
from edl.run.storage import relay_of

if TYPE_CHECKING:
    from edl.checkpoints.master_client import Relay

FILE = script_run.WORKLOAD


def agree(job: Path, workload: Workload) -> None:
    """Record the workload unless another worker has. Raises JobError if that has another one."""
    if not ClusterFolder(job).is_deployed:
        script_run.agree(job, workload)
        return
    relay = relay_of(JobFolder(job))
    if fetch_file(relay, FILE) is None:
        send(relay, FILE, msgspec.json.encode(workload))
    first = fetch_file(relay, FILE)
    script_run.check(msgspec.json.decode(first, type=Workload) if first is not None else None, workload)


def send(relay: Relay, file: str, content: bytes) -> None:
    """Send a file to the master for the other workers."""
    path = relay.folder / SCRIPT / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    relay.publish(SCRIPT, file)


def fetch_file(relay: Relay, file: str) -> bytes | None:
    """Return a file that a worker has sent to the master, or None if there is none."""
    try:
        return (relay.fetch(SCRIPT, file) / file).read_bytes()
    except GoneError:
        return None
