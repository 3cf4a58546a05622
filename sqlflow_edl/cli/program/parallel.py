"""`--parallel N`: statements that do not depend on each other run side by side, each on a session of its own.

Sessions belong to threads; this module's main thread starts statements, reports their ends as they come, and writes
their data in the order of the program. A failure skips only what depends on it. Ctrl-C interrupts the databases and
cancels the jobs at their next event.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edl.data.url import FILES, SourceURL, parse
from edl.errors import SQLFlowError
from edl.jobs.events import EpochEnd, Output, StatementEvent, TrialEnd
from edl.jobs.outcome import JobInterruptedError
from edl.jobs.termination import DetachedError, TerminatedError
from sqlflow_edl.analysis.programs.dependencies import Access, accesses
from sqlflow_edl.cli.program.entries import ProgramEntry
from sqlflow_edl.cli.program.runner import ProgramRun, Turn, to_terminated_error
from sqlflow_edl.display import progress
from sqlflow_edl.display.narrator import Narrator, ProgramStep
from sqlflow_edl.reports.result import Result
from sqlflow_edl.session.session import Session
from sqlflow_edl.syntax import Statement

_PATIENCE = 0.2  # seconds between two interrupts of a database
_CLOSING = 2.0  # seconds for a session to close, also after an interrupt or an error

Opener = Callable[[], Session]


def obstacle(source: str, program: Sequence[ProgramEntry], accessed: Sequence[Access]) -> str:
    """Return the reason why the program must run on one connection; empty if there is none."""
    url = parse(source)
    if isinstance(url, SourceURL) and (url.in_memory or url.scheme in FILES):
        return "a database in memory has one connection"
    for entry, access in zip(program, accessed, strict=True):
        if access.of_connection:
            return f"statement {entry.step.number} ({entry.step.title}) changes its connection alone"
    return ""


@dataclass(slots=True)
class Interruption:
    """Interrupt of the run, which its threads raise too. raised: None until it comes."""

    raised: KeyboardInterrupt | None = None

    def check(self) -> None:
        """Raise an exception of the same kind in another thread, if there is one."""
        if isinstance(self.raised, TerminatedError):
            raise TerminatedError(cancels=self.raised.cancels)
        if self.raised is not None:
            raise KeyboardInterrupt


class Watcher:
    """Observer of one statement. Its lines carry the statement's number.

    Raises the interrupt from `progress` once there is one, which cancels the job, or leaves it.
    """

    def __init__(self, narrator: Narrator, interrupt: Interruption) -> None:
        self.step = ProgramStep(0, 0, "")
        self._narrator = narrator
        self._interrupt = interrupt

    def started(self, statement: Statement) -> None: ...

    def doing(self, what: str) -> None:
        self.check()

    def note(self, text: str) -> None:
        self._narrator.adds(self.step, f"note: {text}")

    def warn(self, text: str) -> None:
        self._narrator.adds(self.step, f"warning: {text}")

    def progress(self, event: StatementEvent) -> None:
        self.check()
        if isinstance(event, Output):
            for line in event.lines:
                self._narrator.adds(self.step, line)
        elif isinstance(event, TrialEnd):
            self._narrator.adds(self.step, progress.trial(event).strip())
        elif isinstance(event, EpochEnd) and event.epoch & (event.epoch - 1) == 0:
            self._narrator.adds(self.step, progress.epoch(event).strip())

    def check(self) -> None:
        """Raise the interrupt of the run, if there is one."""
        self._interrupt.check()


@dataclass(frozen=True, slots=True)
class DoneTurn:
    """End of a statement: its result and footer, or the exception that it raised."""

    turn: Turn
    seconds: float
    result: Result | None = None
    footer: str = ""
    error: BaseException | None = None


class ProgramWorker(threading.Thread):
    """Thread with a session, which it opens for its first statement. ended: receives the ends."""

    def __init__(
        self, opened: Opener, watcher: Watcher, turns: queue.Queue[Turn | None], ended: queue.Queue[DoneTurn]
    ) -> None:
        super().__init__(name="sqlflow-statements", daemon=True)
        self._opened = opened
        self._watcher = watcher
        self._turns = turns
        self._ended = ended
        self._session: Session | None = None

    def run(self) -> None:
        """Run statements until there is None in place of one."""
        try:
            while turn := self._turns.get():
                self._ended.put(self._one(turn))
        finally:
            if self._session is not None:
                self._session.close()

    def interrupt(self) -> None:
        """Interrupt the statement that runs in the database."""
        if self._session is not None:
            self._session.source.interrupt()

    def _one(self, turn: Turn) -> DoneTurn:
        began = time.monotonic()
        self._watcher.step = turn.step
        try:
            self._watcher.check()
            self._session = self._session or self._opened()
            self._session.observer = self._watcher
            result = self._session.execute(turn.statement)
            footer = turn.sheet.rows(result) if result.reader is not None else ""
        except BaseException as error:  # raised again in the main thread, if it is not an SQLFlowError
            return DoneTurn(turn, time.monotonic() - began, error=error)
        return DoneTurn(turn, time.monotonic() - began, result, footer)


class ParallelRun(ProgramRun):
    """Runner of statements side by side."""

    def side_by_side(self, program: Sequence[ProgramEntry], opened: Opener, most: int) -> int:
        """Run the statements, at most so many at once, and return the exit code."""
        statements = [entry.statement for entry in program if entry.statement is not None]
        from sqlflow_edl.session.program_check import views

        all_accesses = accesses(statements, self._session.dialect, views(self._session.source))
        if why := obstacle(self._session.source.url, program, all_accesses):
            self._narrator.note(f"the statements run one after another: {why}")
            return self.all(program)
        self._goes_on = True
        self._plan_order(program, all_accesses)
        interrupt = Interruption()
        turns: queue.Queue[Turn | None] = queue.Queue()
        ended: queue.Queue[DoneTurn] = queue.Queue()
        workers = [
            ProgramWorker(opened, Watcher(self._narrator, interrupt), turns, ended)
            for _ in range(min(most, len(program)))
        ]
        for worker in workers:
            worker.start()
        try:
            self._run_all(len(workers), turns, ended)
        except KeyboardInterrupt as raised:
            interrupt.raised = raised
            self._cancel(workers, ended, raised)
            raise
        finally:
            for _ in workers:
                turns.put(None)
            # A thread that closes its session while the interpreter ends can abort the process.
            for worker in workers:
                worker.join(_CLOSING)
        for worker in workers:
            worker.join()
        return self._close()

    def _plan_order(self, program: Sequence[ProgramEntry], all_accesses: Sequence[Access]) -> None:
        """Find out for each statement the earlier ones that it must wait for."""
        self._waiting = {
            position: {other for other in range(position) if access.follows(all_accesses[other])}
            for position, access in enumerate(all_accesses)
        }
        self._entries = list(program)
        self._running: dict[int, Turn] = {}  # position -> statement
        self._over: dict[int, Turn] = {}  # position -> statement with data that is not released yet
        self._released = 0  # statements with data that is written

    def _run_all(self, most: int, turns: queue.Queue[Turn | None], ended: queue.Queue[DoneTurn]) -> None:
        while self._waiting or self._running:
            while len(self._running) < most and (position := self._next()) is not None:
                self._start(position, turns)
            if self._running:
                self._finish(ended.get())

    def _next(self) -> int | None:
        """Return the first statement that waits for nothing."""
        return next((position for position, before in self._waiting.items() if not before), None)

    def _start(self, position: int, turns: queue.Queue[Turn | None]) -> None:
        del self._waiting[position]
        entry = self._entries[position]
        turn = self._turn(entry, held=True)
        if entry.problem is not None:
            self._leave_out(turn, entry.problem)
        elif why := self._why_not(turn.statement):
            self._skip(turn, why)
        else:
            self._narrator.begins(turn.step)
            self._running[position] = turn
            turns.put(turn)
            return
        self._end(position, turn)

    def _finish(self, done: DoneTurn) -> None:
        position = next(candidate for candidate, turn in self._running.items() if turn is done.turn)
        del self._running[position]
        if isinstance(done.error, JobInterruptedError):
            self._narrator.cancels(done.turn.step)
            done.turn.sheet.interrupts(done.error, done.seconds)
            self._end(position, done.turn)
            raise to_terminated_error(done.error)
        if isinstance(done.error, SQLFlowError):
            self._fail(done.turn, done.error, done.seconds)
        elif done.error is not None:
            raise done.error
        elif done.result is not None:
            self._succeed(done.turn, done.result, done.footer, done.seconds)
        self._end(position, done.turn)

    def _end(self, position: int, turn: Turn) -> None:
        """Let the statements that waited for this one go on, and write the data that is next in the program."""
        for before in self._waiting.values():
            before.discard(position)
        self._over[position] = turn
        while (ready := self._over.pop(self._released, None)) is not None:
            ready.sheet.release()
            self._released += 1

    def _cancel(
        self, workers: Sequence[ProgramWorker], ended: queue.Queue[DoneTurn], raised: KeyboardInterrupt
    ) -> None:
        """Interrupt what runs, wait for its end, and write the data of what has ended."""
        may_continue = isinstance(raised, TerminatedError)  # a job elsewhere
        for turn in () if may_continue else self._running.values():
            self._narrator.cancels(turn.step)
        left = len(self._running)
        while left:
            for worker in workers:  # again and again, because a query may just be about to begin
                worker.interrupt()
            with contextlib.suppress(queue.Empty):
                done = ended.get(timeout=_PATIENCE)
                self._report_interrupt(done, says=may_continue)
                if isinstance(raised, TerminatedError) and isinstance(done.error, TerminatedError):
                    raised.kept += done.error.kept
                left -= 1
        for _, turn in sorted((self._over | self._running).items()):
            turn.sheet.release()

    def _report_interrupt(self, done: DoneTurn, *, says: bool) -> None:
        """Write the end of an interrupted statement. says: a cancellation has not been reported yet."""
        if isinstance(done.error, DetachedError):
            self._narrator.detaches(done.turn.step)
            self._narrator.adds(done.turn.step, str(done.error))
            done.turn.sheet.ends("detached", done.seconds, why=str(done.error))
            return
        if says:
            self._narrator.cancels(done.turn.step)
        if isinstance(done.error, TerminatedError):
            done.turn.sheet.interrupts(done.error, done.seconds)
        else:
            done.turn.sheet.ends("cancelled", done.seconds)
