"""What a job shows in a ConfigMap."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec
import pytest

from edl.cluster.kubernetes import names, status_map
from edl.cluster.kubernetes.status_map import StatusMap, read_end, read_snapshot
from edl.jobs.failure import Failed
from edl.jobs.snapshot import Row, Snapshot
from tests.edl.cluster.kubernetes.conftest import Site
from tests.kubernetes.faults import Fault

Sites = Callable[..., Site]
FAILED = Failed("runtime", "it broke")
LONG = 1000.0  # seconds between two writes


def shown(site: Site) -> dict[str, str]:
    found: dict[str, str] = site.kept(names.status(site.deployment.name)).get("data", {})
    return found


def snapshot(rows: int) -> Snapshot:
    return Snapshot("2026-01-01T00:00:00", f"2026-01-01T00:00:{rows % 60:02}", rows=rows)


def test_nothing_is_shown_before_there_is_something(site: Sites) -> None:
    found = shown(site())
    assert read_snapshot(found) is None
    assert read_end(found) is None


def test_the_last_figures_and_the_end_are_shown_and_few_writes_do(site: Sites) -> None:
    place = site()
    board = StatusMap(place.double.client(), place.deployment, LONG)
    place.double.requests()
    for rows in range(100):
        board.show(snapshot(rows))
    board.end(FAILED)
    board.close()
    assert read_snapshot(shown(place)) == snapshot(99)
    assert read_end(shown(place)) == FAILED
    assert sum(request.startswith("PUT") for request in place.double.requests()) <= 3
    assert place.kept(names.status(place.deployment.name))["metadata"]["labels"] == {"team": "a"}


def test_what_was_shown_last_is_written_when_it_is_closed(site: Sites) -> None:
    place = site()
    board = StatusMap(place.double.client(), place.deployment, LONG)
    for rows in range(2):
        board.show(snapshot(rows))
    board.close()
    assert read_snapshot(shown(place)) == snapshot(1)
    assert read_end(shown(place)) is None


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["drop", "throttle"])
def test_a_server_that_has_no_time_holds_nobody_up(site: Sites, kind: str) -> None:
    place = site()
    place.double.go_wrong(Fault(kind, "configmaps", times=2))  # type: ignore[arg-type]
    board = StatusMap(place.double.client(), place.deployment, LONG)
    board.show(snapshot(1))
    board.end(FAILED)
    board.close()
    assert read_end(shown(place)) == FAILED


def test_the_figures_of_thousands_of_instances_fit_into_a_config_map(site: Sites) -> None:
    place = site()
    board = StatusMap(place.double.client(), place.deployment, LONG)
    rows = [
        Row(
            f"worker-{number}",
            "worker",
            0,
            "running",
            f"node-{number % 97}",
            "",
            0,
            f"train task {7 * number}",
        )
        for number in range(10_000)
    ]
    large = msgspec.structs.replace(snapshot(1), instances=(*rows,), members=tuple(row.name for row in rows))
    board.show(snapshot(2))
    board.show(large)
    board.close()
    assert read_snapshot(shown(place)) == large
    assert sum(map(len, shown(place).values())) < 1 << 19


def test_figures_that_are_too_long_list_no_instances(site: Sites, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_map, "PLAIN", 1000)
    monkeypatch.setattr(status_map, "LIMIT", 1000)
    place = site()
    board = StatusMap(place.double.client(), place.deployment, LONG)
    names_of_rows = (hashlib.sha256(bytes([number])).hexdigest() for number in range(60))
    rows = tuple(Row(name, "worker", 0, "running") for name in names_of_rows)
    board.show(msgspec.structs.replace(snapshot(1), instances=rows))
    board.close()
    assert read_snapshot(shown(place)) == snapshot(1)


def test_what_cannot_be_read_is_not_there() -> None:
    assert read_snapshot({"snapshot.json": "{"}) is None
    assert read_snapshot({"snapshot.json.zlib": "%"}) is None
    assert read_snapshot({"snapshot.json.zlib": "AAAA"}) is None
    assert read_end({"end.json": '{"type": "progress"}'}) is None
