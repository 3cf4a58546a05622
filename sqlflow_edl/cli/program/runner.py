"""Runner of the statements of a command line, one after another; or of their plans under --dry-run."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from edl.errors import SQLFlowError
from edl.jobs.outcome import JobInterruptedError
from edl.jobs.termination import DetachedError, TerminatedError
from sqlflow_edl.analysis.programs.outline import Effects, Thing, depends, effects
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.program.entries import ProgramEntry
from sqlflow_edl.cli.program.inputs import Text
from sqlflow_edl.cli.program.output import ProgramOutput, Sheet
from sqlflow_edl.display.narrator import Narrator, ProgramStep
from sqlflow_edl.errors.render import render, traceback_of
from sqlflow_edl.reports.result import Result
from sqlflow_edl.session.passed_on import changes_syntax
from sqlflow_edl.session.session import Session
from sqlflow_edl.syntax import Statement

if TYPE_CHECKING:
    from sqlflow_edl.backends.kubernetes.settings import Configuration


@dataclass(frozen=True, slots=True)
class Missing:
    """Object that a statement did not make, and the reason: `statement 2, which failed`."""

    thing: Thing
    why: str


@dataclass(frozen=True, slots=True)
class Turn:
    """Statement that is about to run, and where its data goes."""

    step: ProgramStep
    statement: Statement
    text: Text
    sheet: Sheet


class ProgramRun:
    """Runner of statements.

    Keeps track of failed and skipped statements, and of the objects that are missing because of them.
    """

    def __init__(
        self,
        session: Session,
        narrator: Narrator,
        options: argparse.Namespace,
        where: Configuration | None,
        output: ProgramOutput,
        succeeded: set[int],
    ) -> None:
        self._session = session
        self._where = where
        self._narrator = narrator
        self._output = output
        self._succeeded = succeeded  # numbers of statements, for the caller
        self._dry = options.dry_run
        self._detach = options.detach
        self._goes_on = options.on_error == "continue" or options.dry_run
        self._debug = options.debug
        self._counts: Counter[str] = Counter()
        self._missing: list[Missing] = []
        self._stopped = ""
        self._last = False  # the statement is the last one
        self._shown = False  # objects of an earlier job are printed
        self._same_syntax = True  # of the database, for a plan: no earlier statement would change it

    def all(self, program: Sequence[ProgramEntry]) -> int:
        """Run the statements, report each, and return the exit code."""
        for place, entry in enumerate(program):
            self._last = entry is program[-1]
            turn = self._turn(entry)
            if entry.problem is not None:
                self._leave_out(turn, entry.problem)
            elif why := self._stopped or (not self._dry and self._why_not(turn.statement)):
                self._skip(turn, why)
            else:
                try:
                    self._one(turn)
                except KeyboardInterrupt:
                    for left in program[place + 1 :]:
                        self._turn(left).sheet.ends("skipped", why="the run was interrupted")
                    raise
        return self._close()

    def _turn(self, entry: ProgramEntry, *, held: bool = False) -> Turn:
        if entry.statement is None:
            raise ValueError("an unreadable statement does not run")
        sheet = self._output.sheet(entry.step, entry.kind, held=held)
        return Turn(entry.step, entry.statement, entry.text, sheet)

    def _close(self) -> int:
        """Report the counts and return the exit code."""
        self._narrator.closes(self._counts)
        return exit_codes.FAILED if self._counts["ERROR"] else exit_codes.OK

    def _one(self, turn: Turn) -> None:
        began = time.monotonic()
        try:
            if not self._dry:
                self._narrator.begins(turn.step)
            result = self._do(turn)
            footer = ""
            if result.reader is not None:
                self._narrator.clear()
                footer = turn.sheet.rows(result)
        except DetachedError as error:
            self._narrator.detaches(turn.step)
            turn.sheet.ends("detached", time.monotonic() - began, why=str(error))
            raise
        except (JobInterruptedError, TerminatedError) as error:
            self._narrator.cancels(turn.step)
            turn.sheet.interrupts(error, time.monotonic() - began)
            raise to_terminated_error(error) from None
        except SQLFlowError as error:
            if self._dry and (why := self._why_not(turn.statement)):
                self._skip(turn, why)
            else:
                self._fail(turn, error, time.monotonic() - began)
        except KeyboardInterrupt:
            self._narrator.cancels(turn.step)
            turn.sheet.ends("cancelled", time.monotonic() - began)
            raise
        else:
            self._succeed(turn, result, footer, time.monotonic() - began)

    def _do(self, turn: Turn) -> Result:
        if self._dry:
            return self._plan(turn)
        if self._detach and self._last:
            return self._session.leave(turn.statement)
        return self._session.execute(turn.statement)

    def _plan(self, turn: Turn) -> Result:
        """Plan the statement.

        A job on Kubernetes is planned as its objects, which are the only output then.
        """
        same_syntax = self._same_syntax
        self._same_syntax = same_syntax and not changes_syntax(turn.statement)
        if self._where is None:
            return self._session.plan(turn.statement, syntax=same_syntax)
        from sqlflow_edl.cli.program.manifests import manifests

        yaml = manifests(self._session.compiler, turn.statement, self._where)
        if not yaml:
            return replace(self._session.plan(turn.statement, syntax=same_syntax), reader=None)
        self._narrator.clear()
        turn.sheet.text(f"---\n{yaml}" if self._shown else yaml)
        self._shown = True
        return Result(turn.statement)

    # Outcomes --------------------------------------------------------------------------------------------

    def _succeed(self, turn: Turn, result: Result, footer: str, seconds: float) -> None:
        self._counts["OK"] += 1
        self._succeeded.add(turn.step.number)
        self._narrator.ends(turn.step, result, footer, seconds)
        turn.sheet.ends("ok", seconds, result=result)
        self._record_made(turn)

    def _fail(self, turn: Turn, error: SQLFlowError, seconds: float) -> None:
        if self._debug:
            self._narrator.say(traceback_of(error))
        self._counts["ERROR"] += 1
        self._narrator.fails(turn.step, render(error, turn.text.text, turn.text.name), seconds)
        turn.sheet.fails(error, turn.text, seconds)
        self._not_made(turn, "failed")
        if not self._goes_on:
            self._stopped = f"statement {turn.step.number} failed"

    def _leave_out(self, turn: Turn, error: SQLFlowError) -> None:
        """Count a statement as failed if its errors were found before anything ran."""
        self._counts["ERROR"] += 1
        self._narrator.leaves_out(turn.step)
        turn.sheet.fails(error, turn.text)
        self._not_made(turn, "has errors")

    def _skip(self, turn: Turn, why: str) -> None:
        self._counts["SKIP"] += 1
        self._narrator.skips(turn.step, why)
        turn.sheet.ends("skipped", why=why)
        self._not_made(turn, "was skipped")

    # What there is ---------------------------------------------------------------------------------------

    def _why_not(self, statement: Statement) -> str:
        """Name the missing object that the statement depends on; empty if none is known."""
        if not self._missing:
            return ""
        thing = depends(self._effects(statement), [missing.thing for missing in self._missing])
        return next(
            (
                f"{made_by.thing} is made by {made_by.why}"
                for made_by in self._missing
                if made_by.thing is thing
            ),
            "",
        )

    def _not_made(self, turn: Turn, what: str) -> None:
        if self._goes_on:
            why = f"statement {turn.step.number}, which {what}"
            self._missing += (Missing(thing, why) for thing in self._effects(turn.statement).makes)

    def _record_made(self, turn: Turn) -> None:
        """Record that the statement's objects exist again, or in a dry run that they would."""
        if self._dry:
            self._not_made(turn, "has not run")
        elif self._missing:
            things = self._effects(turn.statement).makes
            self._missing = [
                missing for missing in self._missing if not any(map(missing.thing.is_same, things))
            ]

    def _effects(self, statement: Statement) -> Effects:
        return effects(statement, self._session.dialect)


def to_terminated_error(error: JobInterruptedError | TerminatedError) -> TerminatedError:
    """Return the exception that ends the command: also if its job alone got the signal."""
    if isinstance(error, TerminatedError):
        return error
    terminated = TerminatedError()
    terminated.kept += error.kept
    return terminated
