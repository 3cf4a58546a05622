"""Our side of the training benchmarks: the generated program in the worker loop, in a process of its own.

    python -m benchmarks.ours JOB EPOCHS BATCH_SIZE

Prints the same line of JSON as the baselines. Reading, transforming and permuting the rows is inside the
measured time here, in every epoch; the baselines have their arrays ready in memory.
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
from pathlib import Path

import msgspec

from edl import spec
from edl.jobs.cores import available_cores
from edl.jobs.events import EpochEnd, ProcessEvent
from edl.jobs.job_folder import JobFolder
from edl.program import read_spec
from edl.run import job_runner


def main() -> None:
    job, epochs, batch_size = JobFolder(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
    ends: list[float] = [0.0]

    def observe(event: ProcessEvent) -> None:
        if isinstance(event, EpochEnd):
            ends.append(event.seconds)

    written = read_spec(job.program)
    training = spec.Training(epochs, batch_size)
    wanted = msgspec.structs.replace(written, training=training)
    with job_runner.load_program(job.program, wanted, threads=available_cores()) as program:
        job_runner.run_job(program, job, None, observer=observe, cancelled=threading.Event())
    seconds = [after - before for before, after in itertools.pairwise(ends)]
    print(json.dumps({"rows": written.rows.training, "seconds": seconds}))


if __name__ == "__main__":
    main()
