"""Jobs that go on when their client has left: what is to become of what they make, kept in the job folder.

An embedded database is opened by one process at a time, so a job that was left cannot store its model or its table
itself. The next session with the same data source does it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from edl.cluster.events import read_end
from edl.cluster.folder import ClusterFolder
from edl.data import Source, jobs
from edl.data.results import ResultFolder
from edl.errors import SpecError, SQLFlowError
from edl.models.intent import FILE, Intent, read_intent, registry_of
from edl.tasks.outcome import Outcome

_TOLD = "intent.told.json"  # the same of a job that failed, when somebody has heard of it


def take_home(source: Source) -> Iterator[str]:
    """Store what jobs of this source made when nobody was there, and list those that failed; a sentence for each."""
    yield from _list_failures(source)
    for job in jobs.unclaimed():
        try:
            intent = read_intent(job.path)
        except SpecError as error:  # one job must not stop all sessions
            yield error.message
            continue
        if intent is not None and intent.source != source.url:
            continue
        with job.claim() as ours:
            if not ours:
                continue
            if intent is None:
                job.end("died", "its client was gone before it could store what the job made")
            else:
                yield _store(job, intent, source)


def _list_failures(source: Source) -> Iterator[str]:
    """Keep the reasons of trainings that failed when nobody was there, each once."""
    for job in jobs.jobs():
        try:
            status, intent = job.status(), read_intent(job.path)
        except SpecError:  # it is told of where jobs are listed
            continue
        if intent is None or intent.source != source.url or status.state not in ("failed", "died"):
            continue
        if status.place:  # its master has kept the reason
            continue
        try:
            (job.path / FILE).rename(job.path / _TOLD)
        except FileNotFoundError:  # another session was quicker
            continue
        if intent.record is not None:
            registry_of(intent, source).record_failure(intent.name, intent.record, status.error)
        yield f"job {job.id} {'had failed' if status.state == 'failed' else 'had died'}: {status.error}"


def _store(job: jobs.JobFolder, intent: Intent, source: Source) -> str:
    end = read_end(ClusterFolder(job.path).events)
    if not isinstance(end, Outcome):
        job.end("failed", "nothing says how it ended")
        return f"job {job.id} left nothing"
    try:
        if intent.record is not None:
            record = msgspec.structs.replace(intent.record, metrics=end.figures)
            version = registry_of(intent, source).save(
                intent.name, job.path / end.archive, record, once=job.id
            )
            done = f"stored the model {intent.name}@{version}"
        else:
            rows = ResultFolder(job.results).read(end.tasks)
            source.stage(intent.name, job.id, 0, 0, rows)
            done = f"wrote {source.commit(intent.name, job.id, 1):,} rows to {intent.name}"
    except (SQLFlowError, OSError) as error:
        why = error.message if isinstance(error, SQLFlowError) else str(error)
        job.end("failed", why)
        (job.path / FILE).rename(job.path / _TOLD)
        place = f"; the model is in {job.archive}" if job.archive.exists() else ""
        return f"what job {job.id} made could not be stored: {why}{place}"
    job.end("done")
    return f"job {job.id} had finished: {done}"
