"""Extra outputs that PREDICT writes beside the result column: `predict.extra_outputs`."""

from __future__ import annotations

from collections.abc import Sequence

from edl.errors import SemanticError, SQLFlowError
from edl.models.archive import Archive
from edl.spec import ClassLabel
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


def chosen(
    written: Resolved | None, model: Archive, reference: str, errors: list[SQLFlowError]
) -> tuple[str, ...]:
    """Return the names of the extra outputs that predict.extra_outputs asks for; add an error if one is not there."""
    if written is None or not isinstance(written.value, tuple):
        return ()
    try:
        return named([str(name) for name in written.value], model, reference)
    except SemanticError as error:
        error.span = written.written.value.span
        errors.append(error)
        return ()


def named(written: Sequence[str], model: Archive, reference: str) -> tuple[str, ...]:
    """Return the names of extra outputs, each once. Raises SemanticError for one that the model does not have."""
    if not written:
        return ()
    known = [
        *([PROBABILITIES] if isinstance(model.spec.label, ClassLabel) else []),
        *outputs.extra_outputs(model.spec),
    ]
    names = [_ALSO.get(name.casefold(), name.casefold()) for name in written]
    for name, found in zip(written, names, strict=True):
        if found not in known:
            what = f"a {model.spec.model.name} has {', '.join(known)}" if known else "it has none"
            raise SemanticError(f"{reference} has no extra output {name}", hint=what)
    return tuple(dict.fromkeys(names))
