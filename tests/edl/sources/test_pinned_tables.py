"""Places of rows that a server holds: numbered by the keys of its snapshot."""

from __future__ import annotations

import pyarrow as pa
import pytest

from edl.data.arrow_types import BATCH_ROWS
from edl.sources.pinned_tables import RETRY_SECS, LostTableError, Patience, number_places


def test_each_key_gets_the_place_at_which_it_comes() -> None:
    keys = [pa.record_batch({"key": [3, 1]}), pa.record_batch({"key": [4, 2]})]
    [batch] = number_places(keys, 4)
    assert batch.to_pydict() == {"key": [1, 2, 3, 4], "place": [2, 4, 1, 3]}


def test_the_places_of_many_rows_come_in_batches() -> None:
    rows = BATCH_ROWS + 1
    keys = [pa.record_batch({"key": list(range(rows, 0, -1))})]
    batches = list(number_places(keys, rows))
    assert [batch.num_rows for batch in batches] == [BATCH_ROWS, 1]
    assert batches[1].to_pydict() == {"key": [rows], "place": [1]}


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
