"""`sqlflow retry`: a program is continued after its failure."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from edl.jobs.job_folder import state_folder
from sqlflow_edl.cli.main import main
from sqlflow_edl.cli.program.record import FILE, RunRecord
from tests.sqlflow_edl.cli.test_run import lines

PROGRAM = "CREATE TABLE a AS SELECT 1 AS x; SELECT y FROM a; SELECT 3 AS z"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that has failed in its second statement."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SQLFLOW_SOURCE", "duckdb:///a.duckdb")
    path = tmp_path / "program.sql"
    path.write_text(PROGRAM)
    assert main(["run", "--create", "program.sql"]) == 1
    return path


def test_what_has_succeeded_does_not_run_again(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-e", "SELECT 'a look at something else'"]) == 0
    program.write_text(PROGRAM.replace("y", "x"))
    capsys.readouterr()
    assert main(["retry"]) == 0
    assert [line[:12] for line in lines(capsys) if "START" in line] == ["2 of 3 START", "3 of 3 START"]
    assert main(["retry"]) == 1
    assert "no failed program is recorded" in capsys.readouterr().err


def test_a_program_that_has_changed_is_not_continued(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program.write_text(PROGRAM.replace("1 AS x", "2 AS x"))
    assert main(["retry"]) == 1
    assert "statement 1 (CREATE TABLE a) has changed" in capsys.readouterr().err


@pytest.mark.soak
def test_a_program_with_settings_of_its_connection_is_not_continued(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program.write_text("BEGIN; CREATE TABLE b AS SELECT 1 AS x; SELECT y FROM b; COMMIT")
    assert main(["run", "program.sql"]) == 1
    assert main(["retry"]) == 1
    assert "statement 1 (BEGIN) changes its connection" in capsys.readouterr().err


@pytest.mark.usefixtures("program")
def test_a_retry_is_for_the_same_folder_and_the_same_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SQLFLOW_SOURCE", "duckdb:///b.duckdb")
    assert main(["retry"]) == 1
    assert "set SQLFLOW_SOURCE to duckdb:///a.duckdb" in capsys.readouterr().err
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert main(["retry"]) == 1
    assert f"cd {tmp_path}" in capsys.readouterr().err


@pytest.mark.usefixtures("program")
def test_a_password_is_not_recorded() -> None:
    before = (state_folder() / FILE).read_bytes()
    assert main(["-e", "SELECT 1; SELECT nope AS password"]) == 1
    assert (state_folder() / FILE).read_bytes() == before


@pytest.mark.soak
def test_a_retry_has_the_dates_of_the_program_that_failed(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program.write_text("SELECT 1 AS x; SELECT {{ day }} AS day FROM a WHERE y = 1")
    assert main(["run", "program.sql", "--var", "day=${yyyyMMdd -1d}"]) == 1
    path = state_folder() / FILE
    record = msgspec.json.decode(path.read_bytes(), type=RunRecord)
    earlier = datetime.now().astimezone() - timedelta(days=9)
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(record, at=earlier)))
    program.write_text("SELECT 1 AS x; SELECT {{ day }} AS day FROM a")
    capsys.readouterr()
    assert main(["retry"]) == 0
    assert capsys.readouterr().out.split() == ["day", f"{earlier - timedelta(days=1):%Y%m%d}"]


@pytest.mark.usefixtures("program")
def test_a_single_statement_that_fails_does_not_take_the_place_of_a_program() -> None:
    before = (state_folder() / FILE).read_bytes()
    assert main(["-e", "SELECT nope"]) == 1
    assert (state_folder() / FILE).read_bytes() == before
