"""Configuration file of a user: defaults of options, and settings of the console, without passwords.

The fields of `Config` are its keys: the file is checked against them, and `template` writes them with their comments.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from edl.data import redacted
from edl.data.server_url import config_folder
from edl.errors import SemanticError, Span, SQLFlowError, did_you_mean, raise_all
from sqlflow_edl.console.secrets import holds_secret
from sqlflow_edl.display.output import TEXT_FORMATS
from sqlflow_edl.errors.render import locate, render

FILE = "config.toml"

_HEAD = """\
# Settings of sqlflow. A line takes effect without its leading "# ". Options of the command line and variables of the
# environment win over this file.
"""
ESCAPE = re.compile(r"\\([dtuhpDRmsn_\\])")  # of the prompt
_TYPES = {bool: "true or false", int: "a whole number", str: "a text in quotes"}
_PLACE = re.compile(r"\(at (?:line (\d+), column (\d+)|end of document)\)")


class FaultyConfigError(Exception):
    """Configuration file that cannot be used. The text says where and why."""


def _key(doc: str, default: object, *choices: str, example: object = None) -> Any:
    """Return a field. example: value in the template, where the default does not serve as one."""
    about = {"doc": doc, "choices": choices, "example": default if example is None else example}
    return dataclasses.field(default=default, metadata=about)


@dataclasses.dataclass(frozen=True, slots=True)
class Config:
    """Values of the file, or their defaults."""

    source: str = _key(
        "data source of all commands: a URL without a password, or a name of connections.toml",
        "",
        example="duckdb:///demo.duckdb",
    )
    model_store: str = _key(
        "folder or URL that keeps the models instead of the data source", "", example="s3://bucket/models"
    )
    threads: int = _key("processor cores that a command uses at most; 0: all", 0, example=2)
    color: bool = _key("colours on a terminal", True)
    format: str = _key("format of rows in the console", "table", *TEXT_FORMATS)
    timing: bool = _key("show the duration of statements", True)
    types: bool = _key("show the types of columns below their names", True)
    pager: str | None = _key(
        'program for results that are taller than the terminal, before the variable PAGER; "" for none',
        None,
        example="less -SRX",
    )
    prompt: str = _key(
        "prompt: \\d database, \\t kind, \\u user, \\h host, \\p port, \\D date, \\R:\\m:\\s time, \\n line, \\_ space",
        "sqlflow> ",
    )
    completion: bool = _key(
        "offer completions while you type, which F2 turns on and off; Tab always does", True
    )
    multi_line: bool = _key(
        "Enter sends the input only if it is complete, which F3 turns on and off; else always", True
    )
    keys: str = _key("key bindings of the prompt, which F4 changes", "emacs", "emacs", "vi")
    history_size: int = _key("number of earlier statements that the prompt offers", 10_000)


DEFAULTS = Config()
KEYS = {field.name: field for field in dataclasses.fields(Config)}


def config_path() -> Path:
    return config_folder() / FILE


def read() -> Config:
    """Read the user's file; without one, all values are defaults. Raises FaultyConfigError."""
    path = config_path()
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return DEFAULTS
    except OSError as error:
        raise FaultyConfigError(f"error: cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise FaultyConfigError(f"error: {path} is not UTF-8 text (byte {error.start})") from None
    try:
        return parse_config(text)
    except SQLFlowError as error:
        raise FaultyConfigError(render(error, text, str(path))) from None


def parse_config(text: str) -> Config:
    """Return the values of a file's text. Raises SQLFlowError with the places of all errors."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = _PLACE.sub("", str(error)).strip()
        raise _error_at(text, _place(text, str(error)), f"no valid TOML: {message}") from None
    errors: list[SQLFlowError] = []
    for name, value in table.items():
        if wrong := _find_error(name, value):
            errors.append(_error(text, name, *wrong))
    raise_all(errors)
    return Config(**table)


def template() -> str:
    """Return a file with all keys in comments."""
    return _HEAD + "".join(f"\n{_comment_field(field)}" for field in KEYS.values())


def _comment_field(field: dataclasses.Field[Any]) -> str:
    about = field.metadata
    choices = f": {', '.join(about['choices'])}" if about["choices"] else ""
    return f"# {about['doc']}{choices}\n# {field.name} = {json.dumps(about['example'])}\n"


def _find_error(name: str, value: object) -> tuple[str, str | None] | None:
    """Return an error of a key and its value, with a hint, or None."""
    if name not in KEYS:
        kind = "section" if isinstance(value, dict) else "key"
        return f"unknown {kind} {name}", did_you_mean(name, KEYS) or "`sqlflow config` lists the keys"
    about = KEYS[name].metadata
    if type(value) is not type(about["example"]):
        return f"{name} must be {_TYPES[type(about['example'])]}", f"{name} = {json.dumps(about['example'])}"
    if about["choices"] and value not in about["choices"]:
        return f"{name} cannot be {value!r}", did_you_mean(str(value), about["choices"], list_up_to=10)
    check = _CHECKS.get(name)
    return check(value) if check else None


def _threads_fault(number: Any) -> tuple[str, str | None] | None:
    return None if number >= 0 else ("threads must be 0 or more", "threads = 2")


def _source_fault(url: Any) -> tuple[str, str | None] | None:
    shown = redacted(url)
    kept = [parse_qsl(address.partition("?")[2]) for address in (shown, url)]
    if shown.partition("?")[0] == url.partition("?")[0] and len(kept[0]) == len(kept[1]):
        return None
    return (
        "source has a password, which does not belong in this file",
        'source = "shop", with [shop] in connections.toml, or the variable SQLFLOW_SOURCE',
    )


def _pager_fault(command: Any) -> tuple[str, str | None] | None:
    try:
        shlex.split(command)
    except ValueError:
        return "a quote in pager is not closed", None
    return None


def _prompt_fault(form: Any) -> tuple[str, str | None] | None:
    wrong = re.search(r"\\.?", ESCAPE.sub("", form))
    hint = "known: \\d \\t \\u \\h \\p \\D \\R \\m \\s \\n \\_ and \\\\ for a backslash, in single quotes"
    return (f"prompt has an unknown escape {wrong[0]}", hint) if wrong else None


def _size_fault(size: Any) -> tuple[str, str | None] | None:
    return None if size > 0 else ("history_size must be above 0", None)


_CHECKS = {
    "threads": _threads_fault,
    "prompt": _prompt_fault,
    "source": _source_fault,
    "pager": _pager_fault,
    "history_size": _size_fault,
}


def _error(text: str, name: str, message: str, hint: str | None) -> SemanticError:
    """Return the error at a key or section."""
    key = rf"^[ \t]*\[?[ \t]*([\"']?{re.escape(name)}[\"']?)(?=[ \t]*[=.\]])"
    match = re.search(key, text, re.MULTILINE)
    return _error_at(text, Span(*match.span(1)) if match else None, message, hint)


def _error_at(text: str, span: Span | None, message: str, hint: str | None = None) -> SemanticError:
    """Return the error at a place; a line that may hold a password is named, not shown."""
    if span is None or not holds_secret((place := locate(text, span)).text):
        return SemanticError(message, span=span, hint=hint)
    return SemanticError(f"{config_path()}, line {place.line}: {message}", hint=hint)


def _place(text: str, message: str) -> Span:
    """Return the place that tomllib's message names."""
    match = _PLACE.search(message)
    if match is None or match[1] is None:
        return Span(len(text), len(text))
    lines = text.splitlines(keepends=True)
    start = sum(map(len, lines[: int(match[1]) - 1])) + int(match[2]) - 1
    return Span(start, start + 1)
