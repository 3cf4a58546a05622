"""User-defined model in a generated program: its import, construction and arguments."""

from __future__ import annotations

from edl.spec import JobSpec, Own
from sqlflow_edl.codegen.source import Call, Expression, Items, layout, line, literal

# Names used by the program: an import with one of these names becomes `own_model`.
_TAKEN = frozenset(
    (
        *("FEATURES", "LABEL", "STORED", "WEIGHTS", "CLASS_WEIGHTS", "F", "Path", "fc", "keras", "math", "metrics"),
        *("nn", "schedules", "torch", "by_class"),
        *("Concatenated", "Model", "checked_model", "clipped", "concatenated", "feature_inputs", "inputs", "model"),
        *("joined", "outputs", "rescaled", "super"),
        *("callbacks", "custom_model", "eval_metrics_fn", "feed", "learning_rate", "loss", "optimizer", "scores"),
    )
)  # fmt: skip


def own_import(own: Own) -> str:
    """Return the import of the user's model and functions, classes first, as formatters order them."""
    alias = "" if _name(own) == own.attribute else f" as {_name(own)}"
    names = [own.attribute + alias, *own.functions]
    imported = sorted(names, key=lambda name: (name[0].islower(), name))
    return f"from {own.module} import {', '.join(imported)}"


def own_model(spec: JobSpec, own: Own) -> dict[str, object]:
    """Return the template values of the user's model: its call, and its input as arrays or one matrix."""
    known = {
        "features": "FEATURES",
        "in_features": "FEATURES.width",
        "outputs": literal(spec.label.outputs),
        "out_features": literal(spec.label.outputs),
    }
    passed = tuple((each, known[each]) for each in own.passes)
    written = tuple((each, _value(value)) for each, value in spec.model.params.items())
    made = Call("checked_model", (Call(_name(own), (*passed, *written)),))
    indent, prefix = (4, "model = ") if spec.framework == "keras" else (8, "self.model = ")
    return {
        "own_takes_arrays": "features" in own.passes,
        "own_model": layout(made, indent=indent, prefix=prefix),
    }


def _name(own: Own) -> str:
    return own.attribute if own.attribute not in _TAKEN else "own_model"


def _value(value: object) -> Expression:
    if not isinstance(value, tuple | list):
        return literal(value)
    return Items(tuple(line(_value(item)) for item in value))
