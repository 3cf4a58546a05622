"""What the terminal says beside the data: notes, progress, and a last line for each statement."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import IO

from edl.worker.events import EpochEnd, Progress
from sqlflow_edl.results import Result
from sqlflow_edl.syntax import Statement


class Narrator:
    """Writes to stderr: one line that is rewritten on a terminal, plain lines per epoch elsewhere."""

    def __init__(self, out: IO[str], *, quiet: bool = False) -> None:
        self.out = out
        self.quiet = quiet
        self._live = out.isatty()
        self._shown = 0  # characters of the line that will be rewritten

    def started(self, statement: Statement) -> None:
        """Nothing is said of ordinary SQL, which mostly ends at once."""

    def note(self, text: str) -> None:
        self._line(f"note: {text}")

    def progress(self, event: Progress | EpochEnd) -> None:
        if self.quiet:
            return
        if isinstance(event, EpochEnd):
            self._epochs(event)
        elif self._live:
            text = doing(event)
            self.out.write("\r" + text[: self._width()].ljust(self._shown))
            self._shown = min(len(text), self._width())
            self.out.flush()

    def _epochs(self, event: EpochEnd) -> None:
        """The epochs that are told are 1, 2, 4, 8, …: the curve bends at its start."""
        if event.epoch & (event.epoch - 1) == 0:
            self._line(f"  epoch {event.epoch}: {learnt(event)}")

    def _width(self) -> int:
        return max(20, shutil.get_terminal_size().columns - 1)

    def finished(self, result: Result, footer: str, seconds: float) -> None:
        """The closing line of a statement: what was done, how many rows, how long."""
        parts = [part for part in (result.message, footer) if part]
        self._line(f"{'; '.join(parts) or 'OK'} ({seconds:.2f} s)")
        if result.figures and result.reader is None:
            self._line(f"  {figures(result.figures)}")
        if result.model:
            name = result.model.partition("@")[0]
            self._line(
                f"  use it: SELECT … TO PREDICT table.column USING {name}; SELECT … TO EVALUATE {name}"
            )

    def clear(self) -> None:
        """End the line that was being rewritten."""
        if self._shown:
            self.out.write("\r" + " " * self._shown + "\r")
            self._shown = 0

    def _line(self, text: str) -> None:
        if self.quiet:
            return
        self.clear()
        self.out.write(text + "\n")
        self.out.flush()


def figure(value: float | None) -> str:
    """Five significant digits."""
    return "not defined" if value is None else f"{value:.5g}"


def figures(values: Mapping[str, float | None]) -> str:
    return ", ".join(f"{name} {figure(value)}" for name, value in values.items())


def doing(event: Progress) -> str:
    """How far a phase is: epoch, share of the rows, loss, speed, time left."""
    parts: list[str] = [f"epoch {event.epoch}/{event.epochs}" if event.epochs else event.phase]
    if event.total:
        parts.append(f"{event.rows / event.total:.0%}")
    if event.loss is not None:
        parts.append(f"loss {figure(event.loss)}")
    if event.rows_per_second > 0:
        left = (event.total - event.rows) / event.rows_per_second
        parts.append(f"{event.rows_per_second:,.0f} rows/s, {duration(left)} left")
    return "  " + ", ".join(parts)


def learnt(event: EpochEnd) -> str:
    """The loss of the training rows, and the figures of those held out."""
    held_out = f"; held out: {figures(event.metrics)}" if event.metrics else ""
    return f"loss {figure(event.loss)}{held_out}"


def duration(seconds: float) -> str:
    """12 s, 3 min, 2 h."""
    return (
        f"{seconds:.0f} s"
        if seconds < 100
        else f"{seconds / 60:.0f} min"
        if seconds < 6000
        else f"{seconds / 3600:.0f} h"
    )
