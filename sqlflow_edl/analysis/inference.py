"""Analysis of PREDICT, EVALUATE and EXPLAIN: from the statement and the model's JobSpec to a JobSpec.

Nothing is derived again: features, label and parameters are those of training. The query is only checked for the
columns that the model reads; names match without case, and the query may have more columns in another order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from edl import spec
from edl.data.names import fitting, quoted
from edl.errors import SemanticError, Span, SQLFlowError, did_you_mean, raise_all
from edl.models.archive import Archive
from edl.spec.forecast import PREFIX
from edl.worker.evaluation.prediction import predicted_columns
from sqlflow_edl.analysis import extra_outputs, uncertainty
from sqlflow_edl.analysis.labels import refused, resolve_metrics
from sqlflow_edl.analysis.rows import row_groups
from sqlflow_edl.analysis.schema import ColumnType, Schema
from sqlflow_edl.analysis.settings import running
from sqlflow_edl.analysis.settings.dictionary import Attribute, Dictionary, Resolved
from sqlflow_edl.analysis.settings.kubernetes import KUBERNETES
from sqlflow_edl.analysis.settings.measurement import MEASUREMENT
from sqlflow_edl.analysis.settings.uses import EVALUATE, EXPLAIN, PREDICT
from sqlflow_edl.syntax import ast
from sqlflow_edl.syntax.dialects import dialect_named

_PIECES = re.compile(r'"(?:[^"]|"")*"|`(?:[^`]|``)*`|[^\s."`]+')  # of a dotted name as it is written

# Names of explainers in SQLFlow and the shap package.
EXPLAINERS = {
    name.casefold(): name
    for name in (
        "DeepExplainer",
        "ExactExplainer",
        "GradientExplainer",
        "KernelExplainer",
        "PermutationExplainer",
        "SamplingExplainer",
        "TreeExplainer",
        "XGBoostExplainer",
    )
}


def check_prediction(statement: ast.Statement) -> tuple[ast.Name, dict[str, Resolved]]:
    """Return the model and attributes of PREDICT. Raises errors that need no database."""
    errors = _missing_select(statement)
    if statement.columns:
        errors.append(
            SemanticError(
                "PREDICT takes no COLUMN: the model knows its columns",
                span=statement.columns[0].span,
                hint="leave it out",
            )
        )
    return _model(statement.using, statement, errors), _attributes(statement, PREDICT, errors)


def prediction(
    statement: ast.Statement, model: Archive, reference: str, query: spec.Query, schema: Schema
) -> spec.JobSpec:
    """Return the JobSpec of a PREDICT statement, without its rows."""
    _, attributes = check_prediction(statement)
    trained, errors = model.spec, list[SQLFlowError]()
    renamed = columns(statement, schema, _read(trained), errors)
    interval = uncertainty.interval(attributes.get("predict.interval"), model, reference, errors)
    threshold = uncertainty.threshold(attributes.get("predict.threshold"), model, reference, errors)
    probabilities = uncertainty.probabilities(attributes.get("predict.probabilities"), model, errors)
    extra = extra_outputs.chosen(attributes.get("predict.extra_outputs"), model, reference, errors)
    if extra_outputs.PROBABILITIES in extra:
        extra = tuple(name for name in extra if name != extra_outputs.PROBABILITIES)
        probabilities = True
    report = _rows_or_report(attributes.get("predict.report"), statement, model, reference, errors)
    raise_all(errors)
    several = isinstance(trained.label, spec.SeveralLabels)
    usual = "" if several else trained.label.column
    table, column = _target(statement.target, statement.prefix + usual, query.dialect)
    if several and column != statement.prefix:
        column += "_"  # before the name of each label
    if table and statement.target and fitting(column, scheme := query.source.partition(":")[0]) != column:
        raise SemanticError(
            f"{column} cannot name a column of {scheme}",
            span=statement.target.span,
            hint="name the column that is predicted behind the table: TO PREDICT my_table.my_column",
        )
    predicted = {name.casefold() for name in predicted_columns(trained.label, column)}
    keep = tuple(name for name in schema.names if name.casefold() not in predicted)
    return msgspec.structs.replace(
        _used(trained, "predict", statement, reference, query, renamed, attributes),
        weights=None,
        output=spec.Output(table, column, keep, probabilities, extra),
        report=report,
        interval=interval,
        threshold=threshold,
        temperature=uncertainty.temperature(model),
        batch_size=_value(attributes, "predict.batch_size", trained.batch_size),
        cluster=_cluster(attributes, "predict"),
    )


def _rows_or_report(
    written: Resolved | None,
    statement: ast.Statement,
    model: Archive,
    reference: str,
    errors: list[SQLFlowError],
) -> spec.job.Report:
    """Return the kind of report of PREDICT; add an error if the model has no statistics or features for it."""
    if written is None or written.value == "rows":
        return "figures"
    if written.value == "features":
        span = written.written.value.span
        if statement.target:
            message, hint = (
                "features are a result set",
                "leave the table out; sqlflow run -o FILE writes the rows",
            )
            errors.append(SemanticError(message, span=statement.target.span, hint=hint))
        if model.spec.forecast or not model.spec.features:
            why = "of series before each row" if model.spec.forecast else "made by its own program"
            errors.append(SemanticError(f"the features of {reference} are {why}", span=span))
        return "features"
    if model.fitting is None:
        errors.append(without_statistics(reference, written.written.value.span))
    return "drift"


def without_statistics(reference: str, span: Span | None = None) -> SemanticError:
    """Make the error for a model that no statement has trained."""
    return SemanticError(
        f"{reference} keeps no statistics of its training rows to compare with",
        span=span,
        hint="models that TRAIN has made have them",
    )


def prediction_in_memory(model: Archive, reference: str) -> spec.JobSpec:
    """Return the JobSpec of a PREDICT over rows in memory, which names no query and keeps none of their columns."""
    trained = model.spec
    if trained.forecast is not None:
        raise SemanticError(
            f"{reference} forecasts from the last rows of each series, which it reads in a query",
            hint=f"write SELECT … TO PREDICT my_table USING {reference}",
        )
    return msgspec.structs.replace(
        trained,
        kind="predict",
        validation=None,
        weights=None,
        search=None,
        output=spec.Output(
            column="" if isinstance(trained.label, spec.SeveralLabels) else trained.label.column
        ),
        trained_model=reference,
        device="cpu",
        threshold=uncertainty.threshold_of_training(model),
        temperature=uncertainty.temperature(model),
    )


def check_evaluation(statement: ast.Statement) -> tuple[ast.Name, dict[str, Resolved]]:
    """Return the model and attributes of EVALUATE. Raises errors that need no database."""
    errors = _missing_select(statement)
    without = {row.name: "EVALUATE without a model" for row in MEASUREMENT}
    return _model(statement.model, statement, errors), _attributes(statement, EVALUATE, errors, without)


def evaluation(
    statement: ast.Statement, model: Archive, reference: str, query: spec.Query, schema: Schema
) -> spec.JobSpec:
    """Return the JobSpec of an EVALUATE statement, without its rows."""
    _, attributes = check_evaluation(statement)
    trained, errors = _with_known_anomalies(model.spec, statement, schema), list[SQLFlowError]()
    label = statement.labels[0] if statement.labels else None
    try:
        if isinstance(trained.label, spec.SeveralLabels):
            trained, column = _with_labels(trained, trained.label, statement, schema), ""
        elif isinstance(trained.label, spec.Unlabelled):
            errors.extend(refused(statement, reference))
            column = ""
        else:
            column = (
                schema.resolve(label) if label else _label_column(statement, schema, trained.label.column)
            )
    except SQLFlowError as error:
        errors.append(error)
        column = ""
    wanted = [name for name in _read(trained) if name != trained.label.column]
    renamed = columns(statement, schema, wanted, errors)
    names = trained.metrics
    if isinstance(trained.label, spec.ForecastLabel) and len(trained.label.quantiles) > 1:
        names = (
            *names,
            "coverage",
        )  # the backtest of the training has no share of its own: it calibrates them
    if "validation.metrics" in attributes:
        written = attributes["validation.metrics"]
        names = resolve_metrics(written.value, trained.label, written.written.value.span, errors)
        trained = _measured_by_name(trained)
    if trained.forecast is not None and column:
        renamed[trained.label.column] = column
    own_label = row_groups.evaluated(trained.label, column, statement, schema, errors)
    report = _report(attributes.get("evaluate.report"), trained.label, errors)
    threshold = uncertainty.threshold(attributes.get("evaluate.threshold"), model, reference, errors)
    raise_all(errors)
    return msgspec.structs.replace(
        _used(trained, "evaluate", statement, reference, query, renamed, attributes),
        report=report,
        threshold=threshold,
        temperature=uncertainty.temperature(model),
        label=own_label,
        metrics=names,
        weights=_weights(trained, schema),
        output=spec.Output(str(statement.into[0]) if statement.into else ""),
        batch_size=_value(attributes, "evaluate.batch_size", trained.batch_size),
        cluster=_cluster(attributes, "evaluate"),
    )


def _with_labels(
    trained: spec.JobSpec, label: spec.SeveralLabels, statement: ast.Statement, schema: Schema
) -> spec.JobSpec:
    """Return the JobSpec with the columns of the query that hold the labels, in their order.

    Raises SemanticError for another number of them.
    """
    written, parts = statement.labels, label.labels
    if written and len(written) != len(parts):
        raise SemanticError(
            f"the model predicts {len(parts)} labels, and LABEL names {len(written)}",
            span=written[-1].span,
            hint=f"name the columns that hold {label.column}, or leave LABEL out",
        )
    columns = (
        [schema.resolve(each) for each in written]
        if written
        else [_label_column(statement, schema, each.column) for each in parts]
    )
    again = [each for place, each in enumerate(written) if columns[place] in columns[:place]]
    if again:
        raise SemanticError(
            f"{again[0].text} is a label twice",
            span=again[0].span,
            hint=f"name the columns that hold {label.column}, each once",
        )
    renamed = tuple(
        msgspec.structs.replace(each, column=column) for each, column in zip(parts, columns, strict=True)
    )
    names = tuple(
        f"{own.column}{name.removeprefix(each.column)}"
        for each, own in zip(parts, renamed, strict=True)
        for name in trained.metrics
        if name.rpartition(".")[0] == each.column
    )
    return msgspec.structs.replace(trained, label=spec.SeveralLabels(renamed), metrics=names)


def _with_known_anomalies(trained: spec.JobSpec, statement: ast.Statement, schema: Schema) -> spec.JobSpec:
    """Return the JobSpec of a model of anomalies as that of a classifier, if LABEL names the known ones."""
    if not (isinstance(trained.label, spec.AnomalyLabel) and statement.labels):
        return trained
    label = statement.labels[0]
    column = schema.resolve(label)
    is_boolean = schema.type(column) is ColumnType.BOOLEAN
    if not (is_boolean or schema.is_integer(column)):
        raise SemanticError(
            f"known anomalies are a boolean, or 0 and 1, and {column} is {schema.type(column).words}",
            span=label.span,
            hint="select a comparison with it: SELECT *, kind = 'fraud' AS known",
        )
    classes = (False, True) if is_boolean else (0, 1)
    return msgspec.structs.replace(
        trained,
        label=spec.ClassLabel(column, classes),
        loss=spec.Component("cross_entropy"),
        metrics=("auc", "precision", "recall", "f1"),
    )


def _report(written: Resolved | None, label: spec.Label, errors: list[SQLFlowError]) -> spec.job.Report:
    """Return the kind of report; add an error if the label does not allow it."""
    report: spec.job.Report = written.value if written else "figures"  # type: ignore[assignment]  # of these choices
    least = {"figures": 0, "confusion_matrix": 2, "roc_curve": 2}[report]
    classes = len(label.classes) if isinstance(label, spec.ClassLabel) else 0
    if written and (classes < least or (report == "roc_curve" and classes > 2)):
        of = "two classes" if report == "roc_curve" else "classes"
        has = f"has {classes}" if classes else "is none"
        if isinstance(label, spec.SeveralLabels):
            has = "are several labels"
        errors.append(
            SemanticError(
                f"there is a {report} of {of}, and {label.column} {has}",
                span=written.written.value.span,
                hint="confusion_matrix is of any number of classes"
                if classes > 2
                else "leave evaluate.report out",
            )
        )
    return report


def check_explanation(statement: ast.Statement) -> tuple[ast.Name, dict[str, Resolved]]:
    """Return the model and attributes of EXPLAIN. Raises errors that need no database."""
    errors = _missing_select(statement)
    if statement.using is not None and str(statement.using).casefold() not in EXPLAINERS:
        errors.append(
            SemanticError(
                f"there is no explainer {statement.using}",
                span=statement.using.span,
                hint=did_you_mean(str(statement.using), sorted(EXPLAINERS.values()), list_up_to=0)
                or "leave USING out: columns are explained by their Shapley values, whatever the model is",
            )
        )
    without = [each for each in statement.attributes if not _is_of_other_explainers(each.key)]
    resolved = Dictionary((*EXPLAIN, *KUBERNETES)).resolve(without, errors, [])
    return _model(statement.model, statement, errors), _or_raise(resolved, errors)


def explanation(
    statement: ast.Statement, model: Archive, reference: str, query: spec.Query, schema: Schema
) -> spec.JobSpec:
    """Return the JobSpec of an EXPLAIN statement, without its rows."""
    _, attributes = check_explanation(statement)
    trained, errors = model.spec, list[SQLFlowError]()
    renamed = columns(statement, schema, _read(trained), errors)
    if isinstance(trained.label, spec.SeveralLabels):
        first = trained.label.labels[0].column
        errors.append(
            SemanticError(
                f"{reference} predicts {trained.label.column}, and EXPLAIN is of one predicted number or class",
                span=statement.span,
                hint=f"train a model of {first} alone to explain it: LABEL {first}",
            )
        )
    if isinstance(trained.label, spec.Unlabelled):
        column = trained.label.column
        found = "clusters" if column == "cluster" else "anomalies"
        errors.append(
            SemanticError(
                f"{reference} finds {found}, and EXPLAIN is of predicted numbers and classes",
                span=statement.span,
                hint=f"predict into a table, and compare the means of its columns: GROUP BY {column}",
            )
        )
    raise_all(errors)
    table = str(statement.into[0]) if statement.into else ""
    of_rows = attributes["explain.level"].value == "rows" if "explain.level" in attributes else bool(table)
    label = trained.label.column
    keep = tuple(name for name in schema.names if name.casefold() != label.casefold()) if of_rows else ()
    return msgspec.structs.replace(
        _used(trained, "explain", statement, reference, query, renamed, attributes),
        weights=None,
        metrics=(),
        temperature=uncertainty.temperature(model),
        explanation=spec.Explanation(
            "rows" if of_rows else "model", _value(attributes, "explain.samples", spec.Explanation().samples)
        ),
        output=spec.Output(table, label, keep),
        batch_size=_value(attributes, "explain.batch_size", trained.batch_size),
        cluster=_cluster(attributes, "explain"),
    )


def _is_of_other_explainers(key: str) -> bool:
    """Return True if the attribute is an option of a SQLFlow plot, or names the label, which the model knows."""
    name = key.casefold()
    return name.startswith(("summary.", "shap_summary.")) or name in ("plots", "label_col", "label_column")


def _measured_by_name(trained: spec.JobSpec) -> spec.JobSpec:
    """Return the spec without the metrics of the model's module."""
    if trained.own is None:
        return trained
    functions = tuple(name for name in trained.own.functions if name != "eval_metrics_fn")
    return msgspec.structs.replace(trained, own=msgspec.structs.replace(trained.own, functions=functions))


def _weights(trained: spec.JobSpec, schema: Schema) -> spec.Weights | None:
    """Return the column that weighted the training rows, if the query has it."""
    written = trained.weights
    found = schema.find(written.column) if written else None
    return spec.Weights(found, written.mean) if written and found else None


def notes(statement: ast.Statement, trained: spec.JobSpec, used: spec.JobSpec) -> tuple[str, ...]:
    """Return notes on the use of a model, once its rows are pinned."""
    if used.kind == "explain":
        without = [each.key for each in statement.attributes if _is_of_other_explainers(each.key)]
        if statement.using is not None:
            without.append(f"USING {statement.using}")
        found = []
        if without:
            has = "has" if len(without) == 1 else "have"
            why = "columns are explained by their Shapley values, which need neither plot nor label"
            found.append(f"{', '.join(without)} {has} no effect: {why}")
        if used.framework in spec.TREES:
            if any(each.key.casefold() == "explain.samples" for each in statement.attributes):
                found.append("explain.samples has no effect: the Shapley values of trees are exact")
            return tuple(found)
        if used.rows.total == 1:
            found.append("all values are 0 for a single row: select more rows to compare it with")
        return tuple(found)
    decided = _of_training(statement, trained, used)
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


def _of_training(statement: ast.Statement, trained: spec.JobSpec, used: spec.JobSpec) -> tuple[str, ...]:
    """Return a note on a threshold that the training chose, and not the statement."""
    written = any(each.key.casefold().endswith("threshold") for each in statement.attributes)
    if used.threshold is None or written or not isinstance(trained.label, spec.ClassLabel):
        return ()
    why = f"validation.threshold = {trained.training.threshold} of the training"
    return (f"{trained.label.classes[1]} is predicted from its probability {used.threshold:.4g} on: {why}",)


def _used(
    trained: spec.JobSpec,
    kind: spec.job.Kind,
    statement: ast.Statement,
    reference: str,
    query: spec.Query,
    renamed: Mapping[str, str],
    attributes: Mapping[str, Resolved],
) -> spec.JobSpec:
    if trained.forecast is not None:
        trained = _renamed_series(trained, renamed)
    return msgspec.structs.replace(
        trained,
        kind=kind,
        statement=statement.text,
        query=query,
        validation=None,
        inputs=renamed_inputs(trained, renamed),
        members=tuple(_renamed(member, renamed) for member in trained.members),
        trained_model=reference,
        device=_device(trained, kind, attributes),
    )


def _device(trained: spec.JobSpec, kind: str, attributes: Mapping[str, Resolved]) -> spec.job.Device:
    """Return the device, whatever that of the training was. Raises SemanticError if trees have to use a GPU."""
    written = attributes.get(f"{kind}.device")
    device = running.device(written.value if written else None)
    if written and device == "cuda" and trained.framework in spec.TREES:
        raise SemanticError(
            "trees compute on the CPU", span=written.written.value.span, hint=f"leave {kind}.device out"
        )
    return device


def _read(trained: spec.JobSpec) -> list[str]:
    """Return the columns that the model reads; of a forecast also those of its series, and the known labels."""
    if trained.forecast is None:
        return list(trained.columns)
    own = (name for name in trained.columns if not name.startswith(PREFIX))
    return list(dict.fromkeys((*trained.forecast.columns, *own, trained.label.column)))


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


def _renamed(member: spec.Member, renamed: Mapping[str, str]) -> spec.Member:
    inputs = renamed_inputs(member.spec, renamed)
    return msgspec.structs.replace(member, spec=msgspec.structs.replace(member.spec, inputs=inputs))


def renamed_inputs(trained: spec.JobSpec, renamed: Mapping[str, str]) -> dict[str, tuple[spec.Feature, ...]]:
    """Return the model's features over the columns of another query."""
    return {
        name: tuple(spec.with_columns(feature, renamed) for feature in features)
        for name, features in trained.inputs.items()
    }


def columns(
    statement: ast.Statement, schema: Schema, wanted: Sequence[str], errors: list[SQLFlowError]
) -> dict[str, str]:
    """Map the model's columns to the query's; add an error for missing ones."""
    found = {column: schema.find(column) for column in wanted}
    missing = [column for column, name in found.items() if name is None]
    if missing:
        near = did_you_mean(missing[0], schema.names, list_up_to=0) if len(missing) == 1 else None
        hint = near or f"the model reads {', '.join(wanted[:20])}{', …' if len(wanted) > 20 else ''}"
        plural = "s" if len(missing) > 1 else ""
        errors.append(
            SemanticError(
                f"the query lacks the column{plural} {', '.join(missing[:20])} that the model reads",
                span=statement.select_span,
                hint=hint,
            )
        )
    return {column: name for column, name in found.items() if name is not None}


def _label_column(statement: ast.Statement, schema: Schema, trained: str) -> str:
    if found := schema.find(trained):
        return found
    raise SemanticError(
        f"the query lacks the label {trained}",
        span=statement.select_span,
        hint="select it, or name the column that holds it: LABEL column",
    )


def _target(target: ast.Name | None, label: str, dialect: str) -> tuple[str, str]:
    """Return table and column: the last part of a dotted target is the column, a single name is a table."""
    if target is None:
        return "", label
    parts, tables = target.parts, target.parts
    if dialect_named(dialect).small_names:
        pieces = list(zip(parts, _PIECES.findall(target.text), strict=True))
        parts = tuple(part if piece[0] in '"`' else part.lower() for part, piece in pieces)
        tables = tuple(quoted(part) if piece[0] in '"`' else part for part, piece in pieces)
    if len(parts) == 1:
        return tables[0], label
    return ".".join(tables[:-1]), parts[-1]


def _missing_select(statement: ast.Statement) -> list[SQLFlowError]:
    if statement.select:
        return []
    verb = statement.kind.upper()
    return [
        SemanticError(
            f"there is no SELECT to {statement.kind}",
            span=statement.span,
            hint=f"write SELECT … FROM … before TO {verb}",
        )
    ]


def _model(name: ast.Name | None, statement: ast.Statement, errors: list[SQLFlowError]) -> ast.Name:
    if name is not None:
        return name
    raise_all(
        [
            *errors,
            SemanticError("the statement needs a model", span=statement.span, hint="add USING my_model"),
        ]
    )
    raise AssertionError  # raise_all has raised


def _attributes(
    statement: ast.Statement,
    rows: tuple[Attribute, ...],
    errors: list[SQLFlowError],
    elsewhere: Mapping[str, str] | None = None,
) -> dict[str, Resolved]:
    found = Dictionary((*rows, *KUBERNETES), elsewhere).resolve(statement.attributes, errors, [])
    return _or_raise(found, errors)


def _or_raise(resolved: dict[str, Resolved], errors: list[SQLFlowError]) -> dict[str, Resolved]:
    raise_all(errors)
    return resolved


def _cluster(attributes: Mapping[str, Resolved], verb: str) -> spec.Cluster:
    timeout = attributes.get(f"{verb}.task_timeout")
    return spec.Cluster(
        workers=_value(attributes, f"{verb}.num_workers", 0),
        task_timeout=float(timeout.value) if timeout is not None else 0.0,  # type: ignore[arg-type]
    )


def _value(attributes: Mapping[str, Resolved], name: str, default: int) -> int:
    return int(attributes[name].value) if name in attributes else default  # type: ignore[arg-type]


# Kind of statement -> the check that needs no database, and the function that makes its JobSpec.
USES = {
    "predict": (check_prediction, prediction),
    "evaluate": (check_evaluation, evaluation),
    "explain": (check_explanation, explanation),
}
