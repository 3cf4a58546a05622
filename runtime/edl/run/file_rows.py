"""Rows of files in the JobSpec of a hand-written module. It has no statement to name them."""

from __future__ import annotations

import msgspec

from edl.data.source import Pinned
from edl.spec import JobSpec, Rows


def with_rows(spec: JobSpec, pinned: Pinned, validation: int) -> JobSpec:
    """Return the JobSpec with the number of its rows, and with the columns that a prediction copies.

    `validation` is the number of rows of validation files. Binary columns, such as records, are not copied.
    """
    trains = spec.kind == "train"
    rows = Rows(
        pinned=True,
        total=pinned.rows + validation,
        training=pinned.rows if trains else 0,
        validation=validation,
        digest=pinned.digest,
    )
    if spec.kind != "predict":
        return msgspec.structs.replace(spec, rows=rows)
    column = spec.output.column
    kept = tuple(field.name for field in pinned.schema if "binary" not in field.type and field.name != column)
    return msgspec.structs.replace(spec, rows=rows, output=msgspec.structs.replace(spec.output, keep=kept))
