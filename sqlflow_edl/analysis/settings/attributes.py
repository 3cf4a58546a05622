"""Tables of the WITH attributes: name, type, default, range, aliases, documentation; here for TRAIN."""

from __future__ import annotations

from edl.spec.job import MOST_COUNT
from sqlflow_edl.analysis.settings.attribute_dictionary import AttributeRow
from sqlflow_edl.analysis.settings.uses import EVALUATE, EXPLAIN, PREDICT, TASK_TIMEOUT, device

UNSEEN_RATE = 0.02  # default share of the known values that count as unseen

TRAIN = (
    AttributeRow(
        "train.epoch",
        "integer",
        "Passes over the training rows; by default enough for about 2,000 steps.",
        low=1,
        aliases=("train.epochs", "epoch", "epochs", "train.num_epochs", "num_epochs"),
    ),
    AttributeRow(
        "train.batch_size",
        "integer",
        "Rows of one optimizer step; by default 16 to 512, growing with the table.",
        low=1,
        aliases=("batch_size", "train.minibatch_size", "minibatch_size", "batchsize"),
    ),
    AttributeRow(
        "train.max_steps",
        "integer",
        "Stop after this many optimizer steps; 0 sets no limit.",
        0,
        low=0,
        aliases=("max_steps", "train.max_step", "model.train_max_iters"),
    ),
    AttributeRow(
        "train.early_stopping",
        "integer",
        "Stop after this many epochs without a lower validation loss; 0 never stops early. By default 8, "
        "or 0 if train.epoch or train.max_steps is given or there are no validation rows.",
        low=0,
        aliases=(
            "early_stopping",
            "train.patience",
            "patience",
            "train.early_stopping_patience",
            "early_stopping_rounds",
            "train.early_stopping_rounds",
        ),
    ),
    AttributeRow(
        "train.min_delta",
        "number",
        "Smallest decrease of the validation loss that counts as an improvement for early stopping.",
        0.0,
        low=0,
        aliases=("min_delta",),
    ),
    AttributeRow(
        "train.keep",
        "text",
        "Weights of the trained model: from the epoch with the lowest validation loss (best), or from "
        "the last step (last); by default best if there are validation rows.",
        choices=("best", "last"),
        aliases=("train.keep_weights",),
    ),
    AttributeRow(
        "train.activate",
        "text",
        "Condition for making the new version the current one: always, or only if a metric on its "
        "validation rows is at least as good as the current version's on the same rows (better).",
        "always",
        choices=("always", "better"),
    ),
    AttributeRow(
        "train.time_limit",
        "number",
        "Seconds after which training ends, at the end of the current epoch or round; of a search, the "
        "seconds of its whole statement. By default none; for a search 30 to 300, by the number of rows.",
        low=0.001,
        aliases=("time_limit", "auto.time_limit", "train.time_limit_secs", "budget_seconds"),
    ),
    AttributeRow(
        "train.shuffle",
        "boolean",
        "Train in a seeded random order; FALSE keeps the order of the query.",
        True,
        aliases=("shuffle",),
    ),
    AttributeRow(
        "train.seed",
        "integer",
        "Seed of all random numbers: the same seed and rows give the same weights.",
        0,
        low=0,
        high=2**31 - 1,
        aliases=("seed", "random_state", "model.random_state", "model.seed"),
    ),
    AttributeRow(
        "train.num_workers",
        "integer",
        "Number of workers, with a master, as processes of this machine; the job continues if some of "
        "them fail. 0 trains in one process without a master.",
        0,
        low=0,
        high=1000,
        aliases=("num_workers", "train.workers", "engine.worker_num", "exec.worker_num"),
    ),
    AttributeRow(
        "train.max_workers",
        "integer",
        "Automatic number of workers, at most this: it begins with train.num_workers, by default 2, grows while "
        "another worker adds at least 60 % of its share to the measured rows per second, and shrinks when the last "
        "one does not. For allreduce and async.",
        low=1,
        high=1000,
        aliases=("max_workers",),
    ),
    AttributeRow(
        "train.num_ps",
        "integer",
        "Number of parameter servers. They hold the model's parameters and the rows of its embedding "
        "tables. By default one for two workers if the strategy needs them.",
        low=0,
        high=1000,
        aliases=("num_ps", "train.num_ps_pods", "engine.ps_num"),
    ),
    AttributeRow(
        "train.strategy",
        "text",
        "Distribution strategy. allreduce: each worker holds the parameters and computes its share of "
        "every step; for trees, the share of its rows. async, sync: parameter servers apply each "
        "gradient, or the mean gradient of several workers. local: one worker. auto: allreduce with "
        "several workers; async with parameter servers, or if embedding tables are too large for each "
        "worker (256 MB).",
        "auto",
        choices=("auto", "local", "async", "sync", "allreduce"),
    ),
    AttributeRow(
        "train.local_steps",
        "integer",
        "async: local steps of a worker between two pushes of gradients; more steps mean fewer calls and "
        "older parameters.",
        1,
        low=1,
        high=1000,
        aliases=("local_steps",),
    ),
    AttributeRow(
        "train.grads_to_wait",
        "integer",
        "sync: number of gradients averaged in one step; by default the number of workers.",
        low=1,
        high=1000,
        aliases=("grads_to_wait",),
    ),
    AttributeRow(
        "train.max_staleness",
        "integer",
        "async: number of updates that a gradient may be behind. If a gradient is s updates behind, "
        "its learning rate is multiplied by max_staleness / s. 0 sets no bound.",
        0,
        low=0,
        high=1_000_000,
        aliases=("max_staleness",),
    ),
    AttributeRow(
        "train.durable_updates",
        "text",
        "async: durability of an update that a parameter server has acknowledged. none: the updates "
        "since the last checkpoint are lost with the server. process: updates survive the end of the "
        "server, by a log. machine: they also survive a crash of the machine, by a flush of the log "
        "to disk.",
        "none",
        choices=("none", "process", "machine"),
        aliases=("durable_updates",),
    ),
    AttributeRow(
        "train.embedding_min_count",
        "integer",
        "Training steps with an id before it gets a row in a row table (docs/embeddings.md); until "
        "then it has its initial vector. 0 and 1: the first step.",
        0,
        low=0,
        high=MOST_COUNT,
        aliases=("embedding_min_count",),
    ),
    AttributeRow(
        "train.embedding_max_rows",
        "integer",
        "Maximum rows of each row table; beyond it the least recently trained ones are dropped with their optimizer "
        "slots. 0 sets no bound.",
        0,
        low=0,
        high=2**40,
        aliases=("embedding_max_rows",),
    ),
    AttributeRow(
        "train.embedding_ttl_steps",
        "integer",
        "Steps of a row table without training of a row after which the row is dropped with its "
        "optimizer slots. 0 drops none.",
        0,
        low=0,
        high=2**40,
        aliases=("embedding_ttl_steps",),
    ),
    AttributeRow(
        "train.unseen_rate",
        "number",
        "Share of the known values of a category that count as unseen in an epoch: a network learns from "
        "them to predict rows with values that training did not have.",
        UNSEEN_RATE,
        low=0,
        high=0.5,
        aliases=("unseen_rate",),
    ),
    AttributeRow(
        "train.priority",
        "priority",
        "Priority of the job in its quota of slots: low, normal, high, or a number; higher is more urgent.",
        "normal",
        aliases=("priority",),
    ),
    AttributeRow("train.task_timeout", "number", TASK_TIMEOUT, low=1, aliases=("task_timeout",)),
    device("train"),
    AttributeRow(
        "train.precision",
        "text",
        "Precision of a network's arithmetic, in training and whenever the model is used; weights, gradients and "
        "losses are float32. float16 needs a GPU.",
        "float32",
        choices=("float32", "bfloat16", "float16"),
        aliases=("precision", "mixed_precision"),
    ),
    AttributeRow(
        "train.checkpoint_steps",
        "integer",
        "Steps between two checkpoints of a training; 0 uses only train.checkpoint_secs.",
        0,
        low=0,
        aliases=("checkpoint_steps", "train.save_checkpoints_steps"),
    ),
    AttributeRow(
        "train.checkpoint_secs",
        "number",
        "Seconds between two checkpoints, the first after 10 s at most, in one process after a minute; 0 uses only "
        "train.checkpoint_steps.",
        30.0,
        low=0,
        aliases=("checkpoint_secs",),
    ),
    AttributeRow(
        "train.keep_checkpoint_max",
        "integer",
        "Number of checkpoints to keep, at least 2; 0 keeps all.",
        3,
        low=0,
        aliases=("keep_checkpoint_max",),
    ),
    AttributeRow(
        "train.checkpoint_copies",
        "text",
        "Storage of parameter servers' checkpoints: files of the job, or the memory of two replica "
        "peers of each server (neighbours) for the last two.",
        "files",
        choices=("files", "neighbours"),
    ),
    AttributeRow(
        "validation.steps",
        "integer",
        "Steps between two validations within an epoch; 0 validates only at the end of each epoch.",
        0,
        low=0,
        aliases=("evaluation_steps", "train.evaluation_steps"),
    ),
    AttributeRow(
        "validation.secs",
        "number",
        "Seconds between two validations within an epoch; 0 validates only at the end of each epoch.",
        0.0,
        low=0,
    ),
    AttributeRow(
        "validation.start_delay_secs",
        "number",
        "Seconds until the first validation of validation.secs.",
        0.0,
        low=0,
        aliases=("evaluation_start_delay_secs",),
    ),
    AttributeRow(
        "validation.throttle_secs",
        "number",
        "Minimum seconds between two validations within an epoch.",
        0.0,
        low=0,
        aliases=("evaluation_throttle_secs",),
    ),
    AttributeRow(
        "validation.fraction",
        "number",
        "Share of the rows used for validation instead of training; by default 0.1 if there are 100 rows "
        "or more.",
        low=0,
        high=0.9,
        aliases=("validation_split",),
    ),
    AttributeRow(
        "validation.split",
        "text",
        "Choice of the validation rows; validation.fraction is their share. time: the latest rows; "
        "group: all rows of some groups; stratified: the same share of each class; column: the rows "
        "with TRUE or NULL in a column; random. auto: time if a date orders the rows, else stratified "
        "for classes and random for numbers. Equal rows are on one side, unless there are few "
        "different rows.",
        "auto",
        choices=("auto", "random", "time", "group", "stratified", "column"),
    ),
    AttributeRow(
        "validation.column",
        "text",
        "Column of the times (dates or numbers), groups or marks (TRUE or 1) of validation.split; by default the only "
        "date.",
    ),
    AttributeRow(
        "validation.test_fraction",
        "number",
        "Share of the rows, the last ones in order, for neither training nor validation. A search "
        "reports the metrics of its ensemble on them; by default a tenth of more than 5,000 rows, and "
        "none elsewhere.",
        low=0,
        high=0.9,
        aliases=("test_fraction",),
    ),
    AttributeRow(
        "validation.select",
        "text",
        "Query of the validation rows, instead of a share; also VALIDATE ON (query).",
        aliases=("validation.query",),
    ),
    AttributeRow(
        "validation.metrics",
        "texts",
        "Metrics to report; the default depends on the kind of label.",
        aliases=("metrics", "eval_metrics", "eval_metric", "train.eval_metric"),
    ),
    AttributeRow(
        "validation.calibration",
        "text",
        "Calibrates the probabilities of the classes on the validation rows. temperature: divides the logits by the "
        "number with the lowest log loss; PREDICT, EVALUATE and EXPLAIN use it.",
        choices=("temperature",),
        aliases=("calibration",),
    ),
    AttributeRow(
        "validation.threshold",
        "threshold",
        "Minimum probability for PREDICT and EVALUATE to predict the second of two classes, or the "
        "metric of the validation rows that chooses it: accuracy, balanced_accuracy, f1 or mcc.",
        aliases=("predict.threshold", "threshold"),
    ),
    AttributeRow(
        "train.weight_column",
        "text",
        "Selected column with the weight of each row, in training and in all metrics; it is not a feature.",
        aliases=("weight_column", "model.weight_column", "sample_weight", "weight_col"),
    ),
    AttributeRow(
        "train.incremental_column",
        "text",
        "Selected column that grows with new rows, such as an id or the time of an event: only rows "
        "above its greatest value in the last training of the model are trained on. It is not a "
        "feature.",
        aliases=("incremental_column",),
    ),
    AttributeRow(
        "train.on_bad_row",
        "text",
        "Treatment of rows with a label or weight that is NULL or not finite. abort trains nothing "
        "and reports their number; skip leaves them out, of the validation rows too, and reports "
        "their number and how to list them. An unreadable cell of several numbers is always an error.",
        "abort",
        choices=("abort", "skip"),
        aliases=("on_bad_row",),
    ),
    AttributeRow(
        "train.text_numbers",
        "text",
        "Treatment of texts without an item in COLUMN that are almost all numbers, such as $1,003.50 "
        "and a few '?'. warn shows how to select the numbers; convert makes numbers of them in the "
        "model, like TO_NUMBER, and NULL of the other texts.",
        "warn",
        choices=("warn", "convert"),
        aliases=("text_numbers",),
    ),
    AttributeRow(
        "train.label_weights",
        "numbers",
        "Weights of several labels in the sum of their losses, in the order of LABEL; 1 by default.",
        aliases=("label_weights", "loss_weights", "train.loss_weights"),
    ),
    AttributeRow(
        "train.class_weights",
        "class weights",
        "Weights of the classes in training, such as {'yes': 5}; auto: inverse to their frequency.",
        choices=("auto", "balanced"),
        aliases=("class_weights", "class_weight", "model.class_weights", "model.class_weight"),
    ),
    AttributeRow(
        "optimizer",
        "text",
        "Optimizer by name; its parameters are optimizer.learning_rate, …",
        aliases=("model.optimizer", "train.optimizer", "dnn_optimizer", "model.dnn_optimizer"),
    ),
    AttributeRow(
        "optimizer.schedule",
        "text",
        "Learning rate schedule by name; its parameters are schedule.warmup_steps, … By default the rate "
        "is constant.",
        aliases=("schedule", "learning_rate_schedule", "train.schedule", "lr_schedule"),
    ),
    AttributeRow(
        "optimizer.clipnorm",
        "number",
        "Largest norm of each parameter's gradient; larger gradients are scaled down.",
        low=1e-9,
        aliases=("clipnorm", "optimizer.clip_norm"),
    ),
    AttributeRow(
        "optimizer.global_clipnorm",
        "number",
        "Largest norm of all gradients together; larger ones are scaled down.",
        low=1e-9,
        aliases=("global_clipnorm", "optimizer.global_clip_norm", "optimizer.max_grad_norm"),
    ),
    AttributeRow(
        "optimizer.clipvalue",
        "number",
        "Largest absolute value of a gradient's elements; larger ones are clipped.",
        low=1e-9,
        aliases=("clipvalue", "optimizer.clip_value"),
    ),
    AttributeRow(
        "loss",
        "text",
        "Loss by name; its parameters are loss.delta, …",
        aliases=("model.loss", "train.loss", "objective", "model.objective", "train.objective"),
    ),
    AttributeRow(
        "model.framework",
        "text",
        "Framework of a built-in model: keras (default) or torch for networks, lightgbm (default) or "
        "xgboost for trees.",
        choices=("keras", "torch", "lightgbm", "xgboost"),
        aliases=("framework",),
    ),
    AttributeRow(
        "model.keep_rows",
        "text",
        "Rows in the model to explain predictions by comparison. sample: at most 200 training rows, "
        "with the columns of the model. none: no training row, but rows made of the quantiles and the "
        "frequent values of each column. Trees keep none.",
        "sample",
        choices=("sample", "none"),
        aliases=("keep_rows",),
    ),
)

BY_VERB = {"TRAIN": TRAIN, "PREDICT": PREDICT, "EVALUATE": EVALUATE, "EXPLAIN": EXPLAIN}
