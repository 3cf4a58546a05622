"""Rows of a model from CSV files: read as its training rows were, or an error that names the value."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from edl import spec
from edl.data import connect
from edl.errors import SourceError
from edl.models.registry.records import ModelRecord
from edl.spec.job import Query
from sqlflow_edl.analysis.inference import stored_readings
from sqlflow_edl.session.session import Session
from tests.edl.models.conftest import SPEC, write

TRAIN = "code,day,flag,x\n1,13/02/2024,yes,1\n22,01/02/2024,no,2\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def trained(folder: Path, select: str = "SELECT * FROM rows", text: str = TRAIN) -> Query:
    """Return the query of a training over the file, as its JobSpec keeps it."""
    (folder / "train.csv").write_text(text)
    with connect(f"csv:{folder}/train.csv") as source:
        fields = tuple(spec.Field(field.name, str(field.type)) for field in source.schema(select))
        return stored_readings.differing_query(source.readings, Query(select, "duckdb", source.url, fields))


def read(folder: Path, text: str, query: Query, columns: str = "code day x", select: str = "") -> pa.Table:
    """Return the rows of another file for the model of `query`."""
    (folder / "other.csv").write_text(text)
    select = select or query.select
    with connect(f"csv:{folder}/other.csv") as source:
        stored_readings.apply(source, query, columns.split(), select, lambda: source.schema(select))
        return source.stream(select).read_all()


def test_the_query_keeps_only_readings_that_its_schema_does_not_tell(folder: Path) -> None:
    assert trained(folder).readings == {"day": "DATE d/m/Y", "flag": "BOOLEAN yes"}
    assert trained(folder, "SELECT code, x FROM rows").readings is msgspec.UNSET
    assert trained(folder, "SELECT year(day) AS y, code * 2 AS c FROM rows").readings == {
        "day": "DATE d/m/Y",
        "code": "BIGINT",
    }
    assert b"readings" not in msgspec.json.encode(trained(folder, "SELECT x, code FROM rows"))


def test_dates_that_do_not_tell_the_day_are_read_as_in_training(folder: Path) -> None:
    found = read(folder, "code,day,flag,x\n1,05/06/2024,no,1\n", trained(folder))
    assert [str(value) for value in found["day"].to_pylist()] == ["2024-06-05"]


@pytest.mark.variants(2)
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("A7,13/02/2024,no,1", "column code has the value 'A7' in row 1 of .*other.csv, which is not BIGINT"),
        ("1,02/13/2024,no,1", "column day has the value '02/13/2024' .* is not day/month/year"),
        ("1,2024-02-13,no,1", "column day has the value '2024-02-13' .* is not day/month/year"),
        ("1,13/02/2024,no,?", "column x has the value '\\?' .* is not BIGINT"),
    ],
)
def test_a_value_of_another_form_is_named(folder: Path, row: str, message: str) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        read(folder, f"code,day,flag,x\n{row}\n", trained(folder))
    assert "train the model again" in str(caught.value.hint)


def test_codes_stay_texts_though_all_of_them_are_digits(folder: Path) -> None:
    query = trained(folder, text=TRAIN.replace("22", "A7"))
    assert read(folder, "code,day,flag,x\n12,13/02/2024,no,1\n", query)["code"].to_pylist() == ["12"]


def test_whole_numbers_may_become_fractions(folder: Path) -> None:
    assert read(folder, "code,day,flag,x\n1,13/02/2024,no,1.5\n", trained(folder))["x"].to_pylist() == [1.5]


def test_columns_that_the_model_does_not_read_may_be_of_any_type(folder: Path) -> None:
    rows = "code,day,flag,x\nA7,2024-02-13,no,1\n"
    assert read(folder, rows, trained(folder), "x").num_rows == 1


@pytest.mark.soak
def test_columns_inside_of_expressions_are_read_as_in_training(folder: Path) -> None:
    query = trained(folder, "SELECT month(day) AS m, code || '!' AS c, x FROM rows")
    found = read(folder, "code,day,x\n1,05/06/2024,1\n", query, "m c x")
    assert (found["m"].to_pylist(), found["c"].to_pylist()) == ([6], ["1!"])
    with pytest.raises(SourceError, match="value 'A7'"):
        read(folder, "code,day,x\nA7,05/06/2024,1\n", query, "m c x")


def test_a_query_may_change_the_type_of_a_column(folder: Path) -> None:
    """Query of a model that keeps no readings, as older versions have made it."""
    fields = (spec.Field("day", "int64"), spec.Field("x", "int64"))
    query = Query("SELECT year(day) AS day, x FROM rows", "duckdb", "csv:///old.csv", fields)
    found = read(folder, "day,x\n2024-02-13,1\n", query, "day x")
    assert found["day"].to_pylist() == [2024]


def test_an_older_model_that_parses_dates_itself_still_can(folder: Path) -> None:
    select = "SELECT strptime(day, '%d/%m/%Y') AS at, x FROM rows"
    fields = (spec.Field("at", "timestamp[us]"), spec.Field("x", "int64"))
    query = Query(select, "duckdb", "csv:///old.csv", fields)
    found = read(folder, "day,x\n13/02/2024,1\n", query, "at x")
    assert [str(value) for value in found["at"].to_pylist()] == ["2024-02-13 00:00:00"]


def test_a_model_of_another_database_reads_texts_as_texts(folder: Path) -> None:
    fields = (spec.Field("code", "string"), spec.Field("x", "int32"))
    query = Query("SELECT code, x FROM t", "mysql", "mysql://h/d", fields)
    found = read(folder, "code,x\n12,1.5\n", query, "code x", "SELECT * FROM rows")
    assert found.to_pylist() == [{"code": "12", "x": 1.5}]


def test_the_next_statement_reads_the_files_as_they_are(folder: Path) -> None:
    (folder / "other.csv").write_text("x,y\n1.5,2\n")
    query = Query("SELECT x, y FROM rows", "duckdb", "csv:///t.csv", (spec.Field("x", "string"),))
    with Session(f"csv:{folder}/other.csv", model_store=str(folder / "models")) as session:
        model = write(folder / "m.zip", spec=msgspec.structs.replace(SPEC, query=query))
        session.registry.save("m", model, ModelRecord("DNNRegressor", "torch", 10, {}, SPEC.statement))
        [statement] = session.parse("SELECT x, y FROM rows TO PREDICT USING m")
        session.compiler.use(statement, folder / "used.zip")
        assert session.source.schema("SELECT x FROM rows").types == [pa.string()]
        [result] = session.run("SELECT x FROM rows")
        assert result.to_arrow().schema.types == [pa.float64()]


def test_the_options_of_the_training_file_are_the_advice(folder: Path) -> None:
    (folder / "train.csv").write_text("x,y\n-,1\n2,2\n")
    with connect(f"csv:{folder}/train.csv?nullstr=-") as source:
        fields = tuple(
            spec.Field(field.name, str(field.type)) for field in source.schema("SELECT * FROM rows")
        )
        query = stored_readings.differing_query(
            source.readings, Query("SELECT * FROM rows", "duckdb", source.url, fields)
        )
    with pytest.raises(SourceError, match="column x has the value '-'") as caught:
        read(folder, "x,y\n-,1\n3,2\n", query, "x y")
    assert str(caught.value.hint).startswith(
        "the training rows were read with ?nullstr=-: add that to the source"
    )
    assert read(folder, "x,y\n4,1\n", query, "x y")["x"].to_pylist() == [4]


def test_the_columns_of_a_sheet_are_read_as_in_training(folder: Path) -> None:
    fields = (spec.Field("x", "int64"),)
    query = Query("SELECT x FROM rows", "duckdb", "excel:///old.xlsx", fields)
    with pytest.raises(SourceError, match="column x has the value 'A7'"):
        read(folder, "x\nA7\n1\n", query, "x")
