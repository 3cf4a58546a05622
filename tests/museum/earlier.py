"""Client of an earlier version beside today's: each runs in processes of its own, over the same files."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.documentation import REPOSITORY

FIRST = "98fd50e7"  # version 0.1.0, the first of the museum
SECONDS = 120.0
_COMMAND = "import sys; from sqlflow_edl.cli.main import main; sys.exit(main(sys.argv[1:]))"


@dataclass(frozen=True)
class Client:
    """`sqlflow` of one version. tree: its source, before all else on Python's path; home: of databases and jobs."""

    tree: Path
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        own = {
            "PYTHONPATH": os.pathsep.join((str(self.tree), str(self.tree / "runtime"))),
            "XDG_STATE_HOME": str(self.home / "state"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        return {**os.environ, **own}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", _COMMAND, *arguments],
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, code: int | None = 0) -> str:
        """Output of a command to both streams. code: how it exits; None for any failure."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=SECONDS)
        assert process.returncode == code if code is not None else process.returncode > 0, out + err
        return out + err

    def sql(self, statement: str, *options: str, code: int | None = 0) -> str:
        return self.run(
            "run", "--source", "sqlite:///museum.sqlite", "--quiet", *options, "-e", statement, code=code
        )


def unpack(commit: str, folder: Path) -> None:
    """Write the source of a commit into the folder. Skips the test where the history is not there."""
    parts = ("runtime", "sqlflow_edl", "grammar", "proto", "codegen_templates", "samples")
    found = subprocess.run(["git", "-C", str(REPOSITORY), "archive", commit, *parts], capture_output=True)
    if found.returncode:
        pytest.skip(f"the history with {commit} is not here")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(folder, filter="data")


def files(folder: Path, left_out: Sequence[str] = ()) -> dict[str, bytes]:
    """Content of all files below the folder, by path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in _paths(folder, left_out)}


def _paths(folder: Path, left_out: Sequence[str]) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in left_out:
            yield path
