"""Result columns of functions of BigQuery ML, by the names of its reference, made of our own statements' columns.

A function that is not in `_COLUMNS` has its columns where its rows are made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from edl.data.metric_tables import one_row
from edl.data.names import unique_names
from edl.errors import Advice, SemanticError
from edl.metrics.names import Kind, kind_of
from edl.spec import TREES, JobSpec, Label
from edl.spec.extra_outputs import DISTANCES, extra_outputs
from sqlflow_edl.extensions.bigquery_ml.functions import is_implicit, with_columns
from sqlflow_edl.syntax.ast import Attribute, Constant, ListValue, Statement, Value
from sqlflow_edl.syntax.predict_calls import PredictCall

_Floats = npt.NDArray[np.float64]

_OF_CLASSES = {
    "precision": "precision",
    "recall": "recall",
    "accuracy": "accuracy",
    "f1_score": "f1",
    "log_loss": "log_loss",
    "roc_auc": "auc",
}
# kind of label -> columns of ML.EVALUATE in the reference's order, and our metric; clusters: model_functions
_FIGURES: Mapping[Kind, Mapping[str, str]] = {
    "binary": _OF_CLASSES,
    "multiclass": _OF_CLASSES,
    "regression": {
        "mean_absolute_error": "mae",
        "mean_squared_error": "mse",
        "mean_squared_log_error": "msle",
        "median_absolute_error": "median_absolute_error",
        "r2_score": "r2",
        "explained_variance": "explained_variance",
    },
    "reduction": {
        "mean_absolute_error": "reconstruction_mae",
        "mean_squared_error": "reconstruction_mse",
        "mean_squared_log_error": "",
    },
    "forecast": {
        "mean_absolute_error": "mae",
        "mean_squared_error": "mse",
        "root_mean_squared_error": "rmse",
        "mean_absolute_percentage_error": "mape",
        "symmetric_mean_absolute_percentage_error": "smape",
        "mean_absolute_scaled_error": "mase",
    },
}
_ROC_CURVE = (
    "threshold",
    "recall",
    "false_positive_rate",
    "true_positives",
    "false_positives",
    "true_negatives",
    "false_negatives",
)
_TOP_FEATURES = 5  # of ML.EXPLAIN_PREDICT without top_k_features
_NEAREST = 5  # centres that ML.PREDICT lists, at most


@dataclass(frozen=True, slots=True)
class _Answer:
    """Rows of our own statement. computed: names of the columns that the model adds to the query's."""

    call: PredictCall
    trained: JobSpec
    rows: pa.Table
    computed: tuple[str, ...]

    def setting(self, name: str) -> Value | None:
        """Return the value of a setting that our own statement lacks, or None without it."""
        values = [attribute.value for attribute in self.call.settings if attribute.key == name]
        return values[-1] if values else None

    def numbers(self, names: Sequence[str]) -> _Floats:
        """Return columns of numbers as (rows, names), NaN for NULL."""
        columns = [self.rows.column(name).to_numpy().astype(np.float64) for name in names]
        return np.column_stack(columns) if columns else np.empty((self.rows.num_rows, 0))

    def with_columns(self, columns: Mapping[str, object]) -> pa.Table:
        """Return the columns of the query, and others in place of the model's."""
        return with_columns(self.rows.drop_columns(list(self.computed)), columns)


def has_columns_of_its_own(call: PredictCall) -> bool:
    """Return True if the reference names the columns of the function otherwise than our statement."""
    return call.function in _COLUMNS


def request_settings(call: PredictCall, statement: Statement, trained: JobSpec) -> Statement:
    """Return the statement of a call with the settings that the columns of the reference need."""
    settings: dict[str, Value] = {}
    span = call.model.span
    if call.function == "PREDICT" and trained.label.has_classes:
        settings["predict.probabilities"] = Constant(True, span)
    elif call.function == "PREDICT" and trained.label.clusters:
        if DISTANCES in extra_outputs(trained):
            settings["predict.extra_outputs"] = Constant(DISTANCES, span)
    elif call.function == "EVALUATE" and statement.kind == "evaluate" and (figures := _figures_of(trained)):
        metrics = dict.fromkeys(filter(None, figures.values()))
        if trained.label.is_forecast:
            of_quantiles = ("coverage",) if len(trained.label.quantiles) > 1 else ()
            metrics |= dict.fromkeys((*trained.metrics, *of_quantiles))
        settings["validation.metrics"] = ListValue(tuple(Constant(name, span) for name in metrics), span)
    keys = {attribute.key.casefold() for attribute in statement.attributes}
    needed = (Attribute(key, value, span) for key, value in settings.items() if key not in keys)
    return replace(statement, attributes=(*statement.attributes, *needed))


def as_in_reference(
    call: PredictCall, trained: JobSpec, rows: pa.Table, computed: tuple[str, ...]
) -> pa.Table:
    """Return the rows of a call with the columns of the reference, or as they are if the label has no such form."""
    return _COLUMNS[call.function](_Answer(call, trained, rows, computed))


# Figures ---------------------------------------------------------------------------------------------------


def _figures_of(trained: JobSpec) -> Mapping[str, str]:
    """Return the columns of ML.EVALUATE with our metrics, or none for labels and programs that BigQuery ML lacks."""
    try:
        kind = kind_of(trained.label)
    except SemanticError:
        return {}
    if trained.model.name == "PCA":
        return {"total_explained_variance_ratio": "explained_variance_ratio"}
    return {} if trained.own is not None or trained.zoo is not None else _FIGURES.get(kind, {})


def check_aggregation(call: PredictCall) -> None:
    """Raise SemanticError for figures of each row, which are not there."""
    for attribute in call.settings:
        if attribute.key == "perform_aggregation" and getattr(attribute.value, "value", None) is not True:
            raise SemanticError(
                "the figures of a forecast are of all its rows together",
                span=attribute.value.span,
                hint=Advice("write TRUE, or compare rows with ML.FORECAST", "TRUE"),
            )


def _evaluation(answer: _Answer) -> pa.Table:
    """Return one row of figures, NULL for figures that the training did not measure."""
    check_aggregation(answer.call)
    names = _figures_of(answer.trained)
    if not names:
        return answer.rows
    [figures] = answer.rows.to_pylist()
    if (rmse := figures.get("rmse")) is not None:
        figures.setdefault("mse", rmse**2)
    row = {name: figures.pop(our_name, None) for name, our_name in names.items()}
    if answer.trained.label.is_forecast:
        row |= {name: value for name, value in figures.items() if name != "loss"}  # of the baselines
    return pa.Table.from_batches([one_row(row)])


def _confusion(answer: _Answer) -> pa.Table:
    """Return a row for each true class, with the number of its rows that each class was predicted for."""
    label = answer.trained.label
    if not label.has_classes:
        return answer.rows
    true, predicted, count = (answer.rows.column(place) for place in range(3))
    classes = pa.array(label.classes)
    numbers = np.zeros((len(classes), len(classes)), count.type.to_pandas_dtype())
    numbers[pc.index_in(true, classes).to_numpy(), pc.index_in(predicted, classes).to_numpy()] = count
    names = unique_names([_column_name(class_) for class_ in label.classes], taken=("expected_label",))
    columns = {name: pa.array(numbers[:, place]) for place, name in enumerate(names)}
    return pa.table({"expected_label": classes, **columns})


def _column_name(value: object) -> str:
    """Return a class as a name of letters, digits and underscores that does not begin with a digit."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    name = re.sub(r"\W", "_", text)
    return name if name and not name[0].isdigit() else f"_{name}"


def _curve(answer: _Answer) -> pa.Table:
    """Return the curve, or its numbers of rows at the thresholds of the call."""
    curve = answer.rows.select(_ROC_CURVE)
    thresholds = answer.setting("thresholds")
    if not isinstance(thresholds, ListValue) or not curve.num_rows:
        return curve
    limits = np.array([getattr(item, "value", 0.0) for item in thresholds.items], np.float64)
    scores, order = curve.column("threshold").to_numpy(), np.argsort(curve.column("threshold").to_numpy())
    places = np.searchsorted(scores[order], limits)  # of the lowest threshold that is not below
    is_above = places == len(scores)
    numbers = {name: curve.column(name).to_numpy() for name in _ROC_CURVE[3:]}
    inside = numbers["true_positives"][0] + numbers["false_negatives"][0]
    outside = numbers["false_positives"][0] + numbers["true_negatives"][0]
    at = order[np.minimum(places, len(scores) - 1)]
    hits, alarms = (
        np.where(is_above, 0, numbers[name][at]) for name in ("true_positives", "false_positives")
    )
    columns = (limits, hits / inside, alarms / outside, hits, alarms, outside - alarms, inside - hits)
    return pa.table(dict(zip(_ROC_CURVE, columns, strict=True)))


def _iterations(answer: _Answer) -> pa.Table:
    """Return a row for each measurement of the training. The learning rate is NULL where it is none or changes."""
    rows, trained = answer.rows, answer.trained
    count = rows.num_rows
    nothing = pa.nulls(count, pa.float64())
    seconds = rows.column("seconds").to_numpy() if "seconds" in rows.column_names else np.full(count, np.nan)
    rate = trained.optimizer.params.get("learning_rate") if trained.schedule is None else None
    columns = {
        "training_run": pa.array(np.zeros(count, np.int64)),
        "iteration": pa.array(np.arange(count)),
        "loss": rows.column("loss") if "loss" in rows.column_names else nothing,
        "eval_loss": rows.column("validation_loss") if "validation_loss" in rows.column_names else nothing,
        "learning_rate": pa.array([rate] * count, pa.float64()) if isinstance(rate, float | int) else nothing,
        "duration_ms": pa.array(np.round(np.diff(seconds, prepend=0.0) * 1000), from_pandas=True).cast(
            pa.int64()
        ),
    }
    if trained.label.clusters:
        del columns["eval_loss"]
    return pa.table(columns)


# Predictions -----------------------------------------------------------------------------------------------


def _predictions(answer: _Answer) -> pa.Table:
    rows = _all_predictions(answer)
    keeps = answer.setting("keep_original_columns")
    if keeps is None or getattr(keeps, "value", None) is True:
        return rows
    if getattr(keeps, "value", None) is not False:
        raise SemanticError("keep_original_columns is TRUE or FALSE", span=keeps.span)
    return rows.drop_columns([name for name in answer.rows.column_names if name not in answer.computed])


def _all_predictions(answer: _Answer) -> pa.Table:
    label, computed = answer.trained.label, answer.computed
    if label.dimensions:  # in the names of the reference, without the error
        numbers = zip(
            (f"{label.column}_{place}" for place in range(1, label.dimensions + 1)), computed, strict=False
        )
        return answer.with_columns({name: answer.rows.column(ours) for name, ours in numbers})
    if is_implicit(answer.trained):
        return answer.with_columns({f"{computed[0]}_confidence": answer.rows.column(computed[0])})
    if label.has_classes and len(computed) >= 2 + len(label.classes):
        return _with_probabilities(answer, label)
    if label.clusters and len(computed) == 3:
        return _with_distances(answer)
    return answer.rows


def _with_probabilities(answer: _Answer, label: Label) -> pa.Table:
    """Return the predictions with a list of each class and its probability; extra outputs stay behind them."""
    predicted, _, *others = answer.computed
    count, rows = len(label.classes), answer.rows
    classes = pa.array(label.classes).take(pa.array(np.tile(np.arange(count), rows.num_rows)))
    values = answer.numbers(others[:count])
    columns = {
        predicted: rows.column(predicted),
        f"{predicted}_probs": _lists({"label": classes, "prob": values}, values),
    }
    return answer.with_columns(columns | {name: rows.column(name) for name in others[count:]})


def _with_distances(answer: _Answer) -> pa.Table:
    """Return the clusters, numbered from 1, with the nearest centres and the distances to them."""
    cluster, _, texts = (answer.rows.column(name).combine_chunks() for name in answer.computed)
    is_valid = texts.is_valid().to_numpy(zero_copy_only=False)
    numbers = pc.list_flatten(pc.split_pattern(texts, ",")).cast(pa.float64()).to_numpy()
    distances = numbers.reshape(int(is_valid.sum()), -1) if is_valid.any() else np.empty((0, 1))
    if answer.trained.model.params.get("distance") == "cosine":
        distances = np.square(distances) / 2
    order = np.argsort(distances, axis=1, kind="stable")[:, :_NEAREST]
    nearest = np.take_along_axis(distances, order, axis=1)
    columns = {
        "CENTROID_ID": pc.add(cluster, 1),
        "NEAREST_CENTROIDS_DISTANCE": _lists(
            {"CENTROID_ID": order.reshape(-1) + 1, "DISTANCE": nearest}, nearest, is_valid
        ),
    }
    return answer.with_columns(columns)


def _explanations(answer: _Answer) -> pa.Table:
    """Return the predictions with the largest Shapley values of the predicted class.

    For two classes, ours are of the second one's probability, or its logit in trees: the values of the first one have
    the other sign. The values add up to the prediction, so that by the reference's formula there is no approximation
    error.
    """
    label, computed, rows = answer.trained.label, answer.computed, answer.rows
    count = len(answer.trained.columns)
    base, *shares = answer.numbers(computed[-count - 1 :]).T
    values = np.column_stack(shares)
    predicted = rows.column(computed[0])
    probability = rows.column(computed[1]) if label.has_classes else None
    if label.is_binary and (threshold := _threshold(answer)) is not None and probability is not None:
        predicted, probability = _at_threshold(label, predicted, probability, threshold)
    if label.is_binary:
        is_first = pc.equal(predicted, pa.scalar(label.classes[0], predicted.type))
        first = pc.fill_null(is_first, False).to_numpy()
        whole = 0.0 if answer.trained.framework in TREES else 1.0
        base, values = np.where(first, whole - base, base), np.where(first[:, np.newaxis], -values, values)
    order = np.argsort(-np.abs(values), axis=1, kind="stable")[:, : _top_features(answer.call)]
    largest = np.take_along_axis(values, order, axis=1)
    features = pa.array(answer.trained.columns).take(pa.array(order.reshape(-1)))
    columns: dict[str, object] = {computed[0]: predicted}
    if probability is not None:
        columns["probability"] = probability
    columns |= {
        "top_feature_attributions": _lists({"feature": features, "attribution": largest}, largest),
        "baseline_prediction_value": base,
        "prediction_value": base + values.sum(axis=1),
        "approximation_error": np.zeros(rows.num_rows),
    }
    return answer.with_columns(columns)


def _threshold(answer: _Answer) -> float | None:
    """Return the setting threshold, or None without it. Raises SemanticError if it is no share."""
    setting = answer.setting("threshold")
    value = getattr(setting, "value", None)
    if setting is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise SemanticError("threshold is a number from 0 to 1", span=setting.span)
    return float(value)


def _at_threshold(
    label: Label, predicted: pa.ChunkedArray, probability: pa.ChunkedArray, threshold: float
) -> tuple[pa.ChunkedArray, pa.Array]:
    """Return the predicted one of two classes and its probability: the second one, from this probability on."""
    second = pa.scalar(label.classes[1], predicted.type)
    shares = probability.to_numpy().astype(np.float64)
    is_second = pc.fill_null(pc.equal(predicted, second), False).to_numpy()
    of_second = np.where(is_second, shares, 1 - shares)
    is_predicted = of_second >= threshold
    classes = pc.if_else(pa.array(is_predicted), second, pa.scalar(label.classes[0], predicted.type))
    classes = pc.if_else(predicted.is_valid(), classes, pa.scalar(None, predicted.type))
    return classes, pa.array(np.where(is_predicted, of_second, 1 - of_second), from_pandas=True)


def _top_features(call: PredictCall) -> int:
    """Return the setting top_k_features. Raises SemanticError if it is no whole number above 0."""
    settings = [
        attribute.value
        for attribute in call.attributes
        if attribute.key.casefold() == "explain.top_k_features"
    ]
    number = getattr(settings[-1], "value", None) if settings else _TOP_FEATURES
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise SemanticError("top_k_features is a whole number above 0", span=settings[-1].span)
    return number


def _lists(
    fields: Mapping[str, pa.Array | npt.NDArray[np.generic]],
    shape: _Floats,
    is_valid: npt.NDArray[np.bool_] | None = None,
) -> pa.Array:
    """Return a list of records for each row: fields of as many values as `shape`, (rows, records), has, row by row.

    is_valid: flags of all rows, of which those that are not set have NULL and no values.
    """
    flags = np.full(len(shape), True) if is_valid is None else is_valid
    offsets = np.concatenate([[0], np.cumsum(flags * shape.shape[1])])
    records = pa.StructArray.from_arrays(
        [
            values if isinstance(values, pa.Array) else pa.array(values.reshape(-1), from_pandas=True)
            for values in fields.values()
        ],
        names=list(fields),
    )
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), records, mask=pa.array(~flags))


_COLUMNS: Mapping[str, Callable[[_Answer], pa.Table]] = {
    "CONFUSION_MATRIX": _confusion,
    "EVALUATE": _evaluation,
    "EXPLAIN_PREDICT": _explanations,
    "PREDICT": _predictions,
    "ROC_CURVE": _curve,
    "TRAINING_INFO": _iterations,
}
