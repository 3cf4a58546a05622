"""`sqlflow import FILE --as NAME`: the statement CREATE MODEL for a file that may be anywhere."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from edl.errors import SQLFlowError
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import report_errors
from sqlflow_edl.cli.source import no_source
from sqlflow_edl.display.files import path_of
from sqlflow_edl.extensions.imported.files import read_file
from sqlflow_edl.extensions.imported.importing import import_model
from sqlflow_edl.syntax.parse import parse

_OPTION = re.compile(
    r"\b(input_columns|input_label_cols|classes|output_kind|output|rounds) = (\[[^]]*\]|'[^']*'|\d+)"
)
_PLAIN = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@report_errors
def import_(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from sqlflow_edl.session.session import Session

    if not options.source:
        return no_source(options)
    file = path_of(options.file)
    text = statement(options, file)
    with Session(options.source, create=options.create, model_store=options.model_store) as session:
        [parsed] = parse(text, session.dialect)
        try:
            result = import_model(session.registry, parsed, file)
        except SQLFlowError as error:
            error.hint = error.hint and _OPTION.sub(_spell_option, error.hint)
            raise
    print(result.message, file=sys.stderr)
    if result.stored_in:
        print(f"model {result.model} in {result.stored_in}", file=sys.stderr)
    return exit_codes.OK


def statement(options: argparse.Namespace, file: Path) -> str:
    """Return the statement of the arguments. Raises SQLFlowError for a file of another kind, or a wrong number."""
    kind = read_file(file).format
    name = options.name if _PLAIN.fullmatch(options.name) else f"`{options.name}`"
    if "`" in options.name:
        raise SQLFlowError("the name of a model has no backticks")
    parts = [("model_type", _text(kind)), ("model_path", _text(str(file)))]
    if options.input_columns:
        parts.append(("input_columns", _list(options.input_columns)))
    if options.label:
        parts.append(("input_label_cols", f"[{_text(options.label)}]"))
    if options.classes:
        parts.append(("classes", _list(options.classes, numbers=True)))
    if options.output:
        parts.append(("output", _text(options.output)))
    if options.output_kind:
        parts.append(("output_kind", _text(options.output_kind)))
    if options.rounds:
        parts.append(("rounds", str(options.rounds)))
    return f"CREATE MODEL {name} OPTIONS({', '.join(f'{key} = {value}' for key, value in parts)})"


def _spell_option(written: re.Match[str]) -> str:
    """Return an option of the statement as one of the command: --input-columns a,b."""
    name = "label" if written[1] == "input_label_cols" else written[1].replace("_", "-")
    value = re.sub(r"[][' ]", "", written[2])
    return f"--{name} {value}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _list(values: str, *, numbers: bool = False) -> str:
    items = [item.strip() for item in values.split(",")]
    if numbers and all(re.fullmatch(r"-?\d+", item) for item in items):
        return f"[{', '.join(items)}]"
    return f"[{', '.join(map(_text, items))}]"
