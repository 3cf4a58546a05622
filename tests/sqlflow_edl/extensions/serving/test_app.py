"""Requests to a server on a socket: predictions, what describes them, and what is refused."""

from __future__ import annotations

import re
import shutil
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from edl.data import connect
from edl.errors import UserCodeError
from edl.models.registry.factory import open_registry
from sqlflow_edl.extensions.serving.arrow_stream import MEDIA_TYPE, write_stream
from sqlflow_edl.extensions.serving.model import ServedModel
from sqlflow_edl.extensions.serving.prediction_endpoint import Limits, PredictionEndpoint
from tests.sales import new_sales
from tests.sqlflow_edl.extensions.serving.conftest import Client, Serve
from tests.sqlflow_edl.extensions.serving.test_catalog import RECORD

PREDICT = "/v1/models/kinds/predict"
ROW = {"amount": 3.5, "city": "Oslo", "day": "2026-05-04", "is_new": True}


def records() -> list[dict[str, Any]]:
    """The new rows as JSON has them."""
    return [{**row, "day": row["day"] and row["day"].isoformat()} for row in new_sales().to_pylist()]


@pytest.fixture
def stream() -> bytes:
    return write_stream(new_sales().to_batches()[0])


def test_each_form_of_the_rows_gets_the_same_predictions(
    serve: Serve, kinds: ServedModel, stream: bytes
) -> None:
    expected = kinds.predictor.predict(new_sales().to_batches()[0])
    rows = records()
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    with serve() as client:
        by_row = client.ask("POST", PREDICT, {"records": rows})
        by_column = client.ask("POST", PREDICT, {"columns": columns})
        arrow = client.ask("POST", PREDICT, stream, content_type=MEDIA_TYPE)
        mixed = client.ask("POST", PREDICT, stream, content_type=MEDIA_TYPE, accept="application/json")
    assert by_row.json == {"model": "kinds", "version": 1, "predictions": expected.to_pylist()}
    assert by_column.json["predictions"] == mixed.json["predictions"] == expected.to_pydict()
    assert pa.ipc.open_stream(arrow.body).read_all().to_batches() == [expected]
    assert arrow.headers["content-type"] == MEDIA_TYPE
    assert arrow.headers["sqlflow-model"] == "kinds@1"


@pytest.mark.soak
def test_a_large_request_is_answered_like_a_small_one(serve: Serve, kinds: ServedModel) -> None:
    batch = pa.concat_batches(new_sales().to_batches() * 9000)
    with serve() as client:
        found = client.ask("POST", PREDICT, write_stream(batch), content_type=MEDIA_TYPE)
    assert pa.ipc.open_stream(found.body).read_all().to_batches() == [kinds.predictor.predict(batch)]


def test_settings_are_parameters_of_the_request(serve: Serve) -> None:
    with serve() as client:
        found = client.ask("POST", "/v1/models/costs/predict?interval=0.9", {"records": [ROW]})
        refused = client.ask("POST", f"{PREDICT}?interval=0.9", {"records": [ROW]})
        wrong = client.ask("POST", f"{PREDICT}?threshold=high", {"records": [ROW]})
        more = client.ask("POST", f"{PREDICT}?extra_outputs=probabilities,%20logits", {"records": [ROW]})
    assert list(found.json["predictions"][0]) == ["cost", "cost_low", "cost_high"]
    assert refused.json["error"]["message"].startswith(
        "an interval is of a number, and kinds@1 predicts the class"
    )
    assert wrong.json["error"]["message"] == "threshold is not a number: 'high'"
    assert list(more.json["predictions"][0])[-3:] == ["kind_prob_large", "kind_prob_near", "kind_logits"]


@pytest.mark.variants(3)
@pytest.mark.parametrize(
    ("body", "error"),
    [
        (
            {"records": [ROW, {**ROW, "amount": "much"}]},
            {
                "code": "invalid_value",
                "message": "column amount, row 1: 'much' is not a number",
                "column": "amount",
                "row": 1,
                "value": "much",
                "expected": "a number",
            },
        ),
        (
            {"records": [{"amount": 1}]},
            {
                "code": "invalid_value",
                "message": "row 0 lacks the column city; write null for an unknown value",
                "column": "city",
                "row": 0,
                "expected": "a value or null",
            },
        ),
        ({"rows": []}, {"code": "invalid_request", "message": "the body has no rows"}),
        (b"{", {"code": "invalid_request", "message": "the body is not JSON: Input data was truncated"}),
        (
            b'{"records": [{"city": "\xff"}]}',
            {
                "code": "invalid_request",
                "message": "the body is not JSON: 'utf-8' codec can't decode byte 0xff in position 0: "
                "invalid start byte",
            },
        ),
    ],
)
def test_an_error_names_column_row_and_value(serve: Serve, body: object, error: dict[str, object]) -> None:
    with serve() as client:
        found = client.ask("POST", PREDICT, body, content_type="application/json")
    assert found.status == 400
    assert {name: value for name, value in found.json["error"].items() if name != "hint"} == error


def test_unknown_models_paths_and_types_have_their_own_status(serve: Serve) -> None:
    with serve() as client:
        unknown = client.ask("POST", "/v1/models/kind/predict", {"records": []})
        version = client.ask("POST", "/v1/models/kinds/versions/9/predict", {"records": []})
        path = client.ask("GET", "/v2/models")
        method = client.ask("DELETE", "/v1/models")
        got = client.ask("GET", PREDICT)
        text = client.ask("POST", PREDICT, b"a,b", content_type="text/csv")
        asked = client.ask("POST", f"{PREDICT}?treshold=0.3", {"records": []})
    assert unknown.json["error"]["hint"] == "did you mean kinds?"
    assert version.json["error"]["message"] == "model kinds has no version 9"
    assert asked.json["error"]["hint"] == "did you mean threshold?"
    found = [each.status for each in (unknown, version, path, method, got, text, asked)]
    assert found == [404, 404, 404, 405, 405, 415, 400]


def test_a_request_beyond_the_limits_is_refused(serve: Serve, stream: bytes) -> None:
    with serve(limits=Limits(bytes=1000, rows=2)) as client:
        rows = client.ask("POST", PREDICT, {"records": [{}, {}, {}]})
        long = client.ask("POST", PREDICT, b" " * 1001, content_type="application/json")
        chunked = client.ask("POST", PREDICT, [b" " * 600] * 2, content_type="application/json")
    assert [each.status for each in (rows, long, chunked)] == [413, 413, 413]
    assert rows.json["error"]["message"] == "the request has more than 2 rows"
    assert long.json["error"]["message"] == "the body has more than 1,000 bytes"


def test_an_error_of_a_users_code_is_told_to_the_log_alone(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(*_: object) -> None:
        raise UserCodeError("/srv/nets.py:7, in transform: KeyError: 'x'", hint="rows['x']")

    monkeypatch.setattr(PredictionEndpoint, "_answer_prediction", failing)
    with serve() as client:
        found = client.ask("POST", PREDICT, {"records": [ROW]})
    assert found.status == 500
    assert found.json["error"] == {
        "code": "program",
        "message": "the code of a model or function failed in kinds",
        "hint": "the server's log has the line and the error",
    }


def test_an_answer_that_takes_too_long_is_an_error(serve: Serve) -> None:
    with serve(limits=Limits(seconds=1e-6)) as client:
        found = client.ask("POST", PREDICT, {"records": [ROW]})
    assert (found.status, found.json["error"]["code"]) == (504, "timeout")


def test_a_token_is_demanded_of_all_but_probes(serve: Serve) -> None:
    with serve(token="s3cret") as client:  # noqa: S106
        without = client.ask("POST", PREDICT, {"records": [ROW]})
        wrong = client.ask("GET", "/metrics", authorization="Bearer s3cre")
        right = client.ask("POST", PREDICT, {"records": [ROW]}, authorization="Bearer s3cret")
        probes = [client.ask("GET", path) for path in ("/healthz", "/readyz")]
        document = client.ask("GET", "/openapi.json", authorization="bearer s3cret").json
    assert [each.status for each in (without, wrong, right, *probes)] == [401, 401, 200, 200, 200]
    assert without.headers["www-authenticate"] == "Bearer"
    assert document["security"] == [{"token": []}]


def test_a_page_of_another_host_cannot_ask_through_a_browser(serve: Serve) -> None:
    with serve() as client:
        tricked = client.ask("GET", "/v1/models", host="evil.example:80")
        own = client.ask("GET", "/v1/models", host="localhost:1")
    assert [tricked.status, own.status] == [403, 200]


def test_models_are_described(serve: Serve) -> None:
    with serve() as client:
        listed = client.ask("GET", "/v1/models").json["models"]
        described = client.ask("GET", "/v1/models/kinds").json
    assert [each["name"] for each in listed] == ["costs", "kinds"]
    assert described["columns"][2] == {
        "name": "day", "type": "date32[day]", "json": "a date such as 2026-01-31",
    }  # fmt: skip
    assert described["classes"] == ["far", "large", "near"]
    assert [each["version"] for each in described["versions"]] == [1]
    assert described["metrics"].keys() >= {"loss", "accuracy"}


@pytest.mark.soak
def test_the_openapi_document_has_the_columns_of_each_model(serve: Serve) -> None:
    with serve() as client:
        found = client.ask("GET", "/openapi.json").json
    schemas = found["components"]["schemas"]
    assert schemas["kinds.Row"]["required"] == ["amount", "city", "day", "is_new"]
    assert schemas["kinds.Row"]["properties"]["day"]["format"] == "date"
    assert "kind_prob_near" in schemas["kinds.Prediction"]["properties"]
    references = set(re.findall(r"#/components/schemas/([^'\"]+)", str(found)))
    assert references == {"Error", "kinds.Row", "kinds.Prediction", "costs.Row", "costs.Prediction"}
    assert "/v1/models/kinds/versions/{version}/predict" in found["paths"]


def test_metrics_count_requests_and_rows(serve: Serve) -> None:
    with serve() as client:
        client.ask("POST", PREDICT, {"records": [ROW, ROW]})
        client.ask("POST", "/v1/models/x/predict", {"records": [ROW]})
        page = client.ask("GET", "/metrics").body.decode()
    lines = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    assert lines['sqlflow_serve_requests_total{model="kinds",status="200"}'] == "1.0"
    assert lines['sqlflow_serve_requests_total{model="",status="404"}'] == "1.0"
    assert lines['sqlflow_serve_rows_total{model="kinds"}'] == "2.0"
    assert lines['sqlflow_serve_model_version{model="costs"}'] == "1.0"


def test_a_new_version_takes_over_while_requests_are_answered(
    serve: Serve, source: str, archives: dict[str, Path], tmp_path: Path
) -> None:
    shutil.copy(source.removeprefix("duckdb:///"), tmp_path / "models.duckdb")
    url = f"duckdb:///{tmp_path}/models.duckdb"
    with serve(url) as client:
        answers = asked_until(client, lambda: saved(url, archives["kinds"]))
        old = client.ask("POST", "/v1/models/kinds/versions/1/predict", {"records": [ROW]}).json
    assert {status for status, _ in answers} == {200}
    assert [version for _, version in answers] == sorted(version for _, version in answers)
    assert old["version"] == 1


def saved(url: str, archive: Path) -> None:
    with connect(url) as source:
        open_registry(source).save("kinds", archive, RECORD)


def asked_until(client: Client, change: Any) -> list[tuple[int, int]]:
    """The status and version of all answers, from before a change until the second version has answered."""
    answers = [answered(client)]
    thread = threading.Thread(target=change)
    thread.start()
    while answers[-1][1] == 1:
        answers.append(answered(client))
    thread.join()
    return answers


def answered(client: Client) -> tuple[int, int]:
    found = client.ask("POST", PREDICT, {"records": [ROW]})
    return found.status, found.json.get("version", 0)
