"""`sqlflow lint`: what is found with and without a data source, and its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlflow_edl.cli.main import main
from sqlflow_edl.session.session import Session

PROGRAM = """\
SELECT 1;
SELECT x, y FROM t TO TRAIN DNNRegressor WITH train.epochs = 0 LABEL y INTO m;
SELECT x FROM t TO PREDICT;
SELECT x, y FROM t TO TRAIN DNNRegressor LABEL z INTO n;
SELECT x, y FROM t TO EVALUATE WITH evaluate.predicted = x LABEL y;
SELECT x, y FROM t TO RUN clean.py INTO a, A;
SELECT x, y FROM t TO TRAIN DNNRegressor COLUMN BUKET(x, 3) LABEL y USING m INTO n;
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("SQLFLOW_SOURCE", raising=False)
    (tmp_path / "p.sql").write_text(PROGRAM, encoding="utf-8")
    return str(tmp_path / "p.sql")


def found(capsys: pytest.CaptureFixture[str]) -> list[tuple[int, int, str, str]]:
    rows = json.loads(capsys.readouterr().out)
    return [(row["line"], row["column"], row["severity"], row["message"]) for row in rows]


def test_errors_that_need_no_database_are_found_without_one(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lint", file, "--json"]) == 1
    rows = found(capsys)
    assert rows[0] == (2, 62, "error", "train.epoch = 0 is out of range")
    assert [row[0] for row in rows] == [2, 3, 5, 6, 7]


@pytest.mark.soak
def test_a_data_source_adds_columns_and_models(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"duckdb:///{tmp_path}/t.duckdb"
    with Session(url, create=True) as session:
        list(session.run("CREATE TABLE t (x DOUBLE, y DOUBLE)"))
    assert main(["lint", file, "--json", "--source", url]) == 1
    assert (4, 48, "error", "unknown column z") in found(capsys)


def test_a_finding_is_a_line_with_its_place(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["lint", file])
    shown = capsys.readouterr()
    assert shown.out.startswith(f"{file}:2:62: error: train.epoch = 0 is out of range")
    assert shown.err == "errors: 5, warnings: 0\n"


def test_a_valid_program_has_no_findings(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(file).write_text("SELECT x, y FROM t TO TRAIN DNNRegressor LABEL y INTO m;", encoding="utf-8")
    assert main(["lint", file]) == 0
    assert capsys.readouterr().out == ""


SCHEMA = "CREATE TABLE t (x DOUBLE, y DOUBLE);\nCREATE VIEW v AS SELECT x FROM t;\n"


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_a_schema_file_stands_for_the_tables_of_a_database(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], dialect: str
) -> None:
    (tmp_path / "tables.sql").write_text(SCHEMA)
    (tmp_path / "q.sql").write_text("SELECT z FROM v TO TRAIN DNNRegressor LABEL z INTO o")
    schema = ("--schema", str(tmp_path / "tables.sql"), "--dialect", dialect)
    assert main(["lint", file, str(tmp_path / "q.sql"), *schema, "--json"]) == 1
    rows = found(capsys)
    assert (4, 48) in [row[:2] for row in rows], "the label z is no column"
    assert "z" in rows[-1][3]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (
            SCHEMA + "DROP TABLE t;",
            "tables.sql:3:1: error: a schema file has only CREATE TABLE, CREATE VIEW and INSERT",
        ),
        ("COPY (SELECT 1) TO 'x.csv'", "tables.sql:1:1: error: a schema file has only CREATE TABLE"),
        (
            "SELECT 1 AS y TO TRAIN DNNRegressor LABEL y INTO m",
            "tables.sql:1:1: error: a schema file has only",
        ),
        ("CREATE TABLE a (x NUMBR)", "tables.sql:1:19: error: "),
    ],
)
def test_what_is_wrong_with_a_schema_file_has_its_place(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], schema: str, said: str
) -> None:
    (tmp_path / "tables.sql").write_text(schema)
    assert main(["lint", file, "--schema", str(tmp_path / "tables.sql")]) == 1
    assert said in capsys.readouterr().out
    assert not list(tmp_path.rglob("x.csv"))


def test_a_schema_of_a_server_needs_the_server(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tables.sql").write_text(SCHEMA)
    assert main(["lint", file, "--schema", str(tmp_path / "tables.sql"), "--dialect", "mysql"]) == 1
    assert "does not speak mysql" in capsys.readouterr().err


def test_variables_are_filled_in_and_what_is_wrong_with_them_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "program.sql"
    path.write_text("SELECT 1 AS x TO TRAIN {{ model }} LABEL x INTO m")
    assert main(["lint", str(path), "--var", "model=LinearRegressor"]) == 0
    assert main(["lint", str(path), "--var", "modell=LinearRegressor"]) == 1
    assert f"{path}:1:27: error: the variable model is not given" in capsys.readouterr().out
