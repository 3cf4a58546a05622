"""Records of a search's trials, and the files that belong to them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.program import load, unload
from edl.run.search.judge import FILES, Judge
from edl.run.search.trial import SCORES
from edl.run.search.trial_runner import TrialResult, folder_of
from tests.edl.run.conftest import new_job
from tests.edl.run.search.conftest import PLAIN, searching, waves


@pytest.fixture
def job() -> JobFolder:
    return new_job(waves())


@pytest.fixture
def judge(tmp_path: Path, job: JobFolder) -> Judge:
    """A judge that has recorded two trials."""
    program = load(searching(tmp_path / "program", PLAIN))
    try:
        found = Judge(program, job)
    finally:
        unload(program.module)
    for number in range(2):
        folder = folder_of(job, number, 0)
        folder.path.mkdir(parents=True)
        folder.archive.write_bytes(b"a model")
        np.save(folder.path / SCORES, np.zeros((60, 1), np.float32))
        found.record(number, number, TrialResult((Outcome("train", 60, 1.0),), 1.0))
    return found


@pytest.mark.parametrize("file", ["archive.zip", SCORES])
def test_a_trial_with_changed_files_counts_as_failed(
    judge: Judge, job: JobFolder, file: str, capfd: pytest.CaptureFixture[str]
) -> None:
    sound = judge.trained_trials()
    judge.drop_damaged()
    assert judge.trained_trials() == sound
    assert sound[1].value is not None
    path = folder_of(job, 1, 0).path / file
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    judge.drop_damaged()
    found = judge.trained_trials()
    assert found[0] == sound[0]
    assert (found[1].value, found[1].error) == (
        None,
        f"it is damaged: bytes of 0/{file} have changed: its checksum is wrong",
    )
    assert "trial 2 counts as failed: bytes of" in capfd.readouterr().err


def test_a_trial_that_an_earlier_version_has_recorded_has_no_checksums_and_counts(
    judge: Judge, job: JobFolder
) -> None:
    (job.search / "001" / FILES).unlink()
    folder_of(job, 1, 0).archive.write_bytes(b"another")
    judge.drop_damaged()
    assert judge.trained_trials()[1].value is not None
