"""Statements on ClickHouse: see `tests/edl/sources/test_clickhouse.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl.errors import SourceError
from sqlflow_edl.session.session import Session

PROGRAM = Path(__file__).parents[1] / "fixtures" / "clickhouse.sql"


def test_a_model_is_trained_measured_and_used(clickhouse: str) -> None:
    with Session(clickhouse) as session:
        found: list[list[dict[str, object]]] = []
        with pytest.raises(SourceError, match="the table visits exists and was not made by sqlflow-edl"):
            found.extend(
                result.to_arrow().to_pylist()
                for result in session.stream(PROGRAM.read_text(encoding="utf-8"))
            )
        assert found[5:7] == [[{"n": 60}], [{"n": 60}]]
        assert [row["name"] for row in found[7]] == ["sizes"]
        own = [name for name in session.source.tables() if "." not in name]  # of this database
        assert own == ["guesses", "measures", "visits"]
        store = Path(session.registry.url.removeprefix("file://"))
        assert store.is_dir() and "a_model_is_trained" in store.name
