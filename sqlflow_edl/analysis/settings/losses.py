"""Loss of a TRAIN statement: the one it names, that of the model's own module, or the label's default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edl import spec
from edl.errors import SemanticError, SQLFlowError
from sqlflow_edl.analysis import catalog, row_weights
from sqlflow_edl.analysis.entries import Entry
from sqlflow_edl.analysis.statistics import ColumnStatistics

if TYPE_CHECKING:
    from sqlflow_edl.analysis.train import Settings


def loss(
    settings: Settings,
    model: Entry,
    label: spec.Label,
    found: ColumnStatistics,
    errors: list[SQLFlowError],
) -> spec.Component:
    """Return the loss with its parameters and the class weights. found: the statistics of the label."""
    class_weights = row_weights.of_classes(settings, label, found, errors)
    if theirs := settings.theirs("loss"):
        if class_weights:
            errors.append(row_weights.refuse_classes(settings, theirs.name))
        return theirs
    named = _named(settings, model, errors)
    more = {"class_weights": class_weights} if class_weights else {}
    return spec.Component(named.name, {**catalog.parameters(named, settings.resolved), **more})


def _named(settings: Settings, model: Entry, errors: list[SQLFlowError]) -> Entry:
    default = "mean_squared_error" if model.task == "regression" else "cross_entropy"
    found = catalog.LOSSES.entries[settings.loss or default]
    if found.task != model.task:
        fitting = [entry.name for entry in catalog.LOSSES.entries.values() if entry.task == model.task]
        errors.append(
            SemanticError(
                f"the loss {found.name} is for {found.task}, {model.name} does {model.task}",
                span=settings.span("loss"),
                hint="there are " + ", ".join(fitting),
            )
        )
    return found
