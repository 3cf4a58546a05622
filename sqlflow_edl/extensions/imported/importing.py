"""Import of a file: it is read, described in another process, bound to columns, and stored as a version of a model."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from edl import spec
from edl.arrays import Array
from edl.errors import SQLFlowError
from edl.extensions.imported.description import FileDescription, describe_file
from edl.installation import VERSION
from edl.models.archive import Lineage, write_archive
from edl.models.registry.base import Registry
from edl.models.registry.records import ModelRecord, check_name
from sqlflow_edl.analysis.settings.trees import BLOCK
from sqlflow_edl.codegen import generate
from sqlflow_edl.errors.spans import set_missing_spans
from sqlflow_edl.extensions.imported.binding import BoundModel
from sqlflow_edl.extensions.imported.files import SourceFile, check_size, find_file, read_file
from sqlflow_edl.extensions.imported.labels import metric_names
from sqlflow_edl.extensions.imported.onnx import bind_onnx
from sqlflow_edl.extensions.imported.options import ImportOptions, read_options
from sqlflow_edl.extensions.imported.statement import PATH
from sqlflow_edl.extensions.imported.trees import bind_trees, weights_of
from sqlflow_edl.reports import text
from sqlflow_edl.reports.models import read_facts
from sqlflow_edl.reports.plan import Row
from sqlflow_edl.reports.result import Result
from sqlflow_edl.syntax.ast import Statement

NAME = "ImportedModel"


def check(statement: Statement) -> Path:
    """Return the file of a statement. Raises SemanticError for a wrong option, or a file that is not there."""
    options = read_options(statement)
    [name] = statement.into
    with set_missing_spans(name.span):
        check_name(str(name))
    with set_missing_spans(options.spans.get(PATH)):
        file = find_file(options.path)
        check_size(file)
        return file


def import_model(registry: Registry, statement: Statement, file: Path | None = None) -> Result:
    """Store the file of a statement as a new version of a model.

    file: the file, if it is not SQL that names it. Raises SQLFlowError, with its place, if it cannot be imported.
    """
    options = read_options(statement)
    [name] = statement.into
    with set_missing_spans(name.span):
        registry.check_save(str(name))
    job_spec, bound, description, source = _compile(statement, options, file)
    with tempfile.TemporaryDirectory(prefix="sqlflow-edl-") as folder:
        archive = Path(folder) / "model.zip"
        write_archive(
            archive,
            spec=job_spec,
            program=_program(job_spec),
            weights=_weights(description, source, bound),
            metrics={},
            curve=(),
            lineage=_lineage(statement, job_spec),
        )
        record = ModelRecord(NAME, job_spec.framework, 0, {}, statement.text)
        with set_missing_spans(name.span):
            version = registry.save(str(name), archive, record)
            if facts := read_facts(statement.facts):
                registry.describe(str(name), facts)
    reference = f"{name}@{version}"
    columns = ", ".join(job_spec.columns[:8]) + (", …" if len(job_spec.columns) > 8 else "")
    label = job_spec.label
    what = f"the number {label.column}" if label.is_number else f"{label.column}, {text.label(label)},"
    producer = description.producer or description.format
    message = f"imported {source.name} as {reference}: {producer} predicts {what} from {columns}"
    message += "".join(f"; {note}" for note in bound.notes)
    return Result(statement, message=message, notes=bound.notes, model=reference, stored_in=registry.url)


def rows_of_plan(statement: Statement) -> Iterator[Row]:
    """Yield the plan of a statement: what the file is, and how its inputs are bound; nothing is stored."""
    options = read_options(statement)
    job_spec, bound, description, source = _compile(statement, options, None)
    yield "statement", f"IMPORT {statement.into[0]}", f"{source.name} would be stored", ""
    yield "file", source.format, f"{len(source.data):,} bytes", description.producer
    types = [tensor.type for tensor in description.inputs] or ["matrix"]
    for field in job_spec.query.schema:
        yield "column", field.name, field.type, ", ".join(dict.fromkeys(types)) if len(types) == 1 else ""
    label = job_spec.label
    yield "label", label.column, "a number" if label.is_number else text.label(label), bound.output
    for number, note in enumerate(bound.notes, 1):
        yield "note", str(number), note, ""


def _compile(
    statement: Statement, options: ImportOptions, file: Path | None
) -> tuple[spec.JobSpec, BoundModel, FileDescription, SourceFile]:
    with set_missing_spans(options.spans.get(PATH)):
        source = read_file(file or find_file(options.path), options.format)
        description = _describe(source)
        bound = (
            bind_onnx(description, options)
            if description.format == "onnx"
            else bind_trees(description, options)
        )
    return _job_spec(statement, source, description, bound), bound, description, source


def _describe(source: SourceFile) -> FileDescription:
    """Describe the bytes that were read, which nobody changes meanwhile."""
    with tempfile.TemporaryDirectory(prefix="sqlflow-edl-") as folder:
        copy = Path(folder) / "model"
        copy.write_bytes(source.data)
        try:
            return describe_file(copy, source.format)
        except SQLFlowError as error:
            error.message = error.message.replace("the file", source.name, 1)
            raise


def _job_spec(
    statement: Statement, source: SourceFile, description: FileDescription, bound: BoundModel
) -> spec.JobSpec:
    imported = spec.Imported(
        source.name,
        source.format,
        source.sha256,
        len(source.data),
        description.producer,
        bound.output,
        bound.gives,
        bound.types,
        bound.rounds,
    )
    training = spec.Training(threshold=bound.threshold)
    return spec.JobSpec(
        kind="train",
        statement=statement.text,
        query=spec.Query("", "duckdb", "", bound.fields),
        rows=spec.Rows(False, 0, 0),
        framework=source.format,
        model=spec.Component(NAME, bound.params),
        inputs=bound.inputs,
        label=bound.label,
        optimizer=bound.optimizer,
        loss=bound.loss,
        metrics=metric_names(bound.label),
        training=training,
        batch_size=BLOCK if source.format != "onnx" else spec.BLOCK,
        imported=imported,
    )


def _program(job_spec: spec.JobSpec) -> dict[str, bytes]:
    return {name: data for name, data in generate(job_spec).files.items() if name != "job.json"}


def _weights(description: FileDescription, source: SourceFile, bound: BoundModel) -> dict[str, Array]:
    if source.format == "onnx":
        return {"model": np.frombuffer(source.data, dtype=np.uint8)}
    return weights_of(description, source.data, bound.rounds)


def _lineage(statement: Statement, job_spec: spec.JobSpec) -> Lineage:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Lineage(statement.text, 0, 0, "", "", 0, {"sqlflow-edl": VERSION}, now, 0.0)
