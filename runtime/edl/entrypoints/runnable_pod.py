"""The pod of a job that runs a program of a user: `python -m edl.entrypoints.runnable_pod JOB_FOLDER`.

The pod has no account in the cluster. It fetches the pinned rows, runs the program on them, stores the results in the
data source, and prints the end of the job as an event. Lines of the program are stamped, so that none is taken for one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

from edl import data, exit_codes
from edl.cluster.local.signals import end_on_sigterm
from edl.data.pinned import FILE, read_pinned, write_rows
from edl.data.retry import insisting
from edl.errors import JobError, SQLFlowError
from edl.jobs.event_log import EventStream
from edl.jobs.events import Output
from edl.jobs.failure import to_failed
from edl.jobs.outcome import Outcome
from edl.logs import add_time
from edl.program.user_model import search_path
from edl.run import runnable
from edl.run.result_tables import store
from edl.runnable import RunnablePlace
from edl.spec.runnable import RunnableSpec, read


def main(arguments: Sequence[str] | None = None) -> int:
    end_on_sigterm()
    [folder] = sys.argv[1:] if arguments is None else arguments
    events = EventStream(sys.stdout.buffer)
    try:
        events.write(_run(Path(folder)))
    except SQLFlowError as error:
        print(error.report, file=sys.stderr)
        events.write(to_failed(error, ""))
        return exit_codes.JOB_FAILED
    return exit_codes.OK


def _run(job: Path) -> Outcome:
    """Run the program over the rows, store its results, and return the outcome; its `stored` names them."""
    began, spec = time.monotonic(), read(job)
    pinned = read_pinned(job / "rows")
    local = RunnablePlace(str(job / "local" / FILE), str(job / "results"), spec.tables)
    rows = insisting(lambda _: _fetch_rows(pinned, job))
    (job / "logs").mkdir(exist_ok=True)
    try:
        runnable.run(job, _file(job, spec), spec.arguments, local, _say, deadline=spec.deadline)
        reads = {}
        for name, (folder, tasks) in zip(spec.tables, local.list_results(), strict=True):
            if not tasks:
                raise JobError(f"{spec.file} ended without rows for {name}, so nothing was stored")
            reads[name] = partial(folder.read, tasks)
        with closing(data.connect(spec.query.source)) as source:
            counts = store(source, job.name, reads)
    finally:
        # If it fails, a later session does it.
        with suppress(SQLFlowError), closing(data.connect(spec.query.source)) as source:
            source.unpin(pinned, job / "rows")
    stored = " and ".join(
        f"{count:,} row{'' if count == 1 else 's'} to {name}"
        for name, count in zip(reads, counts, strict=True)
    )
    return Outcome("run", rows, time.monotonic() - began, made=sum(counts), stored=stored)


def _fetch_rows(pinned: data.Pinned, job: Path) -> int:
    """Copy the pinned rows into a file of this pod. Return their number."""
    reader = data.open_reader(pinned, job / "rows")
    rows, _ = write_rows(job / "local", reader.schema, reader.read(0, reader.rows))
    return rows


def _file(job: Path, spec: RunnableSpec) -> Path:
    folders = [job / "program"] if spec.sent else [Path(folder) for folder in search_path()]
    path = next((folder / spec.file for folder in folders if (folder / spec.file).is_file()), None)
    if path is None:
        raise JobError(
            f"the image has no program {spec.file} in {', '.join(map(str, folders))}",
            hint="its variable SQLFLOW_MODEL_PATH names the folders of programs",
        )
    return path


def _say(output: Output) -> None:
    for line in output.lines:
        print(add_time(line), flush=True)


if __name__ == "__main__":
    sys.exit(main())
