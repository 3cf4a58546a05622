"""Keys of the prompt: Enter, which sends complete statements and commands, and the function keys of its modes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from prompt_toolkit.application import get_app, run_in_terminal
from prompt_toolkit.enums import DEFAULT_BUFFER, EditingMode
from prompt_toolkit.filters import (
    completion_is_selected,
    has_focus,
    is_searching,
    vi_mode,
    vi_navigation_mode,
)
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from sqlflow_edl.console.config import Config
from sqlflow_edl.console.help import topic_at
from sqlflow_edl.syntax import is_complete


class Modes:
    """Modes of the prompt, initially as in the configuration file.
    completes: completions are offered while the user types. multi_line: Enter begins a line if the input is not
    complete. keys: bindings of emacs or vi.
    """

    def __init__(self, config: Config) -> None:
        self.completes = config.completion
        self.multi_line = config.multi_line
        self.keys = EditingMode.VI if config.keys == "vi" else EditingMode.EMACS

    def text(self) -> str:
        """Return the modes with their keys, for the toolbar."""
        vi = f"vi ({'normal' if vi_navigation_mode() else 'insert'})"
        keys = vi if self.keys is EditingMode.VI else "emacs"
        completes, multi_line = _format_switch(self.completes), _format_switch(self.multi_line)
        return f"F2 completion {completes}   F3 multi-line {multi_line}   F4 {keys}"


def bindings(dialect: Callable[[], str], modes: Modes, tell_help: Callable[[str], None]) -> KeyBindings:
    """Bind keys: Enter sends a complete text and otherwise begins a line; Esc-Enter always sends.

    tell_help: callback that shows the help on a topic, which may be empty.
    """
    keys = KeyBindings()
    typing = has_focus(DEFAULT_BUFFER) & ~is_searching

    @keys.add("enter", filter=typing & completion_is_selected)
    def _take(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    @keys.add("enter", filter=typing & ~completion_is_selected)
    def _send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        # In vi, Esc only leaves the insert mode: as a part of Esc-Enter it would have to wait for the next key.
        if vi_navigation_mode() or not modes.multi_line or is_ready(buffer.text, dialect()):
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=False)

    @keys.add("escape", "enter", filter=typing & ~vi_mode)
    def _send_anyway(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("f1")
    def _help(event: KeyPressEvent) -> None:
        topic = topic_at(event.current_buffer.document.text_before_cursor)
        run_in_terminal(lambda: tell_help(topic))

    @keys.add("f2")
    def _completion(event: KeyPressEvent) -> None:
        modes.completes = not modes.completes

    @keys.add("f3")
    def _multi_line(event: KeyPressEvent) -> None:
        modes.multi_line = not modes.multi_line

    @keys.add("f4")
    def _editing(event: KeyPressEvent) -> None:
        modes.keys = EditingMode.EMACS if modes.keys is EditingMode.VI else EditingMode.VI
        get_app().editing_mode = modes.keys

    return keys


def _format_switch(value: bool) -> str:
    return "on" if value else "off"


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
