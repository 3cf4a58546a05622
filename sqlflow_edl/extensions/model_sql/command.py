"""`sqlflow export --sql`: a model of the data source as a query."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from edl.errors import SQLFlowError
from edl.files import replacing
from edl.models.archive import read_archive
from sqlflow_edl.backends.exporting import read_forest
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.display.files import name_write_errors
from sqlflow_edl.extensions.model_sql.query import QueryOptions, model_query


def write_query(archive: Path, reference: str, options: argparse.Namespace) -> int:
    """Write the query to a file, which appears when it is complete, or to stdout."""
    model = read_archive(archive)
    output = None if options.output in (None, "-") else Path(options.output)
    if output is not None and output.exists():
        raise SQLFlowError(f"{output} is there already", hint="remove it, or choose another name")
    keep = tuple(name.strip() for name in options.keep.split(",")) if options.keep else ()
    dialect = options.dialect or model.spec.query.dialect
    query_options = QueryOptions(dialect, options.table, keep, options.view or "")
    text = model_query(model, reference, query_options, lambda: read_forest(model, archive))
    if output is None:
        sys.stdout.write(text)
        return exit_codes.OK
    with name_write_errors(output), replacing(output) as partial:
        partial.write_text(text, encoding="utf-8")
    print(f"wrote a query of {len(text):,} characters for {dialect} to {output}", file=sys.stderr)
    return exit_codes.OK
