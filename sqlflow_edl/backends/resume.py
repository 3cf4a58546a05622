"""Resumption of jobs with a master on this machine, in the background."""

from __future__ import annotations

import contextlib
from contextlib import closing
from pathlib import Path

import msgspec

from edl.cluster.local.client import start_detached
from edl.data import connect
from edl.data.source import ConflictError, UnreachableError
from edl.data.url import DATABASES, SERVERS, SourceURL, parse
from edl.errors import ClusterError, SourceError
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.job_folder import JobFolder
from edl.master.resume import Resumption, check, prepare
from edl.models.pending import Intent, read_intent, unhandled


def resume(job: JobFolder) -> Resumption:
    """Start the job again and return; it continues when this process ends, and stores its model itself.

    Raises ClusterError if it cannot be resumed, and SourceError if its rows are gone or its model could not be stored.
    """
    check(job)
    unhandled(job.path)
    intent = read_intent(job.path)
    if intent is None:
        raise ClusterError(
            f"job {job.id} was not started by a statement", hint=f"edl train --resume {job.path}"
        )
    spec = ClusterFolder(job.path).run_spec()
    _check_source(job, intent, Path(spec.folder))
    found = prepare(job)
    start_detached(job, msgspec.structs.replace(spec, detached=True))
    return found


def _check_source(job: JobFolder, intent: Intent, folder: Path) -> None:
    """Raise SourceError if the model could not be stored at the end: no password, no such database.

    A database that another process has open is no error, because the job waits for it.
    """
    url = parse(intent.source)
    if url.scheme in SERVERS:
        with contextlib.suppress(ConflictError, UnreachableError), closing(connect(intent.source)):
            return
    if not isinstance(url, SourceURL) or url.scheme not in DATABASES or intent.store:
        return
    if url.in_memory:
        why = "its data source was in memory"
    elif not (path := folder / Path(url.location).expanduser()).is_file():
        why = f"there is no database file {path} to store its model in"
    else:
        return
    raise SourceError(f"job {job.id} cannot be resumed: {why}")
