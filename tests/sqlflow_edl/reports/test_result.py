"""Results: rows as Arrow and as data frames."""

from __future__ import annotations

import re
import subprocess
import sys

import pandas as pd
import pyarrow as pa
import pytest

import sqlflow_edl
from edl.errors import SQLFlowError

ROWS = "SELECT 1 AS a, 'x' AS k, CAST('2024-01-02' AS DATE) AS d UNION ALL SELECT 2, NULL, NULL ORDER BY a"


def test_rows_become_a_data_frame(url: str) -> None:
    with sqlflow_edl.connect(url) as session:
        [result] = session.run(ROWS)
        found = result.to_pandas()
    assert isinstance(found, pd.DataFrame)
    assert list(found.columns) == ["a", "k", "d"]
    assert found["k"].isna().tolist() == [False, True]
    assert len(found) == 2


def test_a_reader_of_arrow_streams_takes_a_result(url: str) -> None:
    with sqlflow_edl.connect(url) as session:
        [result] = session.run(ROWS)
        rows = pa.RecordBatchReader.from_stream(result).read_all()
    assert rows.column("k").to_pylist() == ["x", None]


def test_a_statement_without_rows_is_an_empty_data_frame(url: str) -> None:
    with sqlflow_edl.connect(url) as session:
        [result] = session.run("CREATE TABLE t (a INT)")
        assert result.to_pandas().empty


def test_without_pandas_the_way_out_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with sqlflow_edl.connect(url) as session:
        [result] = session.run(ROWS)
        with pytest.raises(SQLFlowError, match="pandas is not installed") as raised:
            result.to_pandas()
        assert "to_arrow()" in str(raised.value.hint)
        assert result.to_arrow().num_rows == 2


def test_without_polars_the_command_that_installs_it_is_named(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with sqlflow_edl.connect(url) as session:
        [result] = session.run(ROWS)
        with pytest.raises(SQLFlowError, match="polars is not installed") as raised:
            result.to_polars()
        assert re.search(r"install .*polars, or use to_arrow", str(raised.value.hint))
        assert result.to_arrow().num_rows == 2  # nothing has been read


def test_rows_become_a_data_frame_of_polars(url: str) -> None:
    polars = pytest.importorskip("polars")
    with sqlflow_edl.connect(url) as session:
        [result] = session.run(ROWS)
        found = result.to_polars()
    assert isinstance(found, polars.DataFrame)
    assert found.columns == ["a", "k", "d"]
    assert found["k"].to_list() == ["x", None]
    with sqlflow_edl.connect(url) as session:
        [result] = session.run("SELECT 1 AS a, 2 AS a")
        with pytest.raises(SQLFlowError, match="cannot have two columns a"):
            result.to_polars()


def test_polars_is_imported_only_for_its_data_frames() -> None:
    program = (
        "import sys, sqlflow_edl\n"
        "with sqlflow_edl.connect('duckdb:') as session:\n"
        "    [result] = session.run('SELECT 1 AS a')\n"
        "    result.to_arrow()\n"
        "assert 'polars' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_program_runs_without_anybody_asking_for_its_results() -> None:
    with sqlflow_edl.connect("duckdb:") as session:
        session.run("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
        [result] = session.run("SELECT * FROM t")
    assert result.to_arrow().to_pylist() == [{"a": 1}]


def test_the_error_of_a_program_names_what_was_stored_before_it() -> None:
    program = (
        "CREATE TABLE t AS SELECT i AS x, 2 * i AS y FROM range(100) AS rows (i);"
        "SELECT * FROM t TO TRAIN LinearRegressor WITH train.epoch = 1 LABEL y INTO m;"
        "SELECT CAST(a AS INT) FROM (VALUES ('no number')) AS t (a)"
    )
    with sqlflow_edl.connect("duckdb:") as session:
        with pytest.raises(SQLFlowError, match="no number") as caught:
            session.run(program)
        [note] = caught.value.__notes__
        assert note.startswith("stored before it: ") and "m@1" in note
        assert session.registry.has("m")


def test_rows_are_there_as_often_as_they_are_read_and_after_later_statements() -> None:
    with sqlflow_edl.connect("duckdb:") as session:
        first, second = session.run("SELECT 1 AS a; SELECT 2 AS a")
        session.run("SELECT 3 AS a")
        assert [first.to_arrow().to_pylist() for _ in range(2)] == [[{"a": 1}], [{"a": 1}]]
        assert second.reader is not None
        assert second.reader.read_next_batch().to_pylist() == second.to_arrow().to_pylist() == [{"a": 2}]


def test_a_streamed_program_says_that_it_did_not_run_if_nobody_asks_for_its_results() -> None:
    with sqlflow_edl.connect("duckdb:") as session:
        with pytest.warns(RuntimeWarning, match="no statement ran"):
            session.stream("CREATE TABLE t (a INT)")
        with pytest.raises(SQLFlowError, match="t does not exist"):
            session.run("SELECT * FROM t")


def test_a_streamed_statement_runs_when_its_result_is_asked_for() -> None:
    with sqlflow_edl.connect("duckdb:") as session:
        results = session.stream(
            "CREATE TABLE t (a INT); SELECT CAST(a AS INT) FROM (VALUES ('no number')) AS t (a)"
        )
        next(results)
        assert session.run("SELECT count(*) AS n FROM t")[0].to_arrow().to_pylist() == [{"n": 0}]
        with pytest.raises(SQLFlowError, match="no number"):
            next(results)


def test_a_statement_that_cannot_be_read_is_an_error_before_any_statement_runs() -> None:
    with sqlflow_edl.connect("duckdb:") as session:
        with pytest.raises(SQLFlowError, match="end of the statement"):
            session.run("CREATE TABLE t (a INT); SELECT * FROM t TO TRAIN")
        with pytest.raises(SQLFlowError, match="t does not exist"):
            session.run("SELECT * FROM t")
