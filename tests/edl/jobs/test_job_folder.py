"""Job folders: private, sortable, swept when their process died."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from edl.errors import JobError, LaterVersionError, SemanticError, SpecError
from edl.jobs import job_folder
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.event_log import record_end
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def dead_pid() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_a_job_has_private_folders_in_the_users_state_folder(state_folder: Path) -> None:
    job = job_folder.create("train", "SELECT 1 TO TRAIN x")
    assert job.path.parent == state_folder / "sqlflow-edl" / "jobs"
    for folder in (job.path, job.program, job.rows, job.results, job.logs):
        assert folder.is_dir()
        assert mode(folder) == 0o700
    status = job.status()
    assert (status.kind, status.state, status.pid) == ("train", "running", os.getpid())
    assert status.statement == "SELECT 1 TO TRAIN x"
    assert status.is_alive


def test_ids_sort_by_the_time_they_were_made() -> None:
    made = [job_folder.create("predict").id for _ in range(20)]
    assert made == sorted(made)
    assert [job.id for job in job_folder.jobs()] == made


def test_without_xdg_state_home_the_home_folder_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for unset in ("", "relative/folder"):
        monkeypatch.setenv("XDG_STATE_HOME", unset)
        assert job_folder.state_folder() == tmp_path / ".local" / "state" / "sqlflow-edl"


def test_a_state_folder_that_cannot_be_written_is_a_named_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(JobError, match="cannot create a job folder") as caught:
        job_folder.create("train")
    assert "XDG_STATE_HOME" in str(caught.value.hint)


def test_an_ended_job_keeps_its_log_and_loses_its_rows() -> None:
    job = job_folder.create("train")
    (job.rows / "rows.arrow").write_bytes(b"x")
    (job.logs / "worker-0.log").write_text("epoch 1", encoding="utf-8")
    ended = job.end("failed", "the loss is not a number")
    assert not job.rows.exists()
    assert (job.logs / "worker-0.log").is_file()
    assert (ended.state, ended.error, bool(ended.ended)) == ("failed", "the loss is not a number", True)
    assert job.status() == ended
    assert not ended.is_alive


def test_a_sweep_ends_jobs_with_a_dead_process_and_leaves_the_others() -> None:
    mine, dead, done = (job_folder.create("train") for _ in range(3))
    done.end("done")
    dead.update(pid=dead_pid())
    for job in (mine, dead, done):
        job.rows.mkdir(exist_ok=True)
        (job.rows / "rows.arrow").write_bytes(b"x")
    assert job_folder.sweep() == [dead]
    assert dead.status().state == "died"
    assert done.status().state == "done"
    assert mine.status().is_alive
    assert [job.rows.exists() for job in (mine, dead, done)] == [True, False, False]
    assert job_folder.sweep() == []


def test_nothing_comes_of_jobs_that_have_ended_here_or_are_very_old() -> None:
    mine, done, waits = (job_folder.create("train") for _ in range(3))
    done.end("done")
    waits.update(pid=dead_pid(), state="finished")
    assert [job_folder.is_over(job.id) for job in (mine, done, waits)] == [False, True, False]
    elsewhere = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-000000-abcdef"
    assert not job_folder.is_over(elsewhere)
    assert job_folder.is_over("20200101-000000-000000-abcdef")
    assert not any(map(job_folder.is_over, ("", "..", "job", "../../etc")))


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="elsewhere a process is known by its id alone"
)
def test_a_process_id_that_was_used_again_is_not_the_job() -> None:
    job = job_folder.create("train")
    job.update(started_as="another boot:1")
    assert not job.status().is_alive
    assert job_folder.sweep() == [job]


def test_a_job_that_runs_elsewhere_needs_no_process_here() -> None:
    job = job_folder.create("train")
    job.update(started_as="another boot:1", place="a cluster")
    (job.rows / "rows.parquet").touch()
    assert job.status().is_alive
    assert job_folder.sweep() == []
    assert (job.rows / "rows.parquet").exists()
    job.end("done")
    assert not job.status().is_alive


def test_a_job_can_be_handed_to_another_process() -> None:
    job = job_folder.create("train")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert job.owned_by(child.pid).is_alive
        assert job_folder.sweep() == []
        child.communicate(b"\n")
    assert job_folder.sweep() == [job]


def test_a_job_that_finished_without_its_client_is_claimed_by_one_at_a_time() -> None:
    mine, theirs, running = (job_folder.create("predict") for _ in range(3))
    mine.finish(mine.status().pid, mine.status().started_as)
    assert theirs.finish(dead_pid(), "").ended
    assert job_folder.sweep() == []
    assert job_folder.find_unclaimed_jobs() == [theirs]
    with theirs.claim() as ours:
        assert ours
        with theirs.claim() as ours_too:
            assert not ours_too
        finished = theirs.status().ended
        assert theirs.end("done").ended == finished  # it took as long as it took, whenever it was claimed
    with theirs.claim() as ours:
        assert not ours
    assert job_folder.find_unclaimed_jobs() == []
    assert running.status().state == "running"


def test_a_job_that_is_done_is_read_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    done, running, failed = (job_folder.create("train") for _ in range(3))
    done.end("done")
    failed.end("failed")
    assert [job for job, _ in job_folder.list_changing()] == [done, running, failed]
    read: list[JobFolder] = []
    status = JobFolder.status
    monkeypatch.setattr(JobFolder, "status", lambda job: read.append(job) or status(job))
    job_folder.sweep()
    assert job_folder.find_unclaimed_jobs() == job_folder.find_unstarted_jobs() == []
    assert read == [running, failed] * 3


def test_a_job_is_found_by_its_id_or_an_unmistakable_part() -> None:
    first, second = job_folder.create("train"), job_folder.create("train")
    assert job_folder.find(first.id) == first
    assert job_folder.find(second.id[-6:]) == second
    with pytest.raises(SemanticError, match="2 jobs are named"):
        job_folder.find(first.id[:4])
    with pytest.raises(SemanticError, match="there is no job") as caught:
        job_folder.find(first.id[:-1] + "?")
    assert caught.value.hint == f"did you mean {first.id}?"
    with pytest.raises(SemanticError):
        job_folder.find("")


def test_a_damaged_status_is_a_named_error_and_stops_no_sweep() -> None:
    damaged, dead = job_folder.create("train"), job_folder.create("train")
    (damaged.path / "status.json").write_text("{", encoding="utf-8")
    dead.update(pid=dead_pid())
    with pytest.raises(SpecError, match=f"status of job {damaged.id}"):
        damaged.status()
    assert job_folder.sweep() == [dead]


def test_a_state_of_a_later_version_is_refused_by_its_name_and_such_a_job_stays_as_it_is() -> None:
    job = job_folder.create("train")
    (job.rows / "rows.arrow").write_bytes(b"rows")
    file = job.path / "status.json"
    written = file.read_bytes().replace(b'"running"', b'"moved"')
    file.write_bytes(written)
    with pytest.raises(LaterVersionError, match=f"the state of job {job.id} is moved"):
        job.status()
    assert not job_folder.sweep()
    assert not job_folder.is_over(job.id)
    assert (file.read_bytes(), (job.rows / "rows.arrow").exists()) == (written, True)


def test_fields_of_a_later_version_are_kept() -> None:
    job = job_folder.create("train")
    file = job.path / "status.json"
    file.write_bytes(file.read_bytes().replace(b"{", b'{"colour":"blue",', 1))
    job.update(error="none")
    assert job.status().error == "none"
    assert b'"colour":"blue"' in file.read_bytes()


def test_a_folder_that_is_no_job_is_not_listed_and_a_removed_job_is_gone() -> None:
    assert job_folder.jobs() == []
    job = job_folder.create("train")
    (job.path.parent / "something").mkdir()
    assert job_folder.jobs() == [job]
    job.remove()
    assert job_folder.jobs() == []


_ALL = {"archive.zip", "model.zip", "rows", "checkpoints", "results"}


@pytest.mark.parametrize(("state", "left"), [("done", set()), ("failed", _ALL), ("died", _ALL)])
def test_checkpoints_are_removed_when_the_model_is_stored(state: job_folder.State, left: set[str]) -> None:
    job = job_folder.create("train")
    job.checkpoints.mkdir()
    for path in (job.checkpoints / "a cut", job.results / "00000000.1.arrow", job.model, job.archive):
        path.write_bytes(b"x")
    job.end(state)
    assert {path.name for path in job.path.iterdir()} == {"status.json", "program", "logs"} | left
    job_folder.sweep()
    assert {path.name for path in job.path.iterdir()} == {"status.json", "program", "logs"} | left


def test_rows_that_were_predicted_and_not_stored_stay_unless_the_job_failed_before() -> None:
    predicted, failed = job_folder.create("predict"), job_folder.create("predict")
    for job in (predicted, failed):
        (job.results / "00000000.1.arrow").write_bytes(b"x")
    record_end(ClusterFolder(predicted.path).events, Outcome("predict", 1, 1.0, tasks=1))
    for job in (predicted, failed):
        job.end("failed", "the table is a view")
    job_folder.sweep()
    assert predicted.results.is_dir()
    assert not failed.results.exists()


def test_a_full_disk_is_an_error_of_the_job_with_its_folder() -> None:
    job = job_folder.create("train")
    with pytest.raises(JobError, match=f"folder of job {job.id}: No space left") as caught, job.disk_errors():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert "XDG_STATE_HOME" in (caught.value.hint or "")
    with pytest.raises(PermissionError), job.disk_errors():
        raise PermissionError(errno.EACCES, "denied", "/elsewhere")


def test_what_a_finished_job_made_is_left_by_sweeps_and_what_a_dead_one_left_is_not() -> None:
    finished, dead = job_folder.create("predict"), job_folder.create("train")
    for job in (finished, dead):
        (job.results / "00000000.1.arrow").write_bytes(b"x")
    finished.finish(1, "another process")
    dead.update(started_as="another process")
    job_folder.sweep()
    assert finished.results.is_dir()
    assert not dead.results.exists()


def test_of_a_cancelled_job_only_the_log_is_left() -> None:
    job = job_folder.create("train")
    (job.program / "model.py").write_text("x", encoding="utf-8")
    (job.path / "archive.zip").write_bytes(b"x")
    (job.path / "link").symlink_to(job.logs)
    (job.logs / "worker-0.log").write_text("what happened", encoding="utf-8")
    job.end("cancelled")
    assert {path.name for path in job.path.rglob("*")} == {"status.json", "logs", "worker-0.log"}
    assert job.status().state == "cancelled"
