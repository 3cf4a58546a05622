"""Bytes per sample between a worker and its servers, with one local step and with several.

The model and the rows are those of `benchmarks.steps`. Dense bytes are those of whole parameters and their
gradients. Row bytes are ids, rows and their gradients, and depend on the distinct ids of a group of
minibatches: their *union* is the cost of one pull and one push of each.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import sqlflow_edl
from benchmarks import embeddings
from benchmarks.jobs import job_of
from benchmarks.servers import started
from benchmarks.steps import SIZE, created, served
from benchmarks.table import Row
from edl.frameworks import Minibatches
from edl.input.blocks import Blocks
from edl.jobs.job_folder import JobFolder
from edl.program import read_spec
from edl.ps import messages as msg
from edl.ps import wire
from edl.run import job_runner
from edl.spec import Cluster

LOCAL_STEPS = (1, 4, 16)
STEPS = 64


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    """Count bytes; `rounds` and `rows` are ignored, since bytes are the same each time."""
    with sqlflow_edl.connect("duckdb:") as session:
        embeddings.make_clicks(session, SIZE * (STEPS + 1))
        statement = embeddings.in_framework(embeddings.STATEMENTS["clicks"], "torch")
        job = job_of(session, folder / "traffic", statement)
    command = [sys.executable, "-m", "benchmarks.traffic", str(job)]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    table = []
    for local_steps in LOCAL_STEPS:
        dense, moved, union = found[str(local_steps)]
        name = f"traffic: local_steps = {local_steps}"
        fewer = found["1"][0] / dense
        table += [
            Row(
                f"{name}, dense bytes a sample; times fewer",
                f"{dense:,.1f}",
                [fewer],
                least=0.99 * local_steps,
            ),
            Row(f"{name}, row bytes a sample; of the union", f"{moved:,.1f}", [moved / union], most=1.1),
        ]
    return table


class _Counter:
    """Bytes of the arrays that were sent and received. dense: of parameters. rows: of table rows."""

    def __init__(self) -> None:
        self.dense = self.rows = 0

    def count(self, header: Any, arrays: Sequence[wire.Array]) -> None:
        pulled = header.pulled if isinstance(header, msg.Pushed) else header
        whole = isinstance(header, msg.Push) or (isinstance(pulled, msg.Pulled) and pulled.dense)
        of_rows = arrays[1:] if whole else arrays
        self.dense += sum(array.nbytes for array in arrays) - sum(array.nbytes for array in of_rows)
        self.rows += sum(array.nbytes for array in of_rows)


@contextmanager
def _counted() -> Iterator[_Counter]:
    counter = _Counter()
    encode, decode = wire.encode, wire.decode

    def sent(header: Any, arrays: Sequence[wire.Array] = ()) -> bytes:
        if isinstance(header, msg.Push | msg.Pull):
            counter.count(header, arrays)
        return encode(header, arrays)

    def received(payload: bytes, kind: Any) -> Any:
        header, arrays = decode(payload, kind)
        if isinstance(header, msg.Pushed | msg.Pulled):
            counter.count(header, arrays)
        return header, arrays

    with mock.patch.object(wire, "encode", sent), mock.patch.object(wire, "decode", received):
        yield counter


def _worker(job: JobFolder) -> None:
    """Print dense bytes, row bytes and the union's row bytes of a sample, by local steps."""
    spec = read_spec(job.program)
    found = {}
    with job_runner.load_program(job.program, spec, threads=1) as program:
        _, reader = job_runner.rows_of(program, job)
        given = Blocks(program, reader).read(0, SIZE * STEPS, "train").arrays
        rows = Minibatches(given.features, given.labels, SIZE)
        tables = created(program, rows).tables
        for local_steps in LOCAL_STEPS:
            union = 0
            for first in range(0, STEPS * SIZE, local_steps * SIZE):
                need = tables.need(tables.keys(rows.features), first, first + local_steps * SIZE)
                union += sum(
                    2 * len(ids) * (8 + 4 * tables.tables[name].spec.dim) for name, ids in need.ids.items()
                )
            with started(2) as addresses:
                train = served(program, rows, addresses, Cluster(1, 2, "async", local_steps), job.path)
                train()  # initialization is not counted
                with _counted() as counter:
                    train()
            samples = STEPS * SIZE
            found[local_steps] = counter.dense / samples, counter.rows / samples, union / samples
    print(json.dumps(found))


if __name__ == "__main__":
    _worker(JobFolder(Path(sys.argv[1])))
