"""Tables that are larger than what their readers may take of memory."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from edl.data import connect

ROWS, WIDTH = 60_000, 1000
MAX_MEBIBYTES = 40  # the rows are 57

PINNING_AND_READING = """
import os, resource, tempfile
from pathlib import Path
from edl.data import connect, open_reader

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

with connect(os.environ["SQLFLOW_SOURCE"]) as source, tempfile.TemporaryDirectory() as folder:
    def pinned(query):
        return source.pin(query, Path(folder), seed=0, shuffle=False)

    few = pinned("SELECT n, text FROM wide WHERE n <= 100")
    list(open_reader(few, Path(folder)).read(0, few.rows))
    before = peak()
    all_rows = pinned("SELECT n, text FROM wide")
    total = sum(batch["n"].to_numpy().sum() for batch in open_reader(all_rows, Path(folder)).read(0, all_rows.rows))
    print(all_rows.rows, total, peak() - before)
"""
MAKING = {
    "mysql": f"CREATE TABLE wide AS SELECT seq AS n, REPEAT('x', {WIDTH}) AS text FROM seq_1_to_{ROWS}",
    "maxcompute": f"CREATE TABLE wide AS SELECT n, REPEAT('x', {WIDTH}) AS text FROM numbers",
}


@pytest.mark.soak
@pytest.mark.parametrize("url", MAKING, indirect=True)
def test_rows_that_fill_more_than_the_memory_are_pinned_and_read(
    url: str, in_another_process: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(url) as source:
        source.stage("numbers", "given", 0, 0, [pa.record_batch({"n": range(1, ROWS + 1)})])
        source.commit("numbers", "given", 1)
        source.execute(MAKING[source.dialect])
    monkeypatch.setenv("SQLFLOW_SOURCE", url)
    rows, total, mebibytes = map(int, in_another_process(PINNING_AND_READING).split())
    assert (rows, total) == (ROWS, ROWS * (ROWS + 1) // 2)
    assert mebibytes < MAX_MEBIBYTES
