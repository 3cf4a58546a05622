"""A process as it was, after a zoo was on its path."""

from __future__ import annotations

import sys

import pytest

from edl.program import user_model


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(user_model, "_added", [])
