"""Rows that a column of the query marks, from which a model starts, such as the first centres of clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from edl import spec
from edl.errors import SemanticError, SQLFlowError
from sqlflow_edl.analysis.schema import ColumnType, Schema
from sqlflow_edl.errors.spans import set_missing_spans

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlflow_edl.analysis.models.base import ReadRows
    from sqlflow_edl.analysis.train_settings import TrainSettings

MOST = 10_000  # rows that are kept in memory; all are counted


def column(
    settings: TrainSettings, schema: Schema, others: Collection[str], errors: list[SQLFlowError]
) -> str:
    """Return the column that marks rows, empty without one; add an error if it is unusable. others: taken columns."""
    attribute = settings.choice.example.marked_rows.attribute
    if settings.get(attribute) is None:
        return ""
    name, error = settings.column(attribute, schema, others, "has another part; it cannot mark rows too")
    if error is None and schema.type(name) not in (ColumnType.BOOLEAN, ColumnType.NUMBER):
        wrong = f"{name} is {schema.type(name).words}, and what marks rows is a boolean, or 0 and 1"
        error = SemanticError(wrong, span=settings.span(attribute))
    errors += [error] if error else []
    return name


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
