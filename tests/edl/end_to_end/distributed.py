"""Whole jobs on real processes: a folder with program and rows, a supervisor, a master, workers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from edl.cluster.local.client import SupervisedJob
from edl.data.pinned import write_pinned
from edl.jobs import job_folder
from edl.jobs.cluster_folder import ClusterFolder, RunSpec, with_surroundings
from edl.jobs.events import EpochEnd, Observer, Progress, Tally, ignore
from edl.jobs.outcome import Outcome
from edl.program import read_spec
from edl.run import job_runner
from edl.spec import Cluster, Rows, to_json
from edl.testing import KILL, MOMENTS
from tests.edl import programs

Event = Progress | EpochEnd | Tally


def table(rows: int, seed: int = 0) -> pa.Table:
    """y = 3 x + 1."""
    x = np.random.default_rng(seed).normal(size=rows)
    return pa.table({"x": x, "y": 3 * x + 1})


class Job:
    """A job folder that is ready to run, here or with workers."""

    def __init__(
        self,
        data: pa.Table,
        *,
        kind: str = "train",
        framework: str = "torch",
        workers: int = 1,
        validation: int = 0,
        weights: Path | None = None,
        how: RunSpec | None = None,
        spec: dict[str, Any] | None = None,
        **program: Any,
    ) -> None:
        self.folder = job_folder.create(kind)  # type: ignore[arg-type]
        self.cluster = ClusterFolder(self.folder.path)
        rows = Rows(True, data.num_rows, data.num_rows - validation, validation)
        programs.simple(self.folder.program, framework, rows=rows, **program)
        changes: dict[str, Any] = {"kind": kind, "cluster": Cluster(workers=workers), **(spec or {})}
        made = msgspec.structs.replace(read_spec(self.folder.program), **changes)
        (self.folder.program / "job.json").write_bytes(to_json(made))
        write_pinned(self.folder.rows, programs.pin(self.folder.rows, data))
        if weights is not None:
            self.folder.model.write_bytes(weights.read_bytes())
        self.spec = msgspec.structs.replace(how or RunSpec("torch"), framework=framework)
        self.events: list[Event] = []

    @property
    def archive(self) -> Path:
        return self.folder.archive

    def start(self) -> SupervisedJob:
        return SupervisedJob.start(self.folder, self.spec)

    def run(self, on_event: Callable[[Event], None] | None = None) -> Outcome:
        """Run it with its workers."""

        def heard(event: Event) -> None:
            self.events.append(event)
            if on_event is not None:
                on_event(event)

        with self.start() as running:
            return running.follow(heard)

    def allow_resuming(self) -> None:
        """Let a training in one process be one that can be resumed."""
        self.cluster.write_run_spec(with_surroundings(self.spec))

    def run_here(self, interrupted: threading.Event | None = None, observer: Observer = ignore) -> Outcome:
        """Run it in this process."""
        spec = read_spec(self.folder.program)
        weights = self.folder.model if self.folder.model.exists() else None
        with job_runner.load_program(self.folder.program, spec, threads=1) as program:
            return job_runner.run_job(
                program,
                self.folder,
                weights,
                observer=observer,
                cancelled=threading.Event(),
                interrupted=interrupted,
            )

    def logs(self) -> str:
        return "\n".join(f"== {path.name}\n{path.read_text()}" for path in sorted(self.folder.logs.glob("*")))


ENTRIES = "edl.testing,edl.testing:worker,edl.testing:server"  # that jobs of tests may name besides


def kill(
    *orders: str, moments: Path | None = None, environment: dict[str, str] | None = None, **spec: Any
) -> RunSpec:
    """Return the settings of a run whose instances die at named points and write their moments; see `edl.testing`.

    environment: what they find set besides.
    """
    noted = {MOMENTS: str(moments)} if moments else {}
    return RunSpec(
        "torch",
        master="edl.testing",
        worker="edl.testing:worker",
        server="edl.testing:server",
        environment={KILL: ";".join(orders), **noted, **(environment or {})},
        **spec,
    )
