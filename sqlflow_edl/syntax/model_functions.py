"""Functions of BigQuery ML in place of a table: what each takes, and what does the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edl.errors import Advice
from sqlflow_edl.syntax.kinds import Kind

CALLS_GOOGLE = "it calls a service of Google's; models here are trained on your rows, or imported from a file"
_IN_TRANSFORM = "it stands in TRANSFORM(…) of CREATE MODEL; in other queries, compute it in SQL"
# functions of BigQuery ML -> the statement with the same answer, or the reason why there is none
INSTEAD = {
    "ANNOTATE_IMAGE": CALLS_GOOGLE,
    "BAG_OF_WORDS": _IN_TRANSFORM,
    "CORRELATION": "write SELECT CORR(x, y) FROM my_table, or ML.DESCRIBE_DATA(TABLE my_table) for each column",
    "GENERATE_TABLE": CALLS_GOOGLE,
    "GENERATE_TEXT": CALLS_GOOGLE,
    "MULTI_HOT_ENCODER": _IN_TRANSFORM,
    "PROCESS_DOCUMENT": CALLS_GOOGLE,
    "TFDV_DESCRIBE": Advice("write ML.DESCRIBE_DATA", "ML.DESCRIBE_DATA"),
    "TFDV_VALIDATE": "write SELECT * FROM ML.VALIDATE_DATA_DRIFT(TABLE my_table, TABLE other_table)",
    "TF_IDF": _IN_TRANSFORM,
    "TRANSCRIBE": CALLS_GOOGLE,
    "TRANSLATE": CALLS_GOOGLE,
    "UNDERSTAND_TEXT": CALLS_GOOGLE,
}
# other words of BigQuery's functions -> the reason why they are not here
UNAVAILABLE = {
    "VECTOR_SEARCH": "in DuckDB, ORDER BY list_distance(vector, [1.0, 2.0]) LIMIT 10 returns the nearest rows",
}
# functions of BigQuery ML -> a function that tells as much of such a model here, and why
RELATED = {
    "ARIMA_COEFFICIENTS": ("GLOBAL_EXPLAIN", "a forecast is made by trees here"),
    "METRICS": ("EVALUATE", "it returns the metrics"),
}
# functions of a query -> kind of the statement that does the same, and a setting of it
KINDS: Mapping[str, tuple[Kind, Mapping[str, str]]] = {
    "PREDICT": ("predict", {}),
    "EVALUATE": ("evaluate", {}),
    "EXPLAIN_PREDICT": ("explain", {"explain.level": "rows"}),
    "CONFUSION_MATRIX": ("evaluate", {"evaluate.report": "confusion_matrix"}),
    "ROC_CURVE": ("evaluate", {"evaluate.report": "roc_curve"}),
    "TRANSFORM": ("predict", {"predict.report": "features"}),
}
# functions that make their rows of the rows of other statements
DERIVED = (
    "ADVANCED_WEIGHTS",
    "ARIMA_EVALUATE",
    "DETECT_ANOMALIES",
    "EXPLAIN_FORECAST",
    "FORECAST",
    "GENERATE_EMBEDDING",
    "GLOBAL_EXPLAIN",
    "PRINCIPAL_COMPONENTS",
    "PRINCIPAL_COMPONENT_INFO",
    "RECOMMEND",
    "RECONSTRUCTION_LOSS",
    "VALIDATE_DATA_SKEW",
)
# functions of rows without a model -> the number of their tables
OF_ROWS = {"DESCRIBE_DATA": 1, "VALIDATE_DATA_DRIFT": 2}
_LIMITS = (
    "categorical_default_threshold",
    "categorical_metric_type",
    "categorical_thresholds",
    "numerical_default_threshold",
    "numerical_metric_type",
    "numerical_thresholds",
)
# functions with settings of their own; others have the settings of their statement
SETTINGS: Mapping[str, Sequence[str]] = {
    "ADVANCED_WEIGHTS": ("standardize",),
    "ARIMA_EVALUATE": ("show_all_candidate_models",),
    "CENTROIDS": ("standardize",),
    "DESCRIBE_DATA": ("num_quantiles", "num_array_length_quantiles", "top_k"),
    "DETECT_ANOMALIES": ("contamination", "anomaly_prob_threshold"),
    "EXPLAIN_FORECAST": ("horizon", "confidence_level"),
    "FORECAST": ("horizon", "confidence_level"),
    "GENERATE_EMBEDDING": ("flatten_json_output", "trial_id"),
    "GLOBAL_EXPLAIN": ("class_level_explain",),
    "VALIDATE_DATA_DRIFT": _LIMITS,
    "VALIDATE_DATA_SKEW": _LIMITS,
    "WEIGHTS": ("standardize",),
}
# settings of functions that their statement lacks, beside its own
BESIDE: Mapping[str, Sequence[str]] = {
    "EVALUATE": ("perform_aggregation", "horizon", "confidence_level"),
    "EXPLAIN_PREDICT": ("threshold",),
    "PREDICT": ("keep_original_columns",),
    "ROC_CURVE": ("thresholds",),
}
NO_QUERY = (
    "ADVANCED_WEIGHTS",
    "ARIMA_EVALUATE",
    "DETECT_ANOMALIES",
    "EXPLAIN_FORECAST",
    "FORECAST",
    "GENERATE_EMBEDDING",
    "GLOBAL_EXPLAIN",
    "PRINCIPAL_COMPONENTS",
    "PRINCIPAL_COMPONENT_INFO",
    "RECOMMEND",
)
# functions of a model alone
OF_MODELS: Mapping[str, Kind] = {
    "CENTROIDS": "show_centroids",
    "CONFUSION_MATRIX": "show_confusion",
    "EVALUATE": "show_metrics",
    "FEATURE_IMPORTANCE": "show_importances",
    "FEATURE_INFO": "show_columns",
    "ROC_CURVE": "show_roc_curve",
    "TRAINING_INFO": "show_curve",
    "TRIAL_INFO": "show_trials",
    "WEIGHTS": "show_weights",
}
