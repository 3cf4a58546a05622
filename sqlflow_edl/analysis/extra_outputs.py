"""Extra outputs that PREDICT writes beside the result column: `predict.extra_outputs`."""

from __future__ import annotations

from collections.abc import Sequence

from edl.errors import SemanticError, SQLFlowError
from edl.models.archive import Archive
from edl.spec import each_label
from edl.spec import extra_outputs as outputs
from sqlflow_edl.analysis.settings.dictionary import Resolved

PROBABILITIES = "probabilities"  # what predict.probabilities adds
# What other libraries call an output.
_ALSO = {
    "logit": outputs.LOGITS,
    "margin": outputs.LOGITS,
    "raw_score": outputs.LOGITS,
    "embeddings": outputs.EMBEDDING,
    "last_hidden": outputs.EMBEDDING,
    "last_hidden_layer": outputs.EMBEDDING,
    "last_hidden_state": outputs.EMBEDDING,
    "leaf": outputs.LEAVES,
    "pred_leaf": outputs.LEAVES,
    "leaf_indices": outputs.LEAVES,
    "member": outputs.MEMBERS,
    "distance": outputs.DISTANCES,
    "probability": PROBABILITIES,
}


def written_outputs(
    attribute: Resolved | None, model: Archive, reference: str, errors: list[SQLFlowError]
) -> tuple[tuple[str, ...], bool | None]:
    """Return what predict.extra_outputs asks for, as `output_names` does; add an error if one is not there."""
    if attribute is None or not isinstance(attribute.value, tuple):
        return (), None
    try:
        return output_names([str(name) for name in attribute.value], model, reference)
    except SemanticError as error:
        error.span = attribute.span
        errors.append(error)
        return (), None


def output_names(
    names_given: Sequence[str], model: Archive, reference: str
) -> tuple[tuple[str, ...], bool | None]:
    """Return the names of extra outputs, each once, and True if the probabilities of classes are among them.

    Raises SemanticError for an output that the model does not have.
    """
    if not names_given:
        return (), None
    has_classes = any(one_label.has_classes for one_label in each_label(model.spec.label))
    possible = [*([PROBABILITIES] if has_classes else []), *outputs.extra_outputs(model.spec)]
    plain = [name.strip().casefold() for name in names_given]
    names = [_ALSO.get(name, name) for name in plain]
    for name, canonical in zip(names_given, names, strict=True):
        if canonical not in possible:
            what = f"it has {', '.join(possible)}" if possible else "it has none"
            raise SemanticError(f"{reference} has no extra output {name}", hint=what)
    extra = tuple(name for name in dict.fromkeys(names) if name != PROBABILITIES)
    return extra, True if PROBABILITIES in names else None
