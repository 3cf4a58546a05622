"""What tests of the master share."""

from __future__ import annotations

import pytest

from tests.edl.master.group_stage import GroupStage


@pytest.fixture
def trio() -> GroupStage:
    """Three workers train together: a leads."""
    stage = GroupStage("abc")
    stage.train_together("abc")
    return stage
