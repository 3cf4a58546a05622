"""Table of the WITH attributes: name, type, default, range, aliases, documentation."""

from __future__ import annotations

from sqlflow_edl.analysis.settings.dictionary import Attribute

TRAIN = (
    Attribute(
        "train.epoch",
        "integer",
        "Passes over the training rows; by default enough for about 2,000 steps.",
        low=1,
        aliases=("train.epochs", "epoch", "epochs", "train.num_epochs", "num_epochs"),
    ),
    Attribute(
        "train.batch_size",
        "integer",
        "Rows of one optimizer step; by default 16 to 512, growing with the table.",
        low=1,
        aliases=("batch_size", "train.minibatch_size", "minibatch_size"),
    ),
    Attribute(
        "train.max_steps",
        "integer",
        "Stop after that many optimizer steps; 0 sets no limit.",
        0,
        low=0,
        aliases=("max_steps", "train.max_step"),
    ),
    Attribute(
        "train.early_stopping",
        "integer",
        "End when the validation loss was not lower for so many epochs; 0 never. By default 8, and 0 where "
        "train.epoch or train.max_steps is written or there are no validation rows.",
        low=0,
        aliases=("early_stopping", "train.patience", "patience", "train.early_stopping_patience"),
    ),
    Attribute(
        "train.min_delta",
        "number",
        "By how much the validation loss must be lower to count as a gain for early stopping.",
        0.0,
        low=0,
        aliases=("min_delta",),
    ),
    Attribute(
        "train.keep",
        "text",
        "Which weights the model gets: of the epoch with the lowest validation loss, or of the last step; by default "
        "best where there are validation rows.",
        choices=("best", "last"),
        aliases=("train.keep_weights",),
    ),
    Attribute(
        "train.shuffle",
        "boolean",
        "Train in a seeded random order; FALSE keeps the order of the query.",
        True,
        aliases=("shuffle",),
    ),
    Attribute(
        "train.seed",
        "integer",
        "Seed of everything random: same seed, same rows, same weights.",
        0,
        low=0,
        high=2**31 - 1,
        aliases=("seed",),
    ),
    Attribute(
        "train.num_workers",
        "integer",
        "Workers with a master, as processes of this machine, which go on when some of them die; "
        "0 in one process without a master.",
        0,
        low=0,
        high=1000,
        aliases=("num_workers", "train.workers"),
    ),
    Attribute(
        "train.num_ps",
        "integer",
        "Parameter servers, which hold the model's parameters and the rows of its tables; by default one for two "
        "workers where the strategy needs them.",
        low=0,
        high=1000,
        aliases=("num_ps", "train.num_ps_pods"),
    ),
    Attribute(
        "train.strategy",
        "text",
        "How workers share the work: in allreduce each holds the parameters, and takes its part of every step; with "
        "parameter servers, async moves the parameters with each gradient, sync with those of several workers; "
        "local is one worker. auto takes allreduce where there are several workers, and async where there are "
        "parameter servers, or embedding tables too large for each worker (256 MB).",
        "auto",
        choices=("auto", "local", "async", "sync", "allreduce"),
    ),
    Attribute(
        "train.local_steps",
        "integer",
        "async: steps that a worker takes by itself before it pushes their gradients; fewer calls, less often fresh "
        "parameters.",
        1,
        low=1,
        high=1000,
        aliases=("local_steps",),
    ),
    Attribute(
        "train.grads_to_wait",
        "integer",
        "sync: gradients that make a step of the parameters; by default as many as there are workers.",
        low=1,
        high=1000,
        aliases=("grads_to_wait",),
    ),
    Attribute(
        "train.priority",
        "priority",
        "Of the job among those that share a quota of slots: low, normal, high, or a number, higher for more urgent.",
        "normal",
        aliases=("priority",),
    ),
    Attribute(
        "train.checkpoint_steps",
        "integer",
        "A job with a master writes a checkpoint after so many steps; 0 goes by time alone.",
        0,
        low=0,
        aliases=("checkpoint_steps",),
    ),
    Attribute(
        "train.checkpoint_secs",
        "number",
        "A job with a master writes a checkpoint after so many seconds; 0 goes by steps alone.",
        30.0,
        low=0,
        aliases=("checkpoint_secs",),
    ),
    Attribute(
        "train.keep_checkpoint_max",
        "integer",
        "How many checkpoints are kept, at least 2; 0 keeps all.",
        3,
        low=0,
        aliases=("keep_checkpoint_max",),
    ),
    Attribute(
        "train.checkpoint_copies",
        "text",
        "Where parameter servers keep checkpoints: files of the job, or the memory of two neighbours each, the last "
        "two of them.",
        "files",
        choices=("files", "neighbours"),
    ),
    Attribute(
        "validation.steps",
        "integer",
        "Measure the validation rows after so many steps too, not only at the end of each epoch; 0 does not.",
        0,
        low=0,
        aliases=("evaluation_steps", "train.evaluation_steps"),
    ),
    Attribute(
        "validation.secs",
        "number",
        "Measure the validation rows after so many seconds too; 0 does not.",
        0.0,
        low=0,
    ),
    Attribute(
        "validation.start_delay_secs",
        "number",
        "Seconds until the first measurement that validation.secs asks for.",
        0.0,
        low=0,
        aliases=("evaluation_start_delay_secs",),
    ),
    Attribute(
        "validation.throttle_secs",
        "number",
        "Seconds between two measurements in the middle of an epoch, at least.",
        0.0,
        low=0,
        aliases=("evaluation_throttle_secs",),
    ),
    Attribute(
        "validation.fraction",
        "number",
        "Share of the rows that the model is validated on and not trained on, the last of the "
        "order; by default 0.1 when there are 100 rows or more.",
        low=0,
        high=0.9,
        aliases=("validation.split",),
    ),
    Attribute(
        "validation.select",
        "text",
        "A query that gives the validation rows, instead of a share; also VALIDATE ON (query).",
        aliases=("validation.query",),
    ),
    Attribute(
        "validation.metrics",
        "texts",
        "Metrics to report; by default those of the kind of label.",
        aliases=("metrics", "eval_metrics"),
    ),
    Attribute(
        "train.weight_column",
        "text",
        "A selected column that says how much each row counts, in training and in all figures; it is no feature.",
        aliases=("weight_column", "model.weight_column", "sample_weight", "weight_col"),
    ),
    Attribute(
        "train.class_weights",
        "class weights",
        "How much rows of each class count in training, such as {'yes': 5}; auto: inverse to how often they occur.",
        choices=("auto", "balanced"),
        aliases=("class_weights", "class_weight", "model.class_weights", "model.class_weight"),
    ),
    Attribute(
        "optimizer",
        "text",
        "Optimizer by name; its parameters are optimizer.learning_rate, …",
        aliases=("model.optimizer", "train.optimizer"),
    ),
    Attribute(
        "optimizer.schedule",
        "text",
        "How the learning rate changes with the steps, by name; its parameters are schedule.warmup_steps, … By "
        "default it stays.",
        aliases=("schedule", "learning_rate_schedule", "train.schedule", "lr_schedule"),
    ),
    Attribute(
        "optimizer.clipnorm",
        "number",
        "Scale down the gradient of each parameter whose norm is larger.",
        low=1e-9,
        aliases=("clipnorm", "optimizer.clip_norm"),
    ),
    Attribute(
        "optimizer.global_clipnorm",
        "number",
        "Scale down the gradients when the norm of all together is larger.",
        low=1e-9,
        aliases=("global_clipnorm", "optimizer.global_clip_norm", "optimizer.max_grad_norm"),
    ),
    Attribute(
        "optimizer.clipvalue",
        "number",
        "Clip every number of the gradients to this size.",
        low=1e-9,
        aliases=("clipvalue", "optimizer.clip_value"),
    ),
    Attribute(
        "loss", "text", "Loss by name; its parameters are loss.delta, …", aliases=("model.loss", "train.loss")
    ),
    Attribute(
        "model.framework",
        "text",
        "Framework of a built-in model.",
        "keras",
        choices=("keras", "torch"),
        aliases=("framework",),
    ),
)

_WORKERS = "Workers that share the rows, as processes of this machine; 0 is one process without a master."
MOST_WORKERS = 1000

PREDICT = (
    Attribute(
        "predict.batch_size", "integer", "Rows of one forward pass.", 8192, low=1, aliases=("batch_size",)
    ),
    Attribute(
        "predict.num_workers",
        "integer",
        _WORKERS,
        0,
        low=0,
        high=MOST_WORKERS,
        aliases=("num_workers", "predict.workers"),
    ),
)

EXPLAIN = (
    Attribute(
        "explain.level",
        "text",
        "How much each column matters to the model, or what it is worth in each row; by default the model, and with "
        "INTO the rows.",
        choices=("model", "rows"),
    ),
    Attribute(
        "explain.samples",
        "integer",
        "Rows of the query, drawn at random, that each row is compared with: more make values more exact, and take "
        "longer.",
        32,
        low=1,
        high=10_000,
    ),
    Attribute(
        "explain.batch_size", "integer", "Rows of one forward pass.", 8192, low=1, aliases=("batch_size",)
    ),
    Attribute(
        "explain.num_workers",
        "integer",
        _WORKERS,
        0,
        low=0,
        high=MOST_WORKERS,
        aliases=("num_workers", "explain.workers"),
    ),
)

EVALUATE = (
    Attribute(
        "evaluate.report",
        "text",
        "What the answer is: loss and metrics in a row; of classes, how often each was taken for which; or of two, "
        "what each probability as the threshold makes right and wrong.",
        "figures",
        choices=("figures", "confusion_matrix", "roc_curve"),
    ),
    Attribute(
        "evaluate.batch_size", "integer", "Rows of one forward pass.", 8192, low=1, aliases=("batch_size",)
    ),
    Attribute(
        "evaluate.num_workers",
        "integer",
        _WORKERS,
        0,
        low=0,
        high=MOST_WORKERS,
        aliases=("num_workers", "evaluate.workers"),
    ),
    Attribute(
        "validation.metrics",
        "texts",
        "Metrics to report; by default those of the kind of label.",
        aliases=("metrics",),
    ),
)

BY_VERB = {"TRAIN": TRAIN, "PREDICT": PREDICT, "EVALUATE": EVALUATE, "EXPLAIN": EXPLAIN}
