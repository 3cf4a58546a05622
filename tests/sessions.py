"""Sessions as front ends open them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sqlflow_edl.session.session import Session


@contextmanager
def open_session(url: str, **options: Any) -> Iterator[Session]:
    """A session that has stored what jobs finished before, and deleted what they left."""
    with Session(url, **options) as session:
        session.maintain()
        yield session


@contextmanager
def open_in_folder(folder: Path) -> Iterator[Session]:
    """A session over a new database of DuckDB in the folder, with its jobs beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        with Session(f"duckdb:///{folder}/t.duckdb", create=True) as opened:
            yield opened
