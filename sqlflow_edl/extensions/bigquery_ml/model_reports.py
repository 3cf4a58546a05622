"""Functions of BigQuery ML that are given a model alone, such as ML.WEIGHTS."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from edl.data.metric_tables import one_row
from edl.errors import SemanticError
from edl.models.archive import Archive
from edl.models.registry.base import Registry
from sqlflow_edl.extensions.bigquery_ml.model_weights import centroids, weights
from sqlflow_edl.reports import table
from sqlflow_edl.reports.importances import importances
from sqlflow_edl.reports.intervals import measured_rows
from sqlflow_edl.reports.models import open_archive, read_model
from sqlflow_edl.reports.result import Result
from sqlflow_edl.syntax.ast import Statement


def show_metrics(registry: Registry, statement: Statement) -> Result:
    """Return the figures of the validation or test rows of the training, in one row.

    Raises SemanticError for a model that was trained without such rows.
    """
    archive = read_model(registry, statement)
    kind, _ = measured_rows(archive)
    if kind == "training" or not archive.metrics:
        why = "imported" if archive.spec.imported else "trained without validation rows"
        raise SemanticError(
            f"{statement.model} was {why}, so it has no figures of its own",
            span=statement.model.span if statement.model else None,
            hint=f"write ML.EVALUATE(MODEL {statement.model}, (SELECT …))",
        )
    rows = pa.Table.from_batches([one_row(archive.metrics)])
    return Result(statement, reader=rows.to_reader(), view="figures")


def show_confusion(registry: Registry, statement: Statement) -> Result:
    """Return the number of validation rows by their class and their most probable one, as the training measured it.

    Rows count by their weight. Raises SemanticError for a model that keeps no such numbers.
    """
    archive = read_model(registry, statement)
    confusion = archive.calibration.confusion if archive.calibration else ()
    if not confusion:
        raise _without_classes(statement, archive, "CONFUSION_MATRIX")
    classes = pa.array(archive.spec.label.classes)
    places = np.arange(len(classes))
    weights_of_rows = np.asarray(confusion, np.float64).ravel()
    is_whole = np.array_equal(weights_of_rows, weights_of_rows.round())
    columns = {
        "label": classes.take(pa.array(np.repeat(places, len(places)))),
        "predicted": classes.take(pa.array(np.tile(places, len(places)))),
        "rows": pa.array(weights_of_rows.astype(np.int64) if is_whole else weights_of_rows),
    }
    return Result(statement, reader=pa.table(columns).to_reader())


def show_roc_curve(registry: Registry, statement: Statement) -> Result:
    """Return the ROC curve of the validation rows, with the weights of rows at each threshold, the highest first.

    Raises SemanticError for a model of other than two classes, or one that keeps no such numbers.
    """
    archive = read_model(registry, statement)
    curves = archive.calibration.curves if archive.calibration else ()
    if len(curves) != 1:
        raise _without_classes(statement, archive, "ROC_CURVE")
    curve = curves[0]
    hits, alarms = np.asarray(curve.hits), np.asarray(curve.alarms)
    columns = {
        "threshold": np.asarray(curve.thresholds),
        "recall": hits / curve.inside,
        "false_positive_rate": alarms / curve.outside,
        "true_positives": hits,
        "false_positives": alarms,
        "true_negatives": curve.outside - alarms,
        "false_negatives": curve.inside - hits,
    }
    return Result(statement, reader=pa.table(columns).to_reader())


def _without_classes(statement: Statement, archive: Archive, function: str) -> SemanticError:
    label, instead = archive.spec.label, function
    if not label.has_classes:
        why, instead = "predicts no classes", "EVALUATE"
    elif function == "ROC_CURVE" and len(label.classes) != 2:
        why, instead = f"has {len(label.classes)} classes, and a curve is of two", "CONFUSION_MATRIX"
    elif archive.calibration is None:
        why = "was trained without validation rows"
    else:
        why = "keeps none of these numbers, like all models of more than 20 classes"
    return SemanticError(
        f"{statement.model} {why}, so it has no {function} of its own",
        span=statement.model.span if statement.model else None,
        hint=f"write ML.{instead}(MODEL {statement.model}, (SELECT …))",
    )


def show_importances(registry: Registry, statement: Statement) -> Result:
    """Return a row for each column of trees: its share of the improvement by all splits, and the splits on it."""
    with open_archive(registry, statement, str(statement.model)) as archive:
        all_importances = importances(archive)
    if not all_importances:
        raise SemanticError(
            f"FEATURE_IMPORTANCE works for models of trees; {statement.model} is of another kind",
            span=statement.model.span if statement.model else None,
            hint=f"write SELECT … TO EXPLAIN {statement.model}",
        )
    columns = {"feature": pa.string(), "importance_weight": pa.int64(), "importance_gain": pa.float64()}
    rows = ((importance.column, round(importance.splits), importance.gain) for importance in all_importances)
    return Result(statement, reader=table.make_typed_reader(columns, rows))


def show_columns(registry: Registry, statement: Statement) -> Result:
    """Return statistics of the training rows for each column that the model reads, in the columns of BigQuery ML.

    NULL stands for the median, and for statistics that the training did not need. Raises SemanticError for a model
    without any.
    """
    archive = read_model(registry, statement)
    summaries = archive.fitting.columns if archive.fitting else {}
    if summaries.keys().isdisjoint(archive.spec.columns):
        raise SemanticError(
            f"{statement.model} keeps no statistics of the columns of its training rows",
            span=statement.model.span if statement.model else None,
            hint="models that TRAIN has made have them, except forecasts: write DESCRIBE MODEL my_model",
        )
    types = {field.name: field.type for field in archive.spec.query.schema}
    temporal = {name for name, of in types.items() if of.startswith(("date", "time"))}
    columns = {
        "input": pa.string(),
        **dict.fromkeys(("min", "max", "mean", "median", "stddev"), pa.float64()),
    }
    columns |= dict.fromkeys(("category_count", "null_count", "dimension"), pa.int64())
    rows = (
        (
            name,
            *([None] * 5 if name in temporal else (of.min, of.max, of.mean, None, of.std)),
            of.distinct if of.mean is None and not of.countless else None,
            of.nulls,
            None,
        )
        for name in archive.spec.columns
        if (of := summaries.get(name)) is not None
    )
    return Result(statement, reader=table.make_typed_reader(columns, rows))


def show_weights(registry: Registry, statement: Statement) -> Result:
    """Return a row for each feature of a linear model, and for its intercept, in the columns of BigQuery ML."""
    with open_archive(registry, statement, str(statement.model)) as archive:
        return Result(statement, reader=weights(archive, standardize=_standardize(statement)))


def show_centroids(registry: Registry, statement: Statement) -> Result:
    """Return a row for each cluster and feature of KMeans, in the columns of BigQuery ML."""
    with open_archive(registry, statement, str(statement.model)) as archive:
        return Result(statement, reader=centroids(archive, standardize=_standardize(statement)))


def _standardize(statement: Statement) -> bool:
    """Return the setting of that name. Raises SemanticError if it is neither true nor false."""
    attribute = statement.attribute("standardize")
    value = getattr(attribute.value, "value", None) if attribute else False
    if not isinstance(value, bool):
        raise SemanticError("standardize is TRUE or FALSE", span=attribute.value.span if attribute else None)
    return value
