"""`sqlflow report MODEL`: a model as one static HTML file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import report_errors
from sqlflow_edl.cli.source import no_source
from sqlflow_edl.display.files import OutputFile, name_write_errors


@report_errors
def report(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from edl.models.registry.model_store import ModelStore
    from sqlflow_edl.extensions.web.model_reader import ModelReader
    from sqlflow_edl.extensions.web.model_view import render_report

    if not (options.source or options.model_store):
        return no_source(options)
    model = ModelReader(ModelStore(options.source or "", options.model_store)).model(options.model)
    output = options.output or Path(f"{model.version.name}.html")
    with OutputFile(output) as file:
        with name_write_errors(output):
            file.out.write(render_report(model))
        file.keep()
    print(f"wrote the report of {model.version.reference} to {output}", file=sys.stderr)
    return exit_codes.OK
