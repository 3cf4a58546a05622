"""`sqlflow fmt`: files in place, standard input, and what --check and --diff say."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main

WRITTEN, LAID_OUT = "SELECT 1 to predict using m;\n", "SELECT 1 TO PREDICT USING m;\n"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SQLFLOW_SOURCE", raising=False)
    path = tmp_path / "p.sql"
    path.write_text(WRITTEN, "utf-8")
    return path


def test_a_file_is_laid_out_once(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fmt", str(file)]) == exit_codes.OK
    assert capsys.readouterr().err == f"{file}: laid out\n"
    assert file.read_text("utf-8") == LAID_OUT
    assert main(["fmt", str(file)]) == exit_codes.OK
    assert capsys.readouterr().err == ""


def test_check_and_diff_write_nothing(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fmt", "--check", str(file)]) == exit_codes.FAILED
    assert capsys.readouterr().out == f"{file}: the layout would change\n"
    assert main(["fmt", "--diff", str(file)]) == exit_codes.OK
    assert capsys.readouterr().out.splitlines()[2:] == [
        "@@ -1 +1 @@",
        f"-{WRITTEN[:-1]}",
        f"+{LAID_OUT[:-1]}",
    ]
    assert file.read_text("utf-8") == WRITTEN
    file.write_text(LAID_OUT, "utf-8")
    assert main(["fmt", "--check", "--diff", str(file)]) == exit_codes.OK


def test_standard_input_goes_to_standard_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "sys.stdin", io.StringIO("# a comment of MySQL\nSELECT `a` FROM t to predict using m")
    )
    assert main(["fmt", "--source", "mysql://nowhere/x"]) == exit_codes.OK
    assert capsys.readouterr().out == "# a comment of MySQL\nSELECT `a` FROM t TO PREDICT USING m\n"


def test_a_faulty_program_stays_as_it_is_and_others_are_laid_out(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faulty = tmp_path / "faulty.sql"
    faulty.write_text("SELECT 1 to predict usin m;\n", "utf-8")
    assert main(["fmt", str(faulty), str(file)]) == exit_codes.FAILED
    assert f"--> {faulty}:1:26" in capsys.readouterr().err
    assert faulty.read_text("utf-8") == "SELECT 1 to predict usin m;\n"
    assert file.read_text("utf-8") == LAID_OUT
