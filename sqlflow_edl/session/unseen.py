"""Values of the rows to predict that a model does not know: counted once the rows are pinned, for a note."""

from __future__ import annotations

from edl import data, spec
from edl.data import Pinned
from edl.features.arrays import plain
from edl.features.categories import encoder
from edl.jobs.job_folder import JobFolder
from edl.spec import JobSpec, Vocabulary
from sqlflow_edl.reports.text import counted

MOST_ROWS = 100_000  # that are read from a server for this alone


def notes(planned: JobSpec, pinned: Pinned, job: JobFolder) -> tuple[str, ...]:
    """Return a note for each category of which the pinned rows have values that the model does not know.

    NULL is not counted, nor are lists and hashed values. There is none for many rows that stay on a server.
    """
    known = {
        each.column: each for each in map(spec.category_of, planned.features) if isinstance(each, Vocabulary)
    }
    if not known or not pinned.rows or (pinned.table is not None and pinned.rows > MOST_ROWS):
        return ()
    encoders = {column: encoder(category) for column, category in known.items()}
    unseen = dict.fromkeys(known, 0)
    for batch in data.open_reader(pinned, job.rows).read(0, pinned.rows, list(known)):
        for column, encode in encoders.items():
            missing = int((encode(batch) == known[column].size).sum())  # type: ignore[union-attr]
            unseen[column] += missing - plain(batch.column(column)).null_count
    return tuple(_note(column, count, pinned.rows) for column, count in unseen.items() if count)


def _note(column: str, count: int, rows: int) -> str:
    has = "has" if count == 1 else "have"
    return f"{column}: {count:,} of {counted(rows)} {has} a value that the model does not know from training"
