"""`sqlflow retrain MODEL`: run the statement that trained a model again, if its rows have grown or drifted.

With --if-better the new version becomes the current one only if it is at least as good.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress

from edl.errors import SemanticError, SQLFlowError
from edl.models.archive import Archive, read_archive
from edl.models.registry.records import split_reference
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.checks.drift import DRIFTED
from sqlflow_edl.analysis.columns.missing import list_columns_with_unseen_as_null
from sqlflow_edl.analysis.inference.prediction import without_statistics
from sqlflow_edl.analysis.settings.search import ACTIVATE
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import report_errors
from sqlflow_edl.cli.program.run import run
from sqlflow_edl.cli.source import no_source
from sqlflow_edl.reports.drift import sentence
from sqlflow_edl.session.comparison import drift
from sqlflow_edl.session.session import Session


@report_errors
def retrain(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    if not options.source:
        return no_source(options)
    with Session(options.source, dialect=options.dialect, model_store=options.model_store) as session:
        session.maintain()
        statement = _statement(session, options.model)
        if options.if_better:
            statement = _activate_if_better(session, statement)
        reasons = []
        with session.registry.fetch(options.model) as (model, file):
            archive = read_archive(file)
            for why, needed in _conditions(session, options, archive, model.reference):
                reasons.append(why)
                if not needed:
                    print(f"{why}: not trained again", file=sys.stderr)
                    return exit_codes.NOT_NEEDED
            if columns := list_columns_with_unseen_as_null(archive.spec):
                print(_note_on_unseen(model.reference, columns), file=sys.stderr)
        if reasons:
            print(f"{'; '.join(reasons)}: training again", file=sys.stderr)
    options.files, options.execute = [], [statement]
    return run(options)


def _statement(session: Session, reference: str) -> str:
    """Return the statement that trained the model, under its present name, which a copy may have got later.

    Raises SemanticError if the statement trains no model, or several.
    """
    name = split_reference(reference)[0]
    statement = session.registry.look_up(reference).record.statement
    trains = [
        statement_found
        for statement_found in session.parse(statement)
        if statement_found.trains and not statement_found.plan
    ]
    if not trains and session.parse(statement)[0].kind == "import_model":
        raise SemanticError(
            f"{reference} was imported from a file, and is not trained here",
            hint="train it where the file was made, and import the new file under the same name",
        )
    if len(trains) != 1 or len(trains[0].into) != 1:
        raise SemanticError(
            f"the stored statement of {reference} trains no model {name}",
            hint=f"sqlflow run -e 'SHOW TRAIN {reference}' shows it",
        )
    [into] = trains[0].into
    if str(into) == name:
        return statement
    return f"{statement[: into.span.start]}{expressions.model(name)}{statement[into.span.end :]}"


def _note_on_unseen(reference: str, columns: Sequence[str]) -> str:
    """Return the note on a model of an earlier version that takes unseen values as NULL."""
    return (
        f"note: {reference} takes a value of {', '.join(columns)} that its training did not have as NULL; the new "
        "version tells them apart"
    )


def _activate_if_better(session: Session, text: str) -> str:
    """Return the statement with `train.activate = better`, unless it has that attribute."""
    [statement] = session.parse(text)
    if statement.attribute(ACTIVATE):
        return text
    start = min((attribute.span.start for attribute in statement.attributes), default=None)
    if start is None:
        text = f"{text}\nWITH {ACTIVATE} = better"
    else:
        text = f"{text[:start]}{ACTIVATE} = better, {text[start:]}"
    with suppress(SQLFlowError):
        if all(statement.attribute(ACTIVATE) for statement in session.parse(text)):
            return text
    raise SemanticError(
        f"the stored statement cannot take {ACTIVATE}",
        hint=f"train it by SELECT … TO TRAIN … WITH {ACTIVATE} = better",
    )


def _conditions(
    session: Session, options: argparse.Namespace, archive: Archive, reference: str
) -> Iterator[tuple[str, bool]]:
    """Yield each condition in words, and if it holds, the cheapest first."""
    if options.if_rows is not None:
        yield _growth(session, archive, reference, options.if_rows)
    if options.if_drift or options.drift_limit is not None:
        yield _drift(session, archive, reference, options.drift_limit or DRIFTED)


def _growth(session: Session, archive: Archive, reference: str, least: int) -> tuple[str, bool]:
    """Compare the number of rows of the model's query with its number in training."""
    before = archive.lineage.rows
    query = archive.spec.query.select
    reader = session.source.execute(f"SELECT count(*) AS n FROM (\n{query}\n) trained_on")
    now = int(reader.read_all().column(0)[0].as_py()) if reader is not None else 0
    grown = now - before >= least
    counts = f"the query of {reference} has {now:,} rows, and had {before:,} when it was trained"
    return counts if grown else f"{counts}, so that fewer than {least:,} are new", grown


def _drift(session: Session, archive: Archive, reference: str, limit: float) -> tuple[str, bool]:
    """Compare the rows of the model's query with the rows that it was trained on."""
    if archive.fitting is None:
        raise without_statistics(reference)
    rows = session.source.stream(archive.spec.query.select)
    comparisons = drift(archive, rows.schema.names, lambda columns: rows, limit, label=True)
    return sentence(comparisons, reference), any(
        comparison.verdict == "drifted" for comparison in comparisons
    )
