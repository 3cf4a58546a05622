"""Logs of pods, read again and again."""

from __future__ import annotations

import pytest

from sqlflow_edl.backends.kubernetes.logs.pod import Seen

TIMES = [
    b"2026-01-01T00:00:00.000000001Z",
    b"2026-01-01T00:00:00.000000002Z",
    b"2026-01-01T00:00:01.000000000Z",
]


@pytest.mark.parametrize("skipped", [0, 1])
def test_lines_are_new_once_from_wherever_a_log_is_read_again(skipped: int) -> None:
    first, second, third = TIMES
    read = [first, second, second]
    seen = Seen()
    assert [seen.is_new(stamp) for stamp in read] == [True, True, True]
    seen.again()
    assert not any(seen.is_new(stamp) for stamp in read[skipped:])
    assert [seen.is_new(stamp) for stamp in (second, third)] == [True, True]  # one more of the same time
