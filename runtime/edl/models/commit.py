"""Commit of a job's output, from its folder to its data source: a model to the registry, rows to a table.

The client of a job commits, or for a detached job its own process or another session. Every call may be repeated: the
output is stored once.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from edl.data.results import ResultFolder
from edl.data.source import Source
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.event_log import read_end
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.models.archive import read_archive
from edl.models.pending import Intent
from edl.models.registry.base import Registry
from edl.spec import ENSEMBLE


class StoredModel(NamedTuple):
    """Stored output: `name@version` of a model, or a table and its number of rows.

    verdict: comparison of the model with its rival, if it has one.
    """

    name: str
    rows: int = 0
    verdict: str = ""


def kept_outcome(job: JobFolder) -> Outcome | None:
    """Return the outcome of a job with a result in its folder, or None if there is none.

    A process that died before it recorded the outcome of a training left the figures in the archive. Raises SpecError
    if that is damaged.
    """
    if not job.has_result:
        return None
    end = read_end(ClusterFolder(job.path).events)
    if isinstance(end, Outcome):
        return end
    trained = read_archive(job.archive)
    rows, seconds = trained.lineage.training_rows, trained.lineage.seconds
    return Outcome("train", rows, seconds, figures=trained.metrics, archive=job.archive.name)


def commit_result(
    job: JobFolder, intent: Intent, source: Source, registry: Registry, outcome: Outcome, attempt: int = 0
) -> StoredModel:
    """Store the output of the job, and return its name. attempt: number of the call, to replace what it staged before.

    Raises ConflictError or UnreachableError if nothing is stored, and the call may be repeated.
    """
    if intent.record is not None:
        record = msgspec.structs.replace(intent.record, metrics=outcome.figures)
        if record.framework == ENSEMBLE:  # a search, which may find that one model is best
            trained = read_archive(job.path / outcome.archive)
            model, framework, rows = trained.spec.model.name, trained.spec.framework, trained.learned_rows
            record = msgspec.structs.replace(record, model=model, framework=framework, rows=rows)
        rival, current = intent.rival, intent.activates(outcome.figures)
        version = registry.save(intent.name, job.path / outcome.archive, record, once=job.id, current=current)
        if intent.facts:
            registry.describe(intent.name, intent.facts)
        name = f"{intent.name}@{version}"
        return StoredModel(name, verdict=rival.verdict(outcome.figures, name) if rival is not None else "")
    rows = ResultFolder(job.results).read(outcome.tasks)
    return StoredModel(
        intent.name, source.commit_rows(intent.name, job.id, attempt, rows, append=intent.append)
    )
