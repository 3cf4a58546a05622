"""Sessions as front ends open them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlflow_edl.session.session import Session


@contextmanager
def open_session(url: str, **options: Any) -> Iterator[Session]:
    """A session that has stored what jobs finished before, and deleted what they left."""
    with Session(url, **options) as session:
        session.maintain()
        yield session
