"""Prompt of the console: multi-line input, history and keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application, get_app, run_in_terminal
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import Completer, ThreadedCompleter
from prompt_toolkit.enums import DEFAULT_BUFFER, EditingMode
from prompt_toolkit.filters import completion_is_selected, has_focus, is_searching
from prompt_toolkit.formatted_text import AnyFormattedText
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer

from edl.run.termination import TerminatedError
from sqlflow_edl.console.config import Config
from sqlflow_edl.console.connection import Connection
from sqlflow_edl.console.highlighting import STYLE, ExtendedSqlLexer
from sqlflow_edl.console.history import history
from sqlflow_edl.console.input import is_ready

PROMPT = "sqlflow> "
CONTINUED = "->"


class Prompt:
    """Reader of the user's input. Ctrl-C raises KeyboardInterrupt, Ctrl-D EOFError."""

    def __init__(
        self,
        dialect: Callable[[], str],
        completer: Completer,
        toolbar: Callable[[], AnyFormattedText],
        config: Config,
    ) -> None:
        self._questions: PromptSession[str] = PromptSession()
        self._statements: PromptSession[str] = PromptSession(
            PROMPT,
            multiline=True,
            prompt_continuation=_continued,
            history=history(config.history_size),
            editing_mode=EditingMode.VI if config.keys == "vi" else EditingMode.EMACS,
            auto_suggest=AutoSuggestFromHistory(),
            completer=ThreadedCompleter(completer),
            complete_while_typing=True,
            lexer=PygmentsLexer(ExtendedSqlLexer),
            style=STYLE,
            key_bindings=_keys(dialect),
            bottom_toolbar=toolbar,
        )

    def text(self, connection: Connection, tell_notes: Callable[[], None], default: str = "") -> str:
        """Read a text. The session opens only after the prompt is drawn, because its imports take longer.

        tell_notes: called above the prompt if the opening left notes. Raises UnopenedError if the session
        cannot be opened.
        """

        def open_(app: Application[str]) -> None:
            app.after_render -= open_
            connection.open()

        async def watch() -> None:
            try:
                await asyncio.wrap_future(connection.opened)
            except Exception as error:  # any reason why the session could not be opened
                get_app().exit(exception=error)
                return
            if connection.notes:
                await run_in_terminal(tell_notes)
            get_app().invalidate()

        def begin() -> None:
            if not connection.opened.done() or connection.opened.exception():
                get_app().create_background_task(watch())
                get_app().after_render += open_

        return self._statements.prompt(default=default, pre_run=begin)

    @property
    def typed(self) -> str:
        """Text typed last, sent or not."""
        return self._statements.default_buffer.text

    def agrees(self, question: str) -> bool:
        """Ask for y or yes; any other answer, Ctrl-C and Ctrl-D count as no."""
        try:
            answer = self._questions.prompt(f"{question} (y/N) ")
        except TerminatedError:
            raise
        except (KeyboardInterrupt, EOFError):
            return False
        return answer.strip().casefold() in ("y", "yes")


def _continued(width: int, line: int, wrapped: int) -> str:
    return CONTINUED.rjust(width - 1) + " "


def _keys(dialect: Callable[[], str]) -> KeyBindings:
    """Bind keys: Enter sends a complete text and otherwise begins a line; Esc-Enter always sends."""
    keys = KeyBindings()
    typing = has_focus(DEFAULT_BUFFER) & ~is_searching

    @keys.add("enter", filter=typing & completion_is_selected)
    def _take(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    @keys.add("enter", filter=typing & ~completion_is_selected)
    def _send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_ready(buffer.text, dialect()):
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=False)

    @keys.add("escape", "enter", filter=typing)
    def _send_anyway(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return keys
