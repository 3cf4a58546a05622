"""A process in which `edl.elastic` was not used yet."""

from __future__ import annotations

import pytest

from edl.extensions import elastic
from edl.extensions.elastic.script import ElasticScript


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elastic, "_script", ElasticScript())
