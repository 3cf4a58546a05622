"""`sqlflow run`: the statements of its programs, one after another, told as n of N; or, dry, the plan of each."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from edl.errors import SQLFlowError
from sqlflow_edl.analysis.outline import Effects, Thing, depends, effects, title
from sqlflow_edl.cli import exit_codes, place
from sqlflow_edl.cli.output import Output, complaint
from sqlflow_edl.cli.programs import Text, texts
from sqlflow_edl.cli.variables import filled
from sqlflow_edl.display.narrator import Narrator, Step
from sqlflow_edl.interrupts import interrupting
from sqlflow_edl.render import render
from sqlflow_edl.results import Result
from sqlflow_edl.session import Session
from sqlflow_edl.syntax import Statement

if TYPE_CHECKING:
    from sqlflow_edl.kubernetes.settings import Configuration


def run(options: argparse.Namespace) -> int:
    """The command; returns the exit code."""
    if not options.source:
        print("sqlflow run: no data source; give --source URL or set SQLFLOW_SOURCE", file=sys.stderr)
        return exit_codes.USAGE
    if wrong := place.complaint(options) or complaint(options):
        print(f"sqlflow run: {wrong}", file=sys.stderr)
        return exit_codes.USAGE
    narrator = Narrator(sys.stderr, quiet=options.quiet)
    program = Text("", "")
    try:
        create = options.create and not options.dry_run
        where = place.configuration(options)
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
            Output(options.output, options.format, narrator.say) as output,
        ):
            written: list[tuple[Statement, Text]] = []
            for program in texts(options.files, options.execute):
                text = filled(program.text, options.var)
                program = Text(program.name, text)
                written += ((statement, program) for statement in session.parse(text))
            with interrupting(session.source.interrupt):
                code = Run(session, narrator, options, where, output).all(written)
            output.end(failed=code != exit_codes.OK and options.on_error != "continue")
            return code
    except SQLFlowError as error:
        if options.debug:
            traceback.print_exc()
        narrator.say(render(error, program.text, program.name))
        return exit_codes.FAILED


@dataclass(frozen=True, slots=True)
class Missing:
    """What a statement did not make, and why: `statement 2, which failed`."""

    thing: Thing
    why: str


class Run:
    """Runs statements and remembers what failed, was skipped, and is therefore not there."""

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
        self._shown = False  # objects of a job before

    def all(self, written: list[tuple[Statement, Text]]) -> int:
        """Run them, and tell how it went; returns the exit code."""
        for number, (statement, text) in enumerate(written, 1):
            step = Step(number, len(written), title(statement, self._session.dialect))
            if why := self._stopped or (not self._dry and self._why_not(statement)):
                self._skip(step, statement, why)
            else:
                self._one(step, statement, text)
        self._narrator.closes(self._counts)
        return exit_codes.FAILED if self._counts["ERROR"] else exit_codes.OK

    def _one(self, step: Step, statement: Statement, text: Text) -> None:
        began = time.monotonic()
        try:
            if not self._dry:
                self._narrator.begins(step)
            result = self._do(step, statement)
            footer = ""
            if result.reader is not None:
                self._narrator.clear()
                footer = self._output.rows(result.reader)
        except SQLFlowError as error:
            if self._dry and (why := self._why_not(statement)):
                self._skip(step, statement, why)
            else:
                self._fail(step, statement, error, text, time.monotonic() - began)
        except KeyboardInterrupt:
            self._narrator.cancels(step)
            raise
        else:
            self._counts["OK"] += 1
            self._narrator.ends(step, result, footer, time.monotonic() - began)
            self._made(step, statement)

    def _do(self, step: Step, statement: Statement) -> Result:
        if self._dry:
            return self._plan(statement)
        if self._detach and step.number == step.total:
            return self._session.leave(statement)
        return self._session.execute(statement)

    def _plan(self, statement: Statement) -> Result:
        """The plan; of a job on Kubernetes its objects, which are all that is written then."""
        if self._where is None:
            return self._session.plan(statement)
        from sqlflow_edl.manifests import manifests

        found = manifests(self._session, statement, self._where)
        if not found:
            return replace(self._session.plan(statement), reader=None)
        self._narrator.clear()
        self._output.text(f"---\n{found}" if self._shown else found)
        self._shown = True
        return Result(statement)

    def _fail(
        self, step: Step, statement: Statement, error: SQLFlowError, text: Text, seconds: float
    ) -> None:
        if self._debug:
            traceback.print_exception(error)
        self._counts["ERROR"] += 1
        self._narrator.fails(step, render(error, text.text, text.name), seconds)
        self._not_made(statement, f"statement {step.number}, which failed")
        if not self._goes_on:
            self._stopped = f"statement {step.number} failed"

    def _skip(self, step: Step, statement: Statement, why: str) -> None:
        self._counts["SKIP"] += 1
        self._narrator.skips(step, why)
        self._not_made(statement, f"statement {step.number}, which was skipped")

    # What there is ---------------------------------------------------------------------------------------

    def _why_not(self, statement: Statement) -> str:
        """Why the statement cannot run: what it uses is not there. Empty when nothing is known against it."""
        if not self._missing:
            return ""
        thing = depends(self._effects(statement), [missing.thing for missing in self._missing])
        return next(
            (f"{each.thing} is made by {each.why}" for each in self._missing if each.thing is thing), ""
        )

    def _not_made(self, statement: Statement, why: str) -> None:
        if self._goes_on:
            self._missing += (Missing(thing, why) for thing in self._effects(statement).makes)

    def _made(self, step: Step, statement: Statement) -> None:
        """What it made is there again; in a dry run, it would be."""
        if self._dry:
            self._not_made(statement, f"statement {step.number}, which has not run")
        elif self._missing:
            made = self._effects(statement).makes
            self._missing = [each for each in self._missing if not any(map(each.thing.is_same, made))]

    def _effects(self, statement: Statement) -> Effects:
        return effects(statement, self._session.dialect)
