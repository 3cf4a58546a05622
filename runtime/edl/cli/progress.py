"""Progress of a training on a terminal, or in a log."""

from __future__ import annotations

import contextlib
from typing import TextIO

from edl.jobs.events import EpochEnd, Figures, JobEvent, Tally, TrialEnd
from edl.jobs.outcome import Outcome
from edl.jobs.snapshot import WAITING


class ProgressNarrator:
    """Writer of progress: on a terminal one line that changes, elsewhere a line per epoch.

    `every`: also a line with the loss every so many steps, at the resolution of the events; 0 is none.
    """

    def __init__(self, file: TextIO, every: int = 0) -> None:
        self._file = file
        self._every = every
        self._last_step = 0  # step of the last such line
        self._live = file.isatty()
        self._tally = Tally(0, 0, 0)

    def __call__(self, event: JobEvent) -> None:
        with contextlib.suppress(OSError):  # nobody reads it any more, which is no reason to end the job
            self._show(event)

    def _show(self, event: JobEvent) -> None:
        if isinstance(event, Tally):
            self._show_obstacles(event)
            return
        if isinstance(event, TrialEnd):
            outcome = event.error or f"{event.metric} {format_figure(event.value)}"
            self._write(f"trial {event.number} of {event.trials}  {event.name}  {outcome}")
            return
        if isinstance(event, EpochEnd):
            loss = f"loss {format_figure(event.loss)}{_list_metrics(event.metrics)}"
            self._write(f"epoch {event.epoch}  step {event.step:,}  {loss}")
            return
        if self._every and event.loss is not None and event.step - self._last_step >= self._every:
            self._last_step = event.step - event.step % self._every
            self._write(f"epoch {event.epoch}  step {event.step:,}  loss {format_figure(event.loss)}")
        if self._live:
            done, total = (event.seconds, event.limit) if event.limit else (event.rows, event.total)
            share = 100 * done / max(total, 1)
            loss = "" if event.loss is None else f"  loss {event.loss:.4g}"
            text = f"{event.phase} {share:3.0f} %  {event.rows_per_second:,.0f} rows/s{loss}"
            print(f"\r\x1b[K{text}", end="", file=self._file, flush=True)

    def note(self, text: str) -> None:
        self._write(f"note: {text}")

    def _show_obstacles(self, tally: Tally) -> None:
        """Print once that no slot is free, when instances are cut off, and why the number of workers changes."""
        if tally.waits and not self._tally.waits:
            self._write(WAITING)
        if tally.cut_off > self._tally.cut_off:
            self._write(
                f"{tally.cut_off:,} of {tally.instances:,} instances cut off; their logs say from what"
            )
        if tally.scaling != self._tally.scaling:
            self._write(tally.scaling)
        self._tally = tally

    def _write(self, line: str) -> None:
        print(f"\r\x1b[K{line}" if self._live else line, file=self._file, flush=True)


def clear_line(file: TextIO) -> None:
    """Remove the progress that a terminal shows, so that the next line begins at its left end."""
    if file.isatty():
        print("\r\x1b[K", end="", file=file, flush=True)


def print_figures(outcome: Outcome) -> None:
    """Print the figures of a job to standard output, one a line."""
    width = max(map(len, outcome.figures))
    for name, value in outcome.figures.items():
        print(f"{name:<{width}}  {format_figure(value)}")


def _list_metrics(metrics: Figures) -> str:
    return "".join(f"  validation {name} {format_figure(value)}" for name, value in metrics.items())


def format_figure(value: float | None) -> str:
    """Format a figure."""
    return "none" if value is None else f"{value:.6g}"
