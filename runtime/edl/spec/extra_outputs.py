"""Outputs that PREDICT can write beside the result column: their names for each kind of model."""

from __future__ import annotations

from edl.spec.job import ENSEMBLE, FACTORS, ONNX, TREES, JobSpec
from edl.spec.labels import Label

LOGITS, EMBEDDING, LEAVES, MEMBERS, DISTANCES = "logits", "embedding", "leaves", "members", "distances"
ERRORS = "errors"  # of what a reduction restores
INNER = (EMBEDDING, LEAVES)  # computed inside of a model; the others follow from its outputs


def extra_outputs(spec: JobSpec) -> tuple[str, ...]:
    """Return the names of the extra outputs of a model. A hand-written module has none that are known."""
    if spec.zoo is not None:
        return ()
    if spec.framework == ONNX:
        return (LOGITS,) if spec.label.has_classes else ()
    if spec.label.labels:
        return (EMBEDDING,)
    if spec.label.clusters:
        return (DISTANCES,)
    if spec.label.dimensions:
        return (ERRORS,)
    if spec.optimizer.name == FACTORS:
        return ()
    if spec.label.tells_anomalies:
        return (LOGITS,)
    has_logits = (LOGITS,) if spec.label.has_classes else ()
    if spec.framework == ENSEMBLE:
        return (*has_logits, MEMBERS)
    if spec.framework not in TREES:
        return (*has_logits, EMBEDDING, *((MEMBERS,) if is_member_network(spec) else ()))
    return has_logits if spec.model.params.get("booster") == "gblinear" else (*has_logits, LEAVES)


def is_member_network(spec: JobSpec) -> bool:
    """Return True for one network that is an ensemble of several, with outputs (n, members, k)."""
    return spec.own is None and spec.framework != ENSEMBLE and int(spec.model.params.get("members") or 1) > 1  # type: ignore[arg-type]


def is_number(name: str, label: Label) -> bool:
    """Return True if the extra output is one number per row; the others are texts of numbers."""
    return name == LOGITS and not (label.has_classes and not label.is_binary)
