"""`sqlflow export`: write a model of the data source in a format that needs none of our code."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from edl.extension_loader import load
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import report_errors
from sqlflow_edl.cli.models.export_options import complaint
from sqlflow_edl.cli.source import no_source

AS_SQL = ("sqlflow_edl.extensions.model_sql.command", "write_query")  # what writes a model as a query


@report_errors
def export(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from edl.data import connect
    from edl.models.registry.factory import open_registry

    if wrong := complaint(options):
        print(f"sqlflow export: {wrong}", file=sys.stderr)
        return exit_codes.USAGE
    if not options.source:
        return no_source(options)
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "model.zip"
        with connect(options.source) as source:
            version = open_registry(source, options.model_store).load(options.model, archive)
        if options.sql:
            exit_code: int = load(*AS_SQL)(archive, version.reference, options)
            return exit_code
        from sqlflow_edl.backends.exporting import AS_PMML, run_export

        if options.output.endswith(".pmml"):
            words: str = load(*AS_PMML)(archive, version.reference, Path(options.output))
            print(f"wrote {words} to {options.output}", file=sys.stderr)
            return exit_codes.OK
        is_written = run_export(archive, Path(folder) / "program", options.output)
        return exit_codes.OK if is_written else exit_codes.FAILED
