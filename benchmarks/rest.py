"""`sqlflow serve`: latency of one row of JSON, and rows per second of an Arrow stream, over the loopback interface."""

from __future__ import annotations

import http.client
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.table import Row
from sqlflow_edl.extensions.serving.arrow_stream import MEDIA_TYPE, write_stream
from sqlflow_edl.session.session import Session

LATENCY_AIM = 5.0  # ms, the median of a single client
RATE_AIM = 1_000_000  # rows/s
REQUESTS = 1000
CLIENTS = 8
WARM_UP = 50
COLUMNS = ("a", "b", "c", "d")
ROW = b'{"records": [{"a": 0.1, "b": 0.2, "c": null, "d": 0.4}]}'
MODELS = {
    "small PyTorch net": "DNNClassifier WITH model.framework = torch, members = 1, hidden_units = [16], epochs = 1",
    "small Keras net": "DNNClassifier WITH model.framework = keras, members = 1, hidden_units = [16], epochs = 1",
    "25 trees": "BoostedTreesClassifier WITH train.num_boost_round = 25",
}


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    """Measure each model; `rows` is the size of a stream."""
    url = f"duckdb:///{folder}/rest.duckdb"
    draw = np.random.default_rng(3)
    training = pa.table({name: draw.normal(size=2000) for name in COLUMNS})
    with Session(url, create=True) as session:
        session.source.stage("t", "bench", 0, 0, training.to_reader())
        session.source.commit("t", "bench", 1)
        for number, using in enumerate(MODELS.values()):
            text = (
                f"SELECT *, CASE WHEN a + b > 0 THEN 'yes' ELSE 'no' END AS y FROM t TO TRAIN {using} LABEL y"
            )
            for _ in session.run(f"{text} INTO m{number}"):
                pass
    stream = write_stream(pa.record_batch({name: draw.normal(size=rows) for name in COLUMNS}))
    table = []
    with _serving(url) as port:
        for number, name in enumerate(MODELS):
            path = f"/v1/models/m{number}/predict"
            alone = _latencies(port, path, REQUESTS)
            many = _together(port, path)
            rates = [_rate(port, path, stream, rows) for _ in range(rounds + 1)][1:]
            table += _rows(name, alone, many, statistics.median(rates))
    return table


def _rows(name: str, alone: list[float], many: tuple[float, float], rate: float) -> list[Row]:
    median, late = statistics.median(alone), statistics.quantiles(alone, n=100)[98]
    least = RATE_AIM if name.startswith("small") else None
    return [
        Row(f"one row, {name}", f"p50 {median:.2f} ms, p99 {late:.2f} ms", value=median, most=LATENCY_AIM),
        Row(f"{CLIENTS} clients of one row, {name}", f"{many[0]:,.0f} requests/s, p50 {many[1]:.2f} ms"),
        Row(f"Arrow stream, {name}", f"{rate:,.0f} rows/s", value=rate, least=least),
    ]


@contextmanager
def _serving(url: str) -> Iterator[int]:
    """Serve in a process of its own; the port."""
    command = [
        sys.executable,
        "-m",
        "sqlflow_edl.cli.main",
        "serve",
        "--source",
        url,
        "--port",
        "0",
        "--timeout",
        "300",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = None
        for line in process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                break
        try:
            yield int(found[1]) if found else 0
        finally:
            process.terminate()


def _latencies(port: int, path: str, requests: int) -> list[float]:
    """Milliseconds of each request of a client, without those that warm up."""
    found = []
    with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        for _ in range(WARM_UP + requests):
            began = time.perf_counter()
            _ask(connection, path, ROW, "application/json")
            found.append(1e3 * (time.perf_counter() - began))
    return found[WARM_UP:]


def _together(port: int, path: str) -> tuple[float, float]:
    """Return the requests per second of several clients at once, and the median of their milliseconds."""
    found: list[float] = []
    threads = [
        threading.Thread(target=lambda: found.extend(_latencies(port, path, REQUESTS // CLIENTS)))
        for _ in range(CLIENTS)
    ]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asked = CLIENTS * (WARM_UP + REQUESTS // CLIENTS)
    return asked / (time.perf_counter() - began), statistics.median(found)


def _rate(port: int, path: str, stream: bytes, rows: int) -> float:
    """Rows per second of one stream, from its first byte to the last of the answer."""
    with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        began = time.perf_counter()
        body = _ask(connection, path, stream, MEDIA_TYPE)
        seconds = time.perf_counter() - began
    assert pa.ipc.open_stream(body).read_all().num_rows == rows
    return rows / seconds


def _ask(connection: http.client.HTTPConnection, path: str, body: bytes, kind: str) -> bytes:
    connection.request("POST", path, body, {"content-type": kind})
    answer = connection.getresponse()
    found = answer.read()
    assert answer.status == 200, found
    return found
