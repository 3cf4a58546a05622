"""Predictions of single rows for the pages, with explanations. Few models are in memory, loaded when asked for."""

from __future__ import annotations

import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from edl.errors import ClusterError, SemanticError
from edl.evaluation.prediction import probabilities
from edl.jobs.outcome import JobCancelledError
from edl.models.registry.model_store import ModelStore
from edl.models.registry.records import ModelVersion
from edl.spec import TREES
from sqlflow_edl.reports.importances import unit
from sqlflow_edl.reports.reasons import Reason, describe_prediction, reasons
from sqlflow_edl.reports.text import size
from sqlflow_edl.reports.text import value as text_of

if TYPE_CHECKING:
    from sqlflow_edl.extensions.serving.model import ServedModel

MOST_MODELS = 3  # in memory
MOST_BYTES = 256 << 20  # of the archive of a model that is loaded for a page
MOST_WAITING = 4  # predictions at once; others are refused
SECONDS = 10.0  # of an explanation
COVERAGE = 0.9  # of the interval of a predicted number
CLASSES = 10  # with a bar


@dataclass(frozen=True)
class Prediction:
    """Prediction of a row. values: names and values in words. classes: probable classes with their probabilities.

    reasons: the contributions of columns, in `unit`; none where `note` says why.
    """

    words: str
    values: Sequence[tuple[str, str]]
    classes: Sequence[tuple[str, float]]
    reasons: Sequence[Reason]
    unit: str
    note: str


@dataclass(frozen=True)
class _Loaded:
    model: ServedModel
    background: pa.RecordBatch | None


class RowPredictor:
    """Predictor of single rows, for several threads. A framework is imported with the first of its models."""

    def __init__(self, store: ModelStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._models: OrderedDict[str, _Loaded] = OrderedDict()
        self._room = threading.BoundedSemaphore(MOST_WAITING)

    def predict(self, version: ModelVersion, row: pa.RecordBatch, usual: Mapping[str, str]) -> Prediction:
        """Predict the row and explain it, as far as the time is enough. usual: usual values of columns.

        Raises SemanticError for a model that is too large, SourceError if the store cannot be read, JobError if the
        framework is not installed, ClusterError if there is too much to do.
        """
        with self._turn():
            loaded = self._load_model(version)
            return _predict(loaded.model, loaded.background, row, usual)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait for the prediction before this one: each uses all that the process has."""
        if not self._room.acquire(blocking=False):
            raise ClusterError("the server makes other predictions", hint="try again in a few seconds")
        try:
            with self._lock:
                yield
        finally:
            self._room.release()

    def _load_model(self, version: ModelVersion) -> _Loaded:
        if version.archive not in self._models:
            if version.archive_bytes > MOST_BYTES:
                raise SemanticError(
                    f"{version.reference} has {size(version.archive_bytes)}, too much for this page",
                    hint="serve it, or use it in a statement",
                )
            self._models[version.archive] = self._read(version)
        self._models.move_to_end(version.archive)
        while len(self._models) > MOST_MODELS:
            self._models.popitem(last=False)
        return self._models[version.archive]

    def _read(self, version: ModelVersion) -> _Loaded:
        from sqlflow_edl.extensions.serving.model import (
            load_model,  # the pages do without until somebody predicts
        )

        with tempfile.TemporaryDirectory(prefix="sqlflow-edl-") as folder:
            file = Path(folder) / "model.zip"
            with self._store.open() as registry:
                registry.load(version.reference, file)
            model = load_model(file, version.reference, threads=1)
            return _Loaded(model, model.archive.background())


def _predict(
    model: ServedModel, background: pa.RecordBatch | None, row: pa.RecordBatch, usual: Mapping[str, str]
) -> Prediction:
    spec, predictor = model.archive.spec, model.predictor
    scores, _ = predictor.scores(row)
    [answer] = predictor.results().batch(row, scores).to_pylist()
    label = spec.label
    likely: list[tuple[str, float]] = []
    values = [(name, _show_value(value)) for name, value in answer.items()]
    if label.has_classes:
        shares = probabilities(scores, label)[0].tolist()
        likely = sorted(zip(map(text_of, label.classes), shares, strict=True), key=lambda pair: -pair[1])[
            :CLASSES
        ]
        values = values[:1]
    elif not label.labels:
        values += _interval(model, row)
    explained, note = _explain(model, background, row)
    if explained is None:
        return Prediction("", values, likely, (), "", note)
    base, contributions = explained
    [inputs] = row.to_pylist()
    why = reasons(inputs, dict(zip(spec.columns, contributions, strict=True)), usual)
    predicted, value = next(iter(answer.items()))
    words = describe_prediction(spec, predicted, value, base, why)
    return Prediction(words, values, likely, why, unit(spec, is_margin=spec.framework in TREES), note)


def _show_value(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else text_of(value)


def _interval(model: ServedModel, row: pa.RecordBatch) -> Iterator[tuple[str, str]]:
    """Yield the interval of a number, if the model knows its errors."""
    try:
        results = model.settings(interval=COVERAGE)
    except SemanticError:
        return
    [answer] = model.predictor.predict(row, results).to_pylist()
    low, high = list(answer.values())[-2:]
    yield f"{COVERAGE:.0%} interval", f"{low:.6g} to {high:.6g}"


def _explain(
    model: ServedModel, background: pa.RecordBatch | None, row: pa.RecordBatch
) -> tuple[tuple[float, list[float]] | None, str]:
    """Return the base and the contributions, or None and the reason."""
    late = threading.Event()
    timer = threading.Timer(SECONDS, late.set)
    timer.start()
    try:
        explanation = model.explain(row, background, late)
    except JobCancelledError:
        statement = f"SELECT … TO EXPLAIN {model.reference}"
        return None, f"The explanation takes more than {SECONDS:.0f} s: {statement} makes it."
    finally:
        timer.cancel()
    if explanation is None:
        return None, "This model keeps no rows to compare with, so its prediction is not explained."
    return explanation, ""
