"""`sqlflow serve`: command lines that are refused before anything is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlflow_edl.cli.main import main
from sqlflow_edl.cli.models import listening


def test_a_server_for_others_needs_a_token(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--source", "duckdb:///x.duckdb", "--host", "0.0.0.0"]) == 1  # noqa: S104
    error = capsys.readouterr().err
    assert "0.0.0.0 can be reached from other machines, so requests need a token" in error
    assert "set SQLFLOW_SERVE_TOKEN, or name a file with --token-file" in error


@pytest.mark.parametrize("written", ["", "two words", "å"])
def test_a_file_without_a_token_is_refused(
    written: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "token"
    file.write_text(written)
    assert main(["serve", "--source", "duckdb:///x.duckdb", "--token-file", str(file)]) == 1
    assert f"{file} holds no token" in capsys.readouterr().err


def test_a_missing_package_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(listening, "find_spec", lambda name: None)
    assert main(["serve", "--source", "duckdb:///x.duckdb"]) == 1
    assert "starlette is not installed" in (error := capsys.readouterr().err)
    assert " install 'httptools>=0.6' 'starlette>=0.40'" in error


def test_a_taken_port_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    from sqlflow_edl.extensions.serving.server import listen

    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--source", "duckdb:///x.duckdb", "--port", str(port)]) == 1
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in capsys.readouterr().err
