"""`sqlflow run`: run the statements of programs one after another, as n of N; or plan each under --dry-run.

All statements are checked before the first one runs, and their errors reported together. If there are errors,
nothing runs; with `--on-error continue` the statements without errors run, unless they depend on one that has
errors.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from edl.data.url import names_file
from edl.errors import SQLFlowError
from sqlflow_edl.cli import backend, exit_codes
from sqlflow_edl.cli.arguments import as_statement, is_statement
from sqlflow_edl.cli.program.entries import ProgramEntry, entries, select_entries
from sqlflow_edl.cli.program.inputs import Text, texts
from sqlflow_edl.cli.program.output import OBJECTS, ProgramOutput, complaint
from sqlflow_edl.cli.program.record import find_remaining, keep
from sqlflow_edl.cli.program.runner import ProgramRun
from sqlflow_edl.cli.program.variables import fill_variables
from sqlflow_edl.cli.source import find_file, no_source, open_session
from sqlflow_edl.display.narrator import Narrator, ProgramStep
from sqlflow_edl.errors.render import render, traceback_of
from sqlflow_edl.session.interrupts import stop_on_interrupt
from sqlflow_edl.session.session import Session
from sqlflow_edl.syntax import Statement

if TYPE_CHECKING:
    from sqlflow_edl.backends.kubernetes.settings import Configuration


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    if statement := next(filter(is_statement, options.files), ""):
        print(f"sqlflow run: a statement follows -e: {as_statement(statement)}", file=sys.stderr)
        return exit_codes.USAGE
    if not options.source:
        options.source = find_file("\n".join(options.execute)) or next(filter(names_file, options.files), "")
        if not options.source:
            return no_source(options)
    if wrong := backend.complaint(options) or complaint(options):
        print(f"sqlflow run: {wrong}", file=sys.stderr)
        return exit_codes.USAGE
    narrator = Narrator(sys.stderr, quiet=options.quiet)
    program = Text("", "")
    try:
        where = backend.configuration(options)
        with (
            _session(options, where, narrator, create=options.create and not options.dry_run) as session,
            ProgramOutput(
                options.output, OBJECTS if options.json else options.format, narrator.say
            ) as output,
        ):
            read: list[tuple[Statement | SQLFlowError, Text]] = []
            for program in texts([*options.files, *options.more_files], options.execute):
                text = fill_variables(program.text, options.var, session.dialect)
                program = Text(program.name, text)
                read += ((statement, program) for statement in session.read(text))
            program_entries = entries(read, session.dialect)
            if options.select:
                program_entries = select_entries(program_entries, options.select, session.dialect)
            program_entries = (
                find_remaining(program_entries, options.done, options.source, session.dialect)
                if options.done
                else program_entries
            )
            with (
                stop_on_interrupt(session.source.interrupt),
                _record_progress(options, program_entries) as succeeded,
            ):
                code = _run(session, narrator, options, where, output, program_entries, succeeded)
            output.end(failed=code != exit_codes.OK and options.on_error != "continue")
            return code
    except SQLFlowError as error:
        if options.debug:
            narrator.say(traceback_of(error))
        narrator.complain(render(error, program.text, program.name))
        if options.json:  # also where the error comes before any statement
            with (
                contextlib.suppress(SQLFlowError),
                ProgramOutput(options.output, OBJECTS, narrator.say) as output,
            ):
                output.sheet(ProgramStep(0, 0, "")).fails(error, program)
                output.end(failed=True)
        return exit_codes.FAILED


def _session(
    options: argparse.Namespace, where: Configuration | None, narrator: Narrator, *, create: bool = False
) -> Session:
    return open_session(options, options.source, narrator, where, create=create, share=options.parallel)


@contextlib.contextmanager
def _record_progress(options: argparse.Namespace, program: Sequence[ProgramEntry]) -> Iterator[set[int]]:
    """Yield the numbers of succeeded statements, to be filled, and record them for `sqlflow retry`."""
    succeeded: set[int] = set()
    try:
        yield succeeded
    finally:
        if not options.dry_run:
            with contextlib.suppress(OSError):  # a state folder that cannot be written
                keep(options, program, succeeded, failed=len(succeeded) < len(program))


def _run(
    session: Session,
    narrator: Narrator,
    options: argparse.Namespace,
    where: Configuration | None,
    output: ProgramOutput,
    program: Sequence[ProgramEntry],
    succeeded: set[int],
) -> int:
    """Check the statements, then run the valid ones; return the exit code."""
    if not options.dry_run:
        checked = session.problems([entry.statement or _error(entry) for entry in program])
        program = [replace(entry, problem=error) for entry, error in zip(program, checked, strict=True)]
    wrong = [entry for entry in program if entry.problem is not None]
    for entry in wrong:
        if options.debug:
            narrator.say(traceback_of(_error(entry)))
        narrator.say(render(_error(entry), entry.text.text, entry.text.name))
    unread = any(entry.statement is None for entry in program)
    runs = not wrong or (options.on_error == "continue" and not unread)
    if wrong and len(program) > 1:
        narrator.say(_verdict(len(wrong), len(program), runs=runs))
    if not runs:
        _nothing_ran(program, output)
        return exit_codes.FAILED
    if options.parallel > 1 and not options.dry_run:
        from sqlflow_edl.cli.program.parallel import ParallelRun

        beside = ParallelRun(session, narrator, options, where, output, succeeded)
        return beside.side_by_side(program, lambda: _session(options, where, narrator), options.parallel)
    return ProgramRun(session, narrator, options, where, output, succeeded).all(program)


def _error(entry: ProgramEntry) -> SQLFlowError:
    return entry.problem or SQLFlowError("the statement cannot be read")


def _nothing_ran(program: Sequence[ProgramEntry], output: ProgramOutput) -> None:
    """Write the outcome of each statement where errors were found before the first one ran."""
    for entry in program:
        sheet = output.sheet(entry.step, entry.kind)
        if entry.problem is not None:
            sheet.fails(entry.problem, entry.text)
        else:
            sheet.ends("skipped", why="other statements have errors")


def _verdict(wrong: int, total: int, *, runs: bool) -> str:
    have = f"statement{'' if total == 1 else 's'} {'has' if wrong == 1 else 'have'}"
    follows = "the others run where they do not depend on them" if runs else "nothing has run"
    return f"{wrong} of {total} {have} errors: {follows}"
