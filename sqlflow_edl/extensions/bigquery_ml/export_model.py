"""`EXPORT MODEL name OPTIONS(URI = 'm.onnx')` of BigQuery ML: a stored model as a file, like `sqlflow export`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

from edl.errors import Advice, SemanticError, Span, StatementSyntaxError, did_you_mean
from edl.extension_loader import load
from edl.models.registry.base import Registry
from sqlflow_edl.backends.exporting import AS_PMML, export_file
from sqlflow_edl.errors.spans import set_missing_spans
from sqlflow_edl.extensions.bigquery_ml.create_model import find_parenthesis, parse_clause
from sqlflow_edl.extensions.bigquery_ml.options import option_text
from sqlflow_edl.reports.result import Result
from sqlflow_edl.syntax.ast import Statement
from sqlflow_edl.syntax.dialects import Dialect
from sqlflow_edl.syntax.foreign_statements import EXPORT_MODEL, read_model_name

URI = "uri"
SECONDS = 600.0  # time of an export, which imports a framework
_EXAMPLE = "write OPTIONS(URI = 'my_model.onnx')"


def read_export_model(text: str, span: Span, dialect: Dialect) -> Statement:
    """Return EXPORT MODEL. span: of the statement in the program's text. Raises SQLFlowError with the place."""
    head = EXPORT_MODEL.match(text, span.start)
    if head is None:
        raise RuntimeError("the statement exports no model")
    end = find_parenthesis(text, head.end() - 1, span.end, dialect)
    options = parse_clause(span, head.end(), "WITH", text[head.end() : end], dialect).attributes
    for option in options:
        if option.key.casefold() != URI:
            hint = did_you_mean(option.key.casefold(), [URI]) or _EXAMPLE
            raise StatementSyntaxError(f"unknown option {option.key}", span=option.key_span, hint=hint)
    for again in options[1:]:
        raise StatementSyntaxError(
            f"{again.key} is given twice", span=again.key_span, hint="keep one of them"
        )
    if not options or not option_text(options[0]):
        place = Span(head.start("word"), head.end("word"))
        raise StatementSyntaxError("the options name no file", span=place, hint=_EXAMPLE)
    return Statement(
        "export_model",
        text=text[span.start : span.end],
        span=span,
        model=read_model_name(head),
        attributes=options,
    )


def export_model(registry: Registry, statement: Statement) -> Result:
    """Write the model to the file of the option, in the format that its name tells.

    Raises SemanticError for a place that is not on this machine, and JobError if the model has no such format.
    """
    option = statement.attributes[0]
    path = _path_of(option_text(option), option.value.span)
    with tempfile.TemporaryDirectory(prefix="sqlflow-edl-") as folder:
        archive = Path(folder) / "model.zip"
        with set_missing_spans(statement.model.span if statement.model else None):
            version = registry.load(str(statement.model), archive)
        with set_missing_spans(option.value.span):
            if path.suffix == ".pmml":
                load(*AS_PMML)(archive, version.reference, path)
            else:
                export_file(archive, Path(folder) / "program", str(path), SECONDS)
    return Result(statement, message=f"wrote {version.reference} to {path}")


def _path_of(uri: str, span: Span) -> Path:
    parts = urlsplit(uri)
    if "://" not in uri:
        return Path(uri)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    name = Path(unquote(parts.path)).name
    file = name if Path(name).suffix else f"{name or 'my_model'}.onnx"
    raise SemanticError(
        f"a model is exported to a file of this machine, not to {parts.scheme}",
        span=span,
        hint=Advice(f"write OPTIONS(URI = '{file}')", f"'{file}'") if "'" not in file else _EXAMPLE,
    )
