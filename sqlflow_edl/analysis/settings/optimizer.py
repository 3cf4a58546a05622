"""What an optimizer's step is: its parameters, the clipping of gradients, the learning rate over the steps."""

from __future__ import annotations

from collections.abc import Mapping

from edl import spec
from edl.errors import SemanticError, SQLFlowError
from sqlflow_edl.analysis import catalog
from sqlflow_edl.analysis.settings.dictionary import Resolved

CLIPPING = ("optimizer.clipnorm", "optimizer.global_clipnorm", "optimizer.clipvalue")


def optimizer(entry: catalog.Entry, resolved: Mapping[str, Resolved]) -> spec.Component:
    """The optimizer with its parameters, and how gradients are clipped where that is written."""
    clipping = {name.rpartition(".")[2]: resolved[name].value for name in CLIPPING if name in resolved}
    return spec.Component(entry.name, {**catalog.parameters(entry, resolved), **clipping})


def check_clipping(resolved: Mapping[str, Resolved], errors: list[SQLFlowError]) -> None:
    """An error when gradients are to be clipped in two ways."""
    written = [name for name in CLIPPING if name in resolved]
    if len(written) > 1:
        first, second = sorted(written, key=lambda name: resolved[name].written.key_span.start)[:2]
        errors.append(
            SemanticError(
                f"gradients are clipped in one way, and {first} is written already",
                span=resolved[second].written.key_span,
                hint="keep one of them",
            )
        )


def schedule(
    entry: catalog.Entry | None, resolved: Mapping[str, Resolved], training: spec.Training, rows: int
) -> spec.Component | None:
    """The schedule with all its parameters; rows: that are trained on, which with `training` give the steps."""
    if entry is None:
        return None
    params = catalog.parameters(entry, resolved)
    if any(row.name == "schedule.decay_steps" for row in entry.params) and "decay_steps" not in params:
        warmup = params["warmup_steps"]
        left = max(1, steps(training, rows) - warmup)  # type: ignore[operator]
        params["decay_steps"] = max(1, left // 3) if entry.name == "step" else left
    return spec.Component(entry.name, params)


def steps(training: spec.Training, rows: int) -> int:
    """Optimizer steps of the whole training."""
    every = training.epochs * -(-rows // training.batch_size)
    return min(every, training.max_steps or every)
