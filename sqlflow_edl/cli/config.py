"""`sqlflow config`: the user's settings and their origins; `--init` writes the file with all of them as comments."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.arguments import Commands, subcommand
from sqlflow_edl.display.terminal import shown_error

if TYPE_CHECKING:
    from pathlib import Path

    from sqlflow_edl.console.config import Config

# Key of the file -> variable of the environment that wins over it.
_VARIABLES = {
    "source": "SQLFLOW_SOURCE",
    "model_store": "SQLFLOW_MODEL_STORE",
    "threads": "SQLFLOW_THREADS",
    "color": "NO_COLOR",
}
_WITHOUT = ("config", "completion")  # commands that a faulty file does not stop


def config(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    if options.init:
        return _init()
    values = _read()
    if values is None:
        return exit_codes.USAGE
    from sqlflow_edl.console.config import config_path
    from sqlflow_edl.display.output import write_rows

    path = config_path()
    write_rows(((name, False) for name in ("key", "value", "from")), list(_rows(values)), sys.stdout)
    hint = "" if path.exists() else " does not exist; `sqlflow config --init` writes it"
    print(f"file: {path}{hint}", file=sys.stderr)
    return exit_codes.OK


def apply_file(options: argparse.Namespace) -> bool:
    """Fill options that neither the command line nor the environment gives; return False for a faulty file."""
    if options.command in _WITHOUT:
        return True
    values = options.config = _read()
    if values is None:
        return False
    for name in ("source", "model_store", "threads"):
        if not getattr(options, name, True):
            setattr(options, name, getattr(values, name) or getattr(options, name))
    if not values.color and not os.environ.get("FORCE_COLOR"):
        os.environ["NO_COLOR"] = "1"
    return True


def is_source_set() -> bool:
    """Return True if the environment or the file gives a data source."""
    if os.environ.get(_VARIABLES["source"]):
        return True
    values = _read()
    return values is None or bool(values.source)  # the console reports a faulty file


def add_command(commands: Commands) -> None:
    """Add the command."""
    text = "show the settings of the configuration file, and of the environment"
    parser = subcommand(commands, "config", text)
    parser.add_argument("--init", action="store_true", help="write the file, with all settings as comments")


def write_file() -> Path:
    """Write the file with all settings as comments, and return its path.

    Raises OSError if it cannot be written, FileExistsError if there is one.
    """
    from sqlflow_edl.console.config import config_path, template

    path = config_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8") as file:
        file.write(template())
    return path


def _init() -> int:
    from sqlflow_edl.console.config import config_path

    path = config_path()
    try:
        write_file()
    except OSError as error:
        why = "it exists, and stays as it is" if isinstance(error, FileExistsError) else error.strerror
        print(f"sqlflow config: cannot write {path}: {why}", file=sys.stderr)
        return exit_codes.FAILED
    print(f"written to {path}", file=sys.stderr)
    return exit_codes.OK


def _read() -> Config | None:
    """Read the file, or report its errors and return None."""
    from sqlflow_edl.console.config import FaultyConfigError, read

    try:
        return read()
    except FaultyConfigError as error:
        print(shown_error(str(error), sys.stderr), file=sys.stderr)
        return None


def _rows(values: Config) -> Iterator[tuple[str, str, str]]:
    from edl.data import redacted
    from sqlflow_edl.console.config import DEFAULTS, KEYS

    for name in KEYS:
        value = getattr(values, name)
        origin = "default" if value == getattr(DEFAULTS, name) else "file"
        variable = _VARIABLES.get(name, "")
        if set_ := os.environ.get(variable, ""):
            value, origin = (redacted(set_) if name != "color" else False), variable
        yield name, "" if value is None else json.dumps(value), origin
