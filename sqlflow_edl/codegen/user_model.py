"""User-defined model in a generated program: its import, construction and arguments."""

from __future__ import annotations

from edl.spec import JobSpec, Own
from sqlflow_edl.codegen.source import CallExpression, Expression, Items, layout, line, literal

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


def own_import(user_code: Own) -> str:
    """Return the import of the user's model and functions, classes first, as formatters order them."""
    alias = "" if _name(user_code) == user_code.attribute else f" as {_name(user_code)}"
    names = [user_code.attribute + alias, *user_code.functions]
    imported = sorted(names, key=lambda name: (name[0].islower(), name))
    return f"from {user_code.module} import {', '.join(imported)}"


def own_model(spec: JobSpec, user_code: Own) -> dict[str, object]:
    """Return the template values of the user's model: its call, and its input as arrays or one matrix."""
    known_values = {
        "features": "FEATURES",
        "in_features": "FEATURES.width",
        "outputs": literal(spec.label.outputs),
        "out_features": literal(spec.label.outputs),
    }
    passed = tuple((name, known_values[name]) for name in user_code.passes)
    parameters = tuple((name, _value(value)) for name, value in spec.model.params.items())
    call = CallExpression("checked_model", (CallExpression(_name(user_code), (*passed, *parameters)),))
    indent, prefix = (4, "model = ") if spec.framework == "keras" else (8, "self.model = ")
    return {
        "own_takes_arrays": "features" in user_code.passes,
        "own_model": layout(call, indent=indent, prefix=prefix),
    }


def _name(user_code: Own) -> str:
    return user_code.attribute if user_code.attribute not in _TAKEN else "own_model"


def _value(value: object) -> Expression:
    if not isinstance(value, tuple | list):
        return literal(value)
    return Items(tuple(line(_value(item)) for item in value))
