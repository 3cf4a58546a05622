"""Kinds of text at the prompt: commands, and complete or incomplete statements."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlflow_edl.syntax import is_complete

VERTICAL = "\\G"  # ends a statement; its rows are shown as records

_COMMAND = re.compile(r"\s*[/\\](?P<name>[A-Za-z?][\w?]*)\s*(?P<rest>.*?)\s*;?\s*", re.DOTALL)
_AS_WRITTEN = ("system",)  # a semicolon at the end belongs to their argument
_WITHOUT_MARK = re.compile(r"\s*(exit|quit|help)\s*;?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Called:
    """Command with its argument: `/d iris` is d with the argument iris."""

    name: str
    argument: str


def command(text: str) -> Called | None:
    """Parse a command; return None for SQL."""
    if match := _WITHOUT_MARK.fullmatch(text):
        return Called("help" if match[1].lower() == "help" else "quit", "")
    if match := _COMMAND.fullmatch(text):
        name, rest = match["name"], match["rest"]
        return Called(name, text[match.start("rest") :].strip() if name in _AS_WRITTEN else rest)
    return None


def is_ready(text: str, dialect: str) -> bool:
    """Return True if Enter should send the text: it is empty, a command, or ends its last statement."""
    if not text.strip() or command(text):
        return True
    return is_complete(statements(text)[0], dialect)


def statements(text: str) -> tuple[str, bool]:
    r"""Split off a final `\G`: return the text as a program, places unchanged, and True for vertical rows."""
    stripped = text.rstrip()
    if not stripped.endswith(VERTICAL):
        return text, False
    return stripped.removesuffix(VERTICAL) + "; ", True
