"""`/metrics` of a master, asked over HTTP."""

from __future__ import annotations

import asyncio
import socket
import urllib.request
from pathlib import Path

import pytest

from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.snapshot import Snapshot
from edl.master.reporting.counters import CheckpointTimes
from edl.master.reporting.metrics_server import MetricsServer
from edl.master.state import Checkpoint
from edl.tasks.job_state import JobState
from tests.edl.master.test_state_loop import run, state_loop


def asked(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


def watching(tmp_path: Path) -> tuple[MetricsServer, ClusterFolder, list[str]]:
    subject, _ = state_loop()
    notes: list[str] = []
    subject.tasks.log = notes.append
    folder = ClusterFolder(tmp_path)
    return (
        MetricsServer(subject, None, lambda: Snapshot("", "", rows=42), folder, tmp_path / "cuts"),
        folder,
        notes,
    )


def test_whoever_asks_gets_the_figures_of_the_moment(tmp_path: Path) -> None:
    subject, folder, notes = watching(tmp_path)

    async def scrape() -> str:
        await subject.serve()
        return await asyncio.to_thread(asked, folder.metrics())

    assert "\nedl_rows 42.0\n" in run(scrape())
    assert not notes
    assert asked(folder.metrics()) == ""  # the job has ended


def test_the_next_master_serves_where_the_one_before_did_unless_somebody_else_does(tmp_path: Path) -> None:
    subject, folder, notes = watching(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        before = f"127.0.0.1:{free.getsockname()[1]}"
    folder.write_metrics(before)
    run(subject.serve())
    assert folder.metrics() == before
    run(subject.serve())
    assert folder.metrics() not in ("", before)
    assert not notes


def test_a_port_that_cannot_be_had_harms_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject, folder, notes = watching(tmp_path)

    def refuse(*_: object) -> None:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr("prometheus_client.start_http_server", refuse)
        run(subject.serve())
    assert (folder.metrics(), notes) == ("", ["no metrics are served: Too many open files"])


def test_checkpoints_are_timed_from_their_beginning_to_their_end() -> None:
    times = CheckpointTimes("1")  # which a master before this one took
    for second, begun, last in ((0.0, [], "1"), (1.0, ["2"], "1"), (3.0, ["2"], "1"), (4.0, ["3"], "2")):
        times.look(begun, last, second)
    assert (times.complete.times, times.complete.seconds) == (1, 3.0)
    times.look([], "", 5.0)  # back to the start, and "3" came to nothing
    times.look([], "4", 5.5)  # begun and completed between two looks
    assert (times.complete.times, times.complete.seconds) == (2, 3.5)


def test_the_size_of_a_checkpoint_is_the_size_of_its_files(tmp_path: Path) -> None:
    subject, folder, _ = watching(tmp_path)
    (tmp_path / "cuts" / "7").mkdir(parents=True)
    (tmp_path / "cuts" / "7" / "weights").write_bytes(bytes(1000))
    subject._state_loop.tasks.state.checkpoint = Checkpoint("7", JobState())

    async def scrape() -> str:
        await subject.serve()
        return await asyncio.to_thread(asked, folder.metrics())

    assert "\nedl_checkpoint_bytes 1000.0\n" in run(scrape())


def test_without_a_port_nothing_is_served(tmp_path: Path) -> None:
    subject, _ = state_loop()
    folder = ClusterFolder(tmp_path)
    server = MetricsServer(subject, None, lambda: Snapshot("", ""), folder, tmp_path / "cuts", None)
    run(server.serve())
    assert folder.metrics() == ""
