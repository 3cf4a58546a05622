"""Optimizer settings of a TRAIN statement: parameters, gradient clipping, learning rate schedule."""

from __future__ import annotations

from collections.abc import Mapping

from edl import spec
from edl.errors import SemanticError, SQLFlowError
from sqlflow_edl.analysis import catalog
from sqlflow_edl.analysis.entries import Entry
from sqlflow_edl.analysis.settings import trees
from sqlflow_edl.analysis.settings.attribute_dictionary import Resolved

CLIPPING = ("optimizer.clipnorm", "optimizer.global_clipnorm", "optimizer.clipvalue")


def optimizer(
    entry: Entry, resolved: Mapping[str, Resolved], framework: str, *, is_forest: bool = False
) -> spec.Component:
    """Return the optimizer with its parameters, and the gradient clipping if one is written.

    is_forest: the model is the mean of trees, which no learning rate scales.
    """
    if framework in spec.TREES:
        rate = 1.0 if is_forest else trees.RATES[framework]
        return spec.Component(entry.name, {"learning_rate": rate, **catalog.parameters(entry, resolved)})
    clipping = {name.rpartition(".")[2]: resolved[name].value for name in CLIPPING if name in resolved}
    return spec.Component(entry.name, {**catalog.parameters(entry, resolved), **clipping})


def check_clipping(resolved: Mapping[str, Resolved], errors: list[SQLFlowError]) -> None:
    """Add an error if two kinds of gradient clipping are written."""
    names = [name for name in CLIPPING if name in resolved]
    if len(names) > 1:
        first, second = sorted(names, key=lambda name: resolved[name].key_span.start)[:2]
        errors.append(
            SemanticError(
                f"only one way to clip gradients can be set, and {first} is set already",
                span=resolved[second].key_span,
                hint="keep one of them",
            )
        )


def schedule(
    entry: Entry | None, resolved: Mapping[str, Resolved], training: spec.Training, rows: int
) -> spec.Component | None:
    """Return the schedule with all its parameters.

    rows: number of training rows, which with `training` gives the number of steps.
    """
    if entry is None:
        return None
    params = catalog.parameters(entry, resolved)
    if any(row.name == "schedule.decay_steps" for row in entry.params) and "decay_steps" not in params:
        warmup = params["warmup_steps"]
        left = max(1, steps(training, rows) - warmup)  # type: ignore[operator]
        params["decay_steps"] = max(1, left // 3) if entry.name == "step" else left
    return spec.Component(entry.name, params)


def steps(training: spec.Training, rows: int) -> int:
    """Return the number of optimizer steps of the whole training."""
    every = training.epochs * -(-rows // training.batch_size)
    return min(every, training.max_steps or every)
