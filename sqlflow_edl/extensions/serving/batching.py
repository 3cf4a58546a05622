"""Batching of small requests: requests that arrive during a prediction are predicted together.

No request waits for others to come: a prediction begins as soon as the one before has ended, with all that waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from edl.evaluation.prediction import Results
from sqlflow_edl.extensions.serving.model import ServedModel

Answer: TypeAlias = pa.RecordBatch | Exception


@dataclass(frozen=True)
class _Question:
    """Rows of a request, the format of its answer, and where the answer is awaited."""

    batch: pa.RecordBatch
    wanted: Results
    answer: asyncio.Future[pa.RecordBatch]


class Batcher:
    """Queue of one model, used by one event loop. Forward passes are done by `threads`.

    Larger requests do not wait; they share the threads. observe: receives the rows and requests of each batch.
    """

    def __init__(
        self,
        model: ServedModel,
        threads: Executor,
        observe: Callable[[int, int], None] = lambda rows, requests: None,
    ) -> None:
        self._model = model
        self._threads = threads
        self._observe = observe
        self._waiting: list[_Question] = []
        self._busy = False

    async def predict(self, batch: pa.RecordBatch, results: Results) -> pa.RecordBatch:
        """Predict the rows. Raises SemanticError as the model does."""
        loop = asyncio.get_running_loop()
        if batch.num_rows >= self._model.predictor.rows:
            self._observe(batch.num_rows, 1)
            return await loop.run_in_executor(self._threads, self._model.predictor.predict, batch, results)
        item = _Question(batch, results, loop.create_future())
        self._waiting.append(item)
        if not self._busy:
            self._begin()
        return await item.answer

    def _begin(self) -> None:
        """Begin a prediction with the requests that wait, as many as fit into a block."""
        group, rows = list[_Question](), 0
        while self._waiting and rows + self._waiting[0].batch.num_rows <= self._model.predictor.rows:
            item = self._waiting.pop(0)
            if not item.answer.done():  # its client has left
                group.append(item)
                rows += item.batch.num_rows
        if not group:
            self._busy = False
            return
        self._busy = True
        self._observe(rows, len(group))
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._threads, _predict_together, self._model, group)
        work.add_done_callback(lambda done: self._end(group, done))

    def _end(self, group: Sequence[_Question], done: asyncio.Future[list[Answer]]) -> None:
        error = done.exception()
        answers: Sequence[Answer | BaseException] = done.result() if error is None else [error] * len(group)
        for item, answer in zip(group, answers, strict=True):
            if item.answer.done():
                continue
            if isinstance(answer, BaseException):
                item.answer.set_exception(answer)
            else:
                item.answer.set_result(answer)
        self._begin()


def _predict_together(model: ServedModel, group: Sequence[_Question]) -> list[Answer]:
    """Predict requests in one forward pass; if that fails, each by itself, so that one cannot spoil another."""
    schema = group[0].batch.schema
    if len(group) > 1 and all(item.batch.schema.equals(schema) for item in group):
        try:
            joined = pa.concat_batches([item.batch for item in group])
            names = tuple(dict.fromkeys(name for item in group for name in item.wanted.extra))
            scores, extra = model.predictor.scores(joined, names)
        except Exception:  # noqa: S110 - each request gets its own error
            pass
        else:
            answers: list[Answer] = []
            start = 0
            for item in group:
                end = start + item.batch.num_rows
                item_extra = {name: extra[name][start:end] for name in item.wanted.extra}
                answers.append(item.wanted.batch(item.batch, scores[start:end], item_extra))
                start = end
            return answers
    return [_predict_alone(model, item) for item in group]


def _predict_alone(model: ServedModel, item: _Question) -> Answer:
    try:
        return model.predictor.predict(item.batch, item.wanted)
    except Exception as error:
        return error
