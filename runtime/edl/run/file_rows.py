"""Rows of files in the JobSpec of a hand-written module. It has no statement to name them."""

from __future__ import annotations

from pathlib import Path

import msgspec

from edl.data.files.csv_readings import OF_TYPES
from edl.data.files.file_ranges import found_readings
from edl.data.source import Pinned
from edl.models.archive import read_archive
from edl.run.initial_weights import is_archive
from edl.spec import JobSpec, Rows


def trained_readings(model: Path | None) -> dict[str, str]:
    """Return how the CSV columns of a model's training rows were read; none of weights without an archive."""
    if model is None or not is_archive(model):
        return {}
    query = read_archive(model).spec.query
    told = {field.name: OF_TYPES[field.type] for field in query.schema if field.type in OF_TYPES}
    return {**told, **(query.readings or {})}


def with_columns(spec: JobSpec, pinned: Pinned, folder: Path) -> JobSpec:
    """Return the JobSpec with the types of its CSV columns, and with the readings that these do not tell.

    Later rows of the model are read in the same way. folder: of the pinned rows.
    """
    types = {field.name: OF_TYPES.get(field.type) for field in pinned.schema}
    readings = found_readings(folder)
    if not readings:
        return spec
    others = {name: reading for name, reading in readings.items() if types.get(name) != reading}
    query = msgspec.structs.replace(spec.query, schema=pinned.schema, readings=others or msgspec.UNSET)
    return msgspec.structs.replace(spec, query=query)


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
