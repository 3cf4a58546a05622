"""Spans of statements, their jobs and pods, as a collector of OpenTelemetry gets them over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from edl.errors import SemanticError
from edl.jobs import job_folder
from sqlflow_edl.extensions.lineage import run_tracked
from sqlflow_edl.reports.result import Result
from sqlflow_edl.syntax import parse
from tests.edl.cluster.local.conftest import wait_until
from tests.sqlflow_edl.backends.kubernetes.conftest import kubeconfig, namespace, play
from tests.sqlflow_edl.backends.kubernetes.play import Play

__all__ = ["kubeconfig", "namespace", "play"]

TRAIN = "SELECT x, y FROM shop.visits TO TRAIN DNNRegressor LABEL y INTO costs"
SOURCE = "mysql://u@db/shop"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
Spans = list[dict[str, Any]]


class Collector(HTTPServer):
    """Collector on loopback. requests: path, headers and body of each."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def spans(self) -> Spans:
        [(_, _, body)] = self.requests
        [spans] = [scope["spans"] for each in body["resourceSpans"] for scope in each["scopeSpans"]]
        return spans  # type: ignore[no-any-return]


class Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append((self.path, headers, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    server = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}/")
    yield server
    server.shutdown()
    server.server_close()


def track(end: Callable[[], Result], notes: list[str] | None = None) -> Result:
    [statement] = parse(TRAIN)
    told = [] if notes is None else notes
    return run_tracked(statement, end, told.append, dialect="mysql", source=SOURCE, models=SOURCE)


def facts(span: dict[str, Any]) -> dict[str, str]:
    return {each["key"]: each["value"]["stringValue"] for each in span["attributes"]}


def test_a_statement_and_its_job_are_spans_of_the_given_trace(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", PARENT)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=ads%20a")
    [statement] = parse(TRAIN)

    def end() -> Result:
        folder = job_folder.create("train", TRAIN)
        folder.end("done")
        return Result(statement, model="costs@3", job=folder.id)

    result = track(end)
    [(path, headers, body)] = collector.requests
    assert (path, headers["x-team"]) == ("/v1/traces", "ads a")
    assert body["resourceSpans"][0]["resource"]["attributes"][0]["value"] == {"stringValue": "sqlflow-edl"}
    whole, job = collector.spans
    assert (whole["name"], job["name"]) == ("TRAIN costs", "job train")
    assert (whole["traceId"], whole["parentSpanId"]) == tuple(PARENT.split("-")[1:3])
    assert job["parentSpanId"] == whole["spanId"]
    assert (facts(whole)["db.query.text"], facts(whole)["sqlflow.model"]) == (TRAIN, "costs@3")
    assert facts(job)["sqlflow.job"] == result.job
    assert int(whole["startTimeUnixNano"]) <= int(whole["endTimeUnixNano"])


def test_a_statement_that_fails_says_why_beside_the_job_that_it_started(collector: Collector) -> None:
    def end() -> Result:
        job_folder.create("train", TRAIN).end("failed", "the rows are gone")
        raise SemanticError("it has failed")

    with pytest.raises(SemanticError):
        track(end)
    whole, job = collector.spans
    assert whole["status"] == {"code": 2, "message": "it has failed"}
    assert job["status"] == {"code": 2, "message": "the rows are gone"}


def test_each_pod_of_a_job_is_a_span_with_its_end(collector: Collector, play: Play) -> None:
    play.start()
    play.worker("worker-0", "exit 3")
    play.says("exit 0")
    wait_until(lambda: all(pod["status"]["phase"] in ("Succeeded", "Failed") for pod in play.pods()))
    [statement] = parse(TRAIN)
    track(lambda: Result(statement, job=play.folder.id))
    _, job, *pods = collector.spans
    assert {pod["name"]: facts(pod)["sqlflow.exit_code"] for pod in pods} == {
        "pod master": "0",
        "pod worker-0": "3",
    }
    assert {pod["parentSpanId"] for pod in pods} == {job["spanId"]}
    [failed] = [pod for pod in pods if "status" in pod]
    assert failed["name"] == "pod worker-0"
    assert int(failed["startTimeUnixNano"]) > 1e18


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "spans are sent by HTTP alone"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9", "refused"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "file:///etc", "not a URL with http://"),
    ],
)
def test_a_collector_that_cannot_be_told_is_a_note(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, why: str
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv(name, value)
    notes: list[str] = []
    [statement] = parse(TRAIN)
    track(lambda: Result(statement), notes)
    [note] = notes
    assert note.startswith("OpenTelemetry was not told: ")
    assert why in note
