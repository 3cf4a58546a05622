"""`sqlflow run`: every statement of a program, in order; the first that fails ends the run."""

from __future__ import annotations

import argparse
import sys
import time
import traceback

from edl.errors import SQLFlowError
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.narrator import Narrator
from sqlflow_edl.cli.output import FORMATS
from sqlflow_edl.cli.programs import texts
from sqlflow_edl.render import render
from sqlflow_edl.session import Session
from sqlflow_edl.syntax import Statement


def run(options: argparse.Namespace) -> int:
    """The command; returns the exit code."""
    narrator = Narrator(sys.stderr, quiet=options.quiet)
    name = text = ""
    try:
        if not options.source:
            print("sqlflow run: no data source; give --source URL or set SQLFLOW_SOURCE", file=sys.stderr)
            return exit_codes.USAGE
        with Session(
            options.source, dialect=options.dialect, create=options.create, observer=narrator
        ) as session:
            for program in texts(options.files, options.execute):
                name, text = program.name, program.text
                for statement in session.parse(text):
                    _execute(session, statement, narrator, options.format)
    except SQLFlowError as error:
        narrator.clear()
        if options.debug:
            traceback.print_exc()
        print(render(error, text, name), file=sys.stderr)
        return exit_codes.FAILED
    return exit_codes.OK


def _execute(session: Session, statement: Statement, narrator: Narrator, format_: str) -> None:
    began = time.monotonic()
    result = session.execute(statement)
    footer = ""
    if result.reader is not None:
        footer = FORMATS[format_](result.reader, sys.stdout)
        sys.stdout.flush()
    narrator.finished(result, footer, time.monotonic() - began)
