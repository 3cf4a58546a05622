"""Rows that a column of the query marks, from which a model starts, such as the first centres of clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from edl import spec
from sqlflow_edl.errors.spans import set_missing_spans

if TYPE_CHECKING:
    from sqlflow_edl.analysis.models.base import ReadRows
    from sqlflow_edl.analysis.train_settings import TrainSettings

MOST = 10_000  # rows that are kept in memory; all are counted


def fit_marked_rows(job: spec.JobSpec, settings: TrainSettings, read: ReadRows) -> spec.JobSpec:
    """Return the JobSpec with what its model takes from the marked rows. read: the pinned rows, in one pass."""
    marked_rows = settings.choice.example.marked_rows
    name = settings.get(marked_rows.attribute) if marked_rows.attribute else None
    if name is None:
        return job
    count, batches = 0, list[pa.RecordBatch]()
    for batch in read(list(dict.fromkeys([*job.columns, str(name)]))):
        marked = batch.filter(pc.cast(batch[str(name)], pa.bool_()))
        count += marked.num_rows
        batches += [marked] if count <= MOST else []
    with set_missing_spans(settings.span(marked_rows.attribute)):
        return marked_rows.fit(job, pa.Table.from_batches(batches) if batches else None, count)
