"""Comparison of rows with those that a model was fitted to: values that it does not know, and drift."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from edl import data, spec
from edl.data import Pinned
from edl.features.arrays import plain
from edl.features.categories import encoder
from edl.jobs.job_folder import JobFolder
from edl.models.archive import Archive
from edl.models.fitting import Fitting
from edl.spec import JobSpec, Vocabulary
from sqlflow_edl.analysis.checks.drift import DRIFTED, ColumnDrift, compare
from sqlflow_edl.reports.text import counted

MOST_ROWS = 100_000  # that are read from a server for this alone
MOST_COLUMNS = 5  # that a note names


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


def notes(
    fitting: Fitting | None, trained: JobSpec, planned: JobSpec, pinned: Pinned, job: JobFolder
) -> tuple[str, ...]:
    """Return a note on values that the model has not met, or none: categories that it does not know, by column, and
    NULL in columns where training had none. Columns with the largest share of such rows come first.

    Unknown are neither lists nor hashed values. There is no note for many rows that stay on a server. fitting, trained:
    of the model. planned: of the statement, whose columns may have other names.
    """
    if not pinned.rows or (pinned.table is not None and pinned.rows > MOST_ROWS):
        return ()
    reader = data.open_reader(pinned, job.rows)
    known = {
        each.column: each
        for each in map(spec.category_of, planned.features)
        if isinstance(each, Vocabulary) and isinstance(each.column, str)
    }
    summaries = fitting.columns if fitting is not None else {}
    pairs = zip(trained.columns, planned.columns, strict=False)
    without_null = {
        column
        for before, column in pairs
        if before in summaries and not summaries[before].nulls and column in reader.schema.names
    }
    encoders = {column: encoder(category) for column, category in known.items()}
    unseen, nulls = Counter[str](), Counter[str]()
    wanted = list(dict.fromkeys((*known, *sorted(without_null))))
    for batch in reader.read(0, pinned.rows, wanted) if wanted else ():
        missing = {column: plain(batch.column(column)).null_count for column in wanted}
        nulls.update({column: missing[column] for column in without_null})
        for column, encode in encoders.items():
            unseen[column] += int((encode(batch) == known[column].size).sum()) - missing[column]  # type: ignore[union-attr]
    parts = (
        _listed(unseen, pinned.rows, "a value that the model does not know from training"),
        _listed(nulls, pinned.rows, "NULL, of which training had none"),
    )
    note = "; ".join(filter(None, parts))
    return (note,) if note else ()


def _listed(counts: Counter[str], rows: int, what: str) -> str:
    """Return how many of the rows have such a value, by column; empty without one."""
    found = [(column, count) for column, count in counts.most_common() if count]
    if not found:
        return ""
    shown = ", ".join(f"{column}: {count:,}" for column, count in found[:MOST_COLUMNS])
    more = f" ({len(found) - MOST_COLUMNS:,} more columns)" if len(found) > MOST_COLUMNS else ""
    has = "has" if len(found) == 1 and found[0][1] == 1 else "have"
    return f"{shown} of {counted(rows)} {has} {what}{more}"
