"""What a text at the prompt is: a command, statements, and whether it is all there."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlflow_edl.syntax import is_complete

VERTICAL = "\\G"  # ends a statement whose rows are shown one below another

_COMMAND = re.compile(r"\s*[/\\](?P<name>[A-Za-z?][\w?]*)\s*(?P<rest>.*?)\s*;?\s*", re.DOTALL)
_AS_WRITTEN = ("system",)  # a semicolon at their end is theirs
_LEAVE = re.compile(r"\s*(?:exit|quit)\s*;?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Called:
    """A command: `/d iris` is d with the argument iris."""

    name: str
    argument: str


def command(text: str) -> Called | None:
    """The command that the text is; None: it is SQL."""
    if _LEAVE.fullmatch(text):
        return Called("quit", "")
    if found := _COMMAND.fullmatch(text):
        name, rest = found["name"], found["rest"]
        return Called(name, text[found.start("rest") :].strip() if name in _AS_WRITTEN else rest)
    return None


def is_ready(text: str, dialect: str) -> bool:
    """Does Enter send the text? When it is empty, a command, or ends its last statement."""
    if not text.strip() or command(text):
        return True
    return is_complete(statements(text)[0], dialect)


def statements(text: str) -> tuple[str, bool]:
    r"""The text as a program, its places kept, and whether its rows are shown vertically (`\G` in place of `;`)."""
    stripped = text.rstrip()
    if not stripped.endswith(VERTICAL):
        return text, False
    return stripped.removesuffix(VERTICAL) + "; ", True
