"""`sqlflow fmt`: lay out programs, in place or on standard output; see `sqlflow_edl.syntax.layout`."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from edl.errors import SQLFlowError
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import report_errors
from sqlflow_edl.cli.program.inputs import Text, texts
from sqlflow_edl.display.files import OutputFile, name_write_errors
from sqlflow_edl.display.terminal import shown_error
from sqlflow_edl.errors.render import render
from sqlflow_edl.session.texts import sql_files
from sqlflow_edl.syntax.dialects import DIALECTS
from sqlflow_edl.syntax.layout import laid_out


@report_errors
def fmt(options: argparse.Namespace) -> int:
    """Run the command. Return an exit code that is not 0 for a faulty program, or if --check finds a difference."""
    if not options.files and sys.stdin.isatty():
        print("sqlflow fmt: error: name a file, or give a program on standard input", file=sys.stderr)
        return exit_codes.USAGE
    differing = failed = 0
    for name in options.files or ["-"]:
        source_text = (
            next(texts([name], [])) if name == "-" else Text(name, sql_files.read(Path(name), exact=True))
        )
        try:
            laid_out_text = laid_out(source_text.text, _dialect(options))
        except SQLFlowError as error:
            print(shown_error(render(error, source_text.text, source_text.name), sys.stderr), file=sys.stderr)
            failed += 1
            continue
        differing += laid_out_text != source_text.text
        _hand_out(source_text, laid_out_text, options)
    return exit_codes.FAILED if failed or (options.check and differing) else exit_codes.OK


def _hand_out(source_text: Text, laid_out_text: str, options: argparse.Namespace) -> None:
    """Write the program, its difference or its name, as the options say."""
    if options.diff:
        before, after = (text.splitlines(keepends=True) for text in (source_text.text, laid_out_text))
        sys.stdout.writelines(
            line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
            for line in difflib.unified_diff(before, after, source_text.name, source_text.name)
        )
    elif options.check:
        if laid_out_text != source_text.text:
            print(f"{source_text.name}: the layout would change")
    elif source_text.name == "<stdin>":
        sys.stdout.write(laid_out_text)
    elif laid_out_text != source_text.text:
        path = Path(source_text.name)
        with OutputFile(path) as file:
            with name_write_errors(path):
                file.out.write(laid_out_text)
            file.keep()
        print(f"{source_text.name}: laid out", file=sys.stderr)


def _dialect(options: argparse.Namespace) -> str:
    """Return the dialect that is given, or the data source's, without opening the source; else DuckDB's."""
    scheme = (options.source or "").partition(":")[0]
    return options.dialect or next((name for name in DIALECTS if scheme.startswith(name)), "duckdb")
