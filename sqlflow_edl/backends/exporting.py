"""Export of a model in a process of its own, where its framework belongs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from edl.errors import JobError
from edl.models.archive import read_archive
from sqlflow_edl.codegen import generate


def run_export(archive: Path, program: Path, output: str, *, quiet: bool = False) -> bool:
    """Write the model of an archive to a file, in the format that its name tells, and return False if that failed.
    program: a folder for its program. The process reports its own errors, and what it wrote, unless it is `quiet`.
    """
    command = _command(archive, program, output)
    done = subprocess.run(command, check=False, stderr=subprocess.DEVNULL if quiet else None)  # noqa: S603
    return done.returncode == 0


def export_file(archive: Path, program: Path, output: str, seconds: float) -> None:
    """Write the model of an archive to a file like `run_export`. Raises JobError with the error of the process, or if
    it takes longer.
    """
    command = _command(archive, program, output)
    try:
        done = subprocess.run(  # noqa: S603
            command, check=False, capture_output=True, text=True, errors="replace", timeout=seconds
        )
    except subprocess.TimeoutExpired:
        raise JobError(f"the export takes more than {seconds:.0f} s", hint="try it in a terminal") from None
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        message, _, hint = (errors[-1] if errors else "error: the export failed")[7:].partition(" = ")
        raise JobError(message, hint=hint or None)


def _command(archive: Path, program: Path, output: str) -> list[str]:
    generate(read_archive(archive).spec).write(program)
    command = [sys.executable, "-P", "-m", "edl.cli.main", "export", "--output", output]
    return [*command, "--program", str(program), "--weights", str(archive)]
