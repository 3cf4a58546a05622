"""Keys of the prompt: Enter, and the function keys that turn its modes on and off."""

from __future__ import annotations

from collections.abc import Callable

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
from sqlflow_edl.console.input import is_ready


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
