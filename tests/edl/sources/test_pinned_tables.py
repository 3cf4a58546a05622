"""Places of rows that a server holds: numbered by the keys of its snapshot."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

from edl.sources.pinned_tables import (
    BLOCK_ROWS,
    RETRY_SECS,
    SILENCE_SECS,
    LostTableError,
    Patience,
    find_places,
    report_silent_servers,
)
from tests.edl.cluster.local.conftest import wait_until


def test_each_key_gets_the_place_at_which_it_comes() -> None:
    keys = [pa.record_batch({"key": [3, 1]}), pa.record_batch({"key": [4, 2]})]
    [places] = find_places(keys, 4).tolist()
    assert places == [2, 4, 1, 3, *[0] * (BLOCK_ROWS - 4)]


def test_the_places_of_many_rows_are_in_blocks() -> None:
    rows = BLOCK_ROWS + 1
    keys = [pa.record_batch({"key": list(range(rows, 0, -1))})]
    first, second = find_places(keys, rows).tolist()
    assert first == list(range(rows, 1, -1))
    assert second == [1, *[0] * (BLOCK_ROWS - 1)]


def wait_in_vain(patience: Patience) -> None:
    while True:
        patience.wait(LostTableError("the connection is refused"))


@pytest.mark.parametrize(("variables", "seconds"), [({}, RETRY_SECS), ({"EDL_MASTER": "m:1"}, 3600.0)])
def test_a_pod_waits_for_a_server_that_it_has_read_from_and_other_processes_for_a_minute(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], seconds: float
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    now = 0.0

    def sleep(pause: float) -> None:
        nonlocal now
        now += pause

    patience = Patience(lambda: now, sleep)
    patience.forget()
    with pytest.raises(LostTableError):
        wait_in_vain(patience)
    patience.close()
    assert now == pytest.approx(seconds, abs=3.0)


def test_a_server_that_is_asked_and_silent_is_reported_until_it_answers(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EDL_UNREACHABLE_SECS", "0.0001")
    patience = Patience()
    now = time.monotonic()
    with patience.answer():
        for seconds in (1.0, SILENCE_SECS + 1.0):
            report_silent_servers(now + seconds)
        wait_until(lambda: "does not answer" in capfd.readouterr().err)
    report_silent_servers(now + 60.0)
    patience.forget()
    assert "reaches the data source again" in capfd.readouterr().err
