"""The double, and pyodps connected to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.maxcompute.process import ACCOUNT, SECRET, Running


@pytest.fixture
def double(maxcompute: Running) -> Iterator[Running]:
    """What is made to go wrong goes well again for the next test."""
    maxcompute.reset()
    yield maxcompute
    maxcompute.reset()


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
