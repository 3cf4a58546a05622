"""`edl run [--workers N] script.py …`: run a script in several workers, as torchrun does, with restarts."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import msgspec

from edl.cli import nodes, place
from edl.cli.arguments import positive
from edl.cli.foreign_options import ForeignCommand, takes_following_value
from edl.cluster.local.client import SupervisedJob
from edl.errors import SemanticError, SQLFlowError
from edl.jobs import script_run
from edl.jobs.cluster_folder import SCRIPT_MASTER, SCRIPT_WORKER, ClusterFolder, RunSpec, master_timeout
from edl.jobs.cores import available_cores
from edl.jobs.events import EpochEnd, JobEvent, Tally
from edl.jobs.job_folder import JobFolder, find
from edl.jobs.script_run import ScriptRun
from edl.models.pending import Intent, resume_command, write_intent
from edl.program import SPEC_FILE
from edl.run.foreground import job_folder, remove_at_end
from edl.spec import SCRIPT, Checkpoints, Cluster, Component, JobSpec, Output, Query, RawLabel, Rows, to_json

LOGS_SECS = 20.0  # time for the last lines of pods to arrive
LOOK_SECS = 0.1  # between two looks at the logs
TASK_SECS = 3600.0  # without a step, after which a worker that uses edl.elastic is replaced


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "edl run [--workers N] [--max_restarts N] [--on kubernetes] [options] [-m] script.py [argument ...]\n"
        "       edl run --resume JOB"
    )
    place.add_arguments(parser)
    nodes.add_arguments(parser)
    parser.add_argument(
        "--workers",
        "--num_workers",
        "--nproc_per_node",
        "--nproc-per-node",
        type=_processes,
        default=1,
        metavar="N",
        help="number of worker processes (default: %(default)s)",
    )
    parser.add_argument(
        "--max_restarts",
        "--max-restarts",
        type=_count,
        default=3,
        metavar="N",
        help="restarts of all workers after the failure of one, unless the script uses edl.elastic, which replaces "
        "the failed one alone (default: %(default)s)",
    )
    parser.add_argument(
        "--threads",
        type=positive,
        metavar="N",
        help="threads of each worker (default: its share of the cores)",
    )
    parser.add_argument(
        "--checkpoint_steps",
        type=positive,
        metavar="N",
        help="with edl.elastic: also write a checkpoint every N steps (default: only every 30 s)",
    )
    parser.add_argument(
        "--resume",
        metavar="JOB",
        help="continue a script with edl.elastic that was interrupted, failed or died: its job folder, or its id",
    )
    parser.add_argument("-m", "--module", action="store_true", help="the script is a module, as in python -m")
    parser.add_argument("script", nargs="?", help="Python file, or a module's name")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the script")


def _processes(text: str) -> int:
    """Return a number of processes; torchrun's words gpu, cpu and auto are the GPUs or the cores of this machine."""
    if text not in ("auto", "cpu", "gpu"):
        return positive(text)
    gpus = len(list(Path("/dev").glob("nvidia[0-9]*"))) if text != "cpu" else 0
    if text == "gpu" and not gpus:
        raise argparse.ArgumentTypeError("there is no GPU of NVIDIA on this machine")
    return gpus or available_cores()


def before_script(
    arguments: Sequence[str], parser: argparse.ArgumentParser, origins: Sequence[ForeignCommand]
) -> Sequence[str]:
    """Return the arguments that are not the script's own. `origins` have options of other commands."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        action = parser._option_string_actions.get(arguments[at])
        takes_value = takes_following_value(arguments[at], origins) if action is None else action.nargs != 0
        at += 2 if takes_value else 1
    return arguments[:at]


def run(options: argparse.Namespace) -> None:
    """Run the script to its end. Raises JobError if a worker fails and no restart is left."""
    if options.resume is not None:
        _resume(options)
        return
    place.check(options)
    script = _script(options)
    if options.on is not None:
        _run_elsewhere(script, options)
        return
    several = nodes.has_several(options)
    with job_folder("run", " ".join(("edl run", options.script))) as job:
        script_run.write(job.path, script)
        threads = options.threads or max(1, available_cores() // options.workers)
        if several and not nodes.is_first(options):
            _offer_node(job, options, threads)
            return
        (job.program / SPEC_FILE).write_bytes(to_json(_job_spec(options, script.workers)))
        how = RunSpec(
            "torch",
            threads=threads,
            master=SCRIPT_MASTER,
            worker=SCRIPT_WORKER,
            master_timeout=master_timeout(os.environ),
        )
        if several:
            how = nodes.use_nodes(job, options, how)
        print(f"job {job.id}", file=sys.stderr)
        _run_here(job, how)


def _offer_node(job: JobFolder, options: argparse.Namespace, threads: int) -> None:
    """Let workers run here of a job with its master on another machine."""
    try:
        with _printing(job, sys.stdout):
            nodes.offer_node(job, options, threads)
    finally:
        script_run.forget(job.path)


def _run_here(job: JobFolder, how: RunSpec) -> None:
    try:
        with _printing(job, sys.stdout), SupervisedJob.start(job, how) as running:
            running.follow(ScriptNarrator(sys.stderr))
    finally:
        if not job.can_resume:
            script_run.forget(job.path)


def _resume(options: argparse.Namespace) -> None:
    """Continue the script of a job in its own folder, from its last checkpoint."""
    from edl.master import resume  # loads more than a run needs

    if options.script is not None:
        raise SemanticError("--resume continues the script of the job", hint=f"leave out {options.script}")
    path = Path(options.resume).absolute()
    job = JobFolder(path) if path.is_dir() else find(options.resume)
    if job.status().kind != "run":
        raise SemanticError(f"job {job.id} is no script", hint=f"{resume_command(job.path)} may continue it")
    position = resume.prepare(job)
    with remove_at_end(job):
        print(f"job {job.id}: {position}", file=sys.stderr)
        _run_here(job, ClusterFolder(job.path).run_spec())


def _run_elsewhere(script: ScriptRun, options: argparse.Namespace) -> None:
    """Run the script in pods. Each pod gets the Python files of the script's folder."""
    where = place.open_place(options)
    with place.new_job("run", " ".join(("edl run", options.script))) as job:
        try:
            spec = _fill(job, script, options, where.most)
            narrator, later = ScriptNarrator(sys.stderr), f"`sqlflow attach {job.id}` follows it"
            if place.submit(job, spec, where, options, narrator, later=later):
                _follow(where, job, narrator)
        finally:
            script_run.forget(job.path)


def _fill(job: JobFolder, script: ScriptRun, options: argparse.Namespace, most: int) -> JobSpec:
    """Write everything that pods need into the job folder; its files are to have `most` bytes at the most."""
    from edl.cli.travelling import send_modules  # loads what reads rows

    send_modules(Path(script.folder) if script.module else Path(script.path).parent, job.zoo, most)
    spec = _job_spec(options, script.workers)
    (job.program / SPEC_FILE).write_bytes(to_json(spec))
    write_intent(job.path, Intent("train", "", ""))
    path = job.zoo.name if script.module else f"{job.zoo.name}/{Path(script.path).name}"
    script_run.write(job.path, msgspec.structs.replace(script, path=path, folder=job.zoo.name))
    return spec


def _follow(where: place.JobPlace, job: JobFolder, narrator: ScriptNarrator) -> None:
    """Follow the job to its end, and print what its workers write."""
    printer = threading.Thread(target=_print_lines, args=(where, job), name="edl-logs", daemon=True)
    printer.start()
    try:
        where.follow(job, narrator, cancels=True)
    finally:
        printer.join(LOGS_SECS)


def _print_lines(where: place.JobPlace, job: JobFolder) -> None:
    """Print what the workers write, each line with the worker's name."""
    with contextlib.suppress(SQLFlowError), where.lines(job) as lines:  # `follow` reports errors
        for name, line in lines:
            if name.startswith("worker-"):
                print(f"[{name}] {line}", end="", flush=True)


class ScriptNarrator:
    """Writer of restarts and of the ends of epochs."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._relaunches = 0

    def note(self, text: str) -> None:
        print(f"note: {text}", file=self._file, flush=True)

    def __call__(self, event: JobEvent) -> None:
        if isinstance(event, Tally) and event.relaunches > self._relaunches:
            self._relaunches = event.relaunches
            print(f"restarts: {event.relaunches}", file=self._file, flush=True)
        elif isinstance(event, EpochEnd):
            print(f"epoch {event.epoch} done at step {event.step:,}", file=self._file, flush=True)


def _script(options: argparse.Namespace) -> ScriptRun:
    """Return the script. Raises SemanticError if there is no such file."""
    if options.script is None:
        raise SemanticError("edl run needs a script", hint="edl run script.py, or edl run --resume JOB")
    path = Path(options.script).absolute()
    if not options.module and not path.is_file():
        near = path.with_name(f"{path.name}.py")
        hint = f"did you mean {options.script}.py?" if near.is_file() else "for a module: edl run -m"
        raise SemanticError(f"there is no file {options.script}", hint=hint)
    module = options.script if options.module else ""
    least, most = options.nnodes
    alone = ScriptRun(
        str(path),
        module,
        tuple(options.arguments),
        str(Path.cwd()),
        options.workers * most,
        options.max_restarts,
    )
    if most == 1:
        return alone
    return msgspec.structs.replace(alone, least=options.workers * least, per_node=options.workers)


def _job_spec(options: argparse.Namespace, workers: int) -> JobSpec:
    """Return the JobSpec of the script's training, if there is one; its rows are not known yet."""
    return JobSpec(
        kind="train",
        statement=f"edl run {options.script}",
        query=Query("", "", ""),
        rows=Rows(pinned=False, total=0, training=0),
        framework="torch",
        model=Component(SCRIPT),
        inputs={},
        label=RawLabel("prediction"),
        optimizer=Component(SCRIPT),
        loss=Component(SCRIPT),
        metrics=(),
        output=Output(name=Path(options.script).stem),
        checkpoints=Checkpoints(steps=options.checkpoint_steps or 0),
        cluster=Cluster(workers=workers, strategy="allreduce", task_timeout=TASK_SECS),
    )


@contextmanager
def _printing(job: JobFolder, file: TextIO) -> Iterator[None]:
    """Print what the workers write to their logs, each line with the worker's name."""
    ended = threading.Event()
    before = {
        path: path.stat().st_size for path in job.logs.glob("worker-*.log")
    }  # of the run that is resumed
    printer = threading.Thread(target=_print, args=(job, file, ended, before), name="edl-logs", daemon=True)
    printer.start()
    try:
        yield
    finally:
        ended.set()
        printer.join()


def _print(job: JobFolder, file: TextIO, ended: threading.Event, at: dict[Path, int]) -> None:
    last = False
    while not last:
        last = ended.wait(LOOK_SECS)
        for path in sorted(job.logs.glob("worker-*.log")):
            with path.open("rb") as log:
                log.seek(at.get(path, 0))
                text = log.read()
            whole = text if last else text[: text.rfind(b"\n") + 1]
            at[path] = at.get(path, 0) + len(whole)
            for line in whole.decode(errors="replace").splitlines():
                print(f"[{path.stem}] {line}", file=file, flush=True)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not a number, at least 0")
    return int(text)
