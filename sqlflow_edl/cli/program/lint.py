"""`sqlflow lint`: errors and warnings of programs, which do not run.

Errors of columns and models need a source, or a file with the tables of one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from edl.errors import ErrorList, Span, SQLFlowError
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import report_errors
from sqlflow_edl.cli.program import schema_file
from sqlflow_edl.cli.program.inputs import Text, texts
from sqlflow_edl.cli.program.variables import fill_variables
from sqlflow_edl.errors.render import locate
from sqlflow_edl.session.texts import sql_files
from sqlflow_edl.syntax import Statement
from sqlflow_edl.syntax.parse import DOUBT, read_statements

if TYPE_CHECKING:
    from sqlflow_edl.session.passed_on import Parser
    from sqlflow_edl.session.session import Session

Program = Sequence[Statement | SQLFlowError]


class LintProblem(NamedTuple):
    """Error or warning at a place of a text."""

    span: Span
    severity: str
    message: str
    hint: str = ""


class Finding(msgspec.Struct, frozen=True):
    """Error or warning at a place of a file; line and column count from 1."""

    file: str
    line: int
    column: int
    severity: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.file}:{self.line}:{self.column}: {self.severity}: {self.message}{hint}"


@report_errors
def lint(options: argparse.Namespace) -> int:
    """Run the command. Return an exit code that is not 0 if there are errors."""
    findings: list[Finding] = []
    with ExitStack() as stack:
        session = None
        if options.schema:
            session = stack.enter_context(schema_file.open_session(options.dialect, options.model_store))
            findings += _schema_findings(session, options.schema)
        elif options.source:
            session = stack.enter_context(open_session(options))
        if not findings:
            for source_text in texts(options.files, []):
                findings += _findings(source_text, options, session)
    if options.json:
        print(msgspec.json.encode(findings).decode())
    else:
        for finding in findings:
            print(finding)
    wrong = sum(finding.severity == "error" for finding in findings)
    print(f"errors: {wrong}, warnings: {len(findings) - wrong}", file=sys.stderr)
    return exit_codes.FAILED if wrong else exit_codes.OK


def _findings(program: Text, options: argparse.Namespace, session: Session | None) -> list[Finding]:
    """Fill in the variables of a program, and return its errors and warnings."""
    text, dialect = program.text, session.dialect if session is not None else options.dialect or "duckdb"
    try:
        text = fill_variables(text, options.var, dialect)
    except SQLFlowError as error:
        return [_finding(text, program.name, problem) for problem in _problems_in(error, None)]
    problems = problems_with_source(text, session) if session is not None else problems_of(text, dialect)
    return [_finding(text, program.name, problem) for problem in problems]


def _schema_findings(session: Session, file: str) -> list[Finding]:
    """Create the tables of the schema file; return what is wrong with it."""
    text = sql_files.read(Path(file))
    try:
        schema_file.create_tables(session, text)
    except SQLFlowError as error:
        return [_finding(text, file, problem) for problem in _problems_in(error, None)]
    return []


def open_session(options: argparse.Namespace) -> Session:
    """Open the session for the check of a program against its tables, columns and models."""
    from sqlflow_edl.session.session import Session

    session = Session(options.source, dialect=options.dialect, model_store=options.model_store)
    session.maintain()
    return session


def problems_with_source(text: str, session: Session) -> Iterator[LintProblem]:
    """Yield the errors and warnings of a program, also about columns and models."""
    from sqlflow_edl.session.passed_on import find_doubt, parser_of
    from sqlflow_edl.session.program_check import ProgramCheck

    program = session.read(text)
    compiler = replace(session.compiler, runs_here=False)  # who writes programs may only read
    errors = ProgramCheck(compiler).problems(program)
    if parser_of(session.source) is not None:
        return _problems(program, errors, lambda statement: None, is_parsed=True)
    return _problems(program, errors, partial(find_doubt, dialect=session.dialect))


def problems_of(text: str, dialect: str) -> Iterator[LintProblem]:
    """Yield the errors and warnings of a program that need neither columns nor models."""
    from sqlflow_edl.session.passed_on import find_doubt, parser_without_source

    program, parser = read_statements(text, dialect), parser_without_source(dialect)
    errors = _without_source(program, dialect, parser)
    find = partial(find_doubt, dialect=dialect, parser=parser)
    return _problems(program, errors, find, is_parsed=parser is not None)


def _without_source(program: Program, dialect: str, parser: Parser | None) -> list[SQLFlowError | None]:
    """Return the error of each statement, as far as it needs neither columns nor models."""
    from sqlflow_edl.session.passed_on import changes_syntax, check_syntax
    from sqlflow_edl.session.program_check import check_without_columns

    errors: list[SQLFlowError | None] = []
    for parsed in program:
        try:
            if isinstance(parsed, SQLFlowError):
                raise parsed
            if parsed.kind == "sql":
                check_syntax(parsed, dialect, parser)
                parser = None if changes_syntax(parsed) else parser
            check_without_columns(parsed)
            errors.append(None)
        except SQLFlowError as error:
            errors.append(error)
    return errors


def _problems(
    program: Program,
    errors: Sequence[SQLFlowError | None],
    find_doubt: Callable[[Statement], SQLFlowError | None],
    *,
    is_parsed: bool = False,
) -> Iterator[LintProblem]:
    """Yield the errors, and the warnings of each statement.

    find_doubt: returns what is doubtful in its SQL. is_parsed: a parser of the database has read its SELECT.
    """
    for parsed, error in zip(program, errors, strict=True):
        if error is not None:
            yield from _problems_in(error, parsed.span if isinstance(parsed, Statement) else None)
        if isinstance(parsed, SQLFlowError):
            continue
        if (doubt := find_doubt(parsed)) is not None:
            yield LintProblem(doubt.span or parsed.span, "warning", doubt.message, doubt.hint or "")
        for warning in parsed.warnings:
            if not (is_parsed and warning.startswith(DOUBT)):
                yield LintProblem(parsed.select_span or parsed.span or Span(0, 0), "warning", warning)


def _problems_in(error: SQLFlowError, whole: Span | None) -> Iterator[LintProblem]:
    """Yield each error of one that may be a list; errors without a place are at `whole`."""
    for one in error.errors if isinstance(error, ErrorList) else [error]:
        yield LintProblem(one.span or whole or Span(0, 0), "error", one.message, one.hint or "")


def _finding(text: str, name: str, problem: LintProblem) -> Finding:
    place = locate(text, problem.span)
    return Finding(name, place.line, place.column, problem.severity, problem.message, problem.hint)
