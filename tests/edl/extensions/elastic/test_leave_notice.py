"""Notice to a worker that it has to leave."""

from __future__ import annotations

import pytest

from edl.cluster import LEAVE_GRACE
from edl.extensions.elastic import leave_notice
from edl.extensions.elastic.leave_notice import LeaveHook, LeaveNotice, call_hooks


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(leave_notice.time, "monotonic", found)
    return found


def test_the_seconds_left_begin_with_the_first_notice(clock: Clock) -> None:
    notice = LeaveNotice()
    assert notice.seconds_left is None
    notice.set()
    clock.now += 5.0
    notice.set()
    assert notice.seconds_left == LEAVE_GRACE - 5.0
    clock.now += LEAVE_GRACE
    assert notice.seconds_left == 0.0


def test_hooks_get_the_seconds_left_and_one_that_fails_ends_no_other(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[float] = []

    def fail(seconds: float) -> None:
        raise OSError("the bucket is gone")

    hooks: list[LeaveHook] = [fail, seen.append]
    notice = LeaveNotice()
    call_hooks(hooks, notice)
    assert seen == []
    notice.set()
    clock.now += 2.0
    call_hooks(hooks, notice)
    assert seen == [LEAVE_GRACE - 2.0]
    assert "the bucket is gone" in capsys.readouterr().err
