"""Statements, commands, cells and lines of the console that cases have, run in this process, and their errors."""

from __future__ import annotations

import io
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from edl.errors import ErrorList, SQLFlowError
from sqlflow_edl.session.session import Session
from tests.hints.cases import CELL, COMMAND, LINE, Case, Typed

_HINT = re.compile(r"(?m)^(?: *= |hint: )(?P<lines>.+(?:\n {4,}\S.*)*)|; (?P<rest>.+)$")
_GOES_ON = " || true"
DATABASE = "{URL}"
_VARIABLE = re.compile(r"([A-Z_]+)=(.*)")


@dataclass
class Problem:
    """Error of what was typed. hint: one of its text, or empty."""

    message: str
    hint: str


def left(case: Case, found: list[Problem], after: list[Problem]) -> list[Problem]:
    """Errors after the advice but those that come next."""
    again = {error.message for error in found}
    return [
        error
        for error in after
        if error.message in again or not case.then or not re.search(case.then, error.message)
    ]


def problems(case: Case, typed: Typed, session: Session, folder: Path) -> list[Problem]:
    """Errors of a source and a statement, or of what is typed elsewhere, in a folder with the files of the case."""
    source, text, files = typed
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        if case.kind:
            url = "duckdb:" if case.dialect == "duckdb" else session.source.url
            return [*_problems_of(text.replace(DATABASE, url), case, url, patch)]
        try:
            with ExitStack() as opened:
                if source:
                    session = opened.enter_context(Session(source))
                _run(case, session, text)
        except ErrorList as error:
            return [Problem(each.message, each.hint or "") for each in error.errors]
        except SQLFlowError as error:
            return [Problem(error.message, error.hint or "")]
        return []


def _run(case: Case, session: Session, statement: str) -> None:
    for each in session.parse(case.first) if case.first else ():
        for _ in session.execute(each).to_arrow().to_batches():
            pass
    if case.runs or not any(each.trains for each in session.parse(statement)):
        for result in session.run(statement):
            result.to_arrow()
    else:
        session.compile(statement)


def _problems_of(text: str, case: Case, url: str, patch: pytest.MonkeyPatch) -> Iterator[Problem]:
    """Errors of what is typed elsewhere: its words, one for each hint in them."""
    lines = [line.removeprefix(case.kind) for line in text.splitlines()]
    words, failed = _typed[case.kind](lines, url, patch)
    hints = [
        " ".join(line.strip() for line in (match["lines"] or match["rest"]).splitlines())
        for match in _HINT.finditer(words)
    ]
    if failed:
        yield from (Problem(words, hint) for hint in hints or [""])


def _commands(lines: list[str], url: str, patch: pytest.MonkeyPatch) -> tuple[str, bool]:
    """Words and failure of the first command that fails without `|| true` behind it, or of the last."""
    from edl.cli.main import main as edl
    from sqlflow_edl.cli.main import main as sqlflow

    said, code = "", 0
    for line in lines:
        words = _without_variables(shlex.split(line.removesuffix(_GOES_ON)), patch)
        with _captured() as output:
            try:
                code = {"edl": edl, "sqlflow": sqlflow}[words[0]](words[1:])
            except SystemExit as exit_:
                code = exit_.code if isinstance(exit_.code, int) else 1
        said = output.getvalue()
        if code and not line.endswith(_GOES_ON):
            break
    return said, code != 0


def _without_variables(words: list[str], patch: pytest.MonkeyPatch) -> list[str]:
    """Set the variables of the environment that stand first; return the other words."""
    while words and (match := _VARIABLE.fullmatch(words[0])):
        patch.setenv(match[1], match[2])
        words = words[1:]
    return words


@contextmanager
def _captured() -> Iterator[io.StringIO]:
    """Text of standard error; standard output is left out."""
    words = io.StringIO()
    with Path(os.devnull).open("w") as nothing, redirect_stdout(nothing), redirect_stderr(words):
        yield words


def _cells(lines: list[str], url: str, patch: pytest.MonkeyPatch) -> tuple[str, bool]:
    from tests.sqlflow_edl.extensions.notebook.conftest import Notebook, opened_shell

    with opened_shell(Path.cwd(), patch) as shell:
        cell = Notebook(shell)("\n".join(lines))
        return cell.printed, cell.error is not None


def _lines(lines: list[str], url: str, patch: pytest.MonkeyPatch) -> tuple[str, bool]:
    from tests.sqlflow_edl.console.conftest import console_at

    patch.setenv("XDG_STATE_HOME", str(Path.cwd()))
    with console_at(url) as typed:
        words = typed(*(f"{line}\r" for line in lines if _without_variables([line], patch))).words
    return words, "error: " in words


_typed = {COMMAND: _commands, CELL: _cells, LINE: _lines}
