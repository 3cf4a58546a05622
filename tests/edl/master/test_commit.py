"""What a detached job made is committed once, by its own process or by a session, whichever can open the source."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import structs

from edl.data import connect
from edl.jobs import job_folder
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.event_log import EventLog
from edl.jobs.outcome import Outcome
from edl.master.commit import LONGEST_PAUSE, PATIENCE, commit_when_possible, main
from edl.models.pending import Intent, Rival, write_intent
from edl.models.registry.factory import open_registry
from edl.models.registry.records import ModelRecord

RECORD = ModelRecord("DNNRegressor", "torch", 100, {}, "SELECT …")
HOLDER = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"


class Time:
    """A clock that moves when somebody pauses."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def clock(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "x.duckdb"
    connect(f"duckdb:///{path}", create=True).close()
    return path


def finished(database: Path) -> tuple[job_folder.JobFolder, Intent]:
    """A detached job that has trained a model. Its supervisor is gone."""
    job = job_folder.create("train")
    intent = Intent("train", f"duckdb:///{database}", "m", RECORD)
    write_intent(job.path, intent)
    with EventLog(ClusterFolder(job.path).events) as events:
        events.write(Outcome("train", 100, 1.0, archive=job.archive.name))
    job.archive.write_bytes(b"weights")
    job.finish(1, "another process")
    return job, intent


def models(database: Path) -> list[str]:
    with closing(connect(f"duckdb:///{database}")) as source:
        return [found.reference for found in open_registry(source, "").list()]


def test_a_model_is_stored_when_nobody_has_the_source_open(database: Path) -> None:
    job, _ = finished(database)
    assert main([str(job.path)]) == 0
    assert job.status().state == "done"
    assert models(database) == ["m@1"]


def test_the_source_of_a_job_that_is_done_can_be_opened(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, _ = finished(database)
    free: list[bool] = []
    end = job_folder.JobFolder.end

    def ends(ended: job_folder.JobFolder, state: job_folder.State, error: str = "") -> job_folder.Status:
        holder = subprocess.run(
            [sys.executable, "-c", HOLDER, str(database)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        free.append(holder.returncode == 0)
        return end(ended, state, error)

    monkeypatch.setattr(job_folder.JobFolder, "end", ends)
    assert main([str(job.path)]) == 0
    assert free == [True]


@pytest.mark.soak
def test_a_model_that_is_worse_than_its_rival_is_stored_beside_it(database: Path) -> None:
    job, _ = finished(database)
    main([str(job.path)])
    worse, intent = finished(database)
    write_intent(worse.path, structs.replace(intent, rival=Rival("m@1", "auc", 0.7, 20, True)))
    main([str(worse.path)])
    assert models(database) == ["m@1", "m@2"]
    with closing(connect(f"duckdb:///{database}")) as source:
        assert open_registry(source, "").find("m").reference == "m@1"


@pytest.mark.parametrize(
    ("rival", "stays", "sentence"),
    [
        (Rival("m@1", "rmse", 0.5, 20, False), False, "m@2 is current: its rmse is 0.4, that of m@1 0.5, on the same "),
        (Rival("m@1", "rmse", 0.3, 1, False), True, "m@1 stays current: its rmse is 0.3, that of m@2 0.4, on the same"),
        (Rival("m@1", "rmse", 0.4 * (1 - 1e-9), 20, False), False, "m@2 is current"),
        (Rival("m@1", "auc", 0.9, 20, True), True, "m@1 stays current: its auc is 0.9, that of m@2 0.8"),
        (Rival("m@1", "auc", None, 20, True), False, "m@2 is current: its auc is 0.8, that of m@1 undefined"),
        (Rival("m@1", "r2", None, 20, True), True, "m@1 stays current: its r2 is undefined, that of m@2 undefined"),
    ],
)  # fmt: skip
def test_the_better_version_is_named_with_both_figures(rival: Rival, stays: bool, sentence: str) -> None:
    figures = {"rmse": 0.4, "auc": 0.8, "r2": None}
    assert rival.stays(figures) == stays
    assert rival.verdict(figures, "m@2").startswith(sentence)


@pytest.mark.soak
def test_a_job_that_was_committed_is_not_committed_again(database: Path) -> None:
    job, intent = finished(database)
    assert commit_when_possible(job, intent)
    assert commit_when_possible(job, intent)
    assert models(database) == ["m@1"]


def test_a_job_that_another_process_commits_is_left_to_it(database: Path) -> None:
    job, intent = finished(database)
    time = Time()
    with job.claim() as ours:
        assert ours
        assert job.is_claimed()

        def pause(seconds: float) -> None:
            time.pause(seconds)
            job.end("done")

        assert commit_when_possible(job, intent, clock=time.clock, pause=pause)
    assert not job.is_claimed()
    assert len(time.pauses) == 1
    assert models(database) == []


@pytest.mark.soak
def test_a_database_that_is_open_elsewhere_is_waited_for(database: Path) -> None:
    job, intent = finished(database)
    time = Time()
    command = [sys.executable, "-c", HOLDER, str(database)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()

        def pause(seconds: float) -> None:
            time.pause(seconds)
            if len(time.pauses) == 3:
                holder.communicate()

        assert commit_when_possible(job, intent, clock=time.clock, pause=pause)
    assert time.pauses == [0.05, 0.1, 0.2]
    assert models(database) == ["m@1"]


def test_a_source_that_cannot_be_opened_for_long_is_left_to_the_next_session(database: Path) -> None:
    job, intent = finished(database)
    database.unlink()
    time = Time()
    assert not commit_when_possible(job, intent, clock=time.clock, pause=time.pause)
    assert PATIENCE < time.now < PATIENCE + 2 * LONGEST_PAUSE
    assert max(time.pauses) == LONGEST_PAUSE
    assert job.status().is_unclaimed


@pytest.mark.parametrize(
    ("seen", "doubt"),
    [
        (0, ""),
        (None, ", some of which m@1 may have been trained on"),
        (3, ", 3 of which trained m@1, so its figures are better than on new rows"),
        (20, ", all of which trained m@1, so its figures are better than on new rows"),
    ],
)
@pytest.mark.parametrize("decides", [True, False])
def test_a_comparison_says_whether_the_rows_are_new_to_the_current_version(
    seen: int | None, doubt: str, decides: bool
) -> None:
    rival = Rival("m@1", "rmse", 0.3, 20, False, {"rmse": 0.3}, seen, decides)
    assert rival.stays({"rmse": 0.4}) == decides
    assert rival.verdict({"rmse": 0.4}, "m@2").endswith(f", on the same 20 rows{doubt}")
