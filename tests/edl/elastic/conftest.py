"""A process in which `edl.elastic` was not used yet."""

from __future__ import annotations

import pytest

from edl.elastic import session


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_session", None)
    monkeypatch.setattr(session, "_declared", session.Declared())
