"""Metrics of a server for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sqlflow_edl.extensions.serving.catalog import ModelCatalog

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
ROWS = (1, 2, 4, 8, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576)


class Metrics:
    """Counters of a server, with the versions that it serves. waiting: number of rows under way."""

    def __init__(self, catalog: ModelCatalog, waiting: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Models(catalog, waiting))
        self.requests = Counter(
            "sqlflow_serve_requests",
            "Answered requests for predictions",
            ("model", "status"),
            registry=self._registry,
        )
        self.rows = Counter("sqlflow_serve_rows", "Predicted rows", ("model",), registry=self._registry)
        self.seconds = Histogram(
            "sqlflow_serve_request_seconds",
            "Seconds from the headers of a request to its answer",
            ("model",),
            registry=self._registry,
            buckets=SECONDS,
        )
        self.batch_rows = Histogram(
            "sqlflow_serve_batch_rows",
            "Rows that were predicted together",
            registry=self._registry,
            buckets=ROWS,
        )
        self.batch_requests = Histogram(
            "sqlflow_serve_batch_requests",
            "Requests that were predicted together",
            registry=self._registry,
            buckets=ROWS[:9],
        )

    def batch(self, rows: int, requests: int) -> None:
        """Record a batch."""
        self.batch_rows.observe(rows)
        self.batch_requests.observe(requests)

    def page(self) -> bytes:
        """Return the metrics in the text format of Prometheus."""
        return generate_latest(self._registry)


class _Models(Collector):
    """Collector of what the catalog knows when it is asked."""

    def __init__(self, catalog: ModelCatalog, waiting: Callable[[], int]) -> None:
        self._catalog = catalog
        self._waiting = waiting

    def collect(self) -> Iterator[Metric]:
        versions = GaugeMetricFamily(
            "sqlflow_serve_model_version", "Version that is served", labels=("model",)
        )
        for name, loaded in sorted(self._catalog.loaded.items()):
            versions.add_metric((name,), loaded.version.version)
        yield versions
        yield GaugeMetricFamily(
            "sqlflow_serve_rows_under_way", "Rows of unanswered requests", self._waiting()
        )
        yield CounterMetricFamily(
            "sqlflow_serve_load_failures", "Versions that could not be loaded", self._catalog.failures
        )

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering does not ask the catalog."""
        return []
