"""A statement that runs is stopped from another thread."""

from __future__ import annotations

import threading

import pytest

from edl.data import Source
from edl.errors import SourceError

SLOW = "SELECT sum(sqrt(a.i * b.i)) AS s FROM range(900000) a(i), range(900000) b(i)"


@pytest.mark.soak
@pytest.mark.parametrize("statement", [SLOW, f"CREATE TABLE x AS {SLOW}"])
def test_a_statement_ends_and_the_connection_goes_on(source: Source, statement: str) -> None:
    ended = threading.Event()

    def stop() -> None:
        while not ended.wait(0.01):  # the statement may not have begun yet
            source.interrupt()

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        with pytest.raises(SourceError, match=r"(?i)interrupt"):
            reader = source.execute(statement)
            if reader is not None:
                reader.read_all()
    finally:
        ended.set()
        thread.join()
    assert source.tables() == []


def test_interrupting_nothing_does_nothing(source: Source) -> None:
    source.interrupt()
    assert source.stream("SELECT 1 AS x").read_all().num_rows == 1
