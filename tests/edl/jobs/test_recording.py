"""Record of a job without a master, which other processes read."""

from __future__ import annotations

from pathlib import Path

from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.event_log import EventReader
from edl.jobs.events import EpochEnd, Progress
from edl.jobs.recording import JobRecorder
from edl.jobs.snapshot import read_snapshot

EPOCH = EpochEnd(1, 10, 0.5, {"loss": 0.6}, 1.5)


def progress(rows: int) -> Progress:
    return Progress("training", rows, 100, 50.0, 1, 5, rows // 10, 0.7)


def test_epochs_can_be_read_while_the_job_runs(tmp_path: Path) -> None:
    folder = ClusterFolder(tmp_path)
    with JobRecorder(folder) as record, EventReader(folder.events) as reader:
        record(EPOCH)
        assert list(reader.read()) == [EPOCH]


def test_the_progress_is_recorded_at_most_once_a_second_and_at_the_end(tmp_path: Path) -> None:
    folder, now = ClusterFolder(tmp_path), [5.0]
    with JobRecorder(folder, clock=lambda: now[0]) as record:
        found = []
        for now[0], rows in ((5.0, 10), (5.5, 20), (6.0, 30), (6.1, 40)):
            record(progress(rows))
            snapshot = read_snapshot(folder.snapshot)
            assert snapshot is not None
            found.append((snapshot.rows, snapshot.step))
    assert found == [(10, 1), (10, 1), (30, 3), (30, 3)]
    last = read_snapshot(folder.snapshot)
    assert last is not None
    assert (last.rows, last.epoch, last.epochs, last.loss, last.rate) == (40, 1, 5, 0.7, 50.0)


def test_a_job_goes_on_when_it_cannot_be_recorded(tmp_path: Path) -> None:
    (tmp_path / "cluster").write_text("a file where the folder would be")
    with JobRecorder(ClusterFolder(tmp_path)) as record:
        record(EPOCH)
        record(progress(10))
    assert read_snapshot(ClusterFolder(tmp_path).snapshot) is None
