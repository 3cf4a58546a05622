"""The typed dictionary of WITH attributes: it drives validation, completion, the reference page and the plan.

One row per attribute: name, type, default, range, the names it also goes by, and one line of documentation.
`resolve` turns the attributes of a statement into checked values, and collects every error with its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from edl.errors import SemanticError, SQLFlowError, did_you_mean, nearest
from edl.spec.priorities import priority
from sqlflow_edl.syntax import ast

Type = Literal[
    "integer", "number", "boolean", "text", "integers", "texts", "class weights", "priority", "anything"
]
Scalar = int | float | bool | str | None
Setting = Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Attribute:
    """A row of the dictionary. default None: the compiler chooses, `doc` says how."""

    name: str
    type: Type
    doc: str
    default: Setting = None
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resolved:
    """The checked value of one written attribute, and where it stands."""

    value: Setting
    written: ast.Attribute


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
        "End when the held-out loss was not lower for so many epochs; 0 never. By default 8, and 0 where "
        "train.epoch or train.max_steps is written or no rows are held out.",
        low=0,
        aliases=("early_stopping", "train.patience", "patience", "train.early_stopping_patience"),
    ),
    Attribute(
        "train.min_delta",
        "number",
        "By how much a held-out loss must be lower to count as a gain for early stopping.",
        0.0,
        low=0,
        aliases=("min_delta",),
    ),
    Attribute(
        "train.keep",
        "text",
        "Which weights the model gets: of the epoch with the lowest held-out loss, or of the last step; by default "
        "best where rows are held out.",
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
        "Measure the held-out rows after so many steps too, not only at the end of each epoch; 0 does not.",
        0,
        low=0,
        aliases=("evaluation_steps", "train.evaluation_steps"),
    ),
    Attribute(
        "validation.secs",
        "number",
        "Measure the held-out rows after so many seconds too; 0 does not.",
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
        "Share of the rows that is held out and measured, the last of the "
        "order; by default 0.1 when there are 100 rows or more.",
        low=0,
        high=0.9,
        aliases=("validation.split",),
    ),
    Attribute(
        "validation.select",
        "text",
        "A query whose rows are held out and measured, instead of a share; also VALIDATE ON (query).",
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

# Written in statements of other systems; accepted, noted, and without effect here.
WITHOUT_EFFECT = {
    "dist_strategy": "the strategy is chosen automatically",
    "gpus": "devices are found automatically",
    "train.verbose": "progress is always shown",
}

_WORKERS = "Workers that share the rows, as processes of this machine; 0 is one process without a master."
_MOST_WORKERS = 1000

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
        high=_MOST_WORKERS,
        aliases=("num_workers", "predict.workers"),
    ),
)

EVALUATE = (
    Attribute(
        "evaluate.batch_size", "integer", "Rows of one forward pass.", 8192, low=1, aliases=("batch_size",)
    ),
    Attribute(
        "evaluate.num_workers",
        "integer",
        _WORKERS,
        0,
        low=0,
        high=_MOST_WORKERS,
        aliases=("num_workers", "evaluate.workers"),
    ),
    Attribute(
        "validation.metrics",
        "texts",
        "Metrics to report; by default those of the kind of label.",
        aliases=("metrics",),
    ),
)


class Dictionary:
    """The attributes that one statement may have.

    elsewhere: names that mean something with another model, optimizer or loss, and which: a hint for who writes one.
    """

    def __init__(self, rows: Iterable[Attribute], elsewhere: Mapping[str, str] | None = None) -> None:
        self._elsewhere = elsewhere or {}
        self.rows = {row.name: row for row in rows}
        self._names: dict[str, str] = {}
        for row in self.rows.values():
            for name in (row.name, *row.aliases):
                self._names.setdefault(name.casefold(), row.name)

    def find(self, key: str) -> Attribute | None:
        """The row that `key` names: its name or an alias, case ignored."""
        name = self._names.get(key.casefold())
        return self.rows[name] if name else None

    def resolve(
        self, written: Iterable[ast.Attribute], errors: list[SQLFlowError], notes: list[str]
    ) -> dict[str, Resolved]:
        """name -> checked value, for what is written; errors and notes are appended."""
        resolved: dict[str, Resolved] = {}
        for attribute in written:
            if reason := WITHOUT_EFFECT.get(attribute.key.casefold()):
                notes.append(f"{attribute.key} has no effect: {reason}")
                continue
            row = self.find(attribute.key)
            if row is None:
                errors.append(self._unknown(attribute))
                continue
            if row.name in resolved:
                before = resolved[row.name].written.key
                errors.append(
                    SemanticError(
                        f"{row.name} is given twice, as {before} and as {attribute.key}"
                        if before.casefold() != attribute.key.casefold()
                        else f"{attribute.key} is given twice",
                        span=attribute.key_span,
                        hint="keep one of them",
                    )
                )
                continue
            try:
                resolved[row.name] = Resolved(check(row, attribute.value), attribute)
            except SQLFlowError as error:
                errors.append(error)
        return resolved

    def _unknown(self, attribute: ast.Attribute) -> SemanticError:
        key = attribute.key
        known = {**dict.fromkeys(self._names.values(), ""), **self._elsewhere}
        near = next((name for name in known if name.casefold() == key.casefold()), None) or nearest(
            key, known
        )
        if near is None and "." not in key:  # an unprefixed name is near one without its prefix
            short = {name.rpartition(".")[2]: name for name in known}
            last = nearest(key, short)
            near = short[last] if last else None
        if near and known[near]:
            hint = f"{near} belongs to {known[near]}"
        else:
            hint = f"did you mean {near}?" if near else "known: " + ", ".join(sorted(self.rows))
        return SemanticError(f"unknown attribute {key}", span=attribute.key_span, hint=hint)


def check(row: Attribute, value: ast.Value) -> Setting:
    """The value as the row's type; SemanticError with the place when it is of another type or out of range."""
    if row.type == "class weights" and isinstance(value, ast.MapValue):
        return "written"  # by class, each with its place: `analysis.weights` reads them
    setting = _convert(row.type, plain(value))
    if setting is None:
        raise SemanticError(f"{row.name} must be {_TYPE_WORDS[row.type]}", span=value.span, hint=row.doc)
    for item in setting if isinstance(setting, tuple) else (setting,):
        _check_range(row, item, value)
    if row.choices and isinstance(setting, str):
        by_folded = {choice.casefold(): choice for choice in row.choices}
        if setting.casefold() not in by_folded:
            raise SemanticError(
                f"{row.name} cannot be {setting!r}", span=value.span, hint=did_you_mean(setting, row.choices)
            )
        setting = by_folded[setting.casefold()]
    return setting


def _check_range(row: Attribute, item: Scalar, value: ast.Value) -> None:
    if isinstance(item, bool) or not isinstance(item, int | float):
        return
    if (row.low is not None and item < row.low) or (row.high is not None and item > row.high):
        raise SemanticError(f"{row.name} = {item} is out of range", span=value.span, hint=_range_words(row))


def _range_words(row: Attribute) -> str:
    if row.low is not None and row.high is not None:
        return f"expected a value from {row.low:g} to {row.high:g}"
    return f"expected {row.low:g} or more" if row.low is not None else f"expected {row.high:g} or less"


_TYPE_WORDS: Mapping[Type, str] = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "TRUE or FALSE",
    "text": "a name or a text",
    "integers": "a list of whole numbers, such as [100, 50]",
    "texts": 'a name, a list of names, or a text such as "accuracy,auc"',
    "class weights": "auto, or weights by class, such as {'yes': 5, 'no': 1}",
    "priority": "low, normal, high, or a whole number from -1000 to 1000",
    "anything": "a value",
}


def plain(value: ast.Value) -> Setting:
    """An attribute's value as Python data: a bare name is its text. None when it is no simple value."""
    if isinstance(value, ast.Constant):
        return value.value
    if isinstance(value, ast.Name):
        return value.text
    if isinstance(value, ast.ListValue):
        items = tuple(plain(item) for item in value.items)
        return None if any(isinstance(item, tuple) for item in items) else items  # type: ignore[return-value]
    return None


def _convert(wanted: Type, value: Setting) -> Setting:
    """`value` as the wanted type, None when it is not of that type and not plainly meant so."""
    if wanted == "integers":
        items = value if isinstance(value, tuple) else (value,)
        whole = tuple(_integer(item) for item in items)
        return None if any(item is None for item in whole) or not whole else whole
    if wanted == "texts":
        items = (
            value
            if isinstance(value, tuple)
            else tuple(str(value).split(","))
            if isinstance(value, str)
            else ()
        )
        texts = tuple(item.strip() for item in items if isinstance(item, str) and item.strip())
        return texts if texts and len(texts) == len(items) else None
    if isinstance(value, tuple):
        return value if wanted == "anything" else None
    return _SCALARS[wanted](value)


def _integer(value: Setting) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None


def _number(value: Setting) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _boolean(value: Setting) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.casefold())
    return bool(value) if isinstance(value, bool) or value in (0, 1) else None


def _text(value: Setting) -> str | None:
    return value if isinstance(value, str) and value else None


def _priority(value: Setting) -> int | None:
    whole = value if isinstance(value, str) else _integer(value)
    return None if whole is None else priority(whole)


def _anything(value: Setting) -> Setting:
    return value


_SCALARS = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "text": _text,
    "class weights": _text,
    "priority": _priority,
    "anything": _anything,
}
