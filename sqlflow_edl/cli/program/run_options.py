"""Options of `sqlflow run`, and the short form `sqlflow -e SQL` of the command."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

MOST_AT_ONCE = 64  # statements, each with a connection and perhaps a training process

_TEXTS = ("-e", "--execute", "-f", "--file")


def complete_arguments(arguments: Sequence[str], *, at_terminal: bool) -> list[str]:
    """Insert the command that the arguments leave out.

    Options before any command belong to `run` if they or standard input give a text, else to `console`.
    at_terminal: standard input is a terminal.
    """
    first = arguments[0] if arguments else ""
    if not first.startswith("-") or first in ("-h", "--help", "--version"):
        return [*arguments]
    gives_text = any(
        argument.partition("=")[0] in _TEXTS or (argument[:2] in _TEXTS and argument[:2] != "--")
        for argument in arguments
    )
    return ["run" if gives_text or "-" in arguments or not at_terminal else "console", *arguments]


def add_options(run: argparse.ArgumentParser) -> None:
    """Add the options that no other command has."""
    run.add_argument("files", nargs="*", metavar="FILE", help="a .sql file; - is standard input")
    run.add_argument(
        "-f",
        "--file",
        dest="more_files",
        metavar="FILE",
        action="append",
        default=[],
        help="the same as FILE; may be repeated",
    )
    run.add_argument(
        "-e", "--execute", metavar="SQL", action="append", default=[], help="SQL to run; may be repeated"
    )
    run.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=_file,
        help="write result sets to a file, which appears when all statements have run; - is stdout",
    )
    run.add_argument(
        "--json",
        action="store_true",
        help="write a line with a JSON object for each statement: kind, rows or figures, outcome, errors with places",
    )
    run.add_argument(
        "--on-error",
        choices=("stop", "continue"),
        default="stop",
        help="stop (default), or continue with the statements that do not depend on the failed one",
    )
    run.add_argument(
        "--select",
        metavar="N|NAME",
        action="append",
        default=[],
        help="run statement N, or the statements that make the model or table NAME, and the earlier ones that they "
        "need; may be repeated",
    )
    run.add_argument(
        "--parallel",
        metavar="N",
        type=_parallel,
        default=1,
        help="run up to N statements at once, where they do not depend on each other; a failure skips only what "
        "depends on it",
    )
    run.add_argument(
        "--dry-run",
        action="store_true",
        help="show the plan of each statement, or with --on the objects of its job; nothing is trained or written",
    )
    run.add_argument("--quiet", action="store_true", help="show errors only, no progress")
    run.add_argument(
        "--detach",
        action="store_true",
        help="run the job of the last statement in the background; its result is stored when it ends",
    )


def set_defaults(console: argparse.ArgumentParser) -> None:
    """Set the options for a command that is `run -` without a terminal."""
    parser = argparse.ArgumentParser(add_help=False)
    add_options(parser)
    console.set_defaults(**vars(parser.parse_args(["-"])), var=[])


def _file(text: str) -> Path | None:
    return Path(text) if text != "-" else None


def _parallel(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if not 1 <= number <= MOST_AT_ONCE:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {MOST_AT_ONCE}")
    return number
