"""Length and steps of a training: the written settings, else the model's defaults for the number of rows."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec

from edl import spec
from edl.errors import SemanticError, SQLFlowError
from sqlflow_edl.analysis import catalog
from sqlflow_edl.analysis.rows.validation import FRACTION
from sqlflow_edl.analysis.settings import trees
from sqlflow_edl.analysis.settings.attributes import UNSEEN_RATE

if TYPE_CHECKING:
    from sqlflow_edl.analysis.columns.inputs import ModelInputs
    from sqlflow_edl.analysis.train_settings import TrainSettings


def training(
    settings: TrainSettings,
    rows: spec.Rows,
    inputs: ModelInputs,
    errors: list[SQLFlowError],
    *,
    own_query: bool = False,
) -> spec.Training:
    """Return the training settings of a JobSpec; errors are appended.

    own_query: the validation rows come from a query of their own.
    """
    values: dict[str, Any] = {name: setting.value for name, setting in settings.resolved.items()}
    model = settings.choice.example
    held_out = rows.validation > 0
    best = "best" if held_out else "last"
    of_model = catalog.parameters(model, settings.resolved)
    unseen_rate: float | msgspec.UnsetType = msgspec.UNSET
    if settings.is_trees:
        batch_size, shuffle, patience = spec.ALL_ROWS, False, trees.PATIENCE
        length, default = "train.num_boost_round", trees.MOST_ROUNDS if held_out else trees.ROUNDS
        if settings.choice.is_forest:  # the written length is the number of its trees
            length, default, patience = "", 1, 0
    else:
        usual = model.length
        batch_size = values.get("train.batch_size", usual.batch_size(rows.training))
        shuffle, patience = values.get("train.shuffle", True), usual.patience
        length, default = "train.epoch", usual.number_of_epochs(rows.training, batch_size)
        unseen_rate = _unseen_rate(inputs, values.get("train.unseen_rate", UNSEEN_RATE))
    length_is_written = values.get(length) or values.get("train.max_steps")
    validation_fraction = rows.validation / rows.total if rows.total and not own_query else 0.0
    if not held_out:
        errors += _held_out_rows_needed(settings)
    limits = {name: values.get(f"train.{name}", 0) for name in spec.job.ROW_LIMITS}
    return spec.Training(
        epochs=values.get(length, default),
        batch_size=batch_size,
        shuffle=shuffle,
        seed=values.get("train.seed", 0),
        max_steps=values.get("train.max_steps", 0),
        validation_fraction=validation_fraction,
        early_stopping=values.get(
            "train.early_stopping", patience if held_out and not length_is_written else 0
        ),
        min_delta=values.get("train.min_delta", 0.0),
        tolerance=float(of_model.get("tolerance") or 0.0),  # type: ignore[arg-type]  # a number
        keep=values.get("train.keep", model.defaults.get("train.keep") or best),
        time_limit=values.get("train.time_limit", 0.0),
        calibration=values.get("validation.calibration", ""),
        threshold=values.get("validation.threshold"),
        **limits,
        unseen_rate=unseen_rate,
        disk_cache=values.get(trees.DISK_CACHE.name) or msgspec.UNSET,
    )


def _unseen_rate(inputs: ModelInputs, rate: float) -> float | msgspec.UnsetType:
    """Return the rate, unset if no value can be unseen."""
    for feature in chain.from_iterable(inputs.values()):
        category = spec.category_of(feature)
        if spec.is_category(category) and category.learns_unseen:
            return rate
    return msgspec.UNSET


def _held_out_rows_needed(settings: TrainSettings) -> list[SQLFlowError]:
    """Return errors for settings that need validation rows."""
    settings_needed = {"train.early_stopping": settings.get("train.early_stopping")}
    settings_needed["train.keep"] = settings.get("train.keep") == "best"
    settings_needed["validation.calibration"] = settings.get("validation.calibration")
    settings_needed["validation.threshold"] = isinstance(settings.get("validation.threshold"), str)
    written_fraction = settings.get(FRACTION) is not None  # a second one would contradict it
    return [
        SemanticError(
            f"{name} needs validation rows, and there are none",
            span=settings.span(name),
            hint=f"write {FRACTION} = 0.2 to validate on a fifth of the rows"
            if written_fraction
            else "write VALIDATE 0.2 to validate on a fifth of the rows",
        )
        for name, is_set in settings_needed.items()
        if is_set
    ]
