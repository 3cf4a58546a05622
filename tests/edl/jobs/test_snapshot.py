"""The figures of a running job."""

from __future__ import annotations

from pathlib import Path

from edl.jobs.snapshot import Counts, Row, Snapshot, read_snapshot

SNAPSHOT = Snapshot(
    "2026-01-01T00:00:00.000+00:00",
    "2026-01-01T00:00:01.000+00:00",
    tasks={"train": Counts(3, 2, 1), "evaluate": Counts(0, 0, 4)},
    epoch=2,
    instances=(
        Row("worker-0", "worker", 2, "running", "pid 7", relaunches=2),
        Row("worker-1", "worker", 1, "ended", relaunches=1),
    ),
)


def test_a_snapshot_replaces_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    assert read_snapshot(path) is None
    Snapshot("a", "b").write(path)
    SNAPSHOT.write(path)
    assert read_snapshot(path) == SNAPSHOT
    assert [file.name for file in tmp_path.iterdir()] == ["snapshot.json"]


def test_a_damaged_snapshot_is_none(tmp_path: Path) -> None:
    (tmp_path / "snapshot.json").write_text("{")
    assert read_snapshot(tmp_path / "snapshot.json") is None


def test_a_snapshot_counts_relaunches_and_progress() -> None:
    assert SNAPSHOT.relaunches == 3
    assert SNAPSHOT.progress == (2, 5)


def test_the_share_of_a_search_counts_its_time_or_its_trials() -> None:
    assert Snapshot("", "", phase="search", rows=8, total=84, seconds=18.0, limit=90.0).done_share == 0.2
    assert Snapshot("", "", phase="search", rows=21, total=84).done_share == 0.25
    assert Snapshot("", "", phase="training", rows=90, total=60).done_share == 1.0
    assert SNAPSHOT.done_share is None
