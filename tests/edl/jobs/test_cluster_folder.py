"""The folder `cluster/` of a job."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec
import pytest

from edl.errors import SpecError
from edl.jobs.cluster_folder import (
    MASTER,
    SERVER,
    TESTING,
    WORKER,
    ClusterFolder,
    Process,
    RunSpec,
    master_timeout,
)


def test_a_spec_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = ClusterFolder(tmp_path)
    spec = RunSpec("torch", threads=2, master_arguments=("--x",), environment={"A": "b"}, detached=True)
    folder.write_run_spec(spec)
    assert folder.run_spec() == spec
    assert (spec.master, spec.worker, spec.server) == (MASTER, WORKER, SERVER)


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"master": "os"}, "os is not a permitted entry point"),
        ({"worker": "os:system"}, "os:system is not a permitted entry point"),
        ({"server": "os:system"}, "os:system is not a permitted entry point"),
        ({"slots": -1}, "must not be negative"),
        ({"threads": 0}, "at least one thread"),
        ({"framework": "jax"}, "jax"),
        ({"version": 2}, "version"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_spec_that_was_changed_by_hand_is_refused(
    tmp_path: Path, changes: dict[str, object], wrong: str
) -> None:
    folder = ClusterFolder(tmp_path)
    folder.write_run_spec(RunSpec("torch"))
    path = folder.path / "spec.json"
    path.write_bytes(msgspec.json.encode({**msgspec.json.decode(path.read_bytes()), **changes}))
    with pytest.raises(SpecError, match=wrong):
        folder.run_spec()


def test_a_spec_that_is_not_there_is_a_named_error(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=tmp_path.name):
        ClusterFolder(tmp_path).run_spec()


def test_tests_may_name_entries_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TESTING, "cast.master,cast.worker:main")
    assert RunSpec("torch", worker="cast.worker:main").worker == "cast.worker:main"
    with pytest.raises(ValueError, match="not a permitted entry point"):
        RunSpec("torch", worker="")


def test_a_token_is_made_once_and_is_the_users_alone(tmp_path: Path) -> None:
    folder = ClusterFolder(tmp_path)
    assert folder.token() == ""
    folder.make_token()
    token = folder.token()
    folder.make_token()
    assert folder.token() == token
    assert len(token) > 40
    assert stat.S_IMODE((folder.path / "token").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700


def test_the_supervisor_is_known_by_more_than_its_number(tmp_path: Path) -> None:
    folder = ClusterFolder(tmp_path)
    assert folder.process("supervisor") is None
    mine = Process.of(os.getpid())
    folder.write_process("supervisor", mine)
    assert folder.process("supervisor") == mine
    assert mine.runs
    assert not Process(os.getpid(), "another boot:1").runs


def test_the_master_takes_its_timeout_from_the_environment() -> None:
    assert master_timeout({}) == master_timeout({"EDL_MASTER_TIMEOUT": ""}) == 30.0
    assert master_timeout({}, 12.0) == 12.0
    assert master_timeout({"EDL_MASTER_TIMEOUT": "120"}, 12.0) == 120.0


@pytest.mark.parametrize("text", ["soon", "0", "-3", "nan", "inf"])
def test_a_timeout_that_is_no_number_of_seconds_is_an_error_that_names_it(text: str) -> None:
    with pytest.raises(SpecError, match=f"EDL_MASTER_TIMEOUT is '{text}', not a number of seconds") as caught:
        master_timeout({"EDL_MASTER_TIMEOUT": text})
    assert caught.value.hint == "leave it out for 30"
