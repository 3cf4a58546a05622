"""Runs of trainings, as the client of MLflow sends them to a server that speaks its REST protocol."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

import pytest

from edl.errors import SemanticError
from edl.jobs.events import EpochEnd
from sqlflow_edl.extensions.lineage import run_tracked
from sqlflow_edl.reports.result import Result
from sqlflow_edl.syntax import parse

pytestmark = pytest.mark.skipif(
    find_spec("mlflow") is None,
    reason="mlflow-skinny is not installed: pip install '.[mlflow]'",
)

TRAIN = """SELECT x, city, y FROM shop.visits TO TRAIN DNNRegressor
WITH model.hidden_units = [32, 16], optimizer = "adam" COLUMN x, EMBEDDING(city, 8) LABEL y INTO costs"""
PREDICT = "SELECT x FROM visits TO PREDICT guesses.y USING costs@2"
RESULT = {
    "message": "trained DNNRegressor costs@3 on 90 rows",
    "model": "costs@3",
    "figures": {"rmse": 0.5, "r2": None},
    "measured_on": "10 validation rows",
    "stored_in": "duckdb:///shop.duckdb",
    "job": "20261126-051633-871306-c1a895",
}
CURVE = tuple(
    EpochEnd(epoch, 10 * epoch, loss=1.0 / epoch, seconds=0.1, metrics={"loss": 2.0 / epoch})
    for epoch in (1, 2)
)


class Double:
    """The part of a server of MLflow that keeps one run. requests: paths and bodies in their order."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.experiments: list[str] = []

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.requests.append((path, body))
        run = {
            "info": {"run_id": "r1", "run_uuid": "r1", "experiment_id": "7", "status": "RUNNING"},
            "data": {},
        }
        match path:
            case "experiments/get-by-name" if not self.experiments:
                return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no such experiment"}
            case "experiments/get-by-name":
                return 200, {"experiment": {"experiment_id": "7", "name": self.experiments[0]}}
            case "experiments/create":
                self.experiments.append(body["name"])
                return 200, {"experiment_id": "7"}
            case "runs/create" | "runs/get":
                return 200, {"run": run}
            case "runs/update":
                return 200, {"run_info": run["info"]}
            case "runs/log-batch" | "runs/log-inputs":
                return 200, {}
        return 404, {"error_code": "ENDPOINT_NOT_FOUND", "message": path}

    def bodies(self, path: str) -> list[dict[str, Any]]:
        return [body for found, body in self.requests if found == path]

    def batched(self, kind: str) -> dict[str, str]:
        """Parameters or tags that came after the run was made."""
        found = [each for body in self.bodies("runs/log-batch") for each in body.get(kind, ())]
        return {each["key"]: each["value"] for each in found}


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Iterator[Double]:
    """A server that the environment names."""
    served = Double()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = urlsplit(self.path).path.removeprefix("/api/2.0/mlflow/")
            status, answer = served.answer(path, json.loads(text or b"{}"))
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        do_GET = do_POST  # noqa: N815 - a name of http.server

        def log_message(self, *_: object) -> None: ...

    for name in ("MLFLOW_EXPERIMENT_ID", "MLFLOW_EXPERIMENT_NAME"):
        monkeypatch.delenv(name, raising=False)
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{server.server_port}")
        yield served
        server.shutdown()
        thread.join()


def run(text: str, end: Exception | None = None, **facts: Any) -> list[str]:
    """Track a statement that ends so, and return the notes."""
    [statement] = parse(text)
    notes: list[str] = []

    def ends() -> Result:
        if end is not None:
            raise end
        return Result(statement, **facts)

    source = "duckdb:///shop.duckdb"
    run_tracked(statement, ends, notes.append, dialect="duckdb", source=source, models=source)
    return notes


def test_a_training_is_a_run_with_its_parameters_tables_and_version(double: Double) -> None:
    assert run(TRAIN, curve=CURVE, **RESULT) == []
    [made] = double.bodies("runs/create")
    assert (made["experiment_id"], made["run_name"]) == ("7", "costs")
    assert double.experiments == ["sqlflow"]
    assert {tag["key"]: tag["value"] for tag in made["tags"]}["sqlflow.statement"] == TRAIN
    assert double.batched("params") == {
        "model": "DNNRegressor",
        "label": "y",
        "columns": "x, EMBEDDING(city, 8)",
        "model.hidden_units": "[32, 16]",
        "optimizer": "adam",
    }
    [inputs] = double.bodies("runs/log-inputs")
    assert [each["dataset"]["name"] for each in inputs["datasets"]] == ["shop.visits"]
    assert double.batched("tags") == {
        "mlflow.runName": "costs@3",
        "mlflow.note.content": RESULT["message"],
        "sqlflow.job": RESULT["job"],
        "sqlflow.measured_on": "10 validation rows",
        "sqlflow.model": "costs@3",
        "sqlflow.model_store": "duckdb:///shop.duckdb",
    }
    assert [body["status"] for body in double.bodies("runs/update")] == ["FINISHED"]


@pytest.mark.soak
def test_figures_are_metrics_by_epoch_and_those_without_a_value_are_left_out(double: Double) -> None:
    run(TRAIN, curve=CURVE, **RESULT)
    found = [each for body in double.bodies("runs/log-batch") for each in body.get("metrics", ())]
    assert [(each["key"], each["value"], each.get("step", 0)) for each in found] == [
        ("training_loss", 1.0, 1),
        ("validation_loss", 2.0, 1),
        ("training_loss", 0.5, 2),
        ("validation_loss", 1.0, 2),
        ("rmse", 0.5, 0),
    ]


def test_a_training_that_fails_says_why(double: Double) -> None:
    with pytest.raises(SemanticError, match="no rows"):
        run(TRAIN, SemanticError("there are no rows"))
    assert double.batched("tags") == {"sqlflow.error": "there are no rows"}
    assert [body["status"] for body in double.bodies("runs/update")] == ["FAILED"]


def test_the_experiment_is_the_environments(double: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "prices")
    run(TRAIN, **RESULT)
    run(TRAIN, **RESULT)
    assert double.experiments == ["prices"]
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "12")
    run(TRAIN, **RESULT)
    assert [body["experiment_id"] for body in double.bodies("runs/create")] == ["7", "7", "12"]


@pytest.mark.soak
def test_a_prediction_is_no_run(double: Double) -> None:
    assert run(PREDICT) == []
    assert double.requests == []


@pytest.mark.soak
def test_a_server_that_refuses_is_a_note_and_the_statement_runs(
    double: Double, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        double, "answer", lambda path, body: (403, {"error_code": "PERMISSION_DENIED", "message": "no"})
    )
    [note] = run(TRAIN, **RESULT)
    assert note.startswith("MLflow was not told: ")


def test_a_run_does_not_stay_open_if_its_parameters_are_refused(
    double: Double, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, refused = double.answer, (400, {"error_code": "INVALID_PARAMETER_VALUE", "message": "no"})
    monkeypatch.setattr(
        double, "answer", lambda path, body: (answer(path, body), refused)["log-batch" in path]
    )
    [note] = run(TRAIN, **RESULT)
    assert note.startswith("MLflow was not told: ")
    assert [body["status"] for body in double.bodies("runs/update")] == ["FAILED"]
