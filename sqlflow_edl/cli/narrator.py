"""What the terminal says beside the data: notes, progress, and a last line for each statement."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import IO

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

    def progress(self, event: Mapping[str, object]) -> None:
        text = describe(event)
        if not text or self.quiet:
            return
        if self._live:
            self.out.write("\r" + text.ljust(self._shown)[:200])
            self._shown = len(text)
            self.out.flush()
        elif event.get("epoch_ended"):
            self._line(text)

    def finished(self, result: Result, footer: str, seconds: float) -> None:
        """The closing line of a statement: what was done, how many rows, how long."""
        parts = [part for part in (result.message, footer) if part]
        self._line(f"{'; '.join(parts) or 'OK'} ({seconds:.2f} s)")
        if result.metrics and result.model:
            self._line("  " + ", ".join(f"{name} {figure(value)}" for name, value in result.metrics.items()))

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


def figure(value: float) -> str:
    """Five significant digits."""
    return "not defined" if math.isnan(value) else f"{value:.5g}"


def describe(event: Mapping[str, object]) -> str:
    """A progress event in words."""
    return str(event)
