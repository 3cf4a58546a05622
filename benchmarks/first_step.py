"""Duration of a TRAIN statement until its first optimizer steps: the first of a session, and the next one 5 s later.

Besides the steps, the figures include up to a fifth of a second until progress is reported.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from benchmarks.jobs import dense_session
from benchmarks.table import Row
from edl.jobs.events import EpochEnd, Progress, StatementEvent
from sqlflow_edl.session.observer import Silent

ROWS = 20_000
PAUSE = (
    5.0  # seconds in which a person writes the next statement, and the session starts what workers will need
)
PLACES = {"in one process": 0, "with one worker": 1}


class Clock(Silent):
    """Observer that records the time of the first reported steps of a statement."""

    def __init__(self) -> None:
        self.heard = 0.0

    def progress(self, event: StatementEvent) -> None:
        stepped = isinstance(event, EpochEnd) or (isinstance(event, Progress) and event.step)
        if stepped and not self.heard:
            self.heard = time.perf_counter()


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    table = []
    own = folder / "first_step"
    own.mkdir()
    for framework in ("keras", "torch"):
        for place, workers in PLACES.items():
            pairs = [_first_and_next(own, framework, workers) for _ in range(rounds)]
            for name, found in zip(("first", "next"), zip(*pairs, strict=True), strict=True):
                seconds = statistics.median(found)
                figure = f"{seconds:.2f} s ({', '.join(f'{one:.2f}' for one in found)})"
                table.append(
                    Row(
                        f"first step of a session's {name} TRAIN, {framework}, {place}", figure, value=seconds
                    )
                )
    return table


def _first_and_next(folder: Path, framework: str, workers: int) -> tuple[float, float]:
    """Return the seconds from each of two statements of a new session to their first steps."""
    statement = (
        "SELECT * FROM dense TO TRAIN DNNRegressor WITH hidden_units = [16], train.epochs = 1, "
        f"model.framework = {framework}, train.num_workers = {workers} VALIDATE 0 LABEL y INTO first_step"
    )
    with dense_session(folder, ROWS) as session:
        seconds: list[float] = []
        for _ in range(2):
            time.sleep(PAUSE if seconds else 0.0)
            clock = Clock()
            session.observer = clock
            began = time.perf_counter()
            for _ in session.run(statement):
                pass
            seconds.append(clock.heard - began)
    return seconds[0], seconds[1]
