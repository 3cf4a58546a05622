"""`edl checkpoints`: a list, what is damaged, and a model of one, from the folder of a paused job."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from edl import exit_codes
from edl.checkpoints.trainer import TrainerCheckpoint, TrainerPosition, read_checkpoint, write_checkpoint
from edl.cli.main import main
from edl.jobs.job_folder import JobFolder
from edl.models import weights as weight_files
from edl.models.archive import read_archive
from tests.museum import interrupted

NAMES = tuple(f"000000000{step}-worker-0-0" for step in (135, 145, 150))


@pytest.fixture
def job(tmp_path: Path) -> JobFolder:
    """A job of an earlier version; its newest checkpoint is written again, with checksums."""
    found = interrupted.unpack(tmp_path)
    newest = found.checkpoints / NAMES[-1]
    checkpoint = read_checkpoint(newest)
    shutil.rmtree(newest)
    write_checkpoint(newest, checkpoint)
    return found


def lines(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    return [line.split(maxsplit=5) for line in capsys.readouterr().out.splitlines()]


def flip_a_bit(job: JobFolder) -> None:
    path = job.checkpoints / NAMES[-1] / "weights.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def test_checkpoints_are_listed_without_being_read(
    job: JobFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    flip_a_bit(job)
    assert main(["checkpoints", job.id]) == exit_codes.OK
    header, *rows = lines(capsys)
    assert header == ["checkpoint", "step", "epoch", "written", "bytes", "state"]
    assert [(row[0], row[1], row[-1]) for row in rows] == [
        (name, step, "complete") for name, step in zip(NAMES, ("135", "145", "150"), strict=True)
    ]


def test_a_damaged_checkpoint_is_named_when_all_are_verified_and_in_later_lists(
    job: JobFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["checkpoints", str(job.path), "--verify"]) == exit_codes.OK
    assert [line[-1] for line in lines(capsys)[1:]] == ["sound"] * 3
    flip_a_bit(job)
    assert main(["checkpoints", job.id, "--verify"]) == exit_codes.FAILED
    printed = capsys.readouterr()
    damage = "damaged: bytes of weights.safetensors have changed: its checksum is wrong"
    assert [line.endswith(damage) for line in printed.out.splitlines()[1:]] == [False, False, True]
    assert f"1 of 3 checkpoints of job {job.id} cannot be resumed from" in printed.err
    assert main(["checkpoints", job.id]) == exit_codes.OK
    assert capsys.readouterr().out.splitlines()[-1].endswith(damage)


def test_the_newest_sound_checkpoint_is_written_as_weights_or_as_a_model(
    job: JobFolder, tmp_path: Path
) -> None:
    flip_a_bit(job)
    expected = read_checkpoint(job.checkpoints / NAMES[1]).weights
    for name in ("m.zip", "m.safetensors"):
        assert main(["checkpoints", job.id, "--export", "newest", str(tmp_path / name)]) == exit_codes.OK
    archive = read_archive(tmp_path / "m.zip")
    assert "a checkpoint at step 145" in archive.lineage.ending
    for found in (archive.weights(), weight_files.loads((tmp_path / "m.safetensors").read_bytes())):
        assert found.keys() == expected.keys()
        assert all(np.array_equal(found[name], expected[name]) for name in expected)


@pytest.mark.parametrize(
    ("step", "file", "words"),
    [
        ("151", "m.zip", ["no checkpoint at step 151", "hint: did you mean 150?"]),
        ("150", "m.onnx", ["cannot write m.onnx", "known suffixes: .zip, .safetensors"]),
        ("150", "m.safetensors", [f"the checkpoint {NAMES[-1]} is damaged: bytes of weights.safetensors"]),
        ("145", "no/such/folder/m.safetensors", ["cannot write no/such/folder/m.safetensors"]),
    ],
)
def test_what_cannot_be_exported_is_named(
    job: JobFolder, step: str, file: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    flip_a_bit(job)
    assert main(["checkpoints", job.id, "--export", step, file]) == exit_codes.FAILED
    err = capsys.readouterr().err
    for word in words:
        assert word in err
    assert not Path(file).exists()


def test_a_job_without_checkpoints_says_so(job: JobFolder, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(job.checkpoints)
    assert main(["checkpoints", job.id]) == exit_codes.FAILED
    err = capsys.readouterr().err
    assert f"job {job.id} has no checkpoints" in err
    assert "it was to write its first one later" in err


def test_a_job_that_was_cancelled_has_none_either(job: JobFolder, capsys: pytest.CaptureFixture[str]) -> None:
    job.end("cancelled")
    assert main(["checkpoints", job.id]) == exit_codes.FAILED
    assert f"job {job.id} has no checkpoints" in capsys.readouterr().err


def test_the_error_of_a_damaged_status_names_the_command_that_saves_the_weights(
    job: JobFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status = job.path / "status.json"
    status.write_bytes(status.read_bytes()[:40])
    assert main(["train", "--resume", job.id]) == exit_codes.FAILED
    hint = capsys.readouterr().err.splitlines()[-1]
    monkeypatch.chdir(tmp_path)
    program, *command = hint.split("`")[1].split()
    assert (program, main(command)) == ("edl", exit_codes.OK)
    assert weight_files.loads(Path("m.safetensors").read_bytes())


def test_half_of_a_job_spec_is_an_error_with_its_place(
    job: JobFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = job.program / "job.json"
    spec.write_bytes(spec.read_bytes()[:40])
    assert main(["checkpoints", job.id]) == exit_codes.FAILED
    assert f"error: {spec}: not a JobSpec" in capsys.readouterr().err


def test_half_of_a_checkpoint_is_not_listed(job: JobFolder, capsys: pytest.CaptureFixture[str]) -> None:
    write_checkpoint(
        job.checkpoints / "000000000160-worker-0-0.partial", TrainerCheckpoint(TrainerPosition(1), {}, {})
    )
    assert main(["checkpoints", job.id]) == exit_codes.OK
    assert len(lines(capsys)) == 4
