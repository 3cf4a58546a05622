"""Quality of the modes of parameter servers: DeepFM on a click log, by the validation AUC of some seeds.

local is one process. The others train the same statement with two workers and two servers; in sync each has
half of the minibatch, so that a step has as many rows. A target is the distance of a mode's mean from that of
local, in standard deviations of local: at most 2.
"""

from __future__ import annotations

import os
import statistics
from pathlib import Path

import numpy as np

import sqlflow_edl
from benchmarks.table import Row
from sqlflow_edl.samples.click_log import ClickLog
from sqlflow_edl.session.session import Session

SEEDS = 5
FIELDS, IDS = 8, 20_000
BATCH = "train.batch_size = 256"
MODES = {
    "async": f"num_workers = 2, num_ps = 2, {BATCH}",
    "async, local_steps = 4": f"num_workers = 2, num_ps = 2, local_steps = 4, {BATCH}",
    "sync": "num_workers = 2, num_ps = 2, train.strategy = sync, train.batch_size = 128",
}


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    """Train on a fifth of `rows`. `rounds` is ignored; seeds take its place."""
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    seeds = SEEDS if rows >= 1_000_000 else 2
    with sqlflow_edl.connect(f"duckdb:///{folder / 'clicks.duckdb'}", create=True) as session:
        _clicks(session, rows // 5)
        local = [_auc(session, seed, BATCH) for seed in range(seeds)]
        found = [Row("DeepFM on a click log, local", _figure(local))]
        spread = statistics.stdev(local)
        for name, how in MODES.items():
            aucs = [_auc(session, seed, how) for seed in range(seeds)]
            distance = abs(statistics.mean(aucs) - statistics.mean(local)) / spread
            found.append(Row(f"… {name}: deviations from local", _figure(aucs), value=distance, most=2.0))
    return found


def _clicks(session: Session, rows: int) -> None:
    log = ClickLog(FIELDS, IDS)
    session.source.stage("clicks", "bench", 0, 0, log.batches(rows))
    session.source.commit("clicks", "bench", 1)


def _auc(session: Session, seed: int, how: str) -> float:
    columns = ", ".join(f"CATEGORY_ID(c{field}, {IDS})" for field in range(FIELDS))
    statement = (
        f"SELECT * FROM clicks TO TRAIN DeepFM WITH {how}, model.framework = torch, train.epoch = 2, "
        f"train.seed = {seed}, train.keep = last, validation.metrics = [auc] "
        f"COLUMN {columns} VALIDATE 0.2 LABEL label INTO m;"
    )
    [result] = session.run(statement)
    return float((result.figures or {})["auc"] or np.nan)


def _figure(aucs: list[float]) -> str:
    return f"AUC {statistics.mean(aucs):.4f} ± {statistics.stdev(aucs):.4f}"
