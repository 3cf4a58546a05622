"""Programs of searches, and job folders for them: boosted trees of LightGBM, because their processes start fastest."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from edl.jobs.events import ProcessEvent
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.program import load, read_spec, unload
from edl.program.folders import CANDIDATES
from edl.run.search import driver
from edl.run.training_client import TrainingProcess
from edl.spec import ENSEMBLE, Candidate, Component, RegressionLabel, Rows, Search
from tests.edl.programs import simple, write
from tests.edl.run.conftest import new_job

MODEL = """\
from pathlib import Path

from edl import features as fc
from edl import metrics
from edl.ensemble import Ensemble

LABEL = fc.label("y")
ENSEMBLE = Ensemble(Path(__file__).parent)


def custom_model():
    return ENSEMBLE


def feed(batch, mode):
    return ENSEMBLE.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return outputs


def eval_metrics_fn():
    return {"rmse": metrics.RMSE()}
"""
ROWS = 120
SPLIT = Rows(True, ROWS, 60, 60)
DIES = """

import os as _os
import signal as _signal
from pathlib import Path as _Path

_LOADED = _Path({folder!r}) / "loaded"
with _LOADED.open("a") as _file:
    _file.write("x")
if _LOADED.stat().st_size in {turns}:
    _os.kill(_os.getpid(), _signal.SIGKILL)
"""


def dies(folder: Path, *turns: int) -> dict[str, Any]:
    """A candidate that kills its process when it is loaded for the first, second, … time, as `turns` says."""
    folder.mkdir()
    return {"append": DIES.format(folder=str(folder), turns=turns)}


def loads(folder: Path) -> int:
    """Number of loads of such a candidate's program: one for each training, and one for the importances if chosen."""
    return (folder / "loaded").stat().st_size


def waves(rows: int = ROWS) -> pa.Table:
    draw = np.random.default_rng(4)
    x = draw.uniform(0, 6, rows)
    return pa.table({"x": x, "z": draw.uniform(0, 1, rows), "y": np.sin(x) + draw.normal(0, 0.2, rows)})


def searching(folder: Path, candidates: list[dict[str, Any]], *, rows: Rows = SPLIT, **search: Any) -> Path:
    """A program that searches among the candidates, each with the options of `tests.edl.programs.simple`."""
    found = []
    for number, options in enumerate(candidates):
        chosen = {"framework": "lightgbm", "features": ("x", "z"), "epochs": 10, "rows": rows, **options}
        spec = read_spec(simple(folder / CANDIDATES / f"{number}", **chosen))
        stopping = msgspec.structs.replace(
            spec.training, early_stopping=100
        )  # which no training here reaches
        spec = msgspec.structs.replace(spec, statement=f"SELECT {number}", training=stopping)
        found.append(Candidate(f"Trees {number}", spec))
    spec = msgspec.structs.replace(
        found[0].spec,
        framework=ENSEMBLE,
        model=Component("Ensemble"),
        inputs={},
        label=RegressionLabel("y"),
        search=Search(tuple(found), **{"metric": "rmse", **search}),
    )
    return write(folder, MODEL, spec)


def run(
    program: Path,
    job: JobFolder | None = None,
    *,
    threads: int = 1,
    observer: Callable[[ProcessEvent], None] = lambda event: None,
    cancelled: threading.Event | None = None,
    interrupted: threading.Event | None = None,
    prepared: TrainingProcess | None = None,
) -> Outcome:
    """Run a search in a job folder of its own."""
    loaded = load(program)
    try:
        folder = job or new_job(waves())
        return driver.run(
            loaded,
            folder,
            threads,
            observer=observer,
            cancelled=cancelled or threading.Event(),
            interrupted=interrupted,
            prepared=prepared,
        )
    finally:
        unload(loaded.module)


PLAIN: list[dict[str, Any]] = [{}, {"features": ("x",), "epochs": 5}, {"features": ("z",)}]
LONG: dict[str, Any] = {"epochs": 1_000_000}
