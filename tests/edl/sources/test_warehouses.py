"""Texts of warehouses, and a driver of the DB-API; `quarry` of the conformance tests has one of ADBC."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from edl.data.url import SourceURL
from edl.errors import SourceError
from edl.sources.warehouse.sql import ESCAPING, STANDARD, Texts
from tests.fixtures.databases.quarry import PitSource

TEXTS = {"bigquery": Texts("bigquery", "`", ESCAPING, {}), "trino": Texts("trino", '"', STANDARD, {})}


@pytest.fixture
def pit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PitSource]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with PitSource.connect(SourceURL("pit", str(tmp_path / "pit.duckdb")), create=True) as source:
        yield source


@pytest.mark.parametrize(
    ("value", "trino", "bigquery"),
    [
        (None, "NULL", "NULL"),
        (float("nan"), "NULL", "NULL"),
        (True, "true", "true"),
        (-3, "-3", "-3"),
        (0.1, "CAST('0.1' AS DOUBLE)", "CAST('0.1' AS FLOAT64)"),
        (Decimal("1.50"), "1.50", "1.50"),
        (dt.date(2024, 1, 2), "CAST('2024-01-02' AS DATE)", "CAST('2024-01-02' AS DATE)"),
        ("it's \\ \n", "'it''s \\ \n'", "'it\\'s \\\\ \\n'"),
    ],
)
def test_a_value_is_a_literal_of_the_dialect(value: object, trino: str, bigquery: str) -> None:
    assert TEXTS["trino"].literal(value) == trino
    assert TEXTS["bigquery"].literal(value) == bigquery


def test_names_hold_any_quotation_mark() -> None:
    assert TEXTS["trino"].name("a.b", 'c"d`') == '"a.b"."c""d`"'
    assert TEXTS["bigquery"].name("a.b", 'c"d`\\') == '`a.b`.`c"d\\`\\\\`'


def test_a_type_without_a_literal_is_an_error() -> None:
    with pytest.raises(SourceError, match="cannot be given values of the type list"):
        TEXTS["trino"].literals(pa.array([[1]]))


def test_rows_of_the_db_api_are_stored_and_come_back(pit: PitSource) -> None:
    given = pa.table({"n": [1, None], "x": [0.5, None], "t": ["it's", None]}).select(["n", "x", "t"])
    pit.stage("result", "job", 0, 0, given.to_reader())
    assert pit.commit("result", "job", 1) == 2
    assert pit.stream("SELECT * FROM result").read_all().equals(given)
    assert pit.tables() == ["result"]
    pit.execute("INSERT INTO result VALUES (?, ?, ?)", (7, None, "?"))
    assert pit.execute("SELECT t FROM result WHERE n = ?", (7,)).read_all().to_pylist() == [{"t": "?"}]  # type: ignore[union-attr]


def test_a_value_that_is_not_of_its_columns_type_is_told(
    pit: PitSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pit, "arrow_type", lambda column: pa.int64())
    with pytest.raises(SourceError, match="column t has a value that is no int64"):
        pit.execute("SELECT 'x' AS t").read_all()  # type: ignore[union-attr]


def test_a_swap_that_ended_between_its_renames_is_undone_by_an_abort(
    pit: PitSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    pit.stage("result", "one", 0, 0, [pa.record_batch({"n": [1]})])
    pit.commit("result", "one", 1)
    pit.stage("result", "two", 0, 0, [pa.record_batch({"n": [2]})])

    def half(new: str, target: str, old: str, *, exists: bool) -> list[str]:
        pit.run([pit.rename(target, old)])
        raise KeyboardInterrupt

    monkeypatch.setattr(pit, "swap", half)
    with pytest.raises(KeyboardInterrupt):
        pit.commit("result", "two", 1)
    assert pit.tables() == []
    pit.abort("result", "two")
    assert pit.stream("SELECT n FROM result").read_all().to_pylist() == [{"n": 1}]
