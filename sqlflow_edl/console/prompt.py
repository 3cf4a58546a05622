"""Prompt of the console: multi-line input, history and keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from pathlib import PurePath

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application, get_app, run_in_terminal
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import Completer, ThreadedCompleter
from prompt_toolkit.filters import Condition
from prompt_toolkit.lexers import PygmentsLexer

from edl.data.url import SourceURL, parse
from edl.errors import SQLFlowError
from edl.jobs.termination import TerminatedError
from sqlflow_edl.console.config import ESCAPE, Config
from sqlflow_edl.console.connection import ConsoleConnection
from sqlflow_edl.console.highlighting import STYLE, ExtendedSqlLexer
from sqlflow_edl.console.history import history
from sqlflow_edl.console.keys import Modes, bindings

CONTINUED = "->"


class Prompt:
    """Reader of the user's input. Ctrl-C raises KeyboardInterrupt, Ctrl-D EOFError."""

    def __init__(
        self,
        dialect: Callable[[], str],
        completer: Completer,
        toolbar: Callable[[], str],
        source: Callable[[], str],
        config: Config,
        tell_help: Callable[[str], None],
    ) -> None:
        self._form = config.prompt
        self._source = source
        self._time = datetime.now()
        self._modes = Modes(config)
        self._statements: PromptSession[str] = PromptSession(
            self.get_text,
            multiline=True,
            enable_suspend=True,
            prompt_continuation=_continuation_prompt,
            history=history(config.history_size),
            editing_mode=self._modes.keys,
            auto_suggest=AutoSuggestFromHistory(),
            completer=ThreadedCompleter(completer),
            complete_while_typing=Condition(lambda: self._modes.completes),
            lexer=PygmentsLexer(ExtendedSqlLexer),
            style=STYLE,
            key_bindings=bindings(dialect, self._modes, tell_help),
            bottom_toolbar=lambda: f"{toolbar()}   {self._modes.text()}",
        )

    def text(self, connection: ConsoleConnection, tell_notes: Callable[[], None], default: str = "") -> str:
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

        self._time = datetime.now()
        return self._statements.prompt(default=default, pre_run=begin)

    def get_text(self) -> str:
        """Return the text of the prompt."""
        return prompt_text(self._form, self._source(), self._time)

    @property
    def typed_text(self) -> str:
        """Text typed last, sent or not."""
        return self._statements.default_buffer.text

    def agrees(self, question: str) -> bool:
        """Ask for y or yes; any other answer, Ctrl-C and Ctrl-D count as no."""
        try:
            answer = PromptSession[str]().prompt(f"{question} (y/N) ")
        except TerminatedError:
            raise
        except (KeyboardInterrupt, EOFError):
            return False
        return answer.strip().casefold() in ("y", "yes")


def _continuation_prompt(width: int, line: int, wrapped: int) -> str:
    return CONTINUED.rjust(width - 1) + " "


def prompt_text(form: str, source: str, now: datetime) -> str:
    """Return the prompt of a form with escapes, such as `\\d> `.

    source: URL of the data source. now: time of the prompt. What the URL does not have is empty.
    """
    values = _values(source) | {
        "D": f"{now:%Y-%m-%d}",
        **{letter: f"{now:{code}}" for letter, code in (("R", "%H"), ("m", "%M"), ("s", "%S"))},
        "n": "\n",
        "_": " ",
        "\\": "\\",
    }
    return ESCAPE.sub(lambda match: values[match[1]], form)


def _values(source: str) -> dict[str, str]:
    """Return kind, user, host, port and database of a URL."""
    try:
        url = parse(source)
    except SQLFlowError:
        return dict.fromkeys("tuhpd", "")
    if isinstance(url, SourceURL):
        database = "memory" if url.in_memory else PurePath(url.location).stem
        return {"t": url.scheme, "u": "", "h": "", "p": "", "d": database}
    port = "" if url.port is None else str(url.port)
    database = dict(url.options).get("curr_project", url.path)  # MaxCompute
    return {"t": url.scheme, "u": url.user, "h": url.host, "p": port, "d": database}
