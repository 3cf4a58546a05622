"""Comparison of rows with those that a model was fitted to: values that it does not know, and drift."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from edl import data, spec
from edl.data import Pinned
from edl.features.arrays import plain
from edl.features.categories import encoder
from edl.jobs.job_folder import JobFolder
from edl.models.archive import Archive
from edl.spec import JobSpec, Vocabulary
from sqlflow_edl.analysis.checks.drift import DRIFTED, ColumnDrift, compare
from sqlflow_edl.reports.text import counted

MOST_ROWS = 100_000  # that are read from a server for this alone


def drift(
    model: Archive,
    names: Sequence[str],
    read: Callable[[list[str]], Iterable[pa.RecordBatch]],
    limit: float = DRIFTED,
    *,
    label: bool = False,
) -> list[ColumnDrift]:
    """Compare rows with the training rows: each column that the model reads, and on demand the label.

    names: columns of the rows. read: returns batches with the wanted ones, and perhaps others. limit: as in `compare`.
    """
    trained, fitting = model.spec, model.fitting
    folded = {name.casefold(): name for name in reversed(names)}
    wanted = dict.fromkeys((*trained.columns, *(spec.label_columns(trained.label) if label else ())))
    found = {
        name: name if name in names else folded[name.casefold()]
        for name in wanted
        if name.casefold() in folded
    }
    known = fitting.columns if fitting is not None else {}
    summaries = {name: known[before] for before, name in found.items() if before in known}
    features = [spec.with_columns(feature, found) for feature in trained.features]
    return compare(read(list(summaries)), summaries, features, limit=limit)


def notes(planned: JobSpec, pinned: Pinned, job: JobFolder) -> tuple[str, ...]:
    """Return a note for each category of which the pinned rows have values that the model does not know.

    NULL is not counted, nor are lists and hashed values. There is none for many rows that stay on a server.
    """
    known = {
        each.column: each
        for each in map(spec.category_of, planned.features)
        if isinstance(each, Vocabulary) and isinstance(each.column, str)
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
