"""Arguments that several commands have, the types of their values, and the commands that a wrong word means."""

from __future__ import annotations

import argparse
import math
import os
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from sqlflow_edl.cli.program.variables import assignment

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

MOST_WORKERS = 1000
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}  # of a time
_LONGEST = 36_500 * _UNITS["d"]
_URL = re.compile(r"[\w+.-]+://[^\s']+")


class Parser(argparse.ArgumentParser):
    """Parser of arguments. Its errors name the nearest command, option or choice, and no password."""

    _given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._given = sys.argv[1:] if args is None else args
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Exit with the message. Argparse quotes a wrong choice, and then each that there is."""
        if "arguments are required" in message:
            self._check_options(self._given)
        wrong, *choices = re.findall(r"'([^']*)'", message) if "invalid choice: '" in message else [""]
        if "argument COMMAND" in message and (meant := command_meant(wrong, self._given)):
            self._stop(f"{shlex.quote(wrong)} is not a command; {meant}")
        near = _nearest(wrong, choices)
        if "argument COMMAND" in message and near:
            self._stop(f"{shlex.quote(wrong)} is not a command{near}")
        from edl.data.url import redacted

        shown = _URL.sub(lambda url: redacted(url[0]), message) + near
        if "did you mean" in shown:
            self._stop(shown)
        super().error(shown)

    def _stop(self, message: str) -> NoReturn:
        """Exit with a message that says what is meant, without the usage above it."""
        self.exit(2, f"{self.prog}: error: {message}\n")

    def _check_options(self, words: Sequence[str]) -> None:
        """Exit for an option that this command does not have."""
        for word in words:
            name = word.partition("=")[0]
            if name == "--":
                return
            if name.startswith("--") and name not in self._option_string_actions:
                _refuse(self, word)


def parse_arguments(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments. An argument that the command does not have exits with the nearest option."""
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        refusing = parser
        while subparsers := [
            action for action in refusing._actions if isinstance(action, argparse._SubParsersAction)
        ]:
            refusing = subparsers[0].choices[getattr(options, subparsers[0].dest)]
        _refuse(refusing, unknown[0])
    return options


def _refuse(parser: argparse.ArgumentParser, word: str) -> NoReturn:
    near = _nearest(word.partition("=")[0], parser._option_string_actions)
    parser.error(f"unrecognized argument: {word}{near}")


def _nearest(word: str, candidates: Iterable[str]) -> str:
    from edl.errors import did_you_mean

    hint = did_you_mean(word, candidates, list_up_to=0)
    return f"; {hint}" if hint else ""


def display(command: argparse.ArgumentParser) -> None:
    command.add_argument("--debug", action="store_true", help="show the traceback of an error")
    command.add_argument("--no-color", action="store_true", help="show no colours, as with NO_COLOR=1")


def positive(text: str) -> int:
    number = int(text) if text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return number


def index(text: str) -> float:
    return _above_zero(text, "number")


def seconds(text: str) -> float:
    return _above_zero(text, "number of seconds")


def _above_zero(text: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a {what} above 0")
    return number


def workers(text: str, least: int = 0) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least} to {MOST_WORKERS}") from None
    if not least <= number <= MOST_WORKERS:
        raise argparse.ArgumentTypeError(f"{number} is not from {least} to {MOST_WORKERS}")
    return number


def priority(text: str) -> int:
    from edl.cli import cluster_arguments

    return cluster_arguments.priority(text)


def duration(text: str) -> float:
    """Return the seconds of a time such as 90s, 45m, 2h, 1d, or of a number of seconds."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    try:
        secs = float(number) * _UNITS[unit]
    except ValueError:
        secs = math.nan
    if not 1 <= secs <= _LONGEST:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time from a second to 100 years, such as 90s, 45m, 2h or 1d"
        )
    return secs


def variables(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--var",
        metavar="NAME=VALUE",
        type=assignment,
        action="append",
        default=[],
        help="render the programs as Jinja templates, with NAME as a variable; ${yyyy-MM-dd -1d} in the value is a "
        "date, ${HOME} a variable of the environment; may be repeated",
    )


def model_store(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--model-store",
        metavar="URL",
        default=os.environ.get("SQLFLOW_MODEL_STORE", ""),
        help="folder or URL of an object store, such as s3://bucket/models, that keeps the models instead of the data "
        "source (default: SQLFLOW_MODEL_STORE)",
    )


def threads(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--threads",
        metavar="N",
        type=positive,
        default=os.environ.get("SQLFLOW_THREADS") or None,
        help="use at most N processor cores of this machine, with all processes of a job (default: SQLFLOW_THREADS, "
        "else all)",
    )


def model_packages(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--model-packages",
        metavar="NAME,…",
        type=_packages,
        help="installed packages whose models statements may name, such as torchvision.models; "
        "see sqlflow help security (default: SQLFLOW_MODEL_PACKAGES, else none)",
    )


def _packages(text: str) -> str:
    from edl.errors import SemanticError
    from edl.program.model_packages import parse

    try:
        return ",".join(parse(text))
    except SemanticError as error:
        raise argparse.ArgumentTypeError(f"{error.message}; {error.hint}") from None


def subcommand(commands: Commands, name: str, text: str, description: str = "") -> argparse.ArgumentParser:
    """Add a command. text: its line in the list of commands, and the description without another one."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=description or f"{text[0].upper()}{text[1:]}.", allow_abbrev=False
    )
    return parser


def add_command(commands: Commands, name: str, text: str) -> argparse.ArgumentParser:
    """Add a command on a data source."""
    parser = subcommand(commands, name, text)
    parser.add_argument(
        "--source",
        metavar="URL",
        default=os.environ.get("SQLFLOW_SOURCE"),
        help="URL of the data source (default: SQLFLOW_SOURCE)",
    )
    parser.add_argument(
        "-p", "--password", action="store_true", help="ask for the password of a database on a server"
    )
    parser.add_argument("--dialect", metavar="NAME", help="SQL dialect (default: the database's)")
    display(parser)
    return parser


_STATEMENT = re.compile(
    r"\s*(?:SELECT|FROM|WITH|TO|SHOW|DESCRIBE|CREATE|DROP|INSERT|TRAIN|PREDICT)\s", re.IGNORECASE
)
# verb -> what follows the query of a file
_CLAUSES = {
    "train": "LABEL my_label INTO my_model",
    "fit": "LABEL my_label INTO my_model",
    "predict": "TO PREDICT USING my_model",
    "evaluate": "TO EVALUATE my_model",
    "explain": "TO EXPLAIN my_model",
}


def is_statement(word: str) -> bool:
    """Return True for an argument that is SQL, and no file."""
    return _STATEMENT.match(word) is not None and not Path(word).exists()


def as_statement(text: str) -> str:
    """Return the command that runs a statement."""
    quoted = f'"{text}"' if not re.search(r'["$`\\!]', text) else shlex.quote(text)
    return f"sqlflow run -e {quoted}"


def command_meant(word: str, arguments: Sequence[str]) -> str:
    """Return the command for a word in the place of one, or empty. arguments: all that was typed."""
    if is_statement(word):
        return f"a statement follows -e: {as_statement(word)}"
    clauses = _CLAUSES.get(word.lower())
    if clauses is None:
        return ""
    from edl.data.url import SUFFIXES

    rows = next(
        (argument for argument in arguments if argument.lower().endswith(tuple(SUFFIXES))), "customers.csv"
    )
    statement = f"SELECT * FROM '{rows}' {clauses}"
    return f"write {as_statement(statement)}"
