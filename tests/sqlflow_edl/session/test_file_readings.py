"""Notes on files of text that DuckDB reads by its own rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl.data import connect
from sqlflow_edl.session.advice.file_readings import describe_file_readings

ROWS = "id;amount;share\n" + "".join(f"{number};€1.{number},50;{number},5 %\n" for number in range(100, 130))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "money.csv").write_text(ROWS, encoding="utf-8")
    (tmp_path / "plain.csv").write_text("id,name\n1,a\n2,b\n", encoding="utf-8")
    return tmp_path


def test_columns_that_stay_texts_in_duckdb_are_said(folder: Path) -> None:
    with connect("duckdb:") as source:
        described = set[str]()
        query = "SELECT * FROM 'money.csv' JOIN 'plain.csv' USING (id)"
        [note] = describe_file_readings(source, query, described)
        assert not [*describe_file_readings(source, query, described)], "each file is read once"
    assert "amount, share are texts; with --source money.csv" in note


def test_a_source_of_files_reads_them_by_our_rules(folder: Path) -> None:
    with connect("money.csv") as source:
        assert not [*describe_file_readings(source, "SELECT * FROM 'money.csv'", set())]
    assert sorted(path.name for path in folder.iterdir()) == ["money.csv", "plain.csv"]


def test_a_file_that_is_not_there_has_no_note(folder: Path) -> None:
    with connect("duckdb:") as source:
        assert not [*describe_file_readings(source, "SELECT * FROM 'other.csv'", set())]
