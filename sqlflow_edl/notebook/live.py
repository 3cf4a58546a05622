"""Progress in a cell: one output that is updated while a statement runs, and says in the end how long it took."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from edl.tasks.events import EpochEnd, Progress, Tally
from sqlflow_edl.display import progress
from sqlflow_edl.display.narrator import Narrator
from sqlflow_edl.notebook import html
from sqlflow_edl.notebook.curve import learning_curve
from sqlflow_edl.observer import Observer
from sqlflow_edl.syntax import Statement

Bundle = dict[str, str]  # by MIME type
Publish = Callable[[Bundle, str, bool], None]  # what, the id of its output, and whether that is there already


class Screen(Observer, Protocol):
    """Who shows how far the statements of a cell are."""

    @property
    def curve(self) -> Sequence[EpochEnd]:
        """The epochs of the statement, as far as this screen has use for them."""
        ...

    def ended(self, words: str) -> None:
        """The statement has ended, and how."""


class Terminal(Narrator):
    """Where an output cannot be updated: IPython in a terminal, whose one line is rewritten."""

    curve: Sequence[EpochEnd] = ()

    def ended(self, words: str) -> None:
        """The result says it."""
        self.clear()


class Live:
    """An output of a notebook; there is none before there is something to tell."""

    def __init__(self, publish: Publish) -> None:
        self._publish = publish
        self._begin()

    def _begin(self) -> None:
        self._id = uuid.uuid4().hex
        self._is_there = False
        self._notes: list[str] = []
        self._doing = ""
        self._learnt: Mapping[str, float | None] = {}
        self._reached: Progress | None = None
        self._tally: Tally | None = None
        self.curve: list[EpochEnd] = []

    def started(self, statement: Statement) -> None:
        self._begin()

    def doing(self, what: str) -> None:
        self._doing = f"{what} …"
        self._show(self._doing)

    def note(self, text: str) -> None:
        self._notes.append(f"note: {text}")
        self._show(self._now())

    def progress(self, event: Progress | EpochEnd | Tally) -> None:
        if isinstance(event, EpochEnd):
            self._learnt = event.metrics
            self.curve.append(event)
            self._doing = progress.epoch(event).strip()
        elif isinstance(event, Tally):
            self._tally = event
        else:
            self._reached = event
        self._show(self._now(), learning_curve(self.curve))

    def ended(self, words: str) -> None:
        if self._is_there:
            self._show(words)

    def _now(self) -> str:
        if self._reached is None and self._tally is None:
            return self._doing
        step = f"  step {self._reached.step:,}" if self._reached and self._reached.step else ""
        return progress.live(self._reached, self._learnt, self._tally).strip() + step

    def _show(self, now: str, curve: str = "") -> None:
        lines = [*self._notes, now]
        text = "\n".join(line for line in lines if line)
        shown = "".join(map(html.line, lines))
        self._publish({"text/plain": text, "text/html": shown + curve}, self._id, self._is_there)
        self._is_there = True
