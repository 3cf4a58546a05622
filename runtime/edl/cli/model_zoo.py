"""Jobs of hand-written modules: the JobSpec is built from the command line, and the rows come from files."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import UNSET, UnsetType

from edl.cli.arguments import DATA, FUNCTIONS
from edl.cli.cluster_arguments import cluster
from edl.cli.place import IN_PODS
from edl.data.arrow_types import fields
from edl.data.files.file_ranges import found_readings, pin_files
from edl.data.pinned import write_pinned
from edl.data.source import Pinned
from edl.data.url import redacted
from edl.errors import JobError, SemanticError, SpecError, did_you_mean
from edl.features import Target
from edl.jobs.job_folder import JobFolder
from edl.models.archive import read_archive
from edl.program import SPEC_FILE, Program
from edl.program.user_model import OwnModel, search_path
from edl.program.zoo import REQUIREMENTS, find_in_zoo
from edl.run.file_rows import trained_readings, with_columns
from edl.run.initial_weights import is_archive
from edl.spec import (
    Cluster,
    Component,
    Evaluation,
    Field,
    JobSpec,
    Output,
    Query,
    RawLabel,
    Rows,
    Training,
    Zoo,
    to_json,
)
from edl.spec.job import ROW_LIMITS, Framework, Parameter, Precision

PREDICTION = "prediction"  # default name of the column of predictions
BATCH_ROWS = 64  # default of a minibatch, as in ElasticDL

_JOB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_PARAMETERS = "write for example: units=[16, 8]; kind='x'; rate=0.5"


def job_spec(options: argparse.Namespace) -> JobSpec:
    """Build the JobSpec from the command line, without reading rows. Raises SemanticError for invalid arguments."""
    folder = (options.model_zoo or Path(search_path()[0])).expanduser().absolute()
    model = find_in_zoo(folder, options.model_def)
    params = _model_params(options)
    _check_parameters(model, params)
    validation = options.validation_data if options.kind == "train" else None
    return JobSpec(
        kind=options.kind,
        statement=f"edl {options.kind} --model_def {options.model_def}",
        query=_query(getattr(options, DATA[options.kind])),
        rows=Rows(pinned=False, total=0, training=0),
        framework=options.framework or _framework(model),
        model=Component(f"{model.module}.{model.attribute}", params),
        inputs={},
        label=RawLabel(PREDICTION),
        optimizer=Component("optimizer"),
        loss=Component("loss"),
        metrics=(),
        training=_training(options),
        evaluation=_evaluation(options),
        cluster=cluster(options) if "num_workers" in options else Cluster(),  # an export has none
        output=Output(name=_job_name(options.job_name)),
        validation=_query(validation) if validation else None,
        zoo=_zoo(options, folder, model),
        device=options.device or "auto",
        precision=_precision(options),
    )


def write_program(folder: Path, spec: JobSpec, where: str = "this environment") -> None:
    """Write the JobSpec and a copy of the module's source, for reference, into the job's folder.

    `where` says what the packages that the module requires are installed into.
    """
    (folder / SPEC_FILE).write_bytes(to_json(spec))
    zoo = spec.zoo
    if zoo is None:
        raise SpecError("the JobSpec names no module of a model zoo")
    parts = zoo.module.split(".")
    source = Path(zoo.path, *parts).with_suffix(".py")
    if source.is_file():
        copy = folder.joinpath(*parts).with_suffix(".py")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(source.read_bytes())
    if (Path(zoo.path) / REQUIREMENTS).is_file():
        print(
            f"note: {Path(zoo.path) / REQUIREMENTS} is not read; install its packages into {where}",
            file=sys.stderr,
        )


def pin(program: Program, data: str, folder: Path, readings: Mapping[str, str] | None = None) -> Pinned:
    """Pin the rows named by the command line: files, or the result of the module's own reader.

    `readings`: see `pin_files`.
    """
    has_reader = program.has("custom_data_reader")
    pinned = (
        _pinned_by_module(program, data, folder)
        if has_reader
        else pin_files(data, folder, _print_note, readings)
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_pinned(folder, pinned)
    return pinned


def _print_note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)


def _pinned_by_module(program: Program, data: str, folder: Path) -> Pinned:
    if redacted(data) != data:
        raise SemanticError(
            "the name of the data holds a secret, which would be stored in the job's files",
            hint="read it from an environment variable in custom_data_reader",
        )
    pinned = Pinned(data, "", "", 0, (), "", 0, shuffled=False)
    reader = program.call("custom_data_reader", pinned, folder)
    lacking = [name for name in ("rows", "schema", "read") if not hasattr(reader, name)]
    if lacking:
        raise JobError(
            f"custom_data_reader in {program.file} gives a {type(reader).__name__}, which has no {lacking[0]}",
            hint="a reader has rows, schema and read(start, end, columns), as edl.data.Reader says",
        )
    return msgspec.structs.replace(
        pinned, rows=reader.rows, schema=fields(reader.schema), digest=getattr(reader, "digest", "")
    )


def pinned_rows(program: Program, options: argparse.Namespace, job: JobFolder) -> Pinned:
    """Pin the rows of the job, validation rows included. Files are read as in the training of the weights."""
    has_reader = program.has("custom_data_reader")
    readings = {} if has_reader else trained_readings(_archive(options))
    pinned = pin(program, getattr(options, DATA[options.kind]), job.rows, readings)
    if not has_reader and found_readings(job.rows) and str(options.weights or "").startswith(IN_PODS):
        _print_note(
            f"the model is in pods, so the columns of {pinned.source} are read as their own values tell, and not as "
            "the training rows were"
        )
    if options.kind == "train" and options.validation_data is not None:
        readings = readings or ({} if has_reader else found_readings(job.rows))
        pin(program, options.validation_data, job.validation_rows, readings)
    return pinned


def with_readings(program: Program, pinned: Pinned, job: JobFolder) -> Program:
    """Return the program with the columns of its CSV files, as which later rows of the model are read, too."""
    if program.has("custom_data_reader"):
        return program
    return dataclasses.replace(program, spec=with_columns(program.spec, pinned, job.rows))


def with_output(program: Program, schema: Iterable[Field]) -> Program:
    """Return the program with the output of a prediction: the columns to copy, and the name of the predicted column.

    The latter is the name of the module's LABEL if it has one. Binary columns, such as records, are not copied.
    """
    label = program.module.__dict__.get("LABEL")
    column = label.spec.column if isinstance(label, Target) else PREDICTION
    kept = tuple(field.name for field in schema if "binary" not in field.type and field.name != column)
    output = msgspec.structs.replace(program.spec.output, column=column, keep=kept)
    return dataclasses.replace(program, spec=msgspec.structs.replace(program.spec, output=output))


def note_changes(spec: JobSpec, weights: Path) -> None:
    """Warn if the module has changed since these weights were trained."""
    if not is_archive(weights) or spec.zoo is None:
        return
    trained = read_archive(weights).spec
    if trained.zoo is not None and trained.zoo.digest != spec.zoo.digest:
        print(f"note: {spec.zoo.module} has changed since {weights} was trained", file=sys.stderr)


def parameters(text: str, flag: str) -> dict[str, Parameter]:
    """Parse `name=value; name=value` with Python literals as values; nothing is evaluated.

    Raises SemanticError for invalid text.
    """
    try:
        statements = ast.parse(text.strip()).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise SemanticError(f"{flag} cannot be read: {text[:80]!r}", hint=_PARAMETERS) from None
    values: dict[str, Parameter] = {}
    for statement in statements:
        name, value = _assignment(statement, flag)
        if name in values:
            raise SemanticError(f"{flag} gives {name} twice")
        values[name] = value
    return values


def _assignment(statement: ast.stmt, flag: str) -> tuple[str, Parameter]:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            pass
        case _:
            raise SemanticError(
                f"{flag} has {ast.unparse(statement)[:80]!r}, which is not name=value", hint=_PARAMETERS
            )
    try:
        literal = ast.literal_eval(value)
        return name, msgspec.convert(literal, Parameter)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError, msgspec.ValidationError):
        raise SemanticError(
            f"{flag} gives {name} the value {ast.unparse(value)[:80]}, which is not a number, text in quotes, True, "
            "False, None or list of these",
            hint=_PARAMETERS,
        ) from None


# The parts -------------------------------------------------------------------------------------------------------


def _query(data: str) -> Query:
    return Query("", "", redacted(data))


def _training(options: argparse.Namespace) -> Training:
    if options.kind != "train":
        return Training()
    limits: dict[str, Any] = {name: getattr(options, name) or 0 for name in ROW_LIMITS}
    return Training(
        epochs=options.epochs or 1,
        batch_size=options.batch_size or BATCH_ROWS,
        seed=options.seed or 0,
        max_steps=options.max_step or 0,
        minibatches_per_task=options.num_minibatches_per_task or 0,
        **limits,
    )


def _evaluation(options: argparse.Namespace) -> Evaluation:
    if options.kind != "train":
        return Evaluation()
    return Evaluation(
        steps=options.evaluation_steps or 0,
        secs=options.evaluation_throttle_secs or 0.0,
        start_delay_secs=options.evaluation_start_delay_secs or 0.0,
    )


def _zoo(options: argparse.Namespace, folder: Path, model: OwnModel) -> Zoo:
    renamed = {
        name: function for name in FUNCTIONS if (function := getattr(options, name)) not in (None, name)
    }
    for name, function in renamed.items():
        if not all(part.isidentifier() for part in function.split(".")):
            raise SemanticError(
                f"--{name} {function} is not the name of a function", hint="such as my_loss or losses.my_loss"
            )
    reader = parameters(options.data_reader_params or "", "--data_reader_params")
    return Zoo(
        str(folder),
        model.module,
        model.attribute,
        model.digest,
        renamed,
        reader,
        _embedding_threshold(options),
    )


def _embedding_threshold(options: argparse.Namespace) -> int | UnsetType:
    """Return the threshold on the command line, or else the trained model's, which its weights were made with."""
    weights = _archive(options)
    if options.kind != "train" and weights is not None:
        trained = read_archive(weights).spec.zoo
        return trained.embedding_threshold if trained is not None else UNSET
    threshold: int | None = getattr(options, "embedding_threshold", None)
    return UNSET if threshold is None else threshold


def _job_name(name: str | None) -> str:
    if name is not None and not _JOB_NAME.fullmatch(name):
        raise SemanticError(
            f"{name!r} is not the name of a job",
            hint="letters, digits, dots, dashes and underscores, at most 63",
        )
    return name or ""


def _archive(options: argparse.Namespace) -> Path | None:
    """Return the archive of the weights, if there is one and it is on this machine."""
    weights: Path | None = options.weights
    here = weights is not None and not str(weights).startswith(IN_PODS)
    return weights if here and weights is not None and is_archive(weights) else None


def _model_params(options: argparse.Namespace) -> dict[str, Parameter]:
    """Return the parameters on the command line, or else the trained model's parameters."""
    weights = _archive(options)
    if options.model_params is None and weights is not None:
        return read_archive(weights).spec.model.params
    return parameters(options.model_params or "", "--model_params")


def _precision(options: argparse.Namespace) -> Precision:
    """Return the precision on the command line, or else the trained model's precision."""
    weights = _archive(options)
    if options.kind != "train" and weights is not None:
        return read_archive(weights).spec.precision
    return cast(Precision, getattr(options, "precision", None) or "float32")


def _check_parameters(model: OwnModel, params: Mapping[str, Parameter]) -> None:
    signature = model.signature
    for name in params:
        if name not in signature.names and not signature.anything:
            hint = did_you_mean(name, signature.names) or f"it is {model.attribute}({signature})"
            raise SemanticError(f"{model.attribute} has no parameter {name}", hint=hint)
    lacking = [name for name in signature.required if name not in params]
    if lacking:
        raise SemanticError(
            f"{model.attribute} needs its parameter {lacking[0]}", hint=f"--model_params '{lacking[0]}=…'"
        )


def _framework(model: OwnModel) -> Framework:
    if model.framework in ("keras", "torch"):
        return cast(Framework, model.framework)
    raise SemanticError(
        f"the imports of {model.file} do not determine its framework",
        hint="add --framework keras or --framework torch",
    )
