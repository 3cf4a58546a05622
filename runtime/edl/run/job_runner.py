"""Execution of one job in this process: from rows to results or a model's archive, all in the job folder.

    rows/pinned.json, rows/…   in: the pinned rows and their description
    rows/held-out/…            in: the same for validation rows with a query of their own
    results/                   out: the staged result of PREDICT, EVALUATE and EXPLAIN
    archive.zip                out: the model of TRAIN
    cluster/, checkpoints/     out: what a training needs to be resumed (`edl.run.one_process`)

A job that fails or is cancelled leaves neither results nor an archive.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import msgspec
import pyarrow as pa

from edl import frameworks
from edl.arrays import Array, Features, checked_features
from edl.data import Pinned, Reader, open_reader
from edl.data.arrow_types import schema_of
from edl.data.pinned import read_pinned
from edl.data.readers import JoinedReader, PartsReader
from edl.data.results import ResultFolder
from edl.errors import JobError
from edl.features.folds import with_folds
from edl.forecasting import ExamplesReader, with_examples
from edl.jobs.events import Observer
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.models import weights as weight_files
from edl.models.fitting import read_fitting
from edl.program import READER_FILE, Program, load, load_reader, unload, user_code
from edl.run.archive import save
from edl.run.background import background_rows
from edl.run.initial_weights import (
    trained_background,
    trained_temperature,
    trained_threshold,
    trained_weights,
)
from edl.run.intervals import measure_widths
from edl.run.one_process import keeping_state
from edl.spec import ONNX, SCORED, TREES, JobSpec, Label, Rows, each_label, label_offset
from edl.worker.inference import evaluate, predict
from edl.worker.trainer import Export, split, train


@contextlib.contextmanager
def load_program(folder: Path, spec: JobSpec, *, threads: int) -> Iterator[Program]:
    """Load the program in `folder` to be run with `spec`, with its framework prepared and seeded."""
    prepare(spec, threads)
    program = load(folder, spec)
    try:
        yield program
    finally:
        unload(program.module)


def prepare(spec: JobSpec, threads: int, *, own_process: bool = True) -> None:
    """Prepare and seed the libraries that a job of the spec uses in this process; see `frameworks.prepare`."""
    pa.set_cpu_count(threads)
    frameworks.prepare(spec.framework, threads, own_process=own_process)
    frameworks.seed_everything(spec.framework, spec.training.seed)


def run_job(
    program: Program,
    job: JobFolder,
    weights: Path | None,
    *,
    observer: Observer,
    cancelled: threading.Event,
    interrupted: threading.Event | None = None,
) -> Outcome:
    """Run the program's job in its folder. Raises JobCancelledError if `cancelled` is set.

    A training with `interrupted` writes checkpoints (`edl.run.one_process`), and ends with one and JobInterruptedError
    when that is set.
    """
    pinned, reader = rows_of(program, job)
    results = ResultFolder(job.results)
    try:
        if program.spec.kind == "train":
            start = starting_weights(program, weights)
            rows, write = training(program, job, pinned, reader, cancelled)
            with keeping_state(job, program.spec, interrupted) as keep:
                outcome, _ = train(
                    program,
                    reader,
                    rows,
                    weights=start,
                    observer=observer,
                    cancelled=cancelled,
                    export=write,
                    prepare=keep,
                )
        else:
            do = predict if program.spec.work == "predict" else evaluate
            given_weights = trained_weights(weights)
            background = trained_background(weights, program.spec)
            outcome = do(
                program, reader, given_weights, results, background, observer=observer, cancelled=cancelled
            )
            if isinstance(reader, ExamplesReader):
                outcome = msgspec.structs.replace(outcome, notes=(*outcome.notes, *reader.notes))
    except BaseException:
        results.clear()
        raise
    return msgspec.structs.replace(outcome, edited=program.edited)


def rows_of(program: Program, job: JobFolder) -> tuple[Pinned, Reader]:
    """Open the rows pinned in the job folder; validation rows with a query of their own come last."""
    pinned = read_pinned(job.rows)
    reader = open_rows(program, pinned, job.rows)
    if program.spec.kind == "train" and job.validation_rows.is_dir():
        validation = open_rows(program, read_pinned(job.validation_rows), job.validation_rows)
        reader = JoinedReader(reader, validation)
    rows, explanation = program.spec.rows, program.spec.explanation
    if program.spec.kind == "explain" and explanation is not None and explanation.rows:
        left_out = max(0, reader.rows - explanation.rows)
        reader = PartsReader.skip(reader, explanation.rows, left_out) if left_out else reader
    if isinstance(rows.fold, int):
        reader = PartsReader(reader, rows.list_parts())
    return pinned, with_examples(with_folds(reader, program.spec), program)


def training(
    program: Program,
    job: JobFolder,
    pinned: Pinned,
    reader: Reader,
    cancelled: threading.Event | None = None,
    *,
    is_trial: bool = False,
) -> tuple[Rows, Export]:
    """Return the split of a training job's rows, and the function that writes its archive.

    `cancelled` stops the refit of a forecast. is_trial: the model is one of a search, which measures its ensemble.
    """
    started = datetime.now(UTC)
    validation = reader.rows - pinned.rows or pinned.validation
    if isinstance(reader, ExamplesReader):
        validation = reader.rows - reader.training
    fraction = program.spec.training.validation_fraction
    rows = split(program.spec.rows, reader.rows, fraction, validation=validation)
    kept = msgspec.structs.replace(rows, pinned=True, digest=pinned.digest)

    def write(outcome: Outcome, weights: weight_files.Weights) -> Outcome:
        if isinstance(reader, ExamplesReader):
            from edl.run.forecasts import finish_training

            outcome, weights = finish_training(program, reader, outcome, weights, cancelled)
        if not is_trial:
            measured = measure_widths(program, reader, kept, weights, outcome.uncertainty)
            outcome = msgspec.structs.replace(outcome, uncertainty=measured)
        fitting = read_fitting(job.rows)
        # A program that was edited may have a reader that gives other columns.
        background = None if program.edited else background_rows(program.spec, reader, kept.training)
        save(job.archive, program, pinned, kept, weights, outcome, started, fitting, background)
        return msgspec.structs.replace(
            outcome, archive=job.archive.name, edited=program.edited, uncertainty=None
        )

    return rows, write


def export(program: Program, weights: Path, path: Path, example: Features | None = None) -> str:
    """Write the program's model with these weights to `path`, in the format of its suffix. Return the format's name.

    `example` is what the `feed` of a hand-written module makes of some rows: its columns are not known otherwise.
    Raises JobError, see `edl.frameworks.export`.
    """
    from edl.frameworks.export import OVER_COLUMNS, average_members, check_lists, network_file
    from edl.frameworks.export import export as write

    if program.spec.forecast is not None:
        raise JobError(
            "a forecast needs the last rows of its series, which a file of a model does not read",
            hint="SELECT … TO PREDICT reads them from a query",
        )
    framework, is_module = program.spec.framework, program.spec.zoo is not None
    features = _make_example(program) if example is None else example
    temperature, threshold = trained_temperature(weights), trained_threshold(weights)
    spec = msgspec.structs.replace(program.spec, device="cpu", temperature=temperature, threshold=threshold)
    program = dataclasses.replace(program, spec=spec)
    adapter = frameworks.create(program, features, None, seed=spec.training.seed)
    trained = trained_weights(weights)
    adapter.set_weights(trained)
    reason = ""
    if framework in SCORED:  # they are not computed for this
        return write(framework, adapter.standalone(), features, path)
    if (adapter.framework, path.suffix) in OVER_COLUMNS and not is_module:
        file = network_file(program, trained, path.suffix)
        if not isinstance(file, str):
            return write(adapter.framework, file, features, path)
        reason = f" ({file})"
    model = adapter.standalone()
    outputs = adapter.predict(features)
    check_lists(adapter.framework, model, features, outputs)
    if outputs.ndim == 3 and program.spec.label.is_declared:
        model = average_members(adapter.framework, model, program.spec.label)
    if adapter.framework not in TREES or path.suffix != ".onnx":
        reason += _without_centre(program.spec.label)
    return write(adapter.framework, model, features, path) + reason


def _make_example(program: Program) -> Features:
    """Return what the program's `feed` makes of two rows of NULLs: what replaces NULLs is a valid example."""
    import pyarrow as pa

    if program.spec.zoo is not None:
        raise JobError(
            "a hand-written module cannot be exported without rows: its archive does not hold the columns that its "
            "feed reads",
            hint="`edl export --model_def … --prediction_data DATA` reads some rows as an example of its input",
        )
    if not program.has("feed"):
        raise JobError(f"{program.file} defines no feed, which an export calls with rows of NULLs")
    columns = program.spec.columns
    schema = schema_of(field for field in program.spec.query.schema if field.name in columns)
    types = {name: schema.field(name).type if name in schema.names else pa.null() for name in columns}
    nulls = {name: pa.nulls(2, type_) for name, type_ in types.items()}
    row = program.call("feed", pa.record_batch(nulls), "predict")[0]
    exact = program.spec.framework in (*TREES, ONNX)
    return checked_features(row, 2, exact=exact, texts=program.spec.framework == ONNX)


def _without_centre(label: Label) -> str:
    """Return what an export says if its outputs are less a centre, which files of columns add."""
    of_labels = [(one_label.column, label_offset(one_label)) for one_label in each_label(label)]
    return "".join(f", which gives {name} less {offset!r}" for name, offset in of_labels if offset)


def starting_weights(program: Program, weights: Path | None) -> Mapping[str, Array] | None:
    """Return the initial weights, or None for new ones. Raises JobError if the job needs them and none are given."""
    if weights is None and program.spec.trained_model:
        raise JobError(
            f"this program starts from the weights of {program.spec.trained_model}, but none were given",
            hint="add --weights with the archive of that model",
        )
    return trained_weights(weights) if weights is not None else None


def open_rows(program: Program, pinned: Pinned, folder: Path) -> Reader:
    """Open the pinned rows with model.py's own reader, else reader.py's, else the reader of the rows' file."""
    if program.has("custom_data_reader"):
        return cast(Reader, program.call("custom_data_reader", pinned, folder))
    if not (program.folder / READER_FILE).exists():
        return open_reader(pinned, folder)
    module = load_reader(program.folder)
    with user_code(program.folder / READER_FILE, "custom_data_reader()"):
        return cast(Reader, getattr(module, "custom_data_reader", open_reader)(pinned, folder))
