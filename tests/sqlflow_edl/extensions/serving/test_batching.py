"""Requests that wait are predicted together, and each gets the answer that it would get alone."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from edl.errors import SemanticError
from sqlflow_edl.extensions.serving.batching import Batcher
from sqlflow_edl.extensions.serving.model import ServedModel
from tests.sales import new_sales


def batched(model: ServedModel, *batches: pa.RecordBatch) -> tuple[list[object], list[tuple[int, int]]]:
    """The answers to requests that come at once, and the rows and requests of each batch."""
    seen: list[tuple[int, int]] = []

    async def ask() -> list[object]:
        with ThreadPoolExecutor(1) as threads:
            batcher = Batcher(model, threads, lambda rows, requests: seen.append((rows, requests)))
            asked = [batcher.predict(batch, model.settings()) for batch in batches]
            return list(await asyncio.gather(*asked, return_exceptions=True))

    return asyncio.run(ask()), seen


def test_requests_that_wait_are_predicted_together(kinds: ServedModel) -> None:
    rows = new_sales().to_batches()[0]
    parts = [rows.slice(number, 2) for number in range(6)]
    found, seen = batched(kinds, *parts)
    assert found == [kinds.predictor.predict(part) for part in parts]
    assert seen == [(2, 1), (10, 5)]


def test_a_request_that_cannot_be_predicted_spoils_no_other(kinds: ServedModel) -> None:
    rows = new_sales().to_batches()[0]
    wrong = rows.set_column(1, "amount", pa.array(["much"] * rows.num_rows))
    found, _ = batched(kinds, rows, rows, wrong, rows)
    assert [isinstance(each, SemanticError) for each in found] == [False, False, True, False]
    assert found[1] == found[3] == kinds.predictor.predict(rows)
    assert "column amount is of type string where a number is needed" in str(found[2])


def test_a_large_request_does_not_wait(kinds: ServedModel) -> None:
    rows = new_sales().to_batches()[0]
    large = pa.concat_batches([rows] * (kinds.predictor.rows // rows.num_rows))
    found, seen = batched(kinds, rows, large, rows)
    assert seen == [(8, 1), (large.num_rows, 1), (8, 1)]
    assert found[1] == kinds.predictor.predict(large)


def test_a_client_that_has_left_is_not_waited_for(kinds: ServedModel) -> None:
    rows = new_sales().to_batches()[0]
    seen: list[tuple[int, int]] = []

    async def ask() -> pa.RecordBatch:
        with ThreadPoolExecutor(1) as threads:
            batcher = Batcher(kinds, threads, lambda rows, requests: seen.append((rows, requests)))
            tasks = [asyncio.create_task(batcher.predict(rows, kinds.settings())) for _ in range(3)]
            await asyncio.sleep(0)
            tasks[1].cancel()
            found = await tasks[2]
            with pytest.raises(asyncio.CancelledError):
                await tasks[1]
            return found

    assert asyncio.run(ask()) == kinds.predictor.predict(rows)
    assert seen == [(8, 1), (8, 1)]
