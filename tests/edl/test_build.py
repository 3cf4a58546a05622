"""The build of the runtime, and when jobs of one run in another."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import edl.build
from edl.build import PROTOCOL, SHOWN, Build, compute_digest, present_build, read_build
from tests.protocol import RECORD, describe_protocol


def modules(folder: Path, **texts: str) -> Path:
    (folder / "part").mkdir(parents=True)
    for name, text in texts.items():
        (folder / "part" / f"{name}.py").write_text(text)
    return folder


def test_the_digest_is_of_the_modules_alone(tmp_path: Path) -> None:
    one, other = modules(tmp_path / "one", a="1", b="2"), modules(tmp_path / "other", b="2", a="1")
    (other / "part" / "__pycache__").mkdir()
    (other / "part" / "__pycache__" / "a.pyc").write_bytes(b"compiled")
    assert compute_digest(one) == compute_digest(other)


@pytest.mark.parametrize(
    "texts", [{"a": "1", "b": "3"}, {"a": "12", "b": ""}, {"a": "1", "c": "2"}, {"a": "1"}]
)
def test_another_text_or_name_of_a_module_is_another_build(tmp_path: Path, texts: dict[str, str]) -> None:
    one, other = modules(tmp_path / "one", a="1", b="2"), modules(tmp_path / "other", **texts)
    assert compute_digest(one) != compute_digest(other)


def test_the_build_of_this_process_is_what_the_command_shows() -> None:
    done = subprocess.run([sys.executable, "-m", "edl.build"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{present_build()}, protocol {PROTOCOL}\n"
    assert len(present_build().digest) == SHOWN


def test_the_build_of_other_modules_is_read_without_running_them(tmp_path: Path) -> None:
    assert read_build(Path(edl.build.__file__).parent) == present_build()
    assert read_build(tmp_path) is None


@pytest.mark.parametrize(
    ("protocol", "other", "fits"), [(1, 1, True), (1, 2, False), (0, 2, True), (2, 0, True)]
)
def test_builds_of_one_protocol_are_compatible_and_so_may_be_one_that_tells_none(
    protocol: int, other: int, fits: bool
) -> None:
    assert Build("1", "a", protocol).is_compatible(Build("1", "b", other)) is fits


def test_a_change_of_what_builds_exchange_is_recorded_with_the_number_of_the_protocol() -> None:
    recorded = RECORD.read_text(encoding="utf-8").splitlines()
    changed = sorted(set(recorded) ^ set(describe_protocol()))
    assert not changed, (
        "client and image of a job may be of builds before and after this change. If one of them would misread the "
        "other without an error, raise edl.build.PROTOCOL. Then record the change: python -m tests.protocol"
    )
