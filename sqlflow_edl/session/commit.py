"""Commit of the results in job folders to the data source. Every call may be repeated."""

from __future__ import annotations

import contextlib

from edl.data import Source
from edl.data.results import ResultFolder
from edl.data.retry import insisting
from edl.errors import SQLFlowError
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.models.registry.base import Registry
from edl.models.registry.records import ModelRecord


def store_model(registry: Registry, job: JobFolder, name: str, outcome: Outcome, record: ModelRecord) -> str:
    """Store the trained model in the registry and return its `name@version`."""
    archive = job.path / outcome.archive
    version = insisting(lambda _: registry.save(name, archive, record, once=job.id))
    return f"{name}@{version}"


def store_table(source: Source, job: JobFolder, target: str, tasks: int) -> int:
    """Make the results of the tasks a table, in one step, and return its row count.

    Any failure leaves nothing staged.
    """
    results = ResultFolder(job.results)
    try:
        insisting(lambda attempt: source.stage(target, job.id, 0, attempt, results.read(tasks)))
        return insisting(lambda _: source.commit(target, job.id, 1))
    except BaseException:
        with contextlib.suppress(SQLFlowError):
            source.abort(target, job.id)
        raise
