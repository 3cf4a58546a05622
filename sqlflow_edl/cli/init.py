"""`sqlflow init FOLDER`: a folder with a small database and a program that runs on it."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.arguments import Commands, subcommand
from sqlflow_edl.cli.errors import report_errors


@report_errors
def init(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from sqlflow_edl.samples.project import RUN, write_project

    names = write_project(options.folder)
    print(f"{', '.join(names)} written to {options.folder}; now run", file=sys.stderr)
    print(f"  cd {shlex.quote(str(options.folder))}\n  {RUN}", file=sys.stderr)
    return exit_codes.OK


def add_command(commands: Commands) -> argparse.ArgumentParser:
    """Add the command, and return its parser."""
    text = "make a folder with a small database and a program that runs on it"
    parser = subcommand(commands, "init", text)
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="new or empty folder")
    return parser
