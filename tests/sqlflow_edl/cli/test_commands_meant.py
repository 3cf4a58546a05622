"""Statements and files of a command line that are not as they were meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlflow_edl.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["SELECT 1"], 'a statement follows -e: sqlflow run -e "SELECT 1"'),
        (["run", "SELECT 1"], 'a statement follows -e: sqlflow run -e "SELECT 1"'),
        (["train", "ok.csv"], "sqlflow run -e \"SELECT * FROM 'ok.csv' LABEL my_label INTO my_model\""),
        (["predict", "ok.csv"], "sqlflow run -e \"SELECT * FROM 'ok.csv' TO PREDICT USING my_model\""),
        (["run", "-e", "SELECT * FROM 'okk.csv'"], "there is no file okk.csv; did you mean 'ok.csv'?"),
        (["run", "-e", "SELECT * FROM ok.csv"], "the path of a file has quotes: FROM 'ok.csv'"),
        (["run", "-e", "SELECT * FROM “ok.csv”"], "write straight quotes: 'ok.csv'"),
        (["run", "-e", "SELECT * FROM 'parts'"], "parts is a folder; its files are 'parts/*.csv'"),
        (["run", "okk.csv"], "there is no file okk.csv; did you mean ok.csv?"),
    ],
)
def test_what_is_meant_is_said_instead_of_a_missing_source(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SQLFLOW_SOURCE", raising=False)
    (tmp_path / "parts").mkdir()
    for name in ("ok.csv", "parts/one.csv"):
        (tmp_path / name).write_text("a\n1\n")
    try:
        code = main(arguments)
    except SystemExit as exit_:
        code = exit_.code
    assert code == 2
    assert said in capsys.readouterr().err


def test_a_pattern_of_files_is_a_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SQLFLOW_SOURCE", raising=False)
    for name in ("one.csv", "two.csv"):
        (tmp_path / name).write_text("a\n21\n")
    assert main(["run", "-e", "SELECT sum(a) FROM '*.csv'"]) == 0
    assert "42" in capsys.readouterr().out
