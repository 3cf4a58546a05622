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


def test_blanks_beside_quotes_that_duckdb_keeps_are_said(folder: Path) -> None:
    (folder / "blanks.csv").write_text('id,name\n1, "a"\n2, "b"\n', encoding="utf-8")
    with connect("duckdb:") as source:
        [note] = describe_file_readings(source, "SELECT * FROM 'blanks.csv'", set())
    assert note == (
        "DuckDB keeps the blanks beside quotes of blanks.csv, and these quotes; --source blanks.csv leaves them out"
    )


def test_a_file_that_is_not_there_has_no_note(folder: Path) -> None:
    with connect("duckdb:") as source:
        assert not [*describe_file_readings(source, "SELECT * FROM 'other.csv'", set())]


@pytest.mark.parametrize(
    ("dates", "said"),
    [
        (["1/2/2023", "3/4/2023"], "as day/month/year, so '1/2/2023' is 2023-02-01"),
        (["01/02/23", "02/08/23"], "so '01/02/23' is 2001-02-23"),
        (["1/2/2023 10:00:00", "3/4/2023 11:00:00"], "timestampformat = '%m/%d/%Y %H:%M:%S'"),
        (["1/13/2023", "3/4/2023"], ""),
        (["2/2/2023", "3/3/2023"], ""),
        (["2023-01-02", "2023-03-04"], ""),
    ],
)
def test_a_guessed_order_of_day_and_month_is_said(folder: Path, dates: list[str], said: str) -> None:
    (folder / "days.csv").write_text("day,n\n" + "".join(f"{date},1\n" for date in dates), encoding="utf-8")
    with connect("duckdb:") as source:
        notes = [*describe_file_readings(source, "SELECT * FROM 'days.csv'", set())]
    assert len(notes) == bool(said)
    assert said in "".join(notes)


def test_each_column_of_dates_has_its_note(folder: Path) -> None:
    (folder / "spans.csv").write_text("a,b,c\n1/2/2023,5/6/2023,€5\n3/4/2023,7/8/2023,€6\n", encoding="utf-8")
    with connect("duckdb:") as source:
        notes = [*describe_file_readings(source, "SELECT * FROM 'spans.csv'", set())]
    assert [note.split(" of ")[0] for note in notes[:2]] == ["DuckDB reads a", "DuckDB reads b"]


def test_another_separator_of_ours_is_said(folder: Path) -> None:
    rows = "".join(f"{n},1;{n},2;{n},3\n" for n in range(30))
    (folder / "rents.csv").write_text(f"price;area;rent\n{rows}", encoding="utf-8")
    with connect("duckdb:") as source:
        [note] = describe_file_readings(source, "SELECT * FROM 'rents.csv'", set())
    assert "column3; with --source rents.csv, they are price, area, rent" in note
