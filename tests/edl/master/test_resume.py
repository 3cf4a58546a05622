"""What is resumed and what is not, without processes: see `tests.edl.end_to_end.test_resume` for those."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from edl.checkpoints import DAMAGED, POSITION, STATE
from edl.checkpoints.factory import VARIABLE
from edl.checkpoints.folder import SharedFolder
from edl.checkpoints.trainer import TrainerCheckpoint, TrainerPosition, write_checkpoint
from edl.data.pinned import write_pinned
from edl.errors import ClusterError, JobError, SourceError, SpecError
from edl.jobs import job_folder
from edl.jobs.cluster_folder import ClusterFolder, Process, RunSpec
from edl.jobs.event_log import EventLog, EventReader, read_end
from edl.jobs.events import EpochEnd
from edl.jobs.failure import Failed
from edl.jobs.job_folder import KEPT, JobFolder
from edl.master import resume
from edl.master.master import restore_tasks
from edl.master.resume import Resumption
from edl.master.state import Checkpoint, Failure, MasterState
from edl.master.state_store import FileStateStore
from edl.master.stored_checkpoints import StoredCheckpoints
from edl.models.pending import Intent, mark_handled, read_intent, write_intent
from edl.spec import RawLabel, Rows
from edl.tasks import encoding
from edl.tasks.job_state import JobState
from tests.edl import programs

FAILED = Failed("cluster", "6 workers in a row ended without lasting progress")


def job_with_master(kind: job_folder.Kind = "train", environment: dict[str, str] | None = None) -> JobFolder:
    job = job_folder.create(kind)
    write_pinned(job.rows, programs.pin(job.rows, pa.table({"x": [1.0, 2.0]})))
    programs.write(job.program, "", programs.job_spec("torch", (), RawLabel("y"), Rows(True, 2, 2)))
    folder = ClusterFolder(job.path)
    folder.path.mkdir()
    folder.write_run_spec(RunSpec("torch", environment=environment or {}, folder=str(job.path.parent)))
    folder.write_process("supervisor", Process(1, "long ago"))
    return job


def store(job: JobFolder, state: MasterState) -> None:
    with closing(FileStateStore(ClusterFolder(job.path).state)) as store:
        store.write(encoding.encode(state))


def stored(job: JobFolder) -> MasterState:
    with closing(FileStateStore(ClusterFolder(job.path).state)) as store:
        data = store.read()
    assert data is not None
    return encoding.decode(data, MasterState)


def checkpoint(folder: Path, step: int = 40) -> Checkpoint:
    """A complete checkpoint, with the state that the master had then."""
    name = f"{step:012d}-worker-0-0"
    weights = {"w": np.full(50, step, np.float32)}
    write_checkpoint(folder / name, TrainerCheckpoint(TrainerPosition(step), weights, {}))
    found = Checkpoint(name, JobState(epoch=step // 20, step=step))
    data = encoding.encode(MasterState(epoch=step // 20, checkpoint=found, digest="d"))
    StoredCheckpoints(SharedFolder(folder), POSITION).add_state(name, data)
    return found


def cut_to_half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def test_the_next_master_goes_on_only_with_the_rows_that_the_first_one_had(tmp_path: Path) -> None:
    first, grown = (
        programs.job_spec("torch", (), RawLabel("y"), Rows(True, 9, 9, digest=digest)) for digest in "ab"
    )
    checkpoints = StoredCheckpoints(SharedFolder(tmp_path / "checkpoints"), POSITION)
    with closing(FileStateStore(tmp_path / "state")) as store:
        backend: Any = SimpleNamespace(state_store=store, kept=None, log=print)
        tasks = restore_tasks(first, backend, checkpoints, 10.0)
        store.write(encoding.encode(tasks.to_store()[0]))
        restore_tasks(first, backend, checkpoints, 10.0)
        with pytest.raises(JobError, match="the files of this job have changed since it began"):
            restore_tasks(grown, backend, checkpoints, 10.0)


def test_a_failed_training_keeps_rows_and_checkpoints_and_goes_on_from_the_last_one() -> None:
    job = job_with_master()
    state = MasterState(
        checkpoint=checkpoint(job.checkpoints), failed=FAILED, failures={"train 1 1": Failure(3, FAILED)}
    )
    store(job, state)
    job.end("failed", FAILED.message)
    assert job.rows.is_dir()
    assert job.can_resume
    assert resume.prepare(job) == Resumption("000000000040-worker-0-0", 40, 2)
    again = stored(job)
    assert (again.failed, again.failures, again.cancelled) == (None, {}, "")
    assert again.checkpoint == state.checkpoint
    status = job.status()
    assert (status.state, status.error, status.ended, status.is_alive) == ("running", "", "", True)


def test_the_end_is_taken_back_for_those_who_follow_the_job_and_for_later_sessions() -> None:
    job = job_with_master()
    epoch = EpochEnd(1, 10, 0.5, {}, 1.0)
    events = ClusterFolder(job.path).events
    with EventLog(events) as log:
        log.write(epoch)
        log.write(FAILED)
    write_intent(job.path, Intent("train", "duckdb:///x.duckdb", "m"))
    mark_handled(job.path)
    job.end("failed", FAILED.message)
    resume.prepare(job)
    assert read_end(events) is None
    with EventReader(events) as reader:
        assert list(reader.read()) == [epoch]
    assert read_intent(job.path) is not None


@pytest.mark.parametrize("state", [None, MasterState()])
def test_without_a_checkpoint_training_starts_from_the_beginning_and_says_so(
    state: MasterState | None,
) -> None:
    job = job_with_master()
    if state is not None:
        store(job, state)
    job.end("died", "killed")
    found = resume.prepare(job)
    assert str(found) == "there is no checkpoint: training starts from the beginning"


def test_a_search_goes_on_after_its_finished_trials() -> None:
    job = job_with_master()
    store(job, MasterState(done={"predict": 3}))
    job.end("died")
    assert str(resume.prepare(job)) == "the search resumes after 3 finished trials"


def test_checkpoints_are_found_where_the_job_wrote_them_whatever_the_environment_is_now(
    tmp_path: Path,
) -> None:
    job = job_with_master(environment={VARIABLE: str(tmp_path)})
    store(job, MasterState(checkpoint=checkpoint(tmp_path / job.id)))
    job.end("failed")
    assert resume.prepare(job).step == 40


def three_checkpoints(job: JobFolder) -> list[Path]:
    """Folders of checkpoints at the steps 40, 60 and 80 of a job that died."""
    found = [checkpoint(job.checkpoints, step) for step in (40, 60, 80)]
    store(job, MasterState(epoch=5, checkpoint=found[-1], digest="d"))
    job.end("died")
    return [job.checkpoints / each.folder for each in found]


def test_a_damaged_checkpoint_is_passed_over_named_and_kept() -> None:
    job = job_with_master()
    first, second, third = three_checkpoints(job)
    cut_to_half(third / "weights.safetensors")
    (second / "state.safetensors").unlink()
    found = resume.prepare(job)
    assert str(found) == (
        "training resumes from step 40, in epoch 2; steps 41 to 80 are repeated\n"
        "warning: the checkpoint 000000000080-worker-0-0 is damaged: weights.safetensors has 136 of 272 bytes\n"
        "warning: the checkpoint 000000000060-worker-0-0 is damaged: state.safetensors is missing"
    )
    assert sorted(job.checkpoints.iterdir()) == [first, second, third]
    assert [(folder / DAMAGED).exists() for folder in (first, second, third)] == [False, True, True]
    again = stored(job)
    assert (again.checkpoint_name, again.checkpoint_step, again.epoch) == (first.name, 40, 5)


def test_damage_that_was_found_earlier_is_named_again() -> None:
    job = job_with_master()
    cut_to_half(three_checkpoints(job)[-1] / "weights.safetensors")
    warnings = resume.prepare(job).warnings
    job.end("died")
    again = resume.prepare(job)
    assert (again.step, again.warnings) == (60, warnings)


def test_a_checkpoint_that_was_removed_by_hand_is_replaced_by_the_one_before() -> None:
    job = job_with_master()
    shutil.rmtree(three_checkpoints(job)[-1])
    assert str(resume.prepare(job)) == (
        "training resumes from step 60, in epoch 3; steps 61 to 80 are repeated\n"
        "warning: the checkpoint 000000000080-worker-0-0 is gone"
    )


def test_without_a_sound_checkpoint_training_starts_from_the_beginning_and_keeps_the_damaged_ones() -> None:
    job = job_with_master()
    folders = three_checkpoints(job)
    for folder in folders:
        cut_to_half(folder / "weights.safetensors")
    found = resume.prepare(job)
    point = "there is no sound checkpoint: training starts from the beginning; steps 1 to 80 are repeated"
    assert str(found).splitlines()[0] == point
    assert [warning.split(" is damaged")[0][-20:] for warning in found.warnings] == [
        f"{step:09}-worker-0-0" for step in (80, 60, 40)
    ]
    assert all((folder / POSITION).exists() for folder in folders)
    assert stored(job).checkpoint is None


@pytest.mark.parametrize("damage", [cut_to_half, lambda path: path.write_bytes(b"")], ids=["half", "empty"])
def test_a_damaged_state_is_set_aside_for_the_one_in_the_newest_sound_checkpoint(damage: Any) -> None:
    job = job_with_master()
    _, second, third = three_checkpoints(job)
    cut_to_half(third / POSITION)
    state = ClusterFolder(job.path).state
    damage(state)
    spoilt = state.read_bytes()
    assert str(resume.prepare(job)) == (
        "training resumes from step 60, in epoch 3\n"
        f"warning: the state file {state} is damaged\n"
        "warning: the checkpoint 000000000080-worker-0-0 is damaged: position.msgpack is not readable"
    )
    assert state.with_suffix(".damaged").read_bytes() == spoilt
    again = stored(job)
    assert (again.checkpoint_name, again.digest) == (second.name, "d")
    assert again.epoch > 5  # than all masters before


def test_a_state_of_another_version_is_named_as_such_and_stays() -> None:
    job = job_with_master()
    three_checkpoints(job)
    state = ClusterFolder(job.path).state
    state.write_bytes(state.read_bytes().replace(b"edl-state 2", b"edl-state 7"))
    with pytest.raises(SpecError, match="was written by another version: it is of version 7, not 2"):
        resume.prepare(job)
    assert state.read_bytes().startswith(b"edl-state 7")


def test_a_damaged_state_in_a_checkpoint_makes_that_one_no_reason_to_stop() -> None:
    job = job_with_master()
    _, second, third = three_checkpoints(job)
    cut_to_half(third / "weights.safetensors")
    cut_to_half(second / STATE)
    assert resume.prepare(job).step == 40


def running(job: JobFolder) -> None:
    """It is."""


def succeeded(job: JobFolder) -> None:
    job.end("done")


def cancelled(job: JobFolder) -> None:
    job.end("cancelled")


def trained(job: JobFolder) -> None:
    job.archive.touch()
    job.end("failed", "the disk is full")


def elsewhere(job: JobFolder) -> None:
    job.update(place="kind", state="failed")


def cleaned(job: JobFolder) -> None:
    job.end("failed")
    resume.remove_kept_files()


def in_one_process(job: JobFolder) -> None:
    (job.path / "cluster" / "spec.json").unlink()
    job.end("died")


def without_its_folder(job: JobFolder) -> None:
    ClusterFolder(job.path).write_run_spec(RunSpec("torch", folder="/nowhere"))
    job.end("died")


def without_half_of_its_orders(job: JobFolder) -> None:
    cut_to_half(job.path / "cluster" / "spec.json")
    job.end("died")


def without_half_of_its_destination(job: JobFolder) -> None:
    write_intent(job.path, Intent("train", "duckdb:///a.duckdb", "m"))
    cut_to_half(job.path / "intent.json")
    job.end("died")


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (without_half_of_its_orders, "the run specification of job .* is damaged"),
        (without_half_of_its_destination, "the output destination of job .* cannot be read"),
        (running, "it runs"),
        (succeeded, "it has succeeded"),
        (cancelled, "it was cancelled, which removes its checkpoints"),
        (trained, "it has trained its model, which could not be stored: the disk is full"),
        (elsewhere, "it ran on kind"),
        (cleaned, "its rows and checkpoints were removed"),
        (in_one_process, "it ran in one process"),
        (without_its_folder, "the folder in which it was started is gone: /nowhere"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_job_that_cannot_be_resumed_says_why_and_stays_as_it_is(end: Any, message: str) -> None:
    job = job_with_master()
    end(job)
    before = job.status()
    with pytest.raises(ClusterError, match=f"job {job.id} cannot be resumed: {message}"):
        resume.prepare(job)
    assert job.status() == before


@pytest.mark.parametrize(
    "damage", [without_half_of_its_orders, without_half_of_its_destination], ids=lambda value: value.__name__
)
def test_a_job_with_damaged_orders_keeps_its_checkpoints_and_says_how_they_are_exported(damage: Any) -> None:
    job = job_with_master()
    checkpoint(job.checkpoints)
    damage(job)
    job_folder.sweep()
    with pytest.raises(ClusterError) as error:
        resume.prepare(job)
    assert (
        error.value.hint
        == job.export_hint
        == (f"`edl checkpoints {job.id} --export newest m.safetensors` writes its newest weights")
    )
    assert len(list(job.checkpoints.iterdir())) == 1


def test_only_trainings_are_resumed() -> None:
    job = job_with_master("predict")
    job.end("died")
    assert not job.rows.exists()
    with pytest.raises(ClusterError, match="it is not a training"):
        resume.prepare(job)


def test_a_training_without_its_rows_cannot_be_resumed() -> None:
    job = job_with_master()
    job.end("died")
    (job.rows / "rows.arrow").unlink()
    with pytest.raises(SourceError, match="because its rows are gone"):
        resume.prepare(job)


def test_a_training_is_not_resumed_if_its_rows_have_changed() -> None:
    job = job_with_master()
    job.end("died")
    path = job.rows / "rows.arrow"
    path.write_bytes(path.read_bytes().replace(np.float64(2.0).tobytes(), np.float64(2.5).tobytes()))
    with pytest.raises(SourceError, match=r"its rows are damaged: bytes of rows\.arrow have changed"):
        resume.prepare(job)
    assert job.status().state == "died"


def test_a_training_that_is_being_resumed_is_not_resumed_a_second_time() -> None:
    job = job_with_master()
    job.end("died")
    resume.prepare(job)
    with pytest.raises(ClusterError, match="it runs"):
        resume.prepare(job)


def test_sweeps_leave_what_can_be_resumed_for_some_days() -> None:
    recent, old, dead = job_with_master(), job_with_master(), job_with_master()
    for job in (recent, old, dead):
        job.checkpoints.mkdir()
    recent.end("failed")
    old.end("failed")
    old.update(ended=(datetime.now(UTC) - KEPT - timedelta(minutes=1)).isoformat())
    dead.update(started_as="another process")
    assert job_folder.sweep() == [dead]
    assert [job.checkpoints.exists() for job in (recent, old, dead)] == [True, False, True]
    assert [job.can_resume for job in (recent, old, dead)] == [True, False, True]


def test_cleaning_removes_what_is_kept_wherever_it_is_but_no_logs(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    job = job_with_master(environment={VARIABLE: str(volume)})
    runs = job_with_master()
    checkpoint(volume / job.id)
    (job.logs / "master.log").touch()
    job.end("failed")
    assert resume.remove_kept_files() == [job]
    assert not job.rows.exists()
    assert not list(volume.iterdir())
    assert (job.logs / "master.log").exists()
    assert runs.rows.exists()
    assert resume.remove_kept_files() == []
