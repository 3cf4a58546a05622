"""`sqlflow console` as a command: at a real terminal, and where there is none."""

from __future__ import annotations

import fcntl
import io
import os
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sqlflow_edl.cli.main import main
from sqlflow_edl.console.config import DEFAULTS, config_path, parse_config
from sqlflow_edl.session.session import Session

DEADLINE = 90.0  # seconds, of what takes one on an idle machine
SIZE = 40, 120  # rows, columns
CTRL_C, CTRL_D = "\x03", "\x04"
SLOW_QUERY = "SELECT sum(sqrt(a.i * b.i)) AS s FROM range(900000) a(i), range(900000) b(i);"
ROWS = "SELECT i AS a, 2.0 * i AS b FROM range(400) AS t(i)"


class Terminal:
    """A console at a terminal of its own."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int) -> None:
        self.process = process
        self._terminal = terminal
        self._seen = b""

    def types(self, text: str) -> None:
        """At the prompt, once it is there."""
        self.until("sqlflow>")
        self.presses(text)

    def presses(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def until(self, text: str) -> None:
        """Read until the text is shown, and forget all up to it."""
        while text.encode() not in self._seen:
            ready, _, _ = select.select([self._terminal], [], [], DEADLINE)
            assert ready, f"{text!r} is not shown; there is {self._seen.decode(errors='replace')[-2000:]}"
            self._seen += os.read(self._terminal, 65_536)
        self._seen = self._seen.partition(text.encode())[2]


@contextmanager
def console(source: str) -> Iterator[Terminal]:
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
    # The first terminal that the leader of a session opens is where its Ctrl-C comes from.
    opens = 'exec "$@" <"$0" >"$0" 2>&1'
    ran = [sys.executable, "-m", "sqlflow_edl.cli.main"]  # which is the console where there is a data source
    process = subprocess.Popen(
        ["sh", "-c", opens, os.ttyname(theirs), *ran],
        start_new_session=True,
        env=os.environ | {"PROMPT_TOOLKIT_NO_CPR": "1", "TERM": "xterm", "SQLFLOW_SOURCE": source},
    )
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


def test_a_model_is_trained_at_a_terminal_and_what_takes_too_long_is_cancelled(tmp_path: Path) -> None:
    source = f"duckdb:///{tmp_path}/a.duckdb"
    with Session(source, create=True):
        pass
    settings = "train.num_boost_round = %s, learning_rate = 0.000001"
    train = f"{ROWS} TO TRAIN BoostedTreesRegressor WITH {settings} VALIDATE 0 LABEL b INTO %s;\r"
    with console(source) as terminal:
        terminal.until("the settings are in ")
        terminal.types(f"SELECT 1 AS x; {SLOW_QUERY}\r")
        terminal.until("1 row (")
        terminal.presses(CTRL_C)
        terminal.until("cancelled")
        terminal.types(train % (1_000_000, "never"))
        terminal.until("epoch 1")
        terminal.presses(CTRL_C)
        terminal.until("cancelled")
        terminal.types(train % (2, "lines"))
        terminal.until("lines@1 in duckdb:")
        terminal.types("SELECT 40 AS a TO PREDICT USING lines;\r")
        terminal.until("1 row (")
        terminal.types("SHOW MODELS \\G\r")
        terminal.until("BoostedTreesRegressor")
        terminal.until("1 row (")
        terminal.types("CREATE TABLE waggons AS SELECT 1 AS wheels;\r")
        terminal.until("OK (")
        terminal.types("SELECT * FROM wagg")
        terminal.until("waggons")
        terminal.presses("\t\r;\r")
        terminal.until("1 row (")
        terminal.types(CTRL_D)
        assert terminal.process.wait(DEADLINE) == 0
    assert parse_config(config_path().read_text()) == DEFAULTS


def test_where_there_is_no_terminal_standard_input_is_a_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT 1 AS x;\nSELECT 2 AS y"))
    assert main(["console", "--source", "duckdb:", "--format", "csv"]) == 0
    told = capsys.readouterr()
    assert told.out == "x\n1\ny\n2\n"
    assert "Done. OK=2" in told.err


def test_a_format_of_files_is_not_one_of_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    assert main(["console", "--source", "duckdb:", "--format", "parquet"]) == 2
    assert "/once FILE.parquet" in capsys.readouterr().err


def test_without_a_data_source_it_is_a_wrong_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SQLFLOW_SOURCE", raising=False)
    assert main(["console"]) == 2
