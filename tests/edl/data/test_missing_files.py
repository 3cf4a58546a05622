"""Tests for the hints of files that are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl.data.missing_files import missing_file_hint


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("ok.csv", "parts/one.csv", "parts/two.csv", "parts/read.me", "notes/read.me"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a\n1\n")


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("okk.csv", "did you mean 'ok.csv'?"),
        ("OK.CSV", "did you mean 'ok.csv'?"),
        ("part/one.csv", "did you mean 'parts/one.csv'?"),
        ("elsewhere/ok.csv", "did you mean 'ok.csv'?"),
        (r"C:\data\ok.csv", "did you mean 'ok.csv'?"),
        (r"parts\one.csv", "did you mean 'parts/one.csv'?"),
        ("parts", "parts is a folder; its files are 'parts/*.csv'"),
        ("notes", "notes is a folder, and has no files of rows"),
        ("“ok.csv”", "write straight quotes: 'ok.csv'"),
        ("ok.csv?delim=;", "options belong to the source: --source 'ok.csv?delim=;', and FROM 'ok.csv'"),
        (
            r"D:\sales.xlsx",
            "this is a path of Windows; write slashes, and the folder where this machine has the file",
        ),
        ("nothing_like_it.parquet", None),
    ],
)
def test_the_hint_names_the_file_that_is_meant(path: str, hint: str | None) -> None:
    assert missing_file_hint(path, quote="'") == hint


def test_a_path_of_a_command_has_no_quotes() -> None:
    assert missing_file_hint("okk.csv") == "did you mean ok.csv?"
