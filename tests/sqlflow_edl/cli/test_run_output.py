"""`sqlflow run` for machines: objects of JSON, Parquet, and terminals without colours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from sqlflow_edl.cli.main import main
from sqlflow_edl.cli.program.run_options import complete_arguments
from sqlflow_edl.reports.result import Result
from sqlflow_edl.session.session import Session
from sqlflow_edl.syntax import Statement


@pytest.fixture(autouse=True)
def source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLFLOW_SOURCE", "duckdb:")


def objects(text: str) -> list[dict[str, Any]]:
    """The objects, without their durations."""
    found = [json.loads(line) for line in text.splitlines()]
    assert all(each.pop("seconds") >= 0 for each in found)
    return found


@pytest.mark.soak
def test_each_statement_is_an_object_on_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    program = "SELECT 1 AS a, 'ü' AS b; CREATE TABLE t AS SELECT 1 AS x;\nSELECT nope FROM t; SELECT 3"
    assert main(["--json", "-e", program]) == 1
    rows, made, failed, skipped = objects(capsys.readouterr().out)
    assert rows == {
        "statement": 1,
        "kind": "sql",
        "title": "SELECT",
        "columns": [{"name": "a", "type": "int32"}, {"name": "b", "type": "string"}],
        "rows": [{"a": 1, "b": "ü"}],
        "row_count": 1,
        "outcome": "ok",
    }
    assert made == {
        "statement": 2,
        "kind": "sql",
        "title": "CREATE TABLE t",
        "outcome": "ok",
        "message": "OK",
    }
    [error] = failed.pop("errors")
    assert failed == {"statement": 3, "kind": "sql", "title": "SELECT", "outcome": "error"}
    assert (error["code"], error["line"], error["column"], error["width"]) == ("source", 2, 8, 4)
    assert error["hint"] == "known: x"
    assert (skipped["outcome"], skipped["reason"]) == ("skipped", "statement 3 failed")


def test_an_interrupted_run_has_an_object_for_each_statement(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(session: Session, statement: Statement) -> Result:
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "execute", interrupted)
    assert main(["--json", "-e", "SELECT 1; SELECT 2; SELECT 3"]) == 130
    found = objects(capsys.readouterr().out)
    assert [each["outcome"] for each in found] == ["cancelled", "skipped", "skipped"]
    assert found[1]["reason"] == "the run was interrupted"


@pytest.mark.soak
def test_columns_of_one_name_are_all_in_the_objects(capsys: pytest.CaptureFixture[str]) -> None:
    program = "SELECT 1 AS a, 2 AS a_1, 3 AS a, 4 AS a"
    assert main(["--json", "-e", program]) == 0
    [found] = objects(capsys.readouterr().out)
    assert found["rows"] == [{"a": 1, "a_1": 2, "a_2": 3, "a_3": 4}]
    assert [column["name"] for column in found["columns"]] == ["a", "a_1", "a_2", "a_3"]
    assert main(["--format", "jsonl", "-e", program]) == 0
    assert json.loads(capsys.readouterr().out) == {"a": 1, "a_1": 2, "a_2": 3, "a_3": 4}


def test_errors_found_before_anything_runs_are_objects_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.sql"
    file.write_text("SELECT 1 AS x TO TRAIN DNNRegresor LABEL z INTO m; SELECT 1; SELECT 2 TO TRAIN;")
    assert main(["run", "--json", "-f", str(file)]) == 1
    wrong, fine, unread = objects(capsys.readouterr().out)
    assert [each["hint"] for each in wrong["errors"]][:1] == ["did you mean DNNRegressor?"]
    assert wrong["errors"][0]["file"] == str(file)
    assert (fine["outcome"], fine["reason"]) == ("skipped", "other statements have errors")
    assert unread["errors"][0]["code"] == "syntax"
    assert main(["run", "--json", "--source", f"duckdb:///{tmp_path}/no.db", "-e", "SELECT 1"]) == 1
    [alone] = objects(capsys.readouterr().out)
    assert "there is no database file" in alone["errors"][0]["message"]


def test_an_object_is_whole_where_reading_its_rows_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "objects"
    rows = "SELECT CASE WHEN x > 200000 THEN error('no') ELSE '' END AS y FROM range(300000) t(x)"
    assert main(["run", "--json", "-o", str(file), "-e", rows]) == 1
    [found] = objects(file.read_text())
    assert (found["outcome"], "row_count" in found) == ("error", False)
    assert main(["run", "--json", "--format", "csv", "-e", rows]) == 2
    assert "leave --format out" in capsys.readouterr().err


def test_rows_go_to_a_parquet_file_with_their_types(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rows.parquet"
    query = "SELECT 1 AS a, [0.5::FLOAT, NULL] AS b, DATE '2026-11-01' AS c, NULL::INT AS d"
    assert main(["-o", str(file), "-e", f"CREATE TABLE t AS {query}; FROM t"]) == 0
    found = parquet.read_table(file)
    assert found.to_pylist()[0]["b"] == [0.5, None]
    assert list(found.schema.types) == [pa.int32(), pa.list_(pa.float32()), pa.date32(), pa.int32()]
    assert main(["-o", str(file), "-e", "SELECT 2 AS a; SELECT 3 AS a"]) == 1
    told = capsys.readouterr().err
    assert "a Parquet file holds one result set" in told
    assert parquet.read_table(file).equals(found)
    assert main(["-o", str(file), "-e", "SELECT INTERVAL 3 DAY AS a, DATE 'infinity' AS b"]) == 0
    assert "b is text: it has values that are no date" in capsys.readouterr().err
    assert parquet.read_table(file).to_pylist() == [{"a": "3 days", "b": "infinity"}]
    assert main(["--format", "parquet", "-e", "SELECT 2 AS a"]) == 2
    assert "-o FILE.parquet" in capsys.readouterr().err


def test_no_color_is_for_this_command_and_what_it_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "")
    for options, coloured in (((), True), (("--no-color",), False)):
        assert main([*options, "-e", "SELECT nope"]) == 1
        assert ("\x1b" in capsys.readouterr().err) is coloured


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["-e", "SELECT 1"], ["run", "-e", "SELECT 1"]),
        (["-eSELECT 1"], ["run", "-eSELECT 1"]),
        (["--source", "duckdb:", "--file=a.sql"], ["run", "--source", "duckdb:", "--file=a.sql"]),
        (["--source", "duckdb:"], ["console", "--source", "duckdb:"]),
        (["--help"], ["--help"]),
        (["jobs"], ["jobs"]),
        ([], []),
    ],
)
def test_a_command_that_is_left_out_is_run_or_console(typed: list[str], meant: list[str]) -> None:
    assert complete_arguments(typed, at_terminal=True) == meant


def test_a_program_on_standard_input_has_the_options_of_run() -> None:
    assert complete_arguments(["--json", "-"], at_terminal=True) == ["run", "--json", "-"]
    assert complete_arguments(["--quiet"], at_terminal=False) == ["run", "--quiet"]
