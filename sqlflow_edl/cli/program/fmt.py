"""`sqlflow fmt`: lay out programs, in place or on standard output; see `sqlflow_edl.syntax.layout`."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from edl.errors import SQLFlowError
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import reported
from sqlflow_edl.cli.program.inputs import Text, texts
from sqlflow_edl.display.files import OutputFile, writing
from sqlflow_edl.display.terminal import shown_error
from sqlflow_edl.errors.render import render
from sqlflow_edl.session.texts import sql_files
from sqlflow_edl.syntax.dialects import DIALECTS
from sqlflow_edl.syntax.layout import laid_out


@reported
def fmt(options: argparse.Namespace) -> int:
    """Run the command. Return an exit code that is not 0 for a faulty program, or if --check finds a difference."""
    if not options.files and sys.stdin.isatty():
        print("sqlflow fmt: error: name a file, or give a program on standard input", file=sys.stderr)
        return exit_codes.USAGE
    differing = failed = 0
    for name in options.files or ["-"]:
        given = next(texts([name], [])) if name == "-" else Text(name, sql_files.read(Path(name), exact=True))
        try:
            found = laid_out(given.text, _dialect(options))
        except SQLFlowError as error:
            print(shown_error(render(error, given.text, given.name), sys.stderr), file=sys.stderr)
            failed += 1
            continue
        differing += found != given.text
        _hand_out(given, found, options)
    return exit_codes.FAILED if failed or (options.check and differing) else exit_codes.OK


def _hand_out(given: Text, found: str, options: argparse.Namespace) -> None:
    """Write the program, its difference or its name, as the options say."""
    if options.diff:
        before, after = (text.splitlines(keepends=True) for text in (given.text, found))
        sys.stdout.writelines(
            line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
            for line in difflib.unified_diff(before, after, given.name, given.name)
        )
    elif options.check:
        if found != given.text:
            print(f"{given.name}: the layout would change")
    elif given.name == "<stdin>":
        sys.stdout.write(found)
    elif found != given.text:
        path = Path(given.name)
        with OutputFile(path) as file:
            with writing(path):
                file.out.write(found)
            file.keep()
        print(f"{given.name}: laid out", file=sys.stderr)


def _dialect(options: argparse.Namespace) -> str:
    """Return the dialect that is given, or that of the data source, which is not opened; else DuckDB's."""
    scheme = (options.source or "").partition(":")[0]
    return options.dialect or next((name for name in DIALECTS if scheme.startswith(name)), "duckdb")
