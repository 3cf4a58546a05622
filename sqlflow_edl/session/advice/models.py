"""Advice on models that are not there: none is kept, a table's name, a model in the place of the result."""

from __future__ import annotations

from collections.abc import Sequence

from edl.errors import Advice, Span, SQLFlowError, did_you_mean
from edl.models.registry.base import UnknownModelError
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.checks.query_errors import NoModelError, OtherModelError, UnknownArchitectureError
from sqlflow_edl.session.advice.looks import Look
from sqlflow_edl.syntax.ast import Statement

_KEPT = ("train.", "validation.")  # attributes that another model has, too
_MOST_TABLES = 50  # that are searched for a column


def advise_no_model(error: NoModelError, look: Look) -> None:
    """`TO PREDICT m`, where m is a model; or name the only one."""
    statement = look.statement
    names = _models(look)
    target = ".".join(error.target)
    if statement.target is not None and target in names and statement.target.span is not None:
        model = expressions.model(target)
        error.hint = Advice(
            f"{target} is a model: TO PREDICT USING {model}", f"USING {model}", statement.target.span
        )
        error.span = statement.target.span
    elif names:
        model, end = _likely_model(names, look), statement.span.end
        all_names = f"; models: {', '.join(names[:12])}" if len(names) > 1 else ""
        error.hint = Advice(f"add USING {model}{all_names}", f" USING {model}", Span(end, end))
    else:
        _say_none_kept(error, look, "my_model")


def advise_unknown(error: UnknownModelError, look: Look) -> None:
    """Say that no model is kept, and how to train it; that the name is a table's; or which models there are."""
    if error.hint != did_you_mean(error.name, error.known) or error.advice is not None:
        return  # something else is known of the name
    if not error.known:
        _say_none_kept(error, look, error.name)
        return
    is_table = error.name.casefold() in map(str.casefold, look.compiler.source.tables())
    names = ", ".join(error.known[:12])
    if is_table or len(error.known) == 1:
        kind = f"{error.name} is a table; " if is_table else ""
        error.hint = Advice(f"{kind}models: {names}", _likely_model(error.known, look))


def advise_architecture(error: UnknownArchitectureError, look: Look) -> None:
    """`TO TRAIN my_table LABEL y INTO m`: without TO TRAIN the best model is searched."""
    statement = look.statement
    if error.advice is not None or error.span is None or statement.select_span is None:
        return
    is_table = error.name.casefold() in map(str.casefold, look.compiler.source.tables())
    why = f"{error.name} is a table" if is_table else error.hint
    clause = Span(statement.select_span.end, error.span.end)
    error.hint = Advice(f"{why}; without TO TRAIN the best model is searched", "", clause)


def advise_other_model(error: OtherModelError, look: Look) -> None:
    """Write the whole statement with the model that does the work of another system's."""
    replacement, statement = error.replacement, look.statement
    if replacement is None or error.advice is not None or not statement.select or not statement.into:
        return
    settings = {
        name: _setting(statement, keys, usual) for name, (keys, usual) in replacement.settings.items()
    }
    if replacement.needs_time:
        if (time := _time_column(look)) is None:
            return
        settings = {"forecast.time": look.name(time), **settings}
    if replacement.model:  # a search measures and trains by itself
        settings |= {
            attribute.key: _slice_text(statement, Span(attribute.value.span.start, attribute.value.span.end))
            for attribute in statement.attributes
            if attribute.key.startswith(_KEPT)
        }
    model = f"TO TRAIN {replacement.model}" if replacement.model else ""
    values = ", ".join(f"{name} = {value}" for name, value in settings.items())
    clauses = [statement.select.strip(), *filter(None, (model, f"WITH {values}" if values else ""))]
    label = f"LABEL {', '.join(_slice_text(statement, name.span) for name in statement.labels)}"
    columns = [_slice_text(statement, clause.span) for clause in statement.columns]
    clauses += [*columns, label] if replacement.model else [label, *columns]
    if not replacement.has_label:
        clauses.remove(label)
    clauses.append(f"INTO {_slice_text(statement, statement.into[0].span)}")
    error.hint = Advice(error.hint or "", "\n".join(clauses), statement.span)


def _setting(statement: Statement, keys: Sequence[str], usual: object) -> object:
    """Return the value of the last attribute with one of these names as it is written, or the usual one."""
    values = [
        _slice_text(statement, attribute.value.span)
        for attribute in statement.attributes
        if attribute.key.casefold().removeprefix("model.") in keys
    ]
    return values[-1] if values else usual


def _slice_text(statement: Statement, span: Span) -> str:
    return statement.text[span.start - statement.span.start : span.end - statement.span.start]


def _time_column(look: Look) -> str | None:
    """Return the first column of the query with dates or times."""
    import pyarrow as pa

    schema = look.query_schema or pa.schema([])
    return next((field.name for field in schema if pa.types.is_temporal(field.type)), None)


def _likely_model(references: Sequence[str], look: Look) -> str:
    """Return the model of the predicted label, or the first."""
    target = look.statement.target
    label = target.parts[-1] if target is not None else ""
    for name in references:
        try:
            with look.compiler.registry.fetch(name) as (_, archive):
                from edl.models.archive import read_archive

                trained = read_archive(archive).spec
        except SQLFlowError:
            continue
        columns = {column.casefold() for column in trained.columns}
        has_all = look.columns is not None and columns <= {column.casefold() for column in look.columns.names}
        if has_all and (not label or trained.label.column == label):
            return expressions.model(name)
    return expressions.model(references[0])


def _models(look: Look) -> list[str]:
    return [*dict.fromkeys(version.name for version in look.compiler.registry.list())]


def _say_none_kept(error: SQLFlowError, look: Look, model: str) -> None:
    """Say that there is no model at all, with the statement that trains one, or with the option that names a store."""
    place, source = look.compiler.registry.url, look.compiler.source
    if look.compiler.only_schema and place.startswith(f"{source.dialect}:"):  # in memory, like the tables
        error.hint = (
            f"a schema file has no models: --model-store DIR names the folder that has it; sqlflow copy "
            f"{expressions.model(model)} --to DIR writes it there from its --source"
        )
        return
    target = look.statement.target
    label = target.parts[-1] if target is not None else ""
    table = _table_with(look, label) if label else None
    rows, column = (expressions.argument(name) for name in (table or "my_table", label or "my_label"))
    train = f"SELECT * FROM {rows} LABEL {column} INTO {expressions.model(model)}"
    error.corrected = train if table else ""
    advice = "" if table else f": {train}"
    option = "--source" if source.model_store or place == source.url else "--model-store"
    error.hint = f"{place} keeps no models: give the {option} that has it, or train it{advice}"


def _table_with(look: Look, column: str) -> str | None:
    """Return a table that has the column."""
    source = look.compiler.source
    for table in source.tables()[:_MOST_TABLES]:
        try:
            names = [name.casefold() for name, _ in source.column_types(table)]
        except SQLFlowError:
            continue
        if column.casefold() in names:
            return table
    return None
