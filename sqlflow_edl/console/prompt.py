"""Prompt of the console: multi-line input, highlighting, keys, and a history without passwords."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import islice
from pathlib import Path, PurePath

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application, get_app, run_in_terminal
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import Completer, ThreadedCompleter
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.styles import BaseStyle, Style, merge_styles, style_from_pygments_cls
from pygments.lexer import inherit
from pygments.lexers.sql import SqlLexer
from pygments.styles import get_style_by_name
from pygments.token import Keyword

from edl.data.url import SourceURL, parse
from edl.errors import SQLFlowError
from edl.jobs.job_folder import state_folder
from edl.jobs.termination import TerminatedError
from sqlflow_edl.console.config import ESCAPE, Config
from sqlflow_edl.console.connection import ConsoleConnection
from sqlflow_edl.console.keys import Modes, bindings
from sqlflow_edl.console.secrets import holds_secret
from sqlflow_edl.syntax.keywords import CLAUSES
from sqlflow_edl.syntax.split import VERBS

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


HISTORY_FILE = "history"


class KeptHistory(FileHistory):
    """History file that only the user can read. A text with a secret stays in memory only.

    size: number of texts to offer, the latest ones.
    """

    def __init__(self, path: Path, size: int) -> None:
        super().__init__(path)
        self._size = size

    def load_history_strings(self) -> Iterable[str]:
        return islice(super().load_history_strings(), self._size)

    def store_string(self, string: str) -> None:
        if not holds_secret(string):
            super().store_string(string)


def history(size: int) -> History:
    """Open the history of the state folder, or one in memory if that folder is not writable."""
    path = state_folder() / HISTORY_FILE
    try:
        _prepare(path)
    except OSError:
        return InMemoryHistory()
    return KeptHistory(path, size)


def _prepare(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    path.chmod(0o600)


# beside the words of SQL
EXTENDED = (*VERBS, *sorted(CLAUSES), "APPEND", "TO", "MODEL", "MODELS", "SHOW", "DESCRIBE")


class ExtendedSqlLexer(SqlLexer):
    """SQL lexer with more keywords. It ignores context, as SqlLexer does."""

    tokens = {  # noqa: RUF012 - read by Pygments
        "root": [(rf"(?i)\b(?:{'|'.join(EXTENDED)})\b", Keyword), inherit]
    }


# The terminal's own colours, which suit its background, in place of fixed ones that are dim on a dark one.
_COLOURS = {
    "bottom-toolbar": "noreverse",
    "pygments.keyword": "bold ansigreen",
    "pygments.name.builtin": "ansigreen",
    "pygments.operator": "nobold fg:default",
    "pygments.literal.number": "fg:default",
    "pygments.literal.string": "ansired",
    "pygments.comment": "italic ansicyan",
}

STYLE: BaseStyle = merge_styles(
    [
        style_from_pygments_cls(get_style_by_name("default")),
        Style.from_dict(_COLOURS),
    ]
)
