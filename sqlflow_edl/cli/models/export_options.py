"""Options of `sqlflow export`: a file of a framework, or a query in SQL."""

from __future__ import annotations

import argparse


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options beside the model."""
    command.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        help="FILE.onnx, FILE.keras, a folder for TensorFlow, FILE.pt2, FILE.pmml, or a file of LightGBM or XGBoost; "
        "see sqlflow help serving; with --sql a file, or - for stdout (default)",
    )
    query = command.add_argument_group(
        "model as a query in SQL", "--dialect is duckdb, sqlite, mysql, postgres, maxcompute or bigquery"
    )
    query.add_argument("--sql", action="store_true", help="write a query that predicts, over --from")
    query.add_argument(
        "--from", dest="table", metavar="TABLE", help="table with the columns of the model, or a SELECT"
    )
    query.add_argument(
        "--keep", metavar="COLUMN,…", help="columns of the table that stand before the prediction"
    )
    query.add_argument("--view", metavar="NAME", help="write CREATE VIEW NAME AS … in place of the query")


def complaint(options: argparse.Namespace) -> str:
    """Describe what is missing or of no use among the options; empty if nothing is."""
    if options.sql:
        return "" if options.table else "--sql needs --from TABLE, the rows that the query predicts"
    if lost := [name for name in ("table", "keep", "view") if getattr(options, name)]:
        return f"--{'from' if lost[0] == 'table' else lost[0]} is an option of --sql"
    return "" if options.output else "-o PATH is needed: the file to write, such as m.onnx"
