"""How a Job's status writes down indexes."""

from __future__ import annotations

import pytest

from tests.kubernetes.job_policies import indexes, shown


@pytest.mark.parametrize("text", ["", "3", "0,1", "0-2", "0,1,3-5,7"])
def test_indexes_are_shown_as_runs(text: str) -> None:
    assert shown(indexes(text)) == text
