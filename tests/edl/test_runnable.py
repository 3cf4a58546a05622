"""What a runnable reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa
import pytest

from edl.data.pinned import FILE, write_rows
from edl.errors import JobError, SourceError
from edl.runnable import VARIABLE, RunnablePlace, rows, write

SOLD = pa.table({"id": range(3), "item": ["a", "b", "c"]})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., RunnablePlace]:
    """Makes this process the process of a runnable with so many tables."""

    def make(*tables: str) -> RunnablePlace:
        write_rows(tmp_path, SOLD.schema, SOLD.to_batches(max_chunksize=2))
        made = RunnablePlace(str(tmp_path / FILE), str(tmp_path / "results"), tables)
        monkeypatch.setenv(VARIABLE, msgspec.json.encode(made).decode())
        return made

    return make


def test_rows_are_the_querys_each_time(place: Callable[..., RunnablePlace]) -> None:
    place()
    assert rows().read_all() == SOLD
    assert rows(["item", "id"]).read_all() == SOLD.select(["item", "id"])
    with pytest.raises(SourceError, match="no column itm"):
        rows(["itm"])


@pytest.mark.parametrize(
    "result",
    [
        SOLD,
        SOLD.to_batches()[0],
        SOLD.to_reader(),
        SOLD.to_pydict(),
        SOLD.to_pandas(),
        SOLD.to_pandas().set_index(pd.Index([7, 8, 9])),
        [SOLD.slice(0, 2), SOLD.slice(2).to_pylist() and SOLD.slice(2).to_pandas()],
        (batch for batch in SOLD.to_batches(max_chunksize=1)),
    ],
    ids=["table", "batch", "reader", "mapping", "frame", "indexed", "several", "generator"],
)
def test_a_result_has_one_of_many_forms(place: Callable[..., RunnablePlace], result: Any) -> None:
    made = place("t")
    assert write(result) == 3
    assert made.folder(0).read(1).read_all() == SOLD


def test_a_further_call_adds_rows_and_none_keep_the_columns(place: Callable[..., RunnablePlace]) -> None:
    made = place("t", "U")
    write(SOLD.slice(0, 0), "u")
    write(SOLD, "u")
    assert made.folder(1).read(2).read_all() == SOLD


@pytest.mark.parametrize(
    ("result", "table", "message"),
    [
        (SOLD, "", r"name the table of the rows, as in write\(rows, 'totals'\)"),
        (SOLD, "total", "INTO does not name total; did you mean totals?"),
        ("id", "totals", "a str is not a table"),
        ([3], "totals", "a int is not a table"),
    ],
)
def test_a_wrong_result_is_told(
    place: Callable[..., RunnablePlace], result: Any, table: str, message: str
) -> None:
    place("totals", "more")
    with pytest.raises(JobError, match=message):
        write(result, table)


def test_a_program_that_no_statement_runs_has_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(JobError, match="TO RUN"):
        rows()
