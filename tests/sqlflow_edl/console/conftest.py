"""A console at which a test types: real key strokes into the prompt, a real DuckDB behind it."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from prompt_toolkit.application import application, create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from sqlflow_edl.console.config import DEFAULTS, Config
from sqlflow_edl.console.screen import Screen
from sqlflow_edl.console.shell import Shell
from sqlflow_edl.display.narrator import Narrator
from sqlflow_edl.session.observer import Observer
from sqlflow_edl.session.session import Session

TABLE = "CREATE TABLE flowers AS SELECT i AS size, 'red' AS colour FROM range(3) AS t(i)"


@dataclass
class Console:
    """What came of the keys that were typed."""

    data: str
    words: str


Typed = Callable[..., Console]


def opened(source: str, observer: Observer) -> Session:
    return Session(source, observer=observer)


@pytest.fixture(scope="session", autouse=True)
def bindings_of_keys_are_made_once() -> Iterator[None]:
    """prompt_toolkit makes its hundreds for each prompt, all alike."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(application, "load_key_bindings", functools.cache(application.load_key_bindings))
        yield


@pytest.fixture
def database(tmp_path: Path) -> str:
    """The URL of one with a table `flowers`."""
    url = f"duckdb:///{tmp_path}/flowers.duckdb"
    with Session(url, create=True) as session:
        list(session.run(TABLE))
    return url


@pytest.fixture
def typed(database: str) -> Iterator[Typed]:
    r"""typed(keys): what a console says to them; it is left at their end. Enter is \r, Escape \x1b."""
    with console_at(database) as type_:
        yield type_


@contextmanager
def console_at(database: str) -> Iterator[Typed]:
    """A console over a database, as `typed`."""
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):

        def type_(
            *keys: str,
            source: str = database,
            terminal: type[io.StringIO] = io.StringIO,
            end: str = "/quit\r",
            config: Config = DEFAULTS,
        ) -> Console:
            data, words = terminal(), io.StringIO()
            pipe.send_text("".join(keys) + end)
            screen = Screen(data, Narrator(words))
            screen.apply(config)
            Shell(opened, source, screen, config).run()
            return Console(data.getvalue(), words.getvalue())

        yield type_
