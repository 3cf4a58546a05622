"""What tests of the master share."""

from __future__ import annotations

import pytest

from tests.edl.master.ring_stage import RingStage


@pytest.fixture
def trio() -> RingStage:
    """Three workers train together: a leads."""
    stage = RingStage("abc")
    stage.train_together("abc")
    return stage
