from __future__ import annotations

import pytest

from edl.jobs.cluster_folder import TESTING
from tests.edl.end_to_end.distributed import ENTRIES


@pytest.fixture(autouse=True)
def deaths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of these tests may name the entries that die at named points."""
    monkeypatch.setenv(TESTING, ENTRIES)
