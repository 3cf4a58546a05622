"""`sqlflow retrain MODEL`: run the statement that trained a model again, if its table has grown."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from edl.errors import SemanticError
from edl.models.archive import read_archive
from edl.models.registry.records import split_reference
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import reported
from sqlflow_edl.cli.program.run import run
from sqlflow_edl.cli.source import no_source
from sqlflow_edl.session.session import Session


@reported
def retrain(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    if not options.source:
        return no_source(options)
    with Session(options.source, dialect=options.dialect, model_store=options.model_store) as session:
        statement = _statement(session, options.model)
        if options.if_rows is not None:
            why, grown = _growth(session, options.model, options.if_rows)
            print(why, file=sys.stderr)
            if not grown:
                return exit_codes.NOT_NEEDED
    options.files, options.execute = [], [statement]
    return run(options)


def _statement(session: Session, reference: str) -> str:
    """Return the statement that trained the model. Raises SemanticError if it trains no model of that name."""
    name = split_reference(reference)[0]
    statement = session.registry.look_up(reference).record.statement
    trains = [each for each in session.parse(statement) if each.kind in ("train", "auto") and not each.plan]
    if len(trains) != 1 or [str(into) for into in trains[0].into] != [name]:
        raise SemanticError(
            f"the stored statement of {reference} trains no model {name}",
            hint=f"sqlflow run -e 'SHOW TRAIN {reference}' shows it",
        )
    return statement


def _growth(session: Session, reference: str, wanted: int) -> tuple[str, bool]:
    """Compare the rows of the model's query with those when it was trained: in words, and if enough are new."""
    with TemporaryDirectory(prefix="sqlflow-edl-") as folder:
        file = Path(folder) / "model.zip"
        version = session.registry.load(reference, file)
        archive = read_archive(file)
    before = archive.lineage.rows
    query = archive.spec.query.select
    reader = session.source.execute(f"SELECT count(*) AS n FROM (\n{query}\n) trained_on")
    now = int(reader.read_all().column(0)[0].as_py()) if reader is not None else 0
    grown = now - before >= wanted
    counts = f"the query of {version.reference} has {now:,} rows, and had {before:,} when it was trained"
    verdict = "training again" if grown else f"not trained again, since fewer than {wanted:,} are new"
    return f"{counts}: {verdict}", grown
