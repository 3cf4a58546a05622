"""`edl train | evaluate | predict --on PLACE`, and `edl fetch ID`: jobs of hand-written modules elsewhere."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from edl.cli import travelling
from edl.cli.distributed import with_checkpoints
from edl.cli.output import MODEL, prepare_output
from edl.cli.place import IN_PODS, new_job, open_place, place_named, submit
from edl.cli.progress import ProgressNarrator, clear_line, print_figures
from edl.errors import SemanticError, SQLFlowError
from edl.jobs import job_folder as jobs
from edl.jobs.cores import available_cores
from edl.jobs.outcome import Outcome
from edl.models.pending import read_intent
from edl.program import SPEC_FILE
from edl.run import job_runner
from edl.spec import JobSpec, to_json

Finish = Callable[[Outcome, jobs.JobFolder, argparse.Namespace], None]


def run_module(
    spec: JobSpec, options: argparse.Namespace, narrator: ProgressNarrator, finish: Finish
) -> None:
    """Submit the job of a module, and follow it; with --detach only until it runs."""
    place = open_place(options)
    with new_job(options.kind, spec.statement) as job:
        with job_runner.load_program(job.program, spec, threads=available_cores()) as program:
            spec = with_checkpoints(travelling.fill(job, program, options, place.most), options)
            (job.program / SPEC_FILE).write_bytes(to_json(spec))
        if submit(
            job,
            spec,
            place,
            options,
            narrator,
            later=f"`edl fetch {job.id}{_output_argument(options)}` gets its output",
        ):
            _finish(place.follow(job, narrator, cancels=True), job, options, finish)


def _output_argument(options: argparse.Namespace) -> str:
    """Return the argument by which `edl fetch` writes the same file: fetch knows nothing of this command."""
    output: Path | None = getattr(options, "output", None)
    if output is None or output == MODEL or str(output).startswith(IN_PODS):
        return ""
    return f" --output {shlex.quote(str(output))}"


def fetch(
    job: jobs.JobFolder, options: argparse.Namespace, narrator: ProgressNarrator, finish: Finish
) -> None:
    """Follow a job to its end, and write its output."""
    place, kind = job.status().place.partition(" ")[0], job.status().kind
    if not place or not job.zoo.is_dir() or kind == "run":
        raise SemanticError(
            f"job {job.id} has no output to fetch",
            hint="edl fetch is for jobs of edl train, evaluate and predict with --on, and for jobs here that could "
            "not write their output; see sqlflow jobs",
        )
    options.kind, options.on = kind, place
    prepare_output(options)
    _finish(place_named(place).follow(job, narrator, cancels=False), job, options, finish)


def _finish(outcome: Outcome, job: jobs.JobFolder, options: argparse.Namespace, finish: Finish) -> None:
    """Write the output. It stays in the job folder only if that fails."""
    intent = read_intent(job.path)
    if intent is None or not intent.name:
        try:
            finish(outcome, job, options)
        except SQLFlowError as error:
            error.add_hint(f"`edl fetch {job.id}` tries it again")
            raise
    else:
        clear_line(sys.stderr)
        if outcome.figures:
            print_figures(outcome)
        print(f"{outcome.rows:,} rows; pods have written {intent.name}", file=sys.stderr)
    remove_output(job)


def remove_output(job: jobs.JobFolder) -> None:
    """Remove what the job made, after it was stored; its log and its status stay."""
    job.remove_data()
    job.archive.unlink(missing_ok=True)
