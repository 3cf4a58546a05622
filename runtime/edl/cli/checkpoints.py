"""`edl checkpoints JOB`: list the checkpoints of a job, read them whole, or write one as a model.

edl checkpoints JOB                          step, epoch, time, size and known damage of each
edl checkpoints JOB --verify                 the same, after all files were read and compared with their checksums
edl checkpoints JOB --export STEP FILE       a model from the one at this step, or from the newest sound one
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from edl.checkpoints import factory
from edl.cli.checkpoint_arguments import NEWEST
from edl.errors import JobError, SemanticError, did_you_mean
from edl.files import replacing
from edl.jobs import job_folder
from edl.jobs.cores import available_cores
from edl.jobs.job_folder import JobFolder
from edl.master.stored_checkpoints import ListedCheckpoint, StoredCheckpoints, stored_checkpoints
from edl.models import weights as weight_files
from edl.program import read_spec
from edl.run import job_runner
from edl.run.archive import save_checkpoint

COLUMNS = ("checkpoint", "step", "epoch", "written", "bytes", "state")
SUFFIXES = (".zip", ".safetensors")


def run(options: argparse.Namespace) -> None:
    """Print a table to standard output, or write a file.

    Raises SemanticError for an unknown job or step, JobError if a checkpoint is damaged or there is none.
    """
    path = Path(options.job)
    job = JobFolder(path.absolute()) if path.is_dir() else job_folder.find(options.job)
    checkpoints: list[ListedCheckpoint] = []
    if job.program.is_dir():  # of a job that was cancelled only the log is left
        stored = stored_checkpoints(read_spec(job.program), factory.for_master(job.path))
        checkpoints = stored.list_checkpoints()
    if not checkpoints:
        raise JobError(
            f"job {job.id} has no checkpoints",
            hint="it was to write its first one later"
            if job.rows.is_dir()
            else "they are removed when a job has succeeded or was cancelled",
        )
    if options.export is not None:
        step, file = options.export
        _export(job, stored, checkpoints, step, Path(file))
        return
    if options.verify:
        checkpoints = [
            checkpoint._replace(damage=stored.verify(checkpoint.name)) for checkpoint in checkpoints
        ]
    _print([_row(checkpoint, verified=options.verify) for checkpoint in checkpoints])
    if wrong := sum(bool(checkpoint.damage) for checkpoint in checkpoints) * options.verify:
        raise JobError(f"{wrong} of {len(checkpoints)} checkpoints of job {job.id} cannot be resumed from")


def _row(checkpoint: ListedCheckpoint, *, verified: bool) -> tuple[str, ...]:
    time = checkpoint.facts.written
    return (
        checkpoint.name,
        _number(checkpoint.step),
        _number(checkpoint.epoch),
        "" if time is None else f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S}",
        _number(checkpoint.facts.bytes),
        checkpoint.damage.removeprefix(f"the checkpoint {checkpoint.name} is ")
        or ("sound" if verified else "complete"),
    )


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _print(rows: list[tuple[str, ...]]) -> None:
    lines = [COLUMNS, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    numbers = {COLUMNS.index(name) for name in ("step", "epoch", "bytes")}
    for line in lines:
        cells = (
            cell.rjust(width) if column in numbers else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        print("  ".join(cells).rstrip())


def _export(
    job: JobFolder, stored: StoredCheckpoints, checkpoints: list[ListedCheckpoint], step: str, file: Path
) -> None:
    if file.suffix not in SUFFIXES:
        raise SemanticError(f"cannot write {file}", hint=f"known suffixes: {', '.join(SUFFIXES)}")
    chosen = _find_checkpoint(stored, checkpoints, step)
    weights = stored.weights(chosen.name)
    try:
        if file.suffix == ".zip":
            spec = read_spec(job.program)
            with job_runner.load_program(job.program, spec, threads=available_cores()) as program:
                save_checkpoint(file, job, program, weights, chosen.step or 0, chosen.epoch or 0)
        else:
            with replacing(file) as partial:
                weight_files.save(weights, partial)
    except OSError as error:
        raise JobError(f"cannot write {file}: {error.strerror}") from None
    print(f"{file}: the model of checkpoint {chosen.name}", file=sys.stderr)


def _find_checkpoint(
    stored: StoredCheckpoints, checkpoints: list[ListedCheckpoint], step: str
) -> ListedCheckpoint:
    """Return the checkpoint of a step or name; of the newest, the first one that is sound."""
    if step == NEWEST:
        sound = (
            checkpoint
            for checkpoint in reversed(checkpoints)
            if not (checkpoint.damage or stored.verify(checkpoint.name))
        )
        if (newest := next(sound, None)) is None:
            raise JobError("all checkpoints of the job are damaged")
        return newest
    for checkpoint in reversed(checkpoints):
        if step in (str(checkpoint.step), checkpoint.name):
            return checkpoint
    names = [NEWEST, *(str(checkpoint.step) for checkpoint in checkpoints if checkpoint.step is not None)]
    raise SemanticError(f"the job has no checkpoint at step {step}", hint=did_you_mean(step, names))
