"""Work that is done again, as long as that may help."""

from __future__ import annotations

import threading

import pytest

from edl import reachability
from edl.data import retry
from edl.data.retry import AWAY, PAUSES, insisting
from edl.data.source import ConflictError, UnreachableError
from edl.errors import SourceError


def attempts(*errors: SourceError) -> tuple[list[int], list[float]]:
    """The numbers of the attempts at work that meets these errors, and the pauses between them."""
    made: list[int] = []
    paused: list[float] = []

    def work(attempt: int) -> None:
        made.append(attempt)
        if attempt < len(errors):
            raise errors[attempt]

    insisting(work, pause=paused.append)
    return made, paused


def test_work_is_done_again_after_a_lost_connection_and_waits_for_a_source_that_is_away() -> None:
    lost, away = ConflictError("lost"), UnreachableError("away")
    assert attempts(lost, away, lost, away) == ([0, 1, 2, 3, 4], [PAUSES[0], AWAY[0], PAUSES[1], AWAY[1]])


@pytest.mark.parametrize(
    ("error", "times"),
    [
        (ConflictError("lost"), len(PAUSES) + 1),
        (UnreachableError("away"), len(AWAY) + 1),
        (SourceError("it does not fit"), 1),
    ],
)
def test_it_is_given_up_when_that_does_not_help(error: SourceError, times: int) -> None:
    made: list[int] = []

    def work(attempt: int) -> None:
        made.append(attempt)
        raise error

    with pytest.raises(type(error)):
        insisting(work, pause=lambda seconds: None)
    assert len(made) == times


def count_attempts(*, keeps: bool) -> tuple[int, float]:
    """Return the attempts at work that never succeeds, and the seconds of the pauses between them."""
    paused: list[float] = []

    def work(attempt: int) -> None:
        raise UnreachableError("away")

    with pytest.raises(UnreachableError):
        insisting(work, keeps=keeps, pause=paused.append)
    return len(paused) + 1, sum(paused)


@pytest.fixture
def is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process has reached no source."""
    monkeypatch.setattr(retry, "reached", threading.Event())


def test_a_pod_waits_an_hour_for_a_source_that_it_has_reached(
    is_new: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDL_MASTER", "master:50001")
    assert count_attempts(keeps=False) == (len(AWAY) + 1, sum(AWAY))
    insisting(lambda attempt: None)
    times, seconds = count_attempts(keeps=False)
    assert times > 60
    assert seconds == pytest.approx(3600.0, abs=60.0)


def test_a_result_is_kept_for_a_source_that_is_away(is_new: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDL_MASTER", "master:50001")
    monkeypatch.setenv("EDL_OUTAGE_SECS", "600")
    assert count_attempts(keeps=True)[1] == pytest.approx(600.0, abs=60.0)


def test_on_this_machine_where_jobs_can_be_resumed_nothing_waits_so_long(is_new: None) -> None:
    assert count_attempts(keeps=True) == (len(AWAY) + 1, sum(AWAY))


def test_a_source_that_is_away_for_long_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDL_UNREACHABLE_SECS", "1e-9")
    attempts = iter([UnreachableError("cannot open shop: db:3306: no answer")] * 2)

    def work(attempt: int) -> str:
        if error := next(attempts, None):
            raise error
        return reachability.obstacle()

    def pause(seconds: float) -> None:
        while seconds > AWAY[0] and not reachability.obstacle():  # found in a thread
            pass

    found = insisting(work, pause=pause)
    assert found == "does not reach the data source: cannot open shop: db:3306: no answer"
    assert reachability.obstacle() == ""
