"""User-defined model in a generated program: its import, construction and arguments."""

from __future__ import annotations

from edl.spec import JobSpec, Own
from sqlflow_edl.codegen.imports import in_order
from sqlflow_edl.codegen.source import Call, Expression, Items, layout, line, literal

# Names used by the program: an import with one of these names becomes `own_model`.
_TAKEN = frozenset(
    (
        *("FEATURES", "LABEL", "STORED", "F", "Path", "fc", "keras", "math", "metrics", "nn", "schedules", "torch"),
        *("Concatenated", "Model", "checked_model", "clipped", "concatenated", "feature_inputs", "inputs", "model"),
        *("joined", "outputs", "rescaled", "super"),
        *("callbacks", "custom_model", "eval_metrics_fn", "feed", "learning_rate", "loss", "optimizer", "scores"),
    )
)  # fmt: skip


def own_model(spec: JobSpec, own: Own) -> dict[str, object]:
    """Return the template values of the user's model: its import, its call, and its input as arrays or one matrix."""
    name = own.attribute if own.attribute not in _TAKEN else "own_model"
    known = {
        "features": "FEATURES",
        "in_features": "FEATURES.width",
        "outputs": literal(spec.label.outputs),
        "out_features": literal(spec.label.outputs),
    }
    passed = tuple((each, known[each]) for each in own.passes)
    written = tuple((each, _value(value)) for each, value in spec.model.params.items())
    made = Call("checked_model", (Call(name, (*passed, *written)),))
    indent, prefix = (4, "model = ") if spec.framework == "keras" else (8, "self.model = ")
    imported = in_order(
        [f"{own.attribute}{'' if name == own.attribute else ' as own_model'}", *own.functions]
    )
    return {
        "own_takes_arrays": "features" in own.passes,
        "own_import": f"from {own.module} import {', '.join(imported)}",
        "own_model": layout(made, indent=indent, prefix=prefix),
    }


def _value(value: object) -> Expression:
    if not isinstance(value, tuple | list):
        return literal(value)
    return Items(tuple(line(_value(item)) for item in value))
