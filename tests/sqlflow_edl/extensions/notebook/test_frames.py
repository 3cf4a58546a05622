"""Data frames as tables, in each kind of database."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

import sqlflow_edl
from edl.errors import SemanticError, SourceError
from sqlflow_edl.extensions.notebook.frames import persist, target

FRAME = pd.DataFrame({"id": [1, 2, 3], "x": [0.5, None, 2.5], "k": ["a", None, "c"]}, index=[7, 8, 9])


@pytest.mark.soak
def test_a_frame_becomes_a_table_and_replaces_what_it_made_before(url: str) -> None:
    with sqlflow_edl.connect(url) as session:
        assert persist(session.source, FRAME, "flowers") == 3
        assert persist(session.source, FRAME.head(2), "flowers") == 2
        [result] = session.run("SELECT * FROM flowers ORDER BY id")
        assert result.to_arrow().to_pylist() == [
            {"id": 1, "x": 0.5, "k": "a"},
            {"id": 2, "x": None, "k": None},
        ]


def test_a_table_of_somebody_else_stays(url: str) -> None:
    with sqlflow_edl.connect(url) as session:
        list(session.run("CREATE TABLE flowers AS SELECT 1 AS mine"))
        with pytest.raises(SourceError):
            persist(session.source, FRAME, "flowers")
        [result] = session.run("SELECT * FROM flowers")
        assert result.to_arrow().to_pylist() == [{"mine": 1}]


def test_a_table_of_arrow_will_do(url: str) -> None:
    with sqlflow_edl.connect(url) as session:
        assert persist(session.source, pa.table({"a": [1, 2]}), "t") == 2


@pytest.mark.soak
@pytest.mark.parametrize(
    ("value", "message"),
    [([1], "a list is not a data frame"), (pd.DataFrame({"a": [1, "x"]}), "cannot become a table")],
)
def test_what_is_no_table_is_refused(url: str, value: object, message: str) -> None:
    with sqlflow_edl.connect(url) as session, pytest.raises(SemanticError, match=message):
        persist(session.source, value, "t")


def test_the_table_has_the_given_name_or_the_frames() -> None:
    assert target(" AS main.flowers ", "df") == "main.flowers"
    assert target("  ", "df") == "df"
    with pytest.raises(SemanticError, match="unexpected 'SELECT 1' after --persist"):
        target("SELECT 1", "df")
