"""WITH attributes of the statements that use a trained model, and attributes that they share with TRAIN."""

from __future__ import annotations

from sqlflow_edl.analysis.settings.attribute_dictionary import AttributeRow

TASK_TIMEOUT = (
    "Seconds without progress after which a worker of a job with a master is ended and another one "
    "gets its task; by default 20 times the longest time between two signs of progress so far, at "
    "least 600, and 3,600 before the first."
)
_DEVICE = (
    "Device of a network: cpu, cuda (or gpu) for a GPU, one to each worker of a machine, or auto for "
    "a GPU if there is one."
)


def device(verb: str) -> AttributeRow:
    return AttributeRow(
        f"{verb}.device", "text", _DEVICE, "auto", choices=("auto", "cpu", "cuda", "gpu"), aliases=("device",)
    )


_WORKERS = "Number of workers, as processes of this machine; 0 is one process without a master."
MOST_WORKERS = 1000


def _of_jobs(verb: str) -> tuple[AttributeRow, ...]:
    """Return the attributes of the jobs of each of these statements."""
    return (
        AttributeRow(
            f"{verb}.batch_size", "integer", "Rows of one forward pass.", 8192, low=1, aliases=("batch_size",)
        ),
        AttributeRow(
            f"{verb}.num_workers",
            "integer",
            _WORKERS,
            0,
            low=0,
            high=MOST_WORKERS,
            aliases=("num_workers", f"{verb}.workers"),
        ),
        AttributeRow(f"{verb}.task_timeout", "number", TASK_TIMEOUT, low=1, aliases=("task_timeout",)),
        device(verb),
    )


PREDICT = (
    AttributeRow(
        "predict.interval",
        "number",
        "Adds the interval of each predicted number, as columns …_low and …_high: this share of "
        "labels should lie in it, according to the errors of the validation rows. Wide where errors are large.",
        low=0.01,
        high=0.999,
        aliases=("interval",),
    ),
    AttributeRow(
        "predict.threshold",
        "threshold",
        "Minimum probability for predicting the second of two classes, or a metric (accuracy, "
        "balanced_accuracy, f1, mcc) for the threshold with its highest value on the validation rows "
        "of the training; by default the training's threshold, else the more probable class.",
        aliases=("threshold",),
    ),
    AttributeRow(
        "predict.probabilities",
        "boolean",
        "Adds a column …_prob_CLASS with the probability of each class; by default for at most 20 classes.",
        aliases=("probabilities",),
    ),
    AttributeRow(
        "predict.extra_outputs",
        "texts",
        "Adds a column …_NAME for each further output of the model: logits of classes; embedding, the inputs of a "
        "network's last layer; leaves of trees; members of an ensemble; distances of clusters. Several numbers are a "
        "text, separated by commas.",
        aliases=("extra_outputs",),
    ),
    AttributeRow(
        "predict.report",
        "text",
        "Form of the result. rows: the predictions. drift: the columns compared with the training "
        "rows; without a table, nothing is predicted. features: the inputs of the model, like SHOW "
        "FEATURES.",
        "rows",
        choices=("rows", "drift", "features"),
    ),
    *_of_jobs("predict"),
)

EXPLAIN = (
    AttributeRow(
        "explain.level",
        "text",
        "Importance of each column for the whole model (model), or its contribution in each row (rows); "
        "by default the model, and with INTO the rows.",
        choices=("model", "rows"),
    ),
    AttributeRow(
        "explain.rows",
        "integer",
        "Number of random rows of the query for the importance for the model; 0 takes all rows. For "
        "ensembles of many models over many columns, the default is smaller, at least 200. A forecast "
        "takes all rows.",
        1000,
        low=0,
    ),
    AttributeRow(
        "explain.method",
        "text",
        "Contributions of the columns: shapley, or for a network expected_gradients. These take much less time "
        "for many columns. The Shapley values of trees are exact.",
        "shapley",
        choices=("shapley", "expected_gradients"),
    ),
    AttributeRow(
        "explain.samples",
        "integer",
        "Number of random background rows for each row; more rows are more exact and slower. For more "
        "than 100 columns, the default is 3,200 divided by their number, and at least 4; for the "
        "importances of an ensemble, 300 divided by columns and models, from 4 to 32; for expected "
        "gradients 200.",
        32,
        low=1,
        high=10_000,
    ),
    AttributeRow(
        "explain.background",
        "text",
        "Background rows for each row. model: rows of the training that the model keeps, so a row has "
        "the same values alone and among others. query: rows of the query. Trees need neither.",
        "model",
        choices=("model", "query"),
    ),
    *_of_jobs("explain"),
)

BY = "evaluate.by"
EVALUATE = (
    AttributeRow(
        "evaluate.report",
        "text",
        "Form of the result. figures: one row of loss and metrics. confusion_matrix: counts of true "
        "and predicted classes. roc_curve: true and false positive rates at each threshold, for two "
        "classes.",
        "figures",
        choices=("figures", "confusion_matrix", "roc_curve"),
    ),
    AttributeRow(
        "evaluate.threshold",
        "threshold",
        "Minimum probability for counting the second of two classes as predicted, in accuracy, "
        "precision, recall, F1 and the confusion matrix; or a metric, as for predict.threshold.",
        aliases=("threshold",),
    ),
    AttributeRow(
        BY,
        "texts",
        "Columns of the query, such as [region, plan]: the result has a row for each combination of their values, "
        "with its number of rows, its figures and intervals of 95 %.",
    ),
    AttributeRow(
        "validation.unseen_only",
        "boolean",
        "Leaves out the rows that trained the model. It is an error if they are not known, for "
        "instance because its query returns other rows now.",
        False,
        aliases=("unseen_only",),
    ),
    *_of_jobs("evaluate"),
    AttributeRow(
        "validation.metrics",
        "texts",
        "Metrics to report; the default depends on the kind of label.",
        aliases=("metrics",),
    ),
)
