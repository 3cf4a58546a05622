"""Commands of `edl`, after their arguments are checked."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from edl.cli import distributed, elsewhere, model_zoo
from edl.cli.cluster_arguments import cluster
from edl.cli.output import prepare_output, write_model, write_rows
from edl.cli.progress import ProgressNarrator, clear_line, print_figures
from edl.data.pinned import read_pinned, write_pinned
from edl.data.results import ResultFolder
from edl.embeddings.sizes import table_memory
from edl.errors import JobError, SemanticError
from edl.frameworks.export import check_target
from edl.input.blocks import Blocks
from edl.jobs import job_folder as jobs
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.cores import available_cores
from edl.jobs.event_log import record_end
from edl.jobs.events import ProcessEvent
from edl.jobs.outcome import Outcome
from edl.jobs.recording import JobRecorder
from edl.jobs.termination import terminating_after
from edl.master import resume
from edl.models.commit import kept_outcome
from edl.models.pending import Intent, destination, is_of_statement, write_intent
from edl.program import READER_FILE, Program, load_reader, read_spec, unload, user_code
from edl.run import job_runner
from edl.run.foreground import job_folder, remove_at_end
from edl.run.search import driver
from edl.spec import JobSpec, Rows
from edl.spec.job import ROW_LIMITS
from edl.worker.trainer import split

if TYPE_CHECKING:
    from edl.data import Pinned

EXAMPLE_ROWS = 2  # that show an exporter the input of a model
_NO_CODE = shutil.ignore_patterns("__pycache__", "*.pyc")


def run_command(options: argparse.Namespace) -> None:
    """Pin the rows, run the job and print its outcome; or export a model without rows."""
    if options.kind == "fetch":
        _fetch(options)
        return
    if getattr(options, "resume", None) is not None:
        _resume(options)
        return
    if options.program is None:
        (_export_module if options.kind == "export" else _run_module)(options)
        return
    folder: Path = options.program.absolute()
    spec = read_spec(folder)
    if options.kind == "export":
        output = options.output.absolute()
        check_target(spec.framework, output)  # before the framework is loaded
        with job_runner.load_program(folder, spec, threads=options.threads or available_cores()) as program:
            words = job_runner.export(program, options.weights, output)
        print(f"wrote {words} to {options.output}", file=sys.stderr)
        return
    prepare_output(options)
    train = options.kind == "train"
    with job_folder(options.kind) as job, _pin_rows(folder, spec, job, train=train) as pinned:
        _remember_output(job, options)
        spec = _apply_options(spec, options, pinned)
        print(f"{pinned.rows:,} rows", file=sys.stderr)
        if spec.cluster.workers:
            shutil.copytree(folder, job.program, dirs_exist_ok=True, ignore=_NO_CODE)
            outcome = distributed.run(job, _with_rows(spec, pinned, job), options, _narrator(options))
        else:
            if train:
                shutil.copytree(folder, job.program, dirs_exist_ok=True, ignore=_NO_CODE)
                distributed.prepare_resumption(job, _with_rows(spec, pinned, job), options)
            with job_runner.load_program(
                folder, spec, threads=options.threads or available_cores()
            ) as program:
                outcome = _run(program, job, options)
        _finish(outcome, job, options)


def _run_module(options: argparse.Namespace) -> None:
    """Run a hand-written module; the command line replaces the settings of a program folder."""
    spec = model_zoo.job_spec(options)
    prepare_output(options)
    if options.on is not None:
        elsewhere.run_module(spec, options, _narrator(options), _finish)
        return
    with job_folder(options.kind) as job:
        _remember_output(job, options)
        with job_runner.load_program(
            job.program, spec, threads=options.threads or available_cores()
        ) as program:
            pinned = model_zoo.pinned_rows(program, options, job)
            print(f"{pinned.rows:,} rows", file=sys.stderr)
            if options.weights is not None:
                model_zoo.note_changes(spec, options.weights)
            program = model_zoo.with_readings(program, pinned, job)
            program = model_zoo.with_output(program, pinned.schema)
            model_zoo.write_program(job.program, program.spec)
            spec = program.spec
            if options.kind == "train" and not spec.cluster.workers:
                distributed.prepare_resumption(job, _with_rows(spec, pinned, job), options)
            outcome = None if spec.cluster.workers else _run(program, job, options)
        if outcome is None:
            outcome = distributed.run(job, _with_rows(spec, pinned, job), options, _narrator(options))
        _finish(outcome, job, options)


def _export_module(options: argparse.Namespace) -> None:
    """Write the model of a hand-written module; some of its rows show what its `feed` makes."""
    options.kind = "predict"  # the mode of an exported model
    options.device = "cpu"
    spec = model_zoo.job_spec(options)
    output = options.output.absolute()
    check_target(spec.framework, output)
    if spec.framework == "keras" and output.suffix == ".onnx":
        raise JobError(
            "a hand-written module of Keras is not written to ONNX", hint="write it to FILE.keras or a folder"
        )
    threads = options.threads or available_cores()
    with (
        job_folder(options.kind) as job,
        job_runner.load_program(job.program, spec, threads=threads) as program,
    ):
        pinned = model_zoo.pinned_rows(program, options, job)
        if pinned.rows < 2:
            raise JobError(
                f"an export needs 2 rows as an example, and --prediction_data has {pinned.rows}",
                hint="give it some rows of the training data",
            )
        blocks = Blocks(program, job_runner.open_rows(program, pinned, job.rows))
        example = blocks.read(0, min(EXAMPLE_ROWS, pinned.rows), "predict").arrays.features
        model_zoo.note_changes(spec, options.weights)
        words = job_runner.export(program, options.weights, output, example)
    print(f"wrote {words} to {options.output}", file=sys.stderr)


def _resume(options: argparse.Namespace) -> None:
    """Continue a job that failed or died, in its own folder."""
    path = Path(options.resume).absolute()
    job = jobs.JobFolder(path) if path.is_dir() else jobs.find(options.resume)
    options.output = options.output or _remembered_output(job)
    prepare_output(options)
    position = resume.prepare(job)
    _remember_output(job, options)
    with remove_at_end(job):
        print(f"job {job.id}: {position}", file=sys.stderr)
        outcome = distributed.follow_again(job, _narrator(options))
        _finish(outcome, job, options)


def _fetch(options: argparse.Namespace) -> None:
    """Write the output of a job elsewhere, after its end; or the one that a job on this machine could not write."""
    job = jobs.find(options.job)
    status = job.status()
    outcome = None if status.is_alive else kept_outcome(job)
    if outcome is None:
        elsewhere.fetch(job, options, _narrator(options), _finish)
        return
    if status.state == "finished" and status.is_attended:
        raise SemanticError(
            f"process {status.pid} stores the result of job {job.id}", hint="wait for its end"
        )
    options.kind = status.kind
    elsewhere_hint = (
        f"`edl fetch {job.id} --output FILE` writes it elsewhere" if options.output is None else ""
    )
    options.output = options.output or _remembered_output(job)
    try:
        prepare_output(options)
        _finish(outcome, job, options)
    except (JobError, SemanticError) as error:
        if elsewhere_hint:
            error.add_hint(elsewhere_hint)
        raise
    if is_of_statement(job.path):
        print(f"`sqlflow resume {job.id}` stores it where its statement says", file=sys.stderr)
    elif status.place:
        elsewhere.remove_output(job)
    else:
        job.remove()


def _remember_output(job: jobs.JobFolder, options: argparse.Namespace) -> None:
    """Store where the output goes, for a command that resumes the job, or fetches what this one could not write."""
    output: Path | None = getattr(options, "output", None)
    if not is_of_statement(job.path):
        write_intent(job.path, Intent(options.kind, "", "", file=str(output.absolute()) if output else ""))


def _remembered_output(job: jobs.JobFolder) -> Path | None:
    intent = destination(job.path)
    return Path(intent.file) if intent is not None and intent.file else None


def _run(program: Program, job: jobs.JobFolder, options: argparse.Namespace) -> Outcome:
    """Run the job in this process, and record how far it is for other processes, also if this one is killed."""
    with JobRecorder(ClusterFolder(job.path)) as record:
        narrator = _narrator(options)

        def both(event: ProcessEvent) -> None:
            record(event)
            narrator(event)

        if program.spec.search is not None:
            threads = options.threads or available_cores()
            return driver.run(program, job, threads, observer=both, cancelled=threading.Event())
        return _run_once(program, job, options, both)


def _run_once(
    program: Program,
    job: jobs.JobFolder,
    options: argparse.Namespace,
    observer: Callable[[ProcessEvent], None],
) -> Outcome:
    program = dataclasses.replace(program, spec=distributed.with_checkpoints(program.spec, options))
    interrupted = threading.Event()
    keeps = options.kind == "train" and options.on_term != "cancel"
    with terminating_after(interrupted) if keeps else contextlib.nullcontext():
        return job_runner.run_job(
            program,
            job,
            options.weights,
            observer=observer,
            cancelled=threading.Event(),
            interrupted=interrupted,
        )


def _narrator(options: argparse.Namespace) -> ProgressNarrator:
    return ProgressNarrator(sys.stderr, getattr(options, "log_loss_steps", None) or 0)


def _with_rows(spec: JobSpec, pinned: Pinned, job: jobs.JobFolder) -> JobSpec:
    """Return the JobSpec with the pinned rows. A master reads them nowhere else."""
    validation_rows = read_pinned(job.validation_rows).rows if job.validation_rows.is_dir() else 0
    total = pinned.rows + validation_rows
    if spec.kind != "train":
        rows = Rows(True, total, 0, 0, pinned.digest)
    else:
        validation = validation_rows or pinned.validation
        rows = split(spec.rows, total, spec.training.validation_fraction, validation=validation)
        rows = msgspec.structs.replace(rows, pinned=True, digest=pinned.digest)
    return msgspec.structs.replace(spec, rows=rows)


@contextlib.contextmanager
def _pin_rows(folder: Path, spec: JobSpec, job: jobs.JobFolder, *, train: bool) -> Iterator[Pinned]:
    """Pin the rows of the program inside the context.

    Rows that stay in their source are dropped at the end by the reader.
    """
    pinned = _pin(folder, spec, job, train=train)
    try:
        yield pinned
    finally:
        if pinned.table is not None and not job.can_resume:
            module = load_reader(folder)
            with user_code(folder / READER_FILE, "unpin()"):
                for place in filter(Path.is_dir, (job.rows, job.validation_rows)):
                    module.unpin(read_pinned(place), place)
            unload(module)


def _pin(folder: Path, spec: JobSpec, job: jobs.JobFolder, *, train: bool) -> Pinned:
    shuffle = train and spec.training.shuffle
    module = load_reader(folder)
    try:
        if not hasattr(module, "pin"):
            raise JobError(
                f"{folder / READER_FILE} defines no pin", hint="def pin(folder, *, seed, shuffle): ..."
            )
        with user_code(folder / READER_FILE, "pin()"):
            pinned: Pinned = module.pin(job.rows, seed=spec.training.seed, shuffle=shuffle)
            if train and hasattr(module, "pin_held_out"):
                write_pinned(job.validation_rows, module.pin_held_out(job.validation_rows))
    finally:
        unload(module)
    write_pinned(job.rows, pinned)
    return pinned


def _apply_options(spec: JobSpec, options: argparse.Namespace, pinned: Pinned) -> JobSpec:
    """Return the JobSpec with the settings of the command line."""
    changes = {
        name: value
        for name in ("epochs", "batch_size", "seed", *ROW_LIMITS)
        if (value := getattr(options, name, None)) is not None
    }
    output = spec.output
    if options.kind == "predict" and spec.kind != "predict":
        keep = tuple(field.name for field in pinned.schema if field.name != spec.label.column)
        output = msgspec.structs.replace(output, column=spec.label.column, keep=keep)
    training = msgspec.structs.replace(spec.training, **changes)
    return msgspec.structs.replace(
        spec,
        kind=options.kind,
        training=training,
        output=output,
        cluster=cluster(options, table_memory(spec)),
        device=options.device or (spec.device if options.kind == "train" else "auto"),
    )


def _finish(outcome: Outcome, job: jobs.JobFolder, options: argparse.Namespace) -> None:
    """Write the output of the job, and print its figures. If that fails, `edl fetch` does it with the outcome here."""
    with contextlib.suppress(OSError):
        record_end(ClusterFolder(job.path).events, outcome)
    clear_line(sys.stderr)
    for note in outcome.notes:
        print(note, file=sys.stderr)
    _FINISH[options.kind](outcome, job, options)


def _finish_train(outcome: Outcome, job: jobs.JobFolder, options: argparse.Namespace) -> None:
    write_model(job.path / outcome.archive, options.output)
    print_figures(outcome)
    rate = outcome.rows / max(outcome.seconds, 1e-9)
    print(
        f"measured on the {outcome.measured_on} rows; {outcome.steps:,} steps, {rate:,.0f} rows/s\n"
        + (f"{outcome.ending}\n" if outcome.ending else "")
        + f"wrote {options.output}",
        file=sys.stderr,
    )


def _finish_evaluate(outcome: Outcome, job: jobs.JobFolder, options: argparse.Namespace) -> None:
    print_figures(outcome)


def _finish_predict(outcome: Outcome, job: jobs.JobFolder, options: argparse.Namespace) -> None:
    write_rows(ResultFolder(job.results).read(outcome.tasks), options.output)


_FINISH: Mapping[str, Callable[[Outcome, jobs.JobFolder, argparse.Namespace], None]] = {
    "train": _finish_train,
    "evaluate": _finish_evaluate,
    "predict": _finish_predict,
}
