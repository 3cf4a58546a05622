"""The double, and pyodps connected to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.maxcompute.process import ACCOUNT, SECRET, Running, running


@pytest.fixture(scope="session")
def process() -> Iterator[Running]:
    with running() as started:
        yield started


@pytest.fixture
def double(process: Running) -> Running:
    process.reset()
    return process


@pytest.fixture
def client(double: Running, monkeypatch: pytest.MonkeyPatch) -> Any:
    """pyodps as it comes, but for the time that it waits between attempts."""
    from odps import ODPS
    from odps.tunnel import retry

    monkeypatch.setattr(retry.time, "sleep", lambda seconds: None)
    return ODPS(
        ACCOUNT,
        SECRET,
        project=double.new_project(),
        endpoint=double.endpoint,
        tunnel_endpoint=double.endpoint,
    )
