"""Progress of a cell: one output, updated while a statement runs, that finally shows the duration."""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from edl.jobs.events import EpochEnd, Output, Progress, StatementEvent, Tally, TrialEnd
from edl.tasks.curve import LearningCurve
from sqlflow_edl.charts.curves import learning_curve
from sqlflow_edl.display import progress
from sqlflow_edl.display.narrator import Narrator
from sqlflow_edl.extensions.notebook import html
from sqlflow_edl.session.observer import Observer
from sqlflow_edl.syntax import Statement

INTERVAL = 0.2  # seconds between two updates of the output while a job runs, as epochs may be shorter
PRINTED = 50  # lines of a runnable in the output, the last ones

Bundle = dict[str, str]  # by MIME type
Publish = Callable[[Bundle, str, bool], None]  # content, id of its output, and True if that output exists


class CellScreen(Observer, Protocol):
    """Observer that shows the progress of a cell's statements."""

    @property
    def curve(self) -> Sequence[EpochEnd]:
        """Learning curve of the statement, thinned; empty on a screen that draws none."""
        ...

    def on_end(self, words: str) -> None:
        """Show that the statement has ended, and its outcome."""


class Terminal(Narrator):
    """Screen of IPython in a terminal, where outputs cannot be updated but a line can be rewritten."""

    curve: Sequence[EpochEnd] = ()

    def on_end(self, words: str) -> None:
        """Clear the line; the result reports the end."""
        self.clear()


class Live:
    """Output of a notebook, created on the first text and updated at most about five times a second."""

    def __init__(self, publish: Publish, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._publish = publish
        self._clock = clock
        self._begin()

    def _begin(self) -> None:
        self._id = uuid.uuid4().hex
        self._is_there = False
        self._notes: list[str] = []
        self._printed: deque[str] = deque(maxlen=PRINTED)
        self._doing = ""
        self._learnt: Mapping[str, float | None] = {}
        self._reached: Progress | None = None
        self._tally: Tally | None = None
        self._curve = LearningCurve()
        self._updated_at = -INTERVAL

    @property
    def curve(self) -> Sequence[EpochEnd]:
        return self._curve.rows

    def started(self, statement: Statement) -> None:
        self._begin()

    def doing(self, what: str) -> None:
        self._doing = f"{what} …"
        self._show(self._doing)

    def note(self, text: str) -> None:
        self._add(f"note: {text}")

    def warn(self, text: str) -> None:
        self._add(f"warning: {text}")

    def _add(self, line: str) -> None:
        self._notes.append(line)
        self._show(self._now())

    def progress(self, event: StatementEvent) -> None:
        if isinstance(event, EpochEnd):
            self._learnt = event.metrics
            self._curve.add(event)
            self._doing = progress.epoch(event).strip()
        elif isinstance(event, TrialEnd):
            self._learnt = progress.best_metric(event, self._learnt)
            self._notes.append(progress.trial(event).strip())
        elif isinstance(event, Output):
            self._printed.extend(event.lines)
        elif isinstance(event, Tally):
            self._tally = event
        else:
            self._reached = event
        now = self._clock()
        if now - self._updated_at >= INTERVAL:
            self._updated_at = now
            self._show(self._now(), learning_curve(self.curve))

    def on_end(self, words: str) -> None:
        if self._is_there:
            self._show(words)

    def _now(self) -> str:
        if self._reached is None and self._tally is None:
            return self._doing
        step = f"  step {self._reached.step:,}" if self._reached and self._reached.step else ""
        return progress.live(self._reached, self._learnt, self._tally).strip() + step

    def _show(self, now: str, curve: str = "") -> None:
        lines = [*self._notes, *self._printed, now]
        text = "\n".join(line for line in lines if line)
        shown = "".join(map(html.line, lines))
        self._publish({"text/plain": text, "text/html": shown + curve}, self._id, self._is_there)
        self._is_there = True
