"""Weights that a job is given: of an archive, a file, or a checkpoint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edl.checkpoints.folder import SharedFolder
from edl.checkpoints.trainer import TrainerCheckpoint, TrainerPosition
from edl.errors import JobError, SpecError
from edl.jobs import job_folder
from edl.models import weights as weight_files
from edl.ps import messages as msg
from edl.ps.checkpoint import manifests
from edl.run import initial_weights
from edl.spec import Checkpoints
from edl.tasks.task import Report, Task
from edl.worker.checkpointing import Checkpointer
from tests.edl.ps.servers import ADAM, definition, training_servers


def servers_checkpoints(folder: Path) -> Path:
    """Two cuts of two servers."""
    with training_servers(2, definition(ADAM)) as running:
        for name in ("000001-000001", "000001-000002"):
            running.call(
                0, msg.TakeCheckpoint(running.generation, str(folder / name), wait=True), msg.CheckpointTaken
            )
    return folder


def trainers_checkpoints(folder: Path) -> Path:
    """Two cuts of a trainer."""
    writer = Checkpointer(
        SharedFolder(folder),
        Checkpoints(),
        writer="w",
        begin=lambda name, done: None,
        on_written=lambda name: None,
    )
    for step in (3, 12):
        weights = {"w": np.full(2, step, np.float32)}
        writer.take(
            lambda weights=weights, step=step: (
                lambda: TrainerCheckpoint(TrainerPosition(step), weights, weights)
            ),
            step,
            Report(Task(0, "train")),
        )  # type: ignore[misc]
        writer.wait()
    return folder


def test_the_newest_checkpoint_of_servers_is_meant(tmp_path: Path) -> None:
    folder = servers_checkpoints(tmp_path)
    newest = manifests.read_weights(folder / "000001-000002")
    for path in (folder, folder / "000001-000002"):
        found = initial_weights.trained_weights(path)
        assert found.keys() == newest.keys()
        for name, value in newest.items():
            np.testing.assert_array_equal(found[name], value)


def test_the_newest_checkpoint_of_a_trainer_is_meant(tmp_path: Path) -> None:
    folder = trainers_checkpoints(tmp_path)
    assert initial_weights.trained_weights(folder)["w"].tolist() == [12, 12]
    older = min(path for path in folder.iterdir())
    assert initial_weights.trained_weights(older)["w"].tolist() == [3, 3]


def test_workers_find_the_weights_of_a_checkpoint_in_the_job(tmp_path: Path) -> None:
    job = job_folder.create("evaluate")
    assert initial_weights.find_copied_weights(job) is None
    initial_weights.take(job, trainers_checkpoints(tmp_path))
    assert initial_weights.find_copied_weights(job) == job.weights
    assert initial_weights.trained_weights(job.weights)["w"].tolist() == [12, 12]


def test_a_file_of_weights_is_taken_as_it_is(tmp_path: Path) -> None:
    weight_files.save({"w": np.ones(3, np.float32)}, tmp_path / "w.safetensors")
    assert initial_weights.trained_weights(tmp_path / "w.safetensors")["w"].tolist() == [1, 1, 1]
    assert not initial_weights.is_archive(tmp_path / "w.safetensors")
    assert initial_weights.is_archive(tmp_path / "model.zip")


@pytest.mark.parametrize(
    ("name", "words"), [("", "is not a checkpoint"), ("gone.safetensors", "cannot read")]
)
def test_what_is_no_weights_is_named(name: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=words):
        initial_weights.trained_weights(tmp_path / name)


def test_a_job_that_needs_weights_and_has_none_says_so() -> None:
    with pytest.raises(JobError, match="none were given"):
        initial_weights.trained_weights(None)
