"""`sqlflow export`: write a model of the data source in a format that needs none of our code."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import reported
from sqlflow_edl.cli.source import no_source


@reported
def export(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from edl.data import connect
    from edl.models.archive import read_archive
    from edl.models.registry.factory import open_registry
    from sqlflow_edl.codegen import generate

    if not options.source:
        return no_source(options)
    with tempfile.TemporaryDirectory() as folder:
        archive, program = Path(folder) / "model.zip", Path(folder) / "program"
        with connect(options.source) as source:
            open_registry(source, options.model_store).load(options.model, archive)
        generate(read_archive(archive).spec).write(program)
        return _in_a_process_of_its_own(program, archive, options.output)


def _in_a_process_of_its_own(program: Path, archive: Path, output: str) -> int:
    """Export in a separate process, where the framework belongs; it reports its own errors."""
    command = [sys.executable, "-P", "-m", "edl.cli.main", "export", "--output", output]
    done = subprocess.run([*command, "--program", str(program), "--weights", str(archive)], check=False)  # noqa: S603
    return exit_codes.OK if done.returncode == 0 else exit_codes.FAILED
