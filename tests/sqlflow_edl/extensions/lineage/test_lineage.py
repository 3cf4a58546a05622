"""Events of statements, as the client of OpenLineage writes them to a file or sends them over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import sqlflow_edl
from edl.errors import SemanticError
from sqlflow_edl.extensions.lineage import run_tracked
from sqlflow_edl.reports.result import Result
from sqlflow_edl.syntax import parse

pytest.importorskip("openlineage.client")

TRAIN = "SELECT x, y FROM shop.visits TO TRAIN DNNRegressor LABEL y INTO costs"
PREDICT = "SELECT x FROM visits TO PREDICT guesses.y USING costs@2"
SOURCE = "duckdb:///shop.duckdb"
Events = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Events:
    """The events so far, which go to a file."""
    file = tmp_path / "events.json"
    for name, value in {"TYPE": "file", "LOG_FILE_PATH": str(file), "APPEND": "true"}.items():
        monkeypatch.setenv(f"OPENLINEAGE__TRANSPORT__{name}", value)
    return lambda: [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def run(text: str, end: Result | Exception, source: str = SOURCE, notes: list[str] | None = None) -> Result:
    """Track a statement that ends so."""
    [statement] = parse(text)

    def ends() -> Result:
        if isinstance(end, Exception):
            raise end
        return end

    notes = [] if notes is None else notes
    return run_tracked(statement, ends, notes.append, dialect="duckdb", source=source, models=source)


def datasets(found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(each["namespace"], each["name"]) for each in found]


def test_a_training_reads_tables_and_makes_a_version_with_its_figures(events: Events) -> None:
    [statement] = parse(TRAIN)
    run(TRAIN, Result(statement, model="costs@3", figures={"rmse": 0.5}, measured_on="20 validation rows"))
    start, end = events()
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == end["run"]["runId"]
    assert (end["job"]["namespace"], end["job"]["name"]) == ("sqlflow", "train.costs")
    assert end["job"]["facets"]["sql"]["query"] == TRAIN
    assert end["job"]["facets"]["jobType"]["jobType"] == "TRAIN"
    assert datasets(end["inputs"]) == [(SOURCE, "shop.visits")]
    assert datasets(end["outputs"]) == [(SOURCE, "costs")]
    assert end["outputs"][0]["facets"]["version"]["datasetVersion"] == "3"
    tags = {tag["key"]: tag["value"] for tag in end["run"]["facets"]["tags"]["tags"]}
    assert tags["rmse"] == "0.5"
    assert tags["measured_on"] == "20 validation rows"


def test_a_prediction_reads_a_model_and_counts_its_rows(
    events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "team")
    [statement] = parse(PREDICT)
    run(PREDICT, Result(statement, rows=7))
    end = events()[-1]
    assert (end["job"]["namespace"], end["job"]["name"]) == ("team", "predict.guesses")
    assert datasets(end["inputs"]) == [(SOURCE, "visits"), (SOURCE, "costs")]
    assert end["inputs"][1]["facets"]["version"]["datasetVersion"] == "2"
    assert end["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 7


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("mysql://u@db/shop", [("mysql://db:3306", "shop.visits"), ("mysql://db:3306", "shop.guesses")]),
        (
            "postgresql://u@db:5433/shop",
            [("postgres://db:5433", "shop.public.visits"), ("postgres://db:5433", "shop.public.guesses")],
        ),
    ],
)  # fmt: skip
def test_tables_of_servers_have_the_names_of_the_specification(
    events: Events, source: str, names: list[tuple[str, str]]
) -> None:
    [statement] = parse(PREDICT)
    run(PREDICT, Result(statement), source)
    end = events()[-1]
    assert [datasets(end["inputs"])[0], *datasets(end["outputs"])] == names


def test_a_statement_that_fails_says_why(events: Events) -> None:
    with pytest.raises(SemanticError, match="no rows"):
        run(TRAIN, SemanticError("there are no rows"))
    start, end = events()
    assert (start["eventType"], end["eventType"]) == ("START", "FAIL")
    assert end["run"]["facets"]["errorMessage"]["message"] == "there are no rows"


@pytest.mark.soak
def test_a_session_sends_the_events_of_its_statements(events: Events) -> None:
    with sqlflow_edl.connect("duckdb:") as session:
        list(session.run("CREATE TABLE toys AS SELECT 'a' AS product, 2 AS price, 3 AS most"))
        list(
            session.run(
                "SELECT * FROM toys TO MAXIMIZE SUM(price * amount) CONSTRAINT amount <= most "
                "WITH variables = 'amount(product)', var_type = NonNegativeIntegers INTO plan"
            )
        )
    assert [(each["eventType"], each["job"]["name"]) for each in events()] == [
        ("START", "optimize.plan"),
        ("COMPLETE", "optimize.plan"),
    ]


@pytest.mark.soak
def test_events_are_sent_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[str] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["eventType"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("OPENLINEAGE_URL", f"http://127.0.0.1:{server.server_port}")
        [statement] = parse(PREDICT)
        run(PREDICT, Result(statement))
        server.shutdown()
        thread.join()
    assert received == ["START", "COMPLETE"]


def test_a_receiver_that_cannot_be_told_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "no.such.Transport")
    [statement] = parse(PREDICT)
    notes: list[str] = []
    assert run(PREDICT, Result(statement, rows=3), notes=notes).rows == 3
    assert len(notes) == 1
    assert notes[0].startswith("OpenLineage was not told: ")


def test_other_statements_and_no_configuration_send_nothing(
    events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sqlflow_edl.connect("duckdb:") as session:
        list(session.run("SELECT 1; SHOW MODELS"))
    for name in ("TYPE", "LOG_FILE_PATH", "APPEND"):
        monkeypatch.delenv(f"OPENLINEAGE__TRANSPORT__{name}")
    [statement] = parse(PREDICT)
    run(PREDICT, Result(statement))
    with pytest.raises(FileNotFoundError):
        events()
