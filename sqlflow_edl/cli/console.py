"""`sqlflow console`: the prompt of a terminal. Without a terminal, standard input is a program to run."""

from __future__ import annotations

import argparse
import contextlib
import sys
from typing import TYPE_CHECKING

from sqlflow_edl.cli import backend, exit_codes
from sqlflow_edl.cli.config import write_file
from sqlflow_edl.cli.errors import report_errors
from sqlflow_edl.cli.source import no_source, open_session
from sqlflow_edl.display.output import OF_FILES
from sqlflow_edl.session.observer import Observer

if TYPE_CHECKING:
    from sqlflow_edl.session.session import Session


@report_errors
def console(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        from sqlflow_edl.cli.program.run import run

        return run(options)
    if not options.source:
        return no_source(options)
    if wrong := backend.complaint(options) or _complaint(options.format):
        print(f"sqlflow console: {wrong}", file=sys.stderr)
        return exit_codes.USAGE
    from sqlflow_edl.console.screen import Screen
    from sqlflow_edl.console.shell import Shell
    from sqlflow_edl.display.narrator import Narrator

    def opener(source: str, observer: Observer) -> Session:
        return open_session(options, source, observer, backend.configuration(options), create=options.create)

    narrator = Narrator(sys.stderr)
    with contextlib.suppress(OSError):  # the file is there, or its folder cannot be written
        narrator.note(f"the settings are in {write_file()}")
    screen = Screen(sys.stdout, narrator)
    screen.apply(options.config)
    screen.format = options.format or screen.format
    Shell(opener, options.source, screen, options.config, debug=options.debug).run()
    return exit_codes.OK


def _complaint(format_: str | None) -> str:
    if format_ in OF_FILES:
        return f"--format {format_} is for files; /once FILE.{format_} in the console writes one"
    return ""
