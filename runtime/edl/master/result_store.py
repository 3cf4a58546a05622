"""Storage of a job's result in its data source by the master: after the last task, and before the outcome is announced.

All of it may be repeated, so the result is stored once even if a master dies on the way: the next one finds in the
durable state that the job is over, and begins again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing

import msgspec

from edl.data import Source, connect
from edl.data.retry import insisting
from edl.errors import SQLFlowError
from edl.jobs.failure import Failed, to_failed
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import JobCancelledError, Outcome
from edl.logs import log
from edl.master.backend import End
from edl.models.pending import Intent, registry_of


class SourceResultStore:
    """`ResultStore` of a job that no client waits for. The workers' output is in the source already: models are saved,
    and results staged.
    """

    def __init__(self, job: JobFolder, intent: Intent, pause: Callable[[float], object] = time.sleep) -> None:
        self._job = job
        self._intent = intent
        self._pause = pause

    def end(self, end: End) -> End:
        if isinstance(end, Outcome):
            try:
                end = self._commit(end)
            except SQLFlowError as error:
                end = to_failed(error, "")
        try:
            with closing(connect(self._intent.source)) as source:
                if isinstance(end, Failed):
                    self._take_back(source, end)
                if not (isinstance(end, Failed) and end.kept):
                    self._unpin(source)
        except SQLFlowError as error:  # the next session of a client repeats it
            log(f"temporary data of the job remains in its data source for now: {error.message}")
        return end

    def _commit(self, outcome: Outcome) -> Outcome:
        """Return the outcome with the name of the stored result. A model was stored by the worker that made it."""
        target = self._intent.name
        if self._intent.kind == "train" or not target:
            return outcome
        rows = insisting(lambda _: self._commit_parts(target, outcome.tasks), keeps=True, pause=self._pause)
        return msgspec.structs.replace(outcome, stored=f"{target}: {rows:,} row{'' if rows == 1 else 's'}")

    def _commit_parts(self, target: str, tasks: int) -> int:
        """Commit the staged parts and return the number of rows. Each attempt has its own connection."""
        with closing(connect(self._intent.source)) as source:
            return source.commit(target, self._job.id, tasks, append=self._intent.append)

    def _take_back(self, source: Source, failed: Failed) -> None:
        """Drop the staged results, and record the failure of a training."""
        name, record = self._intent.name, self._intent.record
        if record is None and name:
            insisting(lambda _: source.abort(name, self._job.id))
        elif record is not None and failed.code != JobCancelledError.code:
            registry_of(self._intent, source).record_failure(name, record, failed.message, once=self._job.id)

    def _unpin(self, source: Source) -> None:
        from edl.data.pinned import read_pinned  # imports Arrow

        for folder in (self._job.rows, self._job.validation_rows):
            if folder.is_dir():
                source.unpin(read_pinned(folder), folder)
