"""A session over the tables that the compiler's tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlflow_edl.session import Session

TABLES = Path(__file__).parents[1] / "tables.sql"


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session("duckdb:") as opened:
        for _ in opened.run(TABLES.read_text(encoding="utf-8")):
            pass
        yield opened
