"""`sqlflow lint`: errors and warnings of programs, which do not run; with a source also those of columns and models."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

import msgspec

from edl.errors import ErrorList, Span, SQLFlowError
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import reported
from sqlflow_edl.cli.program.inputs import texts
from sqlflow_edl.errors.render import locate
from sqlflow_edl.syntax import Statement
from sqlflow_edl.syntax.parse import read

Program = Sequence[Statement | SQLFlowError]


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


@reported
def lint(options: argparse.Namespace) -> int:
    """Run the command. Return an exit code that is not 0 if there are errors."""
    found: list[Finding] = []
    for each in texts(options.files, []):
        if options.source:
            program, errors = _with_source(options, each.text)
        else:
            program = read(each.text, options.dialect or "duckdb")
            errors = _without_source(program)
        found += _findings(program, errors, each.text, each.name)
    if options.json:
        print(msgspec.json.encode(found).decode())
    else:
        for finding in found:
            print(finding)
    wrong = sum(finding.severity == "error" for finding in found)
    print(f"errors: {wrong}, warnings: {len(found) - wrong}", file=sys.stderr)
    return exit_codes.FAILED if wrong else exit_codes.OK


def _with_source(options: argparse.Namespace, text: str) -> tuple[Program, list[SQLFlowError | None]]:
    from sqlflow_edl.session.program_check import ProgramCheck
    from sqlflow_edl.session.session import Session

    with Session(options.source, dialect=options.dialect, model_store=options.model_store) as session:
        program = session.read(text)
        return program, ProgramCheck(session.compiler).problems(program)


def _without_source(program: Program) -> list[SQLFlowError | None]:
    """Return the error of each statement, as far as it needs neither columns nor models."""
    found: list[SQLFlowError | None] = []
    for each in program:
        try:
            if isinstance(each, SQLFlowError):
                raise each
            _check(each)
            found.append(None)
        except SQLFlowError as error:
            found.append(error)
    return found


def _check(statement: Statement) -> None:
    from sqlflow_edl.analysis import inference, train
    from sqlflow_edl.analysis.search import plan as search

    if statement.kind in ("train", "auto") and statement.using is None:
        if search.is_search(statement):
            search.check_without_columns(statement)
        else:
            train.check_without_columns(statement, None, None)
    elif statement.kind in inference.USES:
        check, _ = inference.USES[statement.kind]
        check(statement)


def _findings(
    program: Program, errors: Sequence[SQLFlowError | None], text: str, name: str
) -> Iterator[Finding]:
    for each, error in zip(program, errors, strict=True):
        for one in error.errors if isinstance(error, ErrorList) else [error] if error else []:
            span = one.span or (each.span if isinstance(each, Statement) else None)
            yield _finding(name, text, span, "error", one.message, one.hint or "")
        if isinstance(each, Statement):
            for warning in each.warnings:
                yield _finding(name, text, each.select_span or each.span, "warning", warning)


def _finding(name: str, text: str, span: Span | None, severity: str, message: str, hint: str = "") -> Finding:
    place = locate(text, span or Span(0, 0))
    return Finding(name, place.line, place.column, severity, message, hint)
