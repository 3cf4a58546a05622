"""Export of a model in a process of its own, where its framework belongs."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from edl.errors import JobError
from edl.frameworks.trees.forest import Forest, of_lightgbm, of_xgboost
from edl.frameworks.trees.objectives import XGBOOST
from edl.models.archive import Archive, read_archive
from sqlflow_edl.codegen import generate
from sqlflow_edl.codegen.trees import objective

AS_PMML = ("sqlflow_edl.extensions.pmml.command", "write_pmml")  # what writes trees as PMML


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


def read_forest(model: Archive, archive: Path) -> Forest:
    """Return the trees of a model. archive: its file. Raises JobError if they cannot be read.

    XGBoost reads its own format in a process of its own.
    """
    if model.spec.framework == "lightgbm":
        return of_lightgbm(model.weights()["booster"].tobytes().decode())
    kind = XGBOOST[objective(model.spec)["objective"]]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trees.json"
        if not run_export(archive, Path(folder) / "program", str(file), quiet=True):
            raise JobError("the trees of XGBoost could not be read")
        return of_xgboost(file.read_bytes(), kind.start or kind.link, model.spec.label.outputs)
