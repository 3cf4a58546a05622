"""Capabilities of an output stream: terminal or not, width, styles and characters.

Colours are for terminals, unless NO_COLOR is set or TERM is dumb; FORCE_COLOR shows them everywhere else, too.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from edl.cli.streams import discard_writes

if TYPE_CHECKING:
    from rich.console import Console

UNBOUNDED = 10_000  # width and height of a stream that is not a terminal
STYLES = {  # codes of ANSI terminals
    "faint": "2",
    "ok": "32",
    "error": "1;31",
    "warning": "33",
}

_BLOCKS = "▁█"
_IN_ASCII = str.maketrans(dict(zip("▁▂▃▄▅▆▇█━╌…▏▎▍▌▋▊▉", [*"_.,-=+*#=-", "...", *[""] * 7], strict=True)))
_CARET = re.compile(r"^( +\| *)(\^+)$", re.MULTILINE)
_WORD = re.compile(r"^error:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Capabilities of an output stream. width: cells of a line. blocks: block characters are shown. height: lines."""

    width: int = UNBOUNDED
    is_terminal: bool = False
    blocks: bool = True
    height: int = UNBOUNDED


def capabilities(out: IO[str]) -> Capabilities:
    """Return what the stream can show."""
    is_terminal = out.isatty()
    columns, lines = shutil.get_terminal_size() if is_terminal else (UNBOUNDED, UNBOUNDED)
    return Capabilities(columns, is_terminal, can_show(out, _BLOCKS), lines)


def is_smart(out: IO[str]) -> bool:
    """Return True for a terminal that rewrites lines and shows styles."""
    return out.isatty() and os.environ.get("TERM") != "dumb"


def has_colours(out: IO[str]) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or is_smart(out)


def can_show(out: IO[str], text: str) -> bool:
    """Return True if the stream's encoding has all characters of the text."""
    try:
        text.encode(getattr(out, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def shown_text(text: str, out: IO[str]) -> str:
    """Replace block and line characters by ASCII if the stream's encoding lacks them."""
    return text if can_show(out, text) else in_ascii(text)


def in_ascii(text: str) -> str:
    return text.translate(_IN_ASCII)


def paint(text: str, style: str) -> str:
    """Paint the text in one of `STYLES`."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m"


def painted_error(text: str) -> str:
    """Paint the first word of a rendered error, and the carets under its place."""
    text = _WORD.sub(paint("error:", "error"), text)
    return _CARET.sub(lambda match: match[1] + paint(match[2], "error"), text)


def shown_error(text: str, out: IO[str]) -> str:
    """Return a rendered error as the stream shows it."""
    return painted_error(text) if has_colours(out) else text


@contextmanager
def outlasting_reader(out: IO[str], lost: type[OSError] = BrokenPipeError) -> Iterator[None]:
    """End the block if the reader of the stream has exited, as `head` does; all later writes go nowhere.

    lost: errors that have the same effect.
    """
    try:
        yield
    except lost:
        discard_writes(out)


def console(out: IO[str]) -> Console:
    """Make Rich's console for a stream: as wide as the terminal, or without limit and styles."""
    from rich.console import Console as RichConsole

    class Console(RichConsole):
        def on_broken_pipe(self) -> None:
            raise  # Rich calls this while it handles the BrokenPipeError, and would exit

    if out.isatty():
        width, height = shutil.get_terminal_size()  # Rich takes a dumb terminal to have 80 columns
        return Console(file=out, width=width, height=height, highlight=False, force_jupyter=False)
    # a Jupyter kernel sets FORCE_COLOR, and Rich would display instead of write
    return Console(file=out, width=UNBOUNDED, highlight=False, force_jupyter=False, force_terminal=False)
