"""Statements on Hive: see `tests/edl/sources/test_hive.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl.errors import SourceError
from sqlflow_edl.session.session import Session

pytest.importorskip("impala", reason="no impyla")

PROGRAM = Path(__file__).parents[1] / "fixtures" / "hive.sql"


@pytest.mark.soak  # the test of ClickHouse has the same way
def test_a_model_of_hive_is_trained_measured_and_used(hive: str) -> None:
    with Session(hive) as session:
        found: list[list[dict[str, object]]] = []
        with pytest.raises(SourceError, match="the table visits exists and was not made by sqlflow-edl"):
            found.extend(
                result.to_arrow().to_pylist()
                for result in session.stream(PROGRAM.read_text(encoding="utf-8"))
            )
        assert found[4] == [{"n": 60}]
        assert [row["name"] for row in found[5]] == ["sizes"]
        assert session.source.tables() == ["guesses", "measures", "visits"]
