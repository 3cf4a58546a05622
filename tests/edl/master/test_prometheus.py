"""The figures of a job as Prometheus reads them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from edl.jobs.snapshot import Counts, Row, ServerCounts, Snapshot, Staleness
from edl.master.reporting.prometheus import JobCollector, MetricReading
from edl.ps.checkpoint.content import Version
from edl.ps.messages import Figures

SNAPSHOT = Snapshot(
    "",
    "",
    tasks={"train": Counts(5, 2, 1), "evaluate": Counts(done=4)},
    epoch=2,
    epochs=9,
    rows=81_920,
    step=160,
    loss=0.5,
    rate=1234.5,
    instances=(
        Row("worker-0", "worker", 2, "running", "pid 7", "", 2, "train task 3"),
        Row("worker-1", "worker", 0, "running", "pid 8"),
        Row("ps-0", "ps", 1, "pending", "pid 9", "127.0.0.1:4712", 1),
    ),
    generation=3,
    master_relaunches=1,
)
READING = MetricReading(SNAPSHOT, None, {}, 17, (3, 0.25), (2, 1.5), None)


def scrape_metrics(reading: MetricReading | None) -> dict[str, float]:
    """What Prometheus makes of it, by name and the values of labels, which come by their names."""
    registry = CollectorRegistry()
    registry.register(JobCollector(lambda: reading))
    text = generate_latest(registry).decode()
    assert not any(secret in text for secret in ("pid", "127.0.0.1"))
    return {
        " ".join((sample.name, *sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_progress_of_a_job() -> None:
    found = scrape_metrics(READING)
    assert [found[f"edl_tasks {state} train"] for state in ("todo", "doing", "done")] == [5, 2, 1]
    assert found["edl_tasks done evaluate"] == 4
    names = ("rows", "rows_per_second", "steps", "epoch", "epochs", "generation", "loss")
    assert [found[f"edl_{name}"] for name in names] == [81_920, 1234.5, 160, 2, 9, 3, 0.5]


def test_instances_by_role_and_state_and_how_often_they_were_started_again() -> None:
    found = scrape_metrics(READING)
    assert (found["edl_instances worker running"], found["edl_instances ps pending"]) == (2, 1)
    relaunches = [found[f"edl_relaunches_total {role}"] for role in ("master", "ps", "worker")]
    assert relaunches == [1, 1, 2]


def test_the_group_and_who_is_in_it() -> None:
    found = scrape_metrics(READING._replace(group=(7, 3)))
    assert (found["edl_group"], found["edl_group_members"]) == (7, 3)


def test_what_the_master_does_for_it() -> None:
    found = scrape_metrics(READING)
    assert found["edl_exchanges_total"] == 17
    assert (found["edl_state_store_write_seconds_count"], found["edl_state_store_write_seconds_sum"]) == (
        3,
        0.25,
    )
    assert (found["edl_checkpoint_seconds_count"], found["edl_checkpoint_seconds_sum"]) == (2, 1.5)
    assert "edl_checkpoint_bytes" not in found
    assert scrape_metrics(READING._replace(checkpoint_bytes=4096))["edl_checkpoint_bytes"] == 4096


def test_what_parameter_servers_hold_and_do() -> None:
    figures = Figures(
        version=Version(1, 0, 9),
        rows={"a": 30, "b": 12},
        bytes=168,
        pulls=5,
        pushes=4,
        rows_pulled=50,
        rows_pushed=40,
        busy=0.5,
    )
    counts = ServerCounts(7, 3, 1, Staleness(reduced=2))
    snapshot = msgspec.structs.replace(SNAPSHOT, counts=counts)
    found = scrape_metrics(READING._replace(snapshot=snapshot, servers={"ps-0": figures, "ps-1": Figures()}))
    assert [found[f"edl_server_{name} ps-0"] for name in ("rows", "bytes", "step")] == [42, 168, 9]
    counted = ("pulls", "pushes", "pulled_rows", "pushed_rows", "busy_seconds")
    assert [found[f"edl_server_{name}_total ps-0"] for name in counted] == [5, 4, 50, 40, 0.5]
    totals = ("evicted_rows", "refused_gradients", "stale_gradients", "reduced_gradients")
    assert [found[f"edl_{name}_total"] for name in totals] == [7, 3, 1, 2]
    assert found["edl_server_rows ps-1"] == 0
    assert [found[f"edl_server_table_rows ps-0 {table}"] for table in "ab"] == [30, 12]


def test_what_is_not_known_is_left_out() -> None:
    found = scrape_metrics(READING._replace(snapshot=msgspec.structs.replace(SNAPSHOT, loss=None)))
    assert not [name for name in found if name.startswith(("edl_loss", "edl_group", "edl_server"))]


def test_a_master_that_ends_tells_nothing() -> None:
    assert scrape_metrics(None) == {}


def test_the_dashboard_shows_these_metrics_and_no_others(repository: Path) -> None:
    figures = Figures(version=Version(1, 0, 9), rows={"a": 30})
    full = READING._replace(group=(7, 3), servers={"ps-0": figures}, checkpoint_bytes=4096)
    served = {name.partition(" ")[0] for name in scrape_metrics(full)}
    dashboard = json.loads((repository / "samples" / "kubernetes" / "grafana.json").read_text())
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    assert set(re.findall(r"\bedl_\w+", " ".join(shown))) == served
    assert all('instance=~"$instance"' in expression for expression in shown)
    [_, jobs] = dashboard["templating"]["list"]
    assert jobs["definition"] == "label_values(edl_rows, instance)"
