"""Job metrics in the Prometheus format, read from the master at each scrape.

A scrape needs no token, so nothing here is secret: numbers, and the names of roles, states and instances.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from edl.jobs.snapshot import ServerCounts, Snapshot
from edl.ps.messages import Figures


class MetricReading(NamedTuple):
    """State of a master at one moment.

    `group` is the number and size of the worker group, or None without one. `servers` are the last reported figures by
    name. `state_store` and `checkpoints` are counts of writes and their total seconds. `checkpoint_bytes` is the size
    of the last checkpoint, or None without one.
    """

    snapshot: Snapshot
    group: tuple[int, int] | None
    servers: Mapping[str, Figures]
    exchanges: int
    state_store: tuple[int, float]
    checkpoints: tuple[int, float]
    checkpoint_bytes: int | None


class JobCollector(Collector):
    """Prometheus collector. `read` is called at each scrape, in the thread of the scrape; it returns None when the
    master is shutting down.
    """

    def __init__(self, read: Callable[[], MetricReading | None]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        reading = self._read()
        if reading is None:
            return
        yield from _progress(reading.snapshot)
        yield from _instances(reading.snapshot)
        if reading.group is not None:
            yield from _group(*reading.group)
        yield from _upkeep(reading)
        if reading.servers:
            yield from _counts(reading.snapshot.counts)
            yield from _servers(reading.servers)

    def describe(self) -> list[Metric]:
        """Return nothing, so that registering does not call the master."""
        return []


def _progress(snapshot: Snapshot) -> Iterator[Metric]:
    tasks = GaugeMetricFamily("edl_tasks", "Tasks, by type and state", labels=("type", "state"))
    for kind, counts in snapshot.tasks.items():
        for state in ("todo", "doing", "done"):
            tasks.add_metric((kind, state), getattr(counts, state))
    yield tasks
    yield GaugeMetricFamily("edl_rows", "Rows done, over all epochs", snapshot.rows)
    yield GaugeMetricFamily("edl_rows_per_second", "Recent rows per second", snapshot.rate)
    yield GaugeMetricFamily("edl_steps", "Trained minibatches", snapshot.step)
    yield GaugeMetricFamily("edl_epoch", "Present epoch, counted from 1", snapshot.epoch)
    yield GaugeMetricFamily("edl_epochs", "Maximum number of epochs", snapshot.epochs)
    yield GaugeMetricFamily(
        "edl_generation", "Generation, which grows when the job is rolled back", snapshot.generation
    )
    if snapshot.loss is not None:
        yield GaugeMetricFamily("edl_loss", "Mean loss of the rows of this epoch so far", snapshot.loss)


def _counts(counts: ServerCounts) -> Iterator[Metric]:
    """Yield what all servers have counted since the start of the job, also earlier ones."""
    yield CounterMetricFamily(
        "edl_evicted_rows", "Rows that were evicted from embedding tables", counts.evicted
    )
    yield CounterMetricFamily("edl_refused_gradients", "Gradients of ids that had no row yet", counts.refused)
    yield CounterMetricFamily(
        "edl_stale_gradients", "Gradients that came too late for their round", counts.stale
    )
    yield CounterMetricFamily(
        "edl_reduced_gradients", "Gradients beyond train.max_staleness", counts.staleness.reduced
    )


def _instances(snapshot: Snapshot) -> Iterator[Metric]:
    instances = GaugeMetricFamily("edl_instances", "Instances, by role and state", labels=("role", "state"))
    for (role, state), count in sorted(Counter((row.role, row.state) for row in snapshot.instances).items()):
        instances.add_metric((role, state), count)
    yield instances
    relaunches = Counter(master=snapshot.master_relaunches)
    for row in snapshot.instances:
        relaunches[row.role] += row.relaunches
    again = CounterMetricFamily("edl_relaunches", "Restarted instances", labels=("role",))
    for role, count in sorted(relaunches.items()):
        again.add_metric((role,), count)
    yield again


def _group(number: int, members: int) -> Iterator[Metric]:
    yield GaugeMetricFamily("edl_group", "Number of the last worker group", number)
    yield GaugeMetricFamily("edl_group_members", "Workers in the last group", members)


def _upkeep(reading: MetricReading) -> Iterator[Metric]:
    yield CounterMetricFamily(
        "edl_exchanges", "Requests of workers answered by this master", reading.exchanges
    )
    yield SummaryMetricFamily(
        "edl_state_store_write_seconds", "Writes to the state store", *reading.state_store
    )
    yield SummaryMetricFamily("edl_checkpoint_seconds", "Checkpoints", *reading.checkpoints)
    if reading.checkpoint_bytes is not None:
        yield GaugeMetricFamily(
            "edl_checkpoint_bytes", "Size of the last checkpoint", reading.checkpoint_bytes
        )


def _servers(servers: Mapping[str, Figures]) -> Iterator[Metric]:
    """Yield the size and counters of each parameter server."""
    gauges: dict[str, tuple[str, Callable[[Figures], float]]] = {
        "rows": ("Rows held", lambda figures: sum(figures.rows.values())),
        "bytes": ("Bytes of parameters, rows and slots held", lambda figures: figures.bytes),
        "step": ("Applied steps", lambda figures: figures.version.step),
        "logged_bytes": ("Bytes of the update log since the last checkpoint", lambda figures: figures.logged),
        "max_staleness": (
            "Updates that the most stale gradient was behind",
            lambda figures: figures.staleness.maximum,
        ),
    }
    counters: dict[str, tuple[str, Callable[[Figures], float]]] = {
        "pulls": ("Answered pulls", lambda figures: figures.pulls),
        "pushes": ("Answered pushes", lambda figures: figures.pushes),
        "pulled_rows": ("Pulled rows", lambda figures: figures.rows_pulled),
        "pushed_rows": ("Rows whose gradients were pushed", lambda figures: figures.rows_pushed),
        "staleness": (
            "Updates that gradients were behind, added up",
            lambda figures: figures.staleness.total,
        ),
        "busy_seconds": ("Seconds spent in calls of workers", lambda figures: figures.busy),
    }
    rows = GaugeMetricFamily("edl_server_table_rows", "Rows held of a table", labels=("server", "table"))
    for server, figures in sorted(servers.items()):
        for table, count in sorted(figures.rows.items()):
            rows.add_metric((server, table), count)
    yield rows
    for kind, of in ((GaugeMetricFamily, gauges), (CounterMetricFamily, counters)):
        for name, (text, value) in of.items():
            family = kind(f"edl_server_{name}", text, labels=("server",))
            for server, figures in sorted(servers.items()):
                family.add_metric((server,), value(figures))
            yield family
