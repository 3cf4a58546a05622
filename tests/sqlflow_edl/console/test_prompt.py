"""The prompt: its text, and the keys that change its modes."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application, create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from sqlflow_edl.console.config import parse_config
from sqlflow_edl.console.keys import Modes, bindings
from sqlflow_edl.console.prompt import prompt_text
from tests.sqlflow_edl.console.conftest import Typed

F1, F2, F3, F4 = "\x1bOP", "\x1bOQ", "\x1bOR", "\x1bOS"
AT = datetime(2026, 1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("form", "source", "wanted"),
    [
        ("sqlflow> ", "duckdb:", "sqlflow> "),
        (r"\t \d> ", "duckdb:///data/demo.duckdb", "duckdb demo> "),
        (r"\d>\_", "sqlite::memory:", "memory> "),
        (r"\u@\h:\p/\d ", "mysql://reader:hidden@db.example/shop?ssl=true", "reader@db.example:3306/shop "),
        (r"\d ", "maxcompute://id@host/api?curr_project=shop", "shop "),
        (r"\D \R:\m:\s\n\\d", "duckdb:", "2026-01-02 03:04:05\n\\d"),
        (r"<\d\u>", "no such connection", "<>"),
    ],
)
def test_escapes_of_the_prompt(form: str, source: str, wanted: str) -> None:
    assert prompt_text(form, source, AT) == wanted


def test_the_prompt_is_the_files(typed: Typed, tmp_path: Path) -> None:
    config = parse_config(r"prompt = '\t:\d> '")
    typed(f"/tee {tmp_path}/seen\r", "SELECT 7 AS x;\r", config=config)
    assert "duckdb:flowers> SELECT 7 AS x;" in (tmp_path / "seen").read_text()


@pytest.mark.soak
def test_enter_sends_every_line_without_the_multi_line_mode(typed: Typed) -> None:
    assert typed(F3, "SELECT 7 AS x\r", F3, "SELECT 8\r", "AS y;\r").data.split() == ["x", "7", "y", "8"]


@pytest.mark.soak
def test_f4_changes_between_emacs_and_vi(typed: Typed) -> None:
    console = typed(F4, "SELECT 7 AS x\x1bryA;\r", "SELECT 8 AS x\x1b\r", F4, "SELECT 9\x02z\x08\x05;\r")
    assert console.data.split() == ["y", "7", "x", "8", "9", "9"]


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("", "/watch [SECONDS]"),
        ("SELECT 7 AS x TO predict t.x", "SELECT * FROM iris TO PREDICT"),
        ("WITH ", "train.epoch"),
    ],
)
def test_f1_shows_help_on_what_is_typed_and_keeps_it(typed: Typed, written: str, wanted: str) -> None:
    console = typed(written, F1, "\x15SELECT 8 AS kept;\r")
    assert wanted in console.data
    assert console.data.split()[-2:] == ["kept", "8"]


@pytest.mark.soak
def test_ctrl_z_suspends_the_console_and_keeps_the_input(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    suspended: list[Application[str]] = []
    monkeypatch.setattr(Application, "suspend_to_background", lambda app: suspended.append(app))
    assert typed("SELECT 7 AS", "\x1a", " x;\r").data.split() == ["x", "7"]
    assert len(suspended) == 1


def test_the_modes_are_shown_with_their_keys() -> None:
    modes = Modes(parse_config(""))
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        session: PromptSession[str] = PromptSession(key_bindings=bindings(lambda: "duckdb", modes, print))
        assert modes.text() == "F2 completion on   F3 multi-line on   F4 emacs"
        pipe.send_text(f"{F2}{F3}{F4}\r")
        session.prompt()
    assert modes.text() == "F2 completion off   F3 multi-line off   F4 vi (insert)"
