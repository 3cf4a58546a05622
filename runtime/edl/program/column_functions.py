"""Column functions of a user's own by dotted name: classes with `fit` and `transform`.

They are found and permitted as models of a user's own are (`edl.program.user_model`). Importing this module lets
`edl.features` use them.
"""

from __future__ import annotations

import importlib
from typing import Any

from edl.errors import JobError, SemanticError
from edl.features import own_functions
from edl.program.user_code import user_code
from edl.program.user_model import OwnModel, check_origin, find, make_importable
from edl.spec import Function

METHODS = ("fit", "transform")


def look_up(dotted: str) -> OwnModel:
    """Resolve the name by reading its source. Raises SemanticError if it is none that SQL may name."""
    model = find(dotted)
    check_origin(model)
    lacking = [method for method in METHODS if method not in model.definition.methods]
    if model.definition.kind != "class" or lacking:
        raise SemanticError(
            f"{model.name} is no class with {' and '.join(lacking or METHODS)}",
            hint="a function of columns has fit(self, rows), which returns a state, and transform(self, rows, state)",
        )
    return model


class _Instance:
    """Instance with exceptions that name the line of the user's file."""

    def __init__(self, function: Function, model: OwnModel) -> None:
        self._name, self._file = model.attribute, model.file
        make_importable(model.module)
        with self._code("()"):
            self._own = getattr(importlib.import_module(model.module), model.attribute)(
                **dict(function.params)
            )

    def fit(self, rows: Any) -> Any:
        with self._code(".fit()"):
            return self._own.fit(rows)

    def transform(self, rows: Any, state: Any) -> Any:
        with self._code(".transform()"):
            return self._own.transform(rows, state)

    def _code(self, what: str) -> Any:
        return user_code(self._file, f"{self._name}{what}")


def make(function: Function) -> own_functions.OwnFunction:
    """Import the class and make an instance.

    Raises SemanticError if SQL may not name it, JobError if its source differs from the training's.
    """
    model = look_up(function.name)
    if model.digest != function.digest:
        raise JobError(
            f"{function.name} has changed since the model was trained",
            hint=f"restore {model.file}, or train the model again",
        )
    return _Instance(function, model)


own_functions.install(make)
