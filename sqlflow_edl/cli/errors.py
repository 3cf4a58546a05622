"""Errors of a command: rendered on stderr, with the traceback under --debug."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable

from edl.errors import SQLFlowError
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.display.terminal import shown_error
from sqlflow_edl.errors.render import render, traceback_of

Command = Callable[[argparse.Namespace], int]


def report_errors(command: Command) -> Command:
    """Report an SQLFlowError of the command on stderr and make it the exit code."""

    @functools.wraps(command)
    def run(options: argparse.Namespace) -> int:
        try:
            return command(options)
        except SQLFlowError as error:
            if options.debug:
                print(traceback_of(error), file=sys.stderr)
            print(shown_error(render(error), sys.stderr), file=sys.stderr)
            return exit_codes.FAILED

    return run
