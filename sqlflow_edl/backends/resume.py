"""Resumption of jobs with a master on this machine, in the background."""

from __future__ import annotations

import contextlib
from contextlib import closing
from pathlib import Path

import msgspec

from edl.cluster.local.client import start_detached
from edl.data import connect
from edl.data.source import ConflictError, UnreachableError
from edl.data.url import DATABASES, SERVERS, SourceURL, absolute, parse
from edl.errors import ClusterError, SourceError
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.job_folder import JobFolder
from edl.master.commit import commit
from edl.master.resume import check, prepare
from edl.models.pending import Intent, destination, folder_of, read_intent, unmark_handled


def resume(job: JobFolder) -> str:
    """Start the job again and return a sentence; it continues when this process ends, and stores its model itself.

    The model of one that has trained it already is stored now. Raises ClusterError
    if it cannot be resumed, and SourceError if its rows are gone or its model could not be stored.
    """
    if (intent := _of_kept_model(job)) is not None:
        return _store(job, intent)
    check(job)
    unmark_handled(job.path)
    intent = read_intent(job.path)
    if intent is None or not intent.source:
        raise ClusterError(
            f"job {job.id} was not started by a statement",
            hint=f"edl {'run' if job.status().kind == 'run' else 'train'} --resume {job.path}",
        )
    spec = ClusterFolder(job.path).run_spec()
    _check_source(job, intent, Path(spec.folder))
    position = prepare(job)
    start_detached(job, msgspec.structs.replace(spec, detached=True))
    return f"job {job.id}: {position}"


def _of_kept_model(job: JobFolder) -> Intent | None:
    """Return where the model of an ended job is to be stored, if it is in its folder and no process stores it."""
    status = job.status()
    ended = (
        status.state in ("failed", "died")
        or status.is_unclaimed
        or (status.state == "running" and not status.is_alive)
    )
    intent = destination(job.path) if ended and job.archive.exists() else None
    return intent if intent is not None and intent.source and not status.place else None


def _store(job: JobFolder, intent: Intent) -> str:
    """Store the model of the job.

    If another process has the data source open, or it cannot be reached, a later session stores it.
    """
    folder = folder_of(job)
    _check_source(job, intent, folder)
    unmark_handled(job.path)
    job.finish(0, "nobody")
    try:
        with job.claim() as ours:
            if not ours:
                raise ClusterError(f"another process stores the model of job {job.id}")
            with closing(connect(absolute(intent.source, folder))) as source:
                committed = commit(job, intent, source)
            message = committed.record(job)
    except SourceError as error:
        raise SourceError(
            f"the model of job {job.id} is not stored yet: {error.message}",
            hint=f"the next session with its data source stores it; `edl fetch {job.id} --output FILE.zip` writes "
            "it to a file",
        ) from None
    if committed.state == "failed":
        raise SourceError(message)
    return message


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
    fetch = f"`edl fetch {job.id} --output FILE.zip` writes its model to a file"
    raise SourceError(f"job {job.id} cannot be resumed: {why}", hint=fetch if job.archive.exists() else None)
