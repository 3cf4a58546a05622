"""Predictions of `sqlflow serve`: rows of a request as JSON or Arrow, and the answer in the format that it asks for.

The event loop reads small requests and writes their answers; threads make predictions, and do all the work of large
requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from edl.errors import SemanticError, SQLFlowError, UserCodeError, did_you_mean
from edl.evaluation.prediction import Results
from edl.jobs.cores import available_cores
from sqlflow_edl.extensions.serving.arrow_stream import (
    MEDIA_TYPE,
    TooLargeError,
    check_rows,
    read_stream,
    write_stream,
)
from sqlflow_edl.extensions.serving.batching import Batcher
from sqlflow_edl.extensions.serving.catalog import Loaded, Log, ModelCatalog
from sqlflow_edl.extensions.serving.guard import JSON, answer_error, error_response
from sqlflow_edl.extensions.serving.metrics import Metrics
from sqlflow_edl.extensions.serving.model import ServedModel
from sqlflow_edl.extensions.serving.rows import ValueProblem, from_columns, from_records

PARAMETERS = ("interval", "threshold", "extra_outputs")  # of the query part of a URL
SMALL = 64 << 10  # bytes of a body that the event loop reads itself
RETRY_SECONDS = 1  # what a client is told to wait for when there is too much to do


@dataclass(frozen=True)
class Limits:
    """Limits of a request: bytes of its body, rows, and seconds until its answer."""

    bytes: int = 64 << 20
    rows: int = 1_000_000
    seconds: float = 30.0

    @property
    def waiting(self) -> int:
        """Rows of all requests under way, beyond which requests are refused."""
        return 2 * self.rows


@dataclass(frozen=True)
class Question:
    """Rows of a request and the format of the answer. by_column: JSON has a list for each column."""

    batch: pa.RecordBatch
    wanted: Results
    arrow: bool
    by_column: bool


class PredictionEndpoint:
    """Handler of requests for predictions."""

    def __init__(self, catalog: ModelCatalog, limits: Limits, log: Log) -> None:
        self._catalog = catalog
        self._limits = limits
        self._log = log
        self._under_way = 0  # rows
        self.metrics = Metrics(catalog, lambda: self._under_way)
        self.loader = ThreadPoolExecutor(1, "load")
        self._threads = ThreadPoolExecutor(max(available_cores(), 2), "predict")
        self._batchers: dict[ServedModel, Batcher] = {}

    def forget_others(self, served: set[ServedModel]) -> None:
        """Forget the models that are not served any more."""
        self._batchers = {model: batcher for model, batcher in self._batchers.items() if model in served}

    def close(self) -> None:
        """Wait for the predictions under way, and end the threads."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self.loader.shutdown(wait=False, cancel_futures=True)

    async def predict(self, request: Request) -> Response:
        """Predict the rows of the body."""
        began = time.perf_counter()
        name = request.path_params["model"]
        answer = await self._within_limits(request, name, request.path_params.get("version"))
        label = name if name in self._catalog.loaded else ""
        self.metrics.requests.labels(label, answer.status_code).inc()
        self.metrics.seconds.labels(label).observe(time.perf_counter() - began)
        return answer

    async def _within_limits(self, request: Request, name: str, number: int | None) -> Response:
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await self._answer_prediction(request, name, number)
        except TimeoutError:
            message = f"the answer takes longer than {self._limits.seconds:g} seconds"
            return error_response(504, "timeout", message, hint="send fewer rows")
        except _RefusedError as refused:
            return refused.response
        except ValueProblem as error:
            where = {
                "column": error.column,
                "row": error.row,
                "value": error.value,
                "expected": error.expected,
            }
            return error_response(400, "invalid_value", error.message, **where)
        except TooLargeError as error:
            return answer_error(413, "too_large", error)
        except SemanticError as error:
            return answer_error(400, "invalid_request", error)
        except UserCodeError as error:  # a client sees no path and no line of the source
            self._log(f"{name}: {error.message}")
            message = f"the code of a model or function failed in {name}"
            return error_response(
                500, error.code, message, hint="the server's log has the line and the error"
            )
        except SQLFlowError as error:
            self._log(f"{name}: {error.message}")
            return answer_error(500, error.code, error)
        except ClientDisconnect:
            return Response(status_code=499)

    async def _answer_prediction(self, request: Request, name: str, number: int | None) -> Response:
        loaded = await self._load_requested(name, number)
        results = _settings(loaded.model, request)
        kind, arrow_out = _formats(request)
        body = await self._body(request)
        if len(body) <= SMALL:
            question = self._read(loaded.model, body, kind, arrow_out, results)
            with self._count(question.batch.num_rows):
                predictions = await self._batcher(loaded.model).predict(question.batch, results)
            content = _write_answer(loaded, question, predictions)
        else:
            content = await self._in_thread(loaded, body, kind, arrow_out, results)
        rows, answer = content
        self.metrics.rows.labels(name).inc(rows)
        headers = {"SQLFlow-Model": loaded.version.reference} if loaded.version.reference.isascii() else {}
        return Response(answer, media_type=MEDIA_TYPE if arrow_out else JSON, headers=headers)

    async def _in_thread(
        self, loaded: Loaded, body: bytes, kind: str, arrow_out: bool, results: Results
    ) -> tuple[int, bytes]:
        """Answer a large request."""
        loop = asyncio.get_running_loop()
        question = await loop.run_in_executor(
            self._threads, self._read, loaded.model, body, kind, arrow_out, results
        )
        del body
        with self._count(question.batch.num_rows):
            predictions = await self._batcher(loaded.model).predict(question.batch, results)
            return await loop.run_in_executor(self._threads, _write_answer, loaded, question, predictions)

    async def _load_requested(self, name: str, number: int | None) -> Loaded:
        """Return the model of the request, which may have to be loaded."""
        try:
            loaded = self._catalog.find(name, number)
        except SemanticError as error:
            raise _RefusedError(answer_error(404, "not_found", error)) from None
        if loaded is not None:
            return loaded
        if number is None:
            raise _RefusedError(error_response(404, "not_found", f"model {name} is not loaded"))
        loop = asyncio.get_running_loop()
        try:
            loaded = await loop.run_in_executor(self.loader, self._catalog.load_version, name, number)
        except SQLFlowError as error:
            raise _RefusedError(answer_error(503, "unavailable", error)) from None
        self._catalog.keep(loaded)
        return loaded

    async def _body(self, request: Request) -> bytes:
        """Return the body. Raises TooLargeError for a body that is too long, if possible before it is received."""
        most = self._limits.bytes
        length = request.headers.get("content-length", "")
        if length.isdigit() and int(length) > most:
            raise _too_long_error(most)
        parts, size = [], 0
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise _too_long_error(most)
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _read(self, model: ServedModel, body: bytes, kind: str, arrow: bool, results: Results) -> Question:
        """Return the rows of a body."""
        limits = self._limits
        if kind == MEDIA_TYPE:
            names = model.schema.names
            batch = read_stream(body, names, most_rows=limits.rows, most_bytes=limits.bytes)
            return Question(batch, results, arrow, by_column=True)
        try:
            read: Any = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SemanticError(f"the body is not JSON: {error}") from None
        records, columns = (
            read.get(key) if isinstance(read, dict) else None for key in ("records", "columns")
        )
        if isinstance(records, list):
            check_rows(len(records), limits.rows)
            return Question(from_records(records, model.schema), results, arrow, by_column=False)
        if isinstance(columns, dict):
            batch = from_columns(columns, model.schema)
            check_rows(batch.num_rows, limits.rows)
            return Question(batch, results, arrow, by_column=True)
        raise SemanticError(
            "the body has no rows",
            hint='send {"records": [{"column": value, …}, …]} or {"columns": {"column": [value, …], …}}',
        )

    @contextlib.contextmanager
    def _count(self, rows: int) -> Iterator[None]:
        """Count rows as under way. Refuses them if there are too many."""
        if self._under_way and self._under_way + rows > self._limits.waiting:
            refused = error_response(503, "overloaded", "the server has too much to do", hint="try again")
            refused.headers["Retry-After"] = str(RETRY_SECONDS)
            raise _RefusedError(refused)
        self._under_way += rows
        try:
            yield
        finally:
            self._under_way -= rows

    def _batcher(self, model: ServedModel) -> Batcher:
        batcher = self._batchers.get(model)
        if batcher is None:
            batcher = self._batchers[model] = Batcher(model, self._threads, self.metrics.batch)
        return batcher


class _RefusedError(Exception):
    """Answer that ends the handling of a request."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


def _formats(request: Request) -> tuple[str, bool]:
    """Return the media type of the body, and True if the answer is Arrow: as asked, else like the body."""
    content_type = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if content_type not in (JSON, MEDIA_TYPE):
        message = f"the content type {content_type} is not known"
        raise _RefusedError(error_response(415, "media_type", message, hint=f"send {JSON} or {MEDIA_TYPE}"))
    accepted = request.headers.get("accept", "*/*").lower()
    if MEDIA_TYPE in accepted:
        return content_type, True
    return content_type, content_type == MEDIA_TYPE and JSON not in accepted


def _settings(model: ServedModel, request: Request) -> Results:
    """Return the format that the query parameters ask for."""
    values: dict[str, Any] = {}
    for name, text in request.query_params.items():
        if name not in PARAMETERS:
            raise SemanticError(f"unknown parameter {name}", hint=did_you_mean(name, PARAMETERS))
        if name == "extra_outputs":
            values[name] = text.split(",")
            continue
        try:
            values[name] = float(text)
        except ValueError:
            raise SemanticError(f"{name} is not a number: {text!r}") from None
    return model.settings(**values)


def _write_answer(loaded: Loaded, question: Question, predicted: pa.RecordBatch) -> tuple[int, bytes]:
    """Return the number of rows and the body of the answer."""
    if question.arrow:
        return predicted.num_rows, write_stream(predicted)
    predictions: object = predicted.to_pydict() if question.by_column else predicted.to_pylist()
    answer = {"model": loaded.version.name, "version": loaded.version.version, "predictions": predictions}
    return predicted.num_rows, msgspec.json.encode(answer)


def _too_long_error(most: int) -> TooLargeError:
    return TooLargeError(f"the body has more than {most:,} bytes", hint="send the rows in several requests")
