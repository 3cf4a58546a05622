"""Runs of MLflow: one for each training, with its parameters, figures by epoch, tables, and the version of its model.

The client comes from mlflow-skinny, and MLflow's own variables configure it. It sends nothing about itself.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from edl.installation import VERSION
from sqlflow_edl.extensions.lineage import Execution
from sqlflow_edl.syntax.ast import Constant, Statement

if TYPE_CHECKING:
    from sqlflow_edl.reports.result import Result

# Without these the client reports to its makers, and tries a dead server for minutes. It reads the first when imported.
for _name, _value in {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
}.items():
    os.environ.setdefault(_name, _value)

from mlflow import MlflowClient  # noqa: E402
from mlflow.entities import Dataset, DatasetInput, Metric, Param, RunTag  # noqa: E402

EXPERIMENT = "sqlflow"  # unless MLFLOW_EXPERIMENT_NAME or MLFLOW_EXPERIMENT_ID names another
MOST_METRICS = 1000  # of a request
MOST_LETTERS = 5000  # of a tag or parameter


class MLflow:
    """Tracker of one training."""

    def __init__(self, execution: Execution) -> None:
        self._client = MlflowClient()
        self._of = execution
        self._run = ""

    def begins(self) -> None:
        statement = self._of.statement
        tags = {
            "sqlflow.statement": statement.text,
            "sqlflow.version": VERSION,
            "mlflow.source.name": "sqlflow",
            "mlflow.source.type": "JOB",
        }
        run = self._client.create_run(self._experiment(), tags=_cut(tags), run_name=self._of.trains)
        self._run = run.info.run_id
        try:
            self._client.log_batch(self._run, params=_parameters(statement))
            if tables := [_dataset(self._of.source, name) for name in self._of.reads]:
                self._client.log_inputs(self._run, tables)
        except Exception:  # nothing more is told, so the run would never end
            self._client.set_terminated(self._run, "FAILED")
            raise

    def ends(self, result: Result | None, error: str) -> None:
        if result is None:
            self._tag({"sqlflow.error": error})
            self._client.set_terminated(self._run, "FAILED")
            return
        metrics = [*_metrics(result)]
        for begin in range(0, len(metrics), MOST_METRICS):
            self._client.log_batch(self._run, metrics=metrics[begin : begin + MOST_METRICS])
        self._tag(
            {
                "mlflow.runName": result.model,
                "mlflow.note.content": result.message,
                "sqlflow.job": result.job,
                "sqlflow.measured_on": result.measured_on,
                "sqlflow.model": result.model,
                "sqlflow.model_store": result.stored_in,
            }
        )
        self._client.set_terminated(self._run, "FINISHED")

    def _experiment(self) -> str:
        """Return the id of the experiment, which is made if there is none of that name."""
        if number := os.environ.get("MLFLOW_EXPERIMENT_ID"):
            return number
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or EXPERIMENT
        experiment = self._client.get_experiment_by_name(name)
        return str(
            experiment.experiment_id if experiment is not None else self._client.create_experiment(name)
        )

    def _tag(self, tags: Mapping[str, str]) -> None:
        self._client.log_batch(self._run, tags=[RunTag(name, value) for name, value in _cut(tags).items()])


def _cut(texts: Mapping[str, str]) -> dict[str, str]:
    """Leave out empty texts, and the ends of those that MLflow would refuse."""
    return {name: text[:MOST_LETTERS] for name, text in texts.items() if text}


def _parameters(statement: Statement) -> list[Param]:
    """Return the model, the label, the columns and the attributes of WITH, as they are written."""

    def written(begin: int, end: int) -> str:
        return statement.text[begin - statement.span.start : end - statement.span.start]

    named = {"model": str(statement.model or "search"), "label": ", ".join(map(str, statement.labels))}
    if clauses := statement.columns:
        named["columns"] = written(clauses[0].items[0].span.start, clauses[-1].span.end)
    for attribute in statement.attributes:
        text = attribute.value.value if isinstance(attribute.value, Constant) else None
        named[attribute.key] = (
            text if isinstance(text, str) else written(attribute.value.span.start, attribute.value.span.end)
        )
    return [Param(name, value) for name, value in _cut(named).items()]


def _dataset(source: str, table: str) -> DatasetInput:
    """Describe a table. MLflow wants a digest: the names are digested, because rows are not read for it."""
    digest = hashlib.sha256(f"{source} {table}".encode()).hexdigest()[:8]
    return DatasetInput(Dataset(table, digest, "sqlflow", json.dumps({"source": source, "table": table})))


def _metrics(result: Result) -> Iterator[Metric]:
    """Yield the figures of each epoch, and the figures of the result under their own names."""
    for epoch in result.curve:
        if epoch.final:
            figures = {f"validation_{name}": value for name, value in epoch.metrics.items()}
            yield from _points({"training_loss": epoch.loss, **figures}.items(), epoch.epoch)
    yield from _points((result.figures or {}).items(), 0)


def _points(figures: Iterable[tuple[str, float | None]], step: int) -> Iterator[Metric]:
    now = int(time.time() * 1000)
    for name, value in figures:
        if value is not None and math.isfinite(value):
            yield Metric(name, float(value), now, step)
