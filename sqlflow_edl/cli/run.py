"""`sqlflow run`: run the statements of programs one after another, as n of N; or plan each under --dry-run.

All statements are checked before the first one runs, and their errors reported together. If there are errors,
nothing runs; with `--on-error continue` the statements without errors run, unless they depend on one that has
errors.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from edl.errors import SQLFlowError
from sqlflow_edl.analysis.outline import Effects, Thing, depends, effects, title
from sqlflow_edl.cli import backend, exit_codes
from sqlflow_edl.cli.inputs import Text, texts
from sqlflow_edl.cli.output import OBJECTS, Output, Sheet, complaint
from sqlflow_edl.cli.source import no_source
from sqlflow_edl.cli.variables import filled
from sqlflow_edl.display.narrator import Narrator, Step
from sqlflow_edl.errors.render import render, traceback_of
from sqlflow_edl.reports.result import Result
from sqlflow_edl.session.interrupts import interrupting
from sqlflow_edl.session.session import Session
from sqlflow_edl.syntax import Statement

if TYPE_CHECKING:
    from sqlflow_edl.backends.kubernetes.settings import Configuration


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    if not options.source:
        return no_source(options)
    if wrong := backend.complaint(options) or complaint(options):
        print(f"sqlflow run: {wrong}", file=sys.stderr)
        return exit_codes.USAGE
    narrator = Narrator(sys.stderr, quiet=options.quiet)
    program = Text("", "")
    try:
        create = options.create and not options.dry_run
        where = backend.configuration(options)
        with (
            Session(
                options.source,
                dialect=options.dialect,
                create=create,
                observer=narrator,
                workers=options.workers,
                quota=options.quota,
                priority=options.priority,
                model_store=options.model_store,
                place=where,
            ) as session,
            Output(options.output, OBJECTS if options.json else options.format, narrator.say) as output,
        ):
            read: list[tuple[Statement | SQLFlowError, Text]] = []
            for program in texts([*options.files, *options.more_files], options.execute):
                text = filled(program.text, options.var)
                program = Text(program.name, text)
                read += ((statement, program) for statement in session.read(text))
            with interrupting(session.source.interrupt):
                code = _run(session, narrator, options, where, output, read)
            output.end(failed=code != exit_codes.OK and options.on_error != "continue")
            return code
    except SQLFlowError as error:
        if options.debug:
            narrator.say(traceback_of(error))
        narrator.complain(render(error, program.text, program.name))
        if options.json:  # also where the error comes before any statement
            with contextlib.suppress(SQLFlowError), Output(options.output, OBJECTS, narrator.say) as output:
                output.sheet(Step(0, 0, "")).fails(error, program)
                output.end(failed=True)
        return exit_codes.FAILED


def _run(
    session: Session,
    narrator: Narrator,
    options: argparse.Namespace,
    where: Configuration | None,
    output: Output,
    read: list[tuple[Statement | SQLFlowError, Text]],
) -> int:
    """Check the statements, then run the valid ones; return the exit code.

    `read` has errors in place of statements.
    """
    written = [(each, text) for each, text in read if isinstance(each, Statement)]
    unread = len(read) - len(written)
    checked = [each if isinstance(each, SQLFlowError) else None for each, _ in read]
    if not options.dry_run:
        checked = session.problems([each for each, _ in read])
    wrong = [(error, text) for error, (_, text) in zip(checked, read, strict=True) if error is not None]
    for error, text in wrong:
        if options.debug:
            narrator.say(traceback_of(error))
        narrator.say(render(error, text.text, text.name))
    runs = not wrong or (options.on_error == "continue" and not unread)
    if wrong and len(read) > 1:
        narrator.say(_verdict(len(wrong), len(read), runs=runs))
    if not runs:
        _nothing_ran(read, checked, output, session.dialect)
        return exit_codes.FAILED
    return Run(session, narrator, options, where, output).all(written, checked)


def _nothing_ran(
    read: list[tuple[Statement | SQLFlowError, Text]],
    checked: Sequence[SQLFlowError | None],
    output: Output,
    dialect: str,
) -> None:
    """Write the outcome of each statement where errors were found before the first one ran."""
    for number, ((statement, text), error) in enumerate(zip(read, checked, strict=True), 1):
        known = statement if isinstance(statement, Statement) else None
        step = Step(number, len(read), title(known, dialect) if known else "")
        sheet = output.sheet(step, known.kind if known else "")
        if error is not None:
            sheet.fails(error, text)
        else:
            sheet.ends("skipped", why="other statements have errors")


def _verdict(wrong: int, total: int, *, runs: bool) -> str:
    have = "statement has" if wrong == 1 else "statements have"
    follows = "the others run where they do not depend on them" if runs else "nothing has run"
    return f"{wrong} of {total} {have} errors: {follows}"


@dataclass(frozen=True, slots=True)
class Missing:
    """Object that a statement did not make, and the reason: `statement 2, which failed`."""

    thing: Thing
    why: str


@dataclass(frozen=True, slots=True)
class Turn:
    """Statement that is about to run: its place in the program, its text, and where its data goes."""

    step: Step
    statement: Statement
    text: Text
    sheet: Sheet


class Run:
    """Runner of statements.

    Keeps track of failed and skipped statements, and of the objects that are missing because of them.
    """

    def __init__(
        self,
        session: Session,
        narrator: Narrator,
        options: argparse.Namespace,
        where: Configuration | None,
        output: Output,
    ) -> None:
        self._session = session
        self._where = where
        self._narrator = narrator
        self._output = output
        self._dry = options.dry_run
        self._detach = options.detach
        self._goes_on = options.on_error == "continue" or options.dry_run
        self._debug = options.debug
        self._counts: Counter[str] = Counter()
        self._missing: list[Missing] = []
        self._stopped = ""
        self._shown = False  # objects of an earlier job are printed

    def all(self, written: list[tuple[Statement, Text]], problems: Sequence[SQLFlowError | None]) -> int:
        """Run the statements, report each, and return the exit code.

        problems: errors of the statements that are already reported.
        """
        for number, ((statement, text), problem) in enumerate(zip(written, problems, strict=True), 1):
            step = Step(number, len(written), title(statement, self._session.dialect))
            turn = Turn(step, statement, text, self._output.sheet(step, statement.kind))
            if problem is not None:
                self._leave_out(turn, problem)
            elif why := self._stopped or (not self._dry and self._why_not(statement)):
                self._skip(turn, why)
            else:
                self._one(turn)
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
        if self._detach and turn.step.number == turn.step.total:
            return self._session.leave(turn.statement)
        return self._session.execute(turn.statement)

    def _plan(self, turn: Turn) -> Result:
        """Plan the statement.

        A job on Kubernetes is planned as its objects, which are the only output then.
        """
        if self._where is None:
            return self._session.plan(turn.statement)
        from sqlflow_edl.session.manifests import manifests

        found = manifests(self._session.compiler, turn.statement, self._where)
        if not found:
            return replace(self._session.plan(turn.statement), reader=None)
        self._narrator.clear()
        turn.sheet.text(f"---\n{found}" if self._shown else found)
        self._shown = True
        return Result(turn.statement)

    # Outcomes --------------------------------------------------------------------------------------------

    def _succeed(self, turn: Turn, result: Result, footer: str, seconds: float) -> None:
        self._counts["OK"] += 1
        self._narrator.ends(turn.step, result, footer, seconds)
        turn.sheet.ends("ok", seconds, result=result)
        self._made(turn)

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
        """Count a statement as failed whose errors were found before anything ran."""
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
            (f"{each.thing} is made by {each.why}" for each in self._missing if each.thing is thing), ""
        )

    def _not_made(self, turn: Turn, what: str) -> None:
        if self._goes_on:
            why = f"statement {turn.step.number}, which {what}"
            self._missing += (Missing(thing, why) for thing in self._effects(turn.statement).makes)

    def _made(self, turn: Turn) -> None:
        """Record that the statement's objects exist again, or in a dry run that they would."""
        if self._dry:
            self._not_made(turn, "has not run")
        elif self._missing:
            made = self._effects(turn.statement).makes
            self._missing = [each for each in self._missing if not any(map(each.thing.is_same, made))]

    def _effects(self, statement: Statement) -> Effects:
        return effects(statement, self._session.dialect)
