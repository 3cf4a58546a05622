"""Text of an XML document, line by line. Elements may be nested to any depth, as trees are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from xml.sax.saxutils import escape, quoteattr

from edl.errors import SemanticError

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Xml:
    """Document in work. Attributes that are None are left out."""

    def __init__(self) -> None:
        self.lines = ['<?xml version="1.0" encoding="UTF-8"?>']
        self._open: list[str] = []

    def start(self, tag: str, **attributes: object) -> None:
        """Open an element, which `end` closes."""
        self._add(f"<{tag}{_write(attributes)}>")
        self._open.append(tag)

    def end(self) -> None:
        """Close the last open element."""
        tag = self._open.pop()
        self._add(f"</{tag}>")

    @contextmanager
    def element(self, tag: str, **attributes: object) -> Iterator[None]:
        """Provide a context for what is inside an element."""
        self.start(tag, **attributes)
        yield
        self.end()

    def leaf(self, tag: str, text: str = "", **attributes: object) -> None:
        """Add an element with nothing but a text."""
        inside = escape(check_text(text), {"\r": "&#13;"})
        self._add(f"<{tag}{_write(attributes)}>{inside}</{tag}>" if text else f"<{tag}{_write(attributes)}/>")

    def add_lines(self, lines: Iterable[str]) -> None:
        """Add the lines of other elements, inside the open ones."""
        self.lines += (f"{' ' * len(self._open)}{line}" for line in lines)

    @property
    def text(self) -> str:
        return "\n".join([*self.lines, ""])

    def _add(self, line: str) -> None:
        self.lines.append(f"{' ' * min(len(self._open), 40)}{line}")


def check_text(text: str) -> str:
    """Return the text. Raises SemanticError for a control character, which XML cannot have."""
    if wrong := _FORBIDDEN.search(text):
        raise SemanticError(
            f"the text {text!r} has the character {wrong[0]!r}, which XML cannot have",
            hint="train without it: replace it in the SELECT",
        )
    return text


def _write(attributes: dict[str, object]) -> str:
    texts = ((name, _spell(value)) for name, value in attributes.items() if value is not None)
    return "".join(f" {name}={quoteattr(check_text(text))}" for name, text in texts)


def _spell(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
