"""`sqlflow compile`: write the training program of each TRAIN statement to a folder; nothing runs."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from edl.data.cells import format_count
from edl.errors import SQLFlowError
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.program import schema_file
from sqlflow_edl.cli.program.inputs import texts
from sqlflow_edl.cli.program.variables import fill_variables
from sqlflow_edl.cli.source import no_source
from sqlflow_edl.display.files import name_write_errors, path_of
from sqlflow_edl.display.narrator import Narrator
from sqlflow_edl.errors.render import render, traceback_of
from sqlflow_edl.session.session import Session
from sqlflow_edl.session.texts import sql_files


def compile_(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    narrator = Narrator(sys.stderr)
    name = text = ""
    try:
        if not (options.source or options.schema):
            return no_source(options)
        output = path_of(options.output)
        with _open_session(options, narrator) as session:
            if options.schema:
                name, text = options.schema, sql_files.read(Path(options.schema))
                schema_file.create_tables(session, text)
            count = 0
            for source_text in texts(options.files, []):
                name, text = source_text.name, source_text.text
                text = fill_variables(text, options.var, session.dialect)
                for compiled in session.compile(text):
                    if options.schema and (rows := compiled.spec.rows.total):
                        narrator.warn(
                            f"figures of features and label come from the {format_count(rows)} of {options.schema}"
                        )
                    with name_write_errors(output):
                        folder = _folder(output, compiled.spec.output.name)
                        compiled.program.write(folder)
                    print(folder)
                    count += 1
    except SQLFlowError as error:
        if options.debug:
            print(traceback_of(error), file=sys.stderr)
        print(render(error, text, name), file=sys.stderr)
        return exit_codes.FAILED
    if not count:
        print("there is no TRAIN statement to compile", file=sys.stderr)
    return exit_codes.OK


def _open_session(options: argparse.Namespace, narrator: Narrator) -> Session:
    """Open the source, or the tables of a schema file in its place."""
    store = options.model_store
    if not options.schema:
        session = Session(options.source, dialect=options.dialect, observer=narrator, model_store=store)
        session.maintain()
        return session
    if not options.source:
        narrator.note("the programs name no data source: --source URL names the one that they will read")
    return schema_file.open_session(options.dialect, store, options.source or "", narrator)


def _folder(output: Path, model: str) -> Path:
    """Choose a new folder for the model's program: a-b, a-b-2 and so on."""
    stem = re.sub(r"[^\w.-]+", "-", model, flags=re.ASCII).strip(".-")[:80] or "program"
    folder, number = output / stem, 1
    while folder.exists():
        number += 1
        folder = output / f"{stem}-{number}"
    return folder
