"""BigQuery's source by Google's unmodified client, where that is installed, on a double of its REST interface."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from edl.data import Source
from edl.errors import SourceError
from edl.extensions.warehouses.bigquery import BigQuerySource
from tests import bigquery_server


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    monkeypatch.syspath_prepend(Path(sys.prefix) / "bigquery")  # where `make` installs it
    bigquery = pytest.importorskip("google.cloud.bigquery", reason="no google-cloud-bigquery")
    credentials = pytest.importorskip("google.auth.credentials")
    from google.api_core.exceptions import GoogleAPIError

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("edl.extensions.warehouses.bigquery._storage", lambda: None)
    with bigquery_server.running() as url:
        client = bigquery.Client(
            project="acme",
            credentials=credentials.AnonymousCredentials(),
            client_options={"api_endpoint": url},
        )
        with BigQuerySource("bigquery://acme/shop", client, "shop", (GoogleAPIError,)) as opened:
            yield opened


@pytest.mark.soak
def test_a_result_takes_the_place_of_the_one_before_and_of_no_other_table(source: Source) -> None:
    for job, values in (("one", [1, 2]), ("two", [3, None])):
        source.stage("shop.result", job, 0, 0, [pa.record_batch({"a": values, "t": ["it's \\", None]})])
        assert source.commit("shop.result", job, 1) == 2
    found = source.stream("SELECT a, t FROM shop.result ORDER BY t").read_all().to_pylist()
    assert {row["a"]: row["t"] for row in found} == {3: "it's \\", None: None}
    source.execute("CREATE TABLE shop.mine (a INT64)")
    with pytest.raises(SourceError, match="not made by sqlflow-edl"):
        source.check_target("shop.mine")
    assert source.tables() == ["mine", "result"]
    assert source.databases() == ["shop"]


@pytest.mark.soak
def test_columns_are_read_after_a_dry_run(source: Source) -> None:
    query = (
        "SELECT CAST(1 AS INT64) AS n, CAST(0.5 AS FLOAT64) AS x, 'é' AS t, TRUE AS yes, DATE '2024-01-02' AS day,"
        " CAST(NULL AS STRING) AS nothing, [CAST(1 AS INT64), 2] AS numbers"
    )
    found = source.stream(query).read_all()
    assert found.to_pylist() == [
        {
            "n": 1,
            "x": 0.5,
            "t": "é",
            "yes": True,
            "day": dt.date(2024, 1, 2),
            "nothing": None,
            "numbers": [1, 2],
        }
    ]
    assert source.schema(query) == found.schema
    assert (
        source.stream("SELECT CAST(1 AS INT64) AS n FROM (SELECT 1 AS i) WHERE i > 1").read_all().num_rows
        == 0
    )


@pytest.mark.soak
@pytest.mark.parametrize(
    ("query", "message", "marked", "hint"),
    [
        ("SELECT * FROM shop.irs", "Not found: Table acme:shop.irs", "shop.irs", "did you mean iris?"),
        ("SELECT 'nn' AS a,\n  nn FROM shop.iris", "Unrecognized name: nn", "nn FROM", "did you mean n?"),
        ("INSERT INTO shop.iris VALUES (1)", "this statement is not a query", "", "write a SELECT"),
    ],
)
def test_an_error_has_its_place_and_a_hint(
    source: Source, query: str, message: str, marked: str, hint: str | None
) -> None:
    source.execute("CREATE TABLE shop.iris (n INT64)")
    with pytest.raises(SourceError, match=message) as caught:
        source.schema(query)
    assert marked == "" or (caught.value.span and caught.value.span.start) == query.index(marked)
    assert caught.value.hint == hint
