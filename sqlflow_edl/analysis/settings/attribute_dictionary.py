"""Typed dictionaries of WITH attributes: they drive validation, completion, the reference page and the plan.

`resolve` turns the attributes of a statement into checked values, and collects every error with its source span.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from edl.errors import Advice, SemanticError, Span, SQLFlowError, did_you_mean, nearest, suggest_name
from sqlflow_edl.analysis.settings import values
from sqlflow_edl.analysis.settings.values import Setting, Type
from sqlflow_edl.syntax import ast

PLACE = "kubernetes."  # prefix of the settings of jobs on Kubernetes
LARGEST_INTEGER = 2**63 - 1  # of a JobSpec's integers
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(s|sec|seconds?|m|min|minutes?|h|hours?)", re.IGNORECASE)
_SECONDS = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hour", "hours"), 3600),
}
# a part of a model's name -> the value of auto.models with its family
_FAMILIES = (
    ("forest|tree|gbm|boost$|gbdt", "trees"),
    ("mlp|neural|deep|dnn|network", "networks"),
    ("logistic|regression|ridge|lasso", "linear"),
)
# other words for the size of a network, as in model.width
_WIDTHS = ("width", "layers", "units", "neurons", "hidden_layers", "hidden")
MOST_LISTED = 20  # names in a hint
_NEAR_WORD = 0.75  # least similarity to one word of a name: higher than to a name, as widht is none of weight


@dataclass(frozen=True, slots=True)
class AttributeRow:
    """Row of the dictionary. If the default is None, the compiler chooses and `doc` describes how."""

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
    """Checked value of one attribute, and the attribute as written."""

    value: Setting
    written: ast.Attribute

    @property
    def span(self) -> Span:
        """Source span of the value."""
        return self.written.value.span

    @property
    def key_span(self) -> Span:
        """Source span of the name."""
        return self.written.key_span


NO_EFFECT = " has no effect: "  # in the note on such an attribute
# Attributes of other systems without effect here; accepted with a note.
WITHOUT_EFFECT = {
    "dist_strategy": "the strategy is chosen automatically",
    "gpus": "devices are found automatically",
    "train.verbose": "progress is always shown",
    "train.log_every_n_iter": "progress is always shown",
    "explain.top_k_features": "the values of all columns are given",
    "engine.type": "a job runs on this machine, or on Kubernetes by --on kubernetes",
    "model.label_dimension": "the label decides the outputs of a model",
    "model.n_batches_per_layer": "each round reads all rows",
    **dict.fromkeys(
        ("model.kernel", "model.degree", "model.coef0", "model.shrinking"), "anomalies are found by a forest"
    ),
    "model.center_bias": "trees begin with the mean of the label",
    "model.idx_table_name": "TO PREDICT my_table USING my_model writes the clusters of rows",
    **dict.fromkeys(
        ("linear_optimizer", "model.linear_optimizer"),
        "one optimizer trains both parts, such as optimizer = adam",
    ),
    "model.update_interval": "targets follow each minibatch",
    **dict.fromkeys(
        ("model.pretrain_batch_size", "model.train_batch_size"),
        "train.batch_size applies to the whole training",
    ),
    **dict.fromkeys(
        ("model.tol", "model.train_use_tol"),
        "a training takes all its epochs, or train.max_steps; train.tolerance ends the training of a KMeans early",
    ),
}


# Settings that tools beside this one have, and attributes without an equal among an attribute's words -> those that do
# the same here, of which the first is meant that the statement takes.
_MEANT = {
    **dict.fromkeys(
        ("test_size", "validation_size", "validation_fraction", "val_size", "val_split", "test_ratio"),
        ("validation.fraction",),
    ),
    **dict.fromkeys(
        (
            "n_estimators",
            "n_trees",
            "num_trees",
            "max_iter",
            "n_epochs",
            "max_epochs",
            "iterations",
            "n_iter",
        ),
        ("train.epoch", "auto.trials"),
    ),
    **dict.fromkeys(("hidden_layer_sizes", "hidden_layers", "layers"), ("model.hidden_units",)),
    **dict.fromkeys(("scoring", "metric"), ("auto.metric", "validation.metrics")),
    **dict.fromkeys(("cv", "n_splits", "n_folds", "k_folds", "folds"), ("auto.folds",)),
    **dict.fromkeys(("stratify", "split"), ("validation.split",)),
    **dict.fromkeys(
        ("learning_rate_init", "lr", "learn_rate", "step_size"),
        ("optimizer.learning_rate", "model.learning_rate"),
    ),
    **dict.fromkeys(("dropout_rate", "drop_rate"), ("model.dropout",)),
    **dict.fromkeys(("batch", "bs", "minibatch"), ("train.batch_size",)),
    **dict.fromkeys(("max_features", "feature_fraction"), ("model.colsample_bytree",)),
    **dict.fromkeys(("timeout", "max_runtime_secs", "time_budget", "time"), ("train.time_limit",)),
    **dict.fromkeys(("early_stopping", "n_iter_no_change", "early_stopping_rounds"), ("train.patience",)),
    **dict.fromkeys(("n_clusters", "k"), ("model.n_clusters",)),
}
# The same without an equal here: accepted with a note by a statement that has no attribute of the name.
_NEEDLESS = {
    "verbose": "progress is always shown",
    "n_jobs": "all cores are used",
    "nthread": "all cores are used",
}
_OF_ESTIMATOR = "estimator."  # of SQLFlow's first statements, for the parameters of a model


class Dictionary:
    """Attributes that one statement accepts.

    elsewhere: attributes of other models, optimizers or losses -> those entries, for the hint of an error.
    without_effect: attributes that are accepted with a note, besides WITHOUT_EFFECT -> the reason.
    """

    def __init__(
        self,
        rows: Iterable[AttributeRow],
        elsewhere: Mapping[str, str] | None = None,
        without_effect: Mapping[str, str] | None = None,
    ) -> None:
        self._elsewhere = elsewhere or {}
        self._without_effect = {**WITHOUT_EFFECT, **(without_effect or {})}
        self.rows = {row.name: row for row in rows}
        self._names: dict[str, str] = {}
        for row in self.rows.values():
            for name in (row.name, *row.aliases):
                self._names.setdefault(name.casefold(), row.name)

    def find(self, key: str) -> AttributeRow | None:
        """Return the row of `key`, a name or an alias in any case, or None."""
        folded = key.casefold()
        if folded.startswith(_OF_ESTIMATOR):
            folded = f"model.{folded.removeprefix(_OF_ESTIMATOR)}"
        name = self._names.get(folded)
        return self.rows[name] if name else None

    def resolve(
        self, attributes: Iterable[ast.Attribute], errors: list[SQLFlowError], notes: list[str]
    ) -> dict[str, Resolved]:
        """Map the names of written attributes to checked values; errors and notes are appended."""
        resolved: dict[str, Resolved] = {}
        attributes = tuple(attributes)
        for at, attribute in enumerate(attributes):
            if reason := self._without_effect.get(attribute.key.casefold()):
                notes.append(f"{attribute.key}{NO_EFFECT}{reason}")
                continue
            row = self.find(attribute.key)
            if row is None and (reason := _NEEDLESS.get(attribute.key.casefold())):
                notes.append(f"{attribute.key}{NO_EFFECT}{reason}")
                continue
            if row is None:
                errors.append(self._unknown(attribute, _place_of(attributes, at)))
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
                resolved[row.name] = Resolved(
                    check(row, attribute.value, _place_of(attributes, at)), attribute
                )
            except SQLFlowError as error:
                errors.append(error)
        return resolved

    def _unknown(self, attribute: ast.Attribute, place: Span) -> SemanticError:
        key = attribute.key
        spellings = {**{name.casefold(): name for name in self._elsewhere}, **self._names}
        same = (name for name in _MEANT.get(_last_part(key.casefold()), ()) if name in self.rows)
        near = spellings.get(key.casefold()) if key.casefold() not in _MEANT else None
        near = next(same, None) or near or nearest_dotted(key, spellings) or self._nearest_word(key)
        if near and near in self._elsewhere and near not in self.rows:
            hint = f"{near} belongs to {self._elsewhere[near]}"
        else:
            hint = suggest_name(near) if near else Advice(self._list_names(key), "", place)
        return SemanticError(f"unknown attribute {key}", span=attribute.key_span, hint=hint)

    def _nearest_word(self, key: str) -> str | None:
        """Return the attribute of the same prefix with a word that is near, as hiden is near model.hidden_units."""
        prefix, _, last = key.casefold().rpartition(".")
        if prefix == "model" and "model.hidden_units" in self.rows and nearest(last, _WIDTHS):
            return "model.hidden_units"
        words = {
            word: name
            for name in self.rows
            if name.startswith(f"{prefix}.")
            for word in _last_part(name).split("_")
        }
        near = nearest(last, [word for word in words if len(word) > 3], _NEAR_WORD)
        return words[near] if near else None

    def _list_names(self, key: str) -> str:
        """Return a list of known names for `key`: the names with its prefix, or all if they are few."""
        prefix = key.partition(".")[0].casefold() + "."
        alike = sorted(name for name in self.rows if name.startswith(prefix))
        few = sorted({f"{PLACE}…" if name.startswith(PLACE) else name for name in self.rows})
        names = alike or (few if len(few) <= MOST_LISTED else [])
        listed = f"known: {', '.join(names)}" if names else ""
        return "; ".join(filter(None, (listed, "sqlflow help attributes lists all attributes")))


def _place_of(attributes: Sequence[ast.Attribute], at: int) -> Span:
    """Return the place of an attribute with a comma beside it."""
    attribute = attributes[at]
    if at:
        return Span(attributes[at - 1].value.span.end, attribute.value.span.end)
    last = attributes[1].key_span.start if len(attributes) > 1 else attribute.value.span.end
    return Span(attribute.key_span.start, last)


def nearest_dotted(key: str, spellings: Mapping[str, str]) -> str | None:
    """Return the nearest name: first by the last segment, then by the whole spelling; None if none is near.

    spellings: spelling in lower case -> name. `train.framework` is near model.framework, because they have the same
    last segment, and near no other name that begins with train.
    """
    last = _last_part(key.casefold())
    segment = nearest(last, map(_last_part, spellings))
    if segment is None:
        return None
    alike = [spelling for spelling in spellings if _last_part(spelling) == segment]
    return spellings[nearest(key, alike) or alike[0]]


def _last_part(name: str) -> str:
    return name.rpartition(".")[2]


def check(row: AttributeRow, value: ast.Value, place: Span | None = None) -> Setting:
    """Convert the value to the row's type. Raises SemanticError if the type or range is wrong.

    place: of the whole attribute with a comma beside it, for the hint to leave it out.
    """
    if row.type in ("class weights", "class columns") and isinstance(value, ast.MapValue):
        return "written"  # the analysis reads the values by class, with their spans
    if row.type == "pairs" and isinstance(value, ast.MapValue):
        return check_plain(
            row, values.pairs({name: values.to_python(item) for name, item in value.items}), value.span
        )
    plain = values.directions(value) if row.type == "directions" else values.to_python(value)
    return check_plain(row, plain, value.span, place)


def check_plain(
    row: AttributeRow, value: Setting, span: Span | None = None, place: Span | None = None
) -> Setting:
    """Convert a Python value to the row's type and check it. span: its source span; place: as of `check`."""
    setting = values.convert(row.type, value)
    if setting is None:
        raise SemanticError(
            f"{row.name} must be {values.WORDS[row.type]}", span=span, hint=_example(row, value)
        )
    _check_range(row, setting, span, place)
    if row.choices:
        return _resolve_choice(row, setting, span)
    return setting


def _example(row: AttributeRow, value: Setting) -> str | None:
    """Return the hint for a value of another type: a time in seconds, or a number as an example, and the meaning."""
    example: object = row.default if isinstance(row.default, int | float) else None
    if row.type in ("integer", "number"):
        time = _TIME.fullmatch(value.strip()) if isinstance(value, str) and "econds" in row.doc else None
        if time:
            seconds = f"{float(time[1]) * _SECONDS[time[2].lower()]:.12g}"
            return Advice(f"write {row.name} = {seconds}, in seconds", seconds)
        example = 60 if "econds" in row.doc else 10 if example is None and row.type == "integer" else example
    if isinstance(example, bool) or example is None or (row.high is not None and example > row.high):  # type: ignore[operator]
        return row.doc or None
    return Advice(f"such as {row.name} = {example}. {row.doc}", str(example))


def _suggest_choice(item: str, choices: tuple[str, ...]) -> str | None:
    """Return the hint for a choice: a family of models by the name of one of them, or the nearest."""
    choice_meant = next(
        (choice for pattern, choice in _FAMILIES if re.search(pattern, item, re.IGNORECASE)), None
    )
    return (
        suggest_name(choice_meant)
        if choice_meant in choices and item not in choices
        else did_you_mean(item, choices)
    )


def _resolve_choice(row: AttributeRow, item: Setting, span: Span | None) -> Setting:
    """Return the choice that a text names, in any case; of a list the choices that its texts name."""
    if isinstance(item, tuple):
        return tuple(_resolve_choice(row, part, span) for part in item)  # type: ignore[misc]
    if not isinstance(item, str):
        return item
    by_folded = {choice.casefold(): choice for choice in row.choices}
    if item.casefold() not in by_folded:
        raise SemanticError(
            f"{row.name} cannot be {item!r}", span=span, hint=_suggest_choice(item, row.choices)
        )
    return by_folded[item.casefold()]


def _check_range(row: AttributeRow, item: Setting, span: Span | None, place: Span | None) -> None:
    """Raise SemanticError for a number out of range, in a list too."""
    if isinstance(item, tuple):
        for part in item:
            _check_range(row, part, span, place)
    if isinstance(item, bool) or not isinstance(item, int | float):
        return
    if isinstance(item, int) and abs(item) > LARGEST_INTEGER:
        raise SemanticError(
            f"{row.name} = {item:.3g} is out of range",
            span=span,
            hint=f"expected {LARGEST_INTEGER:,} or less",
        )
    if not _is_within(row, item):
        raise SemanticError(
            f"{row.name} = {item} is out of range",
            span=span,
            hint=_range_hint(row, item, place),
        )


def _range_hint(row: AttributeRow, item: float, place: Span | None) -> str:
    """Return the range, with the share of a percentage, the default, or the advice to leave the attribute out."""
    words, share = _range_words(row), item / 100
    if row.high is not None and row.high <= 1 < item and _is_within(row, share):
        return Advice(f"{words}; {item:.12g} % is {share:.12g}", f"{share:.12g}")
    if isinstance(row.default, int | float) and not isinstance(row.default, bool):
        return Advice(f"{words}; the default is {row.default}", str(row.default))
    return Advice(f"{words}; leave it out for the default", "", place) if place else words


def _is_within(row: AttributeRow, item: float) -> bool:
    return (row.low is None or item >= row.low) and (row.high is None or item <= row.high)


def _range_words(row: AttributeRow) -> str:
    if row.low is not None and row.high is not None:
        return f"expected a value from {values.describe_bound(row.low)} to {values.describe_bound(row.high)}"
    if row.low is not None:
        return f"expected {values.describe_bound(row.low)} or more"
    return f"expected {values.describe_bound(row.high)} or less"
