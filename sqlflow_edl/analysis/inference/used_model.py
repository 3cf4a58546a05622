"""Parts that PREDICT, EVALUATE and EXPLAIN share: the model, its columns in the query, and what the job takes over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from edl import spec
from edl.errors import SemanticError, SQLFlowError, did_you_mean, raise_all
from edl.spec.forecast import PREFIX
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.checks.query_errors import MissingColumnsError, NoModelError
from sqlflow_edl.analysis.entries import NETWORKS
from sqlflow_edl.analysis.inference.column_types import expression_of_training
from sqlflow_edl.analysis.schema import Schema
from sqlflow_edl.analysis.settings.attribute_dictionary import AttributeRow, Dictionary, Resolved
from sqlflow_edl.analysis.settings.kubernetes import KUBERNETES
from sqlflow_edl.analysis.settings.values import read_device
from sqlflow_edl.syntax import ast

_TIMESTAMP, _DATE, _ZONED = "timestamp", "date", "tz="  # in the name of an Arrow type
_HAS, _HAD = ("has no time zone", "has a time zone"), ("had none", "had one")
_WITH_ZONES = ("duckdb", "postgres", "redshift", "trino")  # dialects of AT TIME ZONE


def is_of_other_explainers(statement: ast.Statement, key: str) -> bool:
    """Return True for an attribute of EXPLAIN that is an option of a SQLFlow plot, or names the label."""
    name = key.casefold()
    is_option = name.startswith(("summary.", "shap_summary.")) or name in (
        "plots",
        "label_col",
        "label_column",
    )
    return statement.kind == "explain" and is_option


def used_model_notes(statement: ast.Statement, trained: spec.JobSpec, used: spec.JobSpec) -> tuple[str, ...]:
    """Return notes on the use of a model, once its rows are pinned."""
    if used.kind == "explain":
        without = [
            attribute.key
            for attribute in statement.attributes
            if is_of_other_explainers(statement, attribute.key)
        ]
        if statement.using is not None:
            without.append(f"USING {statement.using}")
        sentences = []
        if without:
            has = "has" if len(without) == 1 else "have"
            why = "columns are explained by their Shapley values, which need neither plot nor label"
            sentences.append(f"{', '.join(without)} {has} no effect: {why}")
        if used.framework in spec.TREES:
            if any(attribute.key.casefold() == "explain.samples" for attribute in statement.attributes):
                sentences.append("explain.samples has no effect: the Shapley values of trees are exact")
            return tuple(sentences)
        return (*sentences, *_compared_with_query(used), *_many_columns(statement, used))
    decided = _of_training(statement, trained, used)
    taken = [column for column in used.columns if column.casefold() == used.output.column.casefold()]
    if used.kind == "predict" and taken:
        decided = (*decided, f"the prediction stands in the place of {taken[0]}, which the model reads")
    refit = trained.forecast is not None and trained.forecast.refit
    if used.kind == "evaluate" and refit and used.rows.digest == trained.rows.digest:
        why = "the figures of DESCRIBE MODEL were measured before that"
        decided = (*decided, f"after its backtest the model was trained on these rows, too: {why}")
    if used.kind != "evaluate" or used.weights or not trained.weights:
        return decided
    column = trained.weights.column
    return (
        *decided,
        f"each row counts once: the query has no column {column}, which weighed the rows in training",
    )


def is_sampled(planned: spec.JobSpec) -> bool:
    """Return True if a job takes some of the query's rows at random."""
    return planned.explanation is not None and bool(planned.explanation.rows)


def with_rows(planned: spec.JobSpec, rows: int, digest: str) -> tuple[spec.JobSpec, tuple[str, ...]]:
    """Return the JobSpec for so many pinned rows, and a note if it takes only some of them."""
    taken = rows
    if planned.explanation is not None and planned.explanation.rows:
        taken = min(rows, planned.explanation.rows)
    spec_with_rows = msgspec.structs.replace(planned, rows=spec.Rows(True, taken, 0, 0, digest))
    if taken == rows:
        return spec_with_rows, ()
    return spec_with_rows, (
        f"importances over {taken:,} of the {rows:,} rows, drawn at random; WITH explain.rows = 0 takes all",
    )


MANY_COLUMNS = 100
FEW_ROWS = 30  # of a query that are compared with each other


def check_explains(statement: ast.Statement, used: spec.JobSpec) -> None:
    """Raise SemanticError for a single row that could be compared with itself alone."""
    explanation = used.explanation
    if explanation is None or not explanation.background or used.rows.total != 1:
        return
    is_written = any(attribute.key.casefold() == "explain.background" for attribute in statement.attributes)
    remedy = (
        "leave explain.background out"
        if is_written
        else "train the model again: it then keeps rows to compare with"
    )
    raise SemanticError(
        "EXPLAIN compares rows with other rows of the query; this query has only one, so nothing can be explained",
        span=statement.select_span,
        hint=f"{remedy}, or select more rows",
    )


def _compared_with_query(used: spec.JobSpec) -> tuple[str, ...]:
    """Return a note on few rows that are compared with each other."""
    explanation = used.explanation
    if explanation is None or not explanation.background or used.rows.total >= FEW_ROWS:
        return ()
    model = used.trained_model
    why = f"{model} keeps no rows of its training; a model that is trained again does"
    return (f"these {used.rows.total} rows are compared with each other alone: {why}",)


def has_input_gradients(trained: spec.JobSpec) -> bool:
    """Return True if the model is a network of the compiler, which expected gradients explain."""
    is_network = trained.framework in NETWORKS and trained.forecast is None
    has_numbers = all(feature.array != "texts" for feature in trained.features)
    return is_network and has_numbers and not trained.edited and trained.zoo is None


def _many_columns(statement: ast.Statement, used: spec.JobSpec) -> tuple[str, ...]:
    """Return a note on a network of so many columns that few rows are compared."""
    explanation, columns = used.explanation, len(used.columns)
    is_written = any(
        attribute.key.casefold() in ("explain.method", "explain.samples")
        for attribute in statement.attributes
    )
    if explanation is None or is_written or columns <= MANY_COLUMNS or not has_input_gradients(used):
        return ()
    few = f"each row is compared with {explanation.samples} rows for its {columns:,} columns"
    return (f"{few}; WITH explain.method = expected_gradients takes less time",)


def time_notes(trained: spec.JobSpec, query: spec.Query) -> Iterator[str]:
    """Yield a note for each timestamp of the model that is a date in the query, or has a time zone either in its
    training or in the query.

    A zoned one counts in UTC, one without a zone as it is written, so that their hours and days may differ.
    """
    types = {field.name.casefold(): field.type for field in query.schema}
    columns_of_model = frozenset(trained.columns)
    for field in trained.query.schema:
        here = types.get(field.name.casefold(), "")
        if field.name not in columns_of_model or not field.type.startswith(_TIMESTAMP):
            continue
        if here.startswith(_DATE):
            yield f"{field.name} is a date here and was a timestamp in training: each row counts as midnight"
        if not here.startswith(_TIMESTAMP) or (_ZONED in here) == (_ZONED in field.type):
            continue
        name = expressions.name(field.name, query.dialect)
        whose = "the rows of the training" if _ZONED in here else "these rows"
        advice = (
            f"; select {name} AT TIME ZONE 'UTC' AS {name}, for UTC the zone in which {whose} are written"
        )
        yield (
            f"{field.name} {_HAS[_ZONED in here]} here and {_HAD[_ZONED in field.type]} in training: with a zone it "
            "counts in UTC, without one as it is written, so hours and days may differ"
            + (advice if query.dialect in _WITH_ZONES else "")
        )


def _of_training(statement: ast.Statement, trained: spec.JobSpec, used: spec.JobSpec) -> tuple[str, ...]:
    """Return a note on a threshold that the training chose, and not the statement."""
    is_written = any(attribute.key.casefold().endswith("threshold") for attribute in statement.attributes)
    if used.threshold is None or is_written or not trained.label.has_classes:
        return ()
    why = f"validation.threshold = {trained.training.threshold} of the training"
    return (f"{trained.label.classes[1]} is predicted from its probability {used.threshold:.4g} on: {why}",)


def spec_of(
    trained: spec.JobSpec,
    kind: spec.job.Kind,
    statement: ast.Statement,
    reference: str,
    query: spec.Query,
    renamed: Mapping[str, str],
    attributes: Mapping[str, Resolved],
) -> spec.JobSpec:
    """Return the JobSpec of the training over another query, for a job that uses the model.

    renamed: its columns -> the query's columns.
    """
    if trained.forecast is not None:
        trained = _renamed_series(trained, renamed)
    return msgspec.structs.replace(
        trained,
        kind=kind,
        statement=statement.text,
        query=query,
        validation=None,
        inputs=renamed_inputs(trained, renamed),
        members=tuple(_rename_member(member, renamed) for member in trained.members),
        trained_model=reference,
        device=_device(trained, kind, attributes),
    )


def _device(trained: spec.JobSpec, kind: str, attributes: Mapping[str, Resolved]) -> spec.job.Device:
    """Return the device; the training's does not matter. Raises SemanticError if trees have to use a GPU."""
    attribute = attributes.get(f"{kind}.device")
    device = read_device(attribute.value if attribute else None)
    if attribute and device == "cuda" and trained.framework in (*spec.TREES, spec.ONNX):
        what = "trees compute" if trained.framework in spec.TREES else "an imported ONNX file computes"
        raise SemanticError(f"{what} on the CPU", span=attribute.span, hint=f"leave {kind}.device out")
    return device


def columns_read(trained: spec.JobSpec) -> list[str]:
    """Return the columns that the model reads; of a forecast also its series and the known labels."""
    if trained.forecast is None:
        return list(trained.columns)
    of_features = (name for name in trained.columns if not name.startswith(PREFIX))
    return list(dict.fromkeys((*trained.forecast.order_columns, *of_features, trained.label.column)))


def _renamed_series(trained: spec.JobSpec, renamed: Mapping[str, str]) -> spec.JobSpec:
    """Return the JobSpec of a forecast over the series of another query."""
    forecast, label = trained.forecast, trained.label
    if forecast is None:
        raise RuntimeError("the model forecasts nothing")
    series = tuple(renamed.get(name, name) for name in forecast.series)
    time = renamed.get(forecast.time, forecast.time)
    return msgspec.structs.replace(
        trained,
        forecast=msgspec.structs.replace(forecast, time=time, series=series),
        label=msgspec.structs.replace(label, column=renamed.get(label.column, label.column)),
    )


def _rename_member(member: spec.Member, renamed: Mapping[str, str]) -> spec.Member:
    inputs = renamed_inputs(member.spec, renamed)
    return msgspec.structs.replace(member, spec=msgspec.structs.replace(member.spec, inputs=inputs))


def renamed_inputs(trained: spec.JobSpec, renamed: Mapping[str, str]) -> dict[str, tuple[spec.Feature, ...]]:
    """Return the model's features over the columns of another query."""
    return {
        name: tuple(spec.with_columns(feature, renamed) for feature in features)
        for name, features in trained.inputs.items()
    }


def over_schema(trained: spec.JobSpec, schema: Schema) -> spec.JobSpec:
    """Return the JobSpec with its features over the columns of a query that has them all."""
    renamed = {
        name: column_here for name in trained.columns if (column_here := schema.find(name)) is not None
    }
    return msgspec.structs.replace(trained, inputs=renamed_inputs(trained, renamed))


def columns(
    statement: ast.Statement,
    schema: Schema,
    needed: Sequence[str],
    errors: list[SQLFlowError],
    trained: spec.Query,
) -> dict[str, str]:
    """Map the model's columns to the query's; add an error for missing ones. trained: query of the training."""
    by_column = {column: schema.find(column) for column in needed}
    missing = [column for column, name in by_column.items() if name is None]
    if missing:
        near = did_you_mean(missing[0], schema.names, list_up_to=0) if len(missing) == 1 else None
        expressions_of_training = (expression_of_training(trained, column) for column in missing)
        hint = near or next(filter(None, expressions_of_training), None)
        hint = hint or f"the model reads {', '.join(needed[:20])}{', …' if len(needed) > 20 else ''}"
        plural = "s" if len(missing) > 1 else ""
        types = {field.name: field.type for field in trained.schema}
        errors.append(
            MissingColumnsError(
                f"the query lacks the column{plural} {', '.join(missing[:20])} that the model reads",
                {column: types.get(column, "") for column in missing},
                is_label=False,
                span=statement.select_span,
                hint=hint,
            )
        )
    return {column: name for column, name in by_column.items() if name is not None}


def check_use(
    statement: ast.Statement,
    model: ast.Name | None,
    rows: tuple[AttributeRow, ...],
    errors: list[SQLFlowError],
    elsewhere: Mapping[str, str] | None = None,
) -> tuple[ast.Name, dict[str, Resolved]]:
    """Return the model and the attributes of a statement that uses a model.

    rows: dictionary of its attributes. elsewhere: attributes of other statements -> those statements, for hints. Raises
    `errors` together with the errors in the query, the attributes and the model.
    """
    if not statement.select:
        verb = statement.kind
        message, hint = f"there is no SELECT to {verb}", f"write SELECT … FROM … before TO {verb.upper()}"
        errors = [SemanticError(message, span=statement.span, hint=hint), *errors]
    attributes_here = [
        attribute
        for attribute in statement.attributes
        if not is_of_other_explainers(statement, attribute.key)
    ]
    resolved = Dictionary((*rows, *KUBERNETES), elsewhere).resolve(attributes_here, errors, [])
    if model is None:
        message, target = "the statement needs a model", statement.target.parts if statement.target else ()
        missing = NoModelError(message, target, span=statement.span, hint="add USING my_model")
        raise_all([*errors, missing])
        raise missing
    raise_all(errors)
    return model, resolved


def cluster_of(attributes: Mapping[str, Resolved], verb: str) -> spec.Cluster:
    timeout = attributes.get(f"{verb}.task_timeout")
    return spec.Cluster(
        workers=value_of(attributes, f"{verb}.num_workers", 0),
        task_timeout=float(timeout.value) if timeout is not None else 0.0,  # type: ignore[arg-type]
    )


def value_of(attributes: Mapping[str, Resolved], name: str, default: int) -> int:
    return int(attributes[name].value) if name in attributes else default  # type: ignore[arg-type]
