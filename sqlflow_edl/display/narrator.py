"""Narration on stderr, beside the data: position in the program, progress, notes, results of statements."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Protocol

from edl.jobs.events import EpochEnd, Output, Progress, StatementEvent, Tally, TrialEnd
from sqlflow_edl.display import progress
from sqlflow_edl.display.final_report import final_report
from sqlflow_edl.display.terminal import (
    has_colours,
    is_smart,
    outlasting_reader,
    paint,
    shown_error,
    shown_text,
)
from sqlflow_edl.reports.result import Result
from sqlflow_edl.reports.text import duration
from sqlflow_edl.syntax import Statement

SILENCE = 10.0  # seconds without a line, on a stream that cannot rewrite lines
ERASED = "\r\x1b[K"  # erases the line of a terminal, with the ^C that it may show
LONG_STEP = 2.0  # seconds after which a step is named on such a stream

_STYLES = {
    "START": "faint",
    "OK": "ok",
    "ERROR": "error",
    "SKIP": "warning",
    "CANCEL": "warning",
    "DETACH": "warning",
}


@dataclass(frozen=True, slots=True)
class ProgramStep:
    """Statement of a run: its number, the number of statements, and its title."""

    number: int
    total: int
    title: str


class Alarm(Protocol):
    """Call that is due after some seconds, such as `threading.Timer`."""

    def start(self) -> None: ...

    def cancel(self) -> None: ...


def _timer(seconds: float, call: Callable[[], None]) -> Alarm:
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    return timer


class Narrator:
    """Writer to stderr: one rewritten line on a terminal, plain lines elsewhere.

    Without a terminal a step is written only if it takes long. alarm: factory of a call that is due after some
    seconds, from another thread.
    """

    def __init__(
        self,
        out: IO[str],
        *,
        quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
        alarm: Callable[[float, Callable[[], None]], Alarm] = _timer,
    ) -> None:
        self.out = out
        self.quiet = quiet
        self.also: Callable[[str], None] = lambda text: None  # receives every line as well
        self._clock = clock
        self._make_alarm = alarm
        self._alarm: Alarm | None = None  # alarm of a step that is not named yet
        self._writing = threading.RLock()
        self._live = is_smart(out) and not quiet
        self._coloured = has_colours(out)
        self._shown = 0  # characters of the line that will be rewritten
        self._written_at = clock()
        self._forget()

    def _forget(self) -> None:
        """Reset the state of the job."""
        self._learnt: Mapping[str, float | None] = {}
        self._reached: Progress | None = None
        self._tally: Tally | None = None

    # The statements of a program -------------------------------------------------------------------------

    def begins(self, step: ProgramStep) -> None:
        self._status(step, "START")

    def ends(self, step: ProgramStep, result: Result, footer: str, seconds: float) -> None:
        """Report what was done, row count and duration; for a training also its metrics and the model's use."""
        message = "" if result.model else result.message  # a training's is long, and a line of its own
        did = "; ".join(part for part in (message, footer) if part not in ("", "OK"))
        with self._writing:  # in one piece, also among statements that run side by side
            self._status(step, "OK", f"{': ' if did else ''}{did} ({duration(seconds)})")
            for line in final_report(result):
                self._line(f"  {line}")

    def adds(self, step: ProgramStep, text: str) -> None:
        """Report a line about one of several statements that run side by side."""
        self._line(f"{step.number} of {step.total} {text}")

    def fails(self, step: ProgramStep, error: str, seconds: float) -> None:
        """Report an error as it is rendered, even when quiet."""
        with self._writing:
            self._status(step, "ERROR", f" ({duration(seconds)})")
            self.complain(error)

    def leaves_out(self, step: ProgramStep) -> None:
        """Report a statement that does not run because of errors reported above."""
        self._status(step, "ERROR", ": its errors are reported above")

    def skips(self, step: ProgramStep, why: str) -> None:
        self._status(step, "SKIP", f": {why}")

    def cancels(self, step: ProgramStep) -> None:
        self._status(step, "CANCEL")

    def detaches(self, step: ProgramStep) -> None:
        self._status(step, "DETACH")

    def closes(self, counts: Mapping[str, int]) -> None:
        """Report the counts of the run."""
        tally = " ".join(f"{word}={counts.get(word, 0)}" for word in ("OK", "ERROR", "SKIP"))
        self._line(f"Done. {tally} TOTAL={sum(counts.values())}")

    # An observer of the session --------------------------------------------------------------------------

    def started(self, statement: Statement) -> None:
        """Reset the state of the job; `begins` has already reported a statement of a run."""
        self._forget()

    def doing(self, what: str) -> None:
        """Show the step that begins. A stream that cannot rewrite lines gets it only if it takes long."""
        self._step_over()
        text = f"  {what} …"
        self._rewrite(text)
        if not (self._live or self.quiet):
            self._alarm = self._make_alarm(LONG_STEP, lambda: self._line(text))
            self._alarm.start()

    def _step_over(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def note(self, text: str) -> None:
        self._line(f"  {self._paint('note:', 'warning')} {text}")

    def warn(self, text: str) -> None:
        self._line(f"  warning: {text}")

    def progress(self, event: StatementEvent) -> None:
        if isinstance(event, Output):
            for line in event.lines:
                self._line(f"  {line}")
            return
        if not isinstance(event, Tally):
            self._step_over()
        if isinstance(event, TrialEnd):
            self._learnt = progress.best_metric(event, self._learnt)
            self._line(progress.trial(event))
            return
        if isinstance(event, EpochEnd):
            self._learnt = event.metrics
            if event.epoch & (event.epoch - 1) == 0:  # 1, 2, 4, 8, …: the curve bends at its start
                self._line(progress.epoch(event))
            return
        begins_to_wait = False
        if isinstance(event, Tally):
            begins_to_wait = self._take_tally(event)
        else:
            self._reached = event
        if self._live:
            self._rewrite(progress.live(self._reached, self._learnt, self._tally))
        elif begins_to_wait or self._clock() - self._written_at >= SILENCE:
            self._line(progress.live(self._reached, self._learnt, self._tally))

    def _take_tally(self, tally: Tally) -> bool:
        """Write why the number of workers changes; return True if instances begin to wait or are cut off."""
        before, self._tally = self._tally or Tally(0, 0, 0), tally
        if tally.scaling != before.scaling:
            self._line(f"  {tally.scaling}")
        return (tally.waits and not before.waits) or tally.cut_off > before.cut_off

    # Lines -----------------------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Write the text even when quiet."""
        with self._writing:
            with outlasting_reader(self.out, OSError):  # a job is worth more than what is said about it
                self.clear()
                self.out.write(shown_text(text, self.out) + "\n")
                self.out.flush()
            self.also(text)
            self._written_at = self._clock()

    def complain(self, error: str) -> None:
        """Write a rendered error even when quiet."""
        self.say(shown_error(error, self.out))

    def _line(self, text: str) -> None:
        if not self.quiet:
            self.say(text)

    def _status(self, step: ProgramStep, word: str, more: str = "") -> None:
        padded = self._paint(word.ljust(len("START")), _STYLES[word])
        self._line(f"{step.number} of {step.total} {padded} {step.title}{more}")

    def _paint(self, text: str, style: str) -> str:
        return paint(text, style) if self._coloured else text

    def _rewrite(self, text: str) -> None:
        if self._live:
            text = text[: max(20, shutil.get_terminal_size().columns - 1)]
            text = shown_text(text, self.out)
            with outlasting_reader(self.out, OSError):
                self.out.write("\r" + text.ljust(self._shown))
                self.out.flush()
            self._shown = len(text)

    def clear(self) -> None:
        """Erase the rewritten line and cancel the announcement of a step."""
        self._step_over()
        if self._shown:
            with outlasting_reader(self.out, OSError):
                self.out.write(ERASED)
            self._shown = 0

    def erase_echo(self) -> None:
        """Erase the line in which a terminal shows ^C."""
        self.clear()
        if self._live:
            with self._writing, outlasting_reader(self.out, OSError):
                self.out.write(ERASED)
