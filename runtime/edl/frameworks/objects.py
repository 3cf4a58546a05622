"""Framework objects of a script: models, and losses and optimizers as functions of a program."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal, Protocol, cast

Framework = Literal["keras", "torch"]

_MODULES = {"keras": "edl.frameworks.keras.objects", "torch": "edl.frameworks.torch.objects"}
_MODELS: dict[Framework, tuple[str, str]] = {"keras": ("keras", "Model"), "torch": ("torch.nn", "Module")}


class FrameworkObjects(Protocol):
    """Functions that a framework's module offers; `given` is an object, a function or a name."""

    def loss(self, value: Any) -> Callable[[Any, Any], Any]: ...

    def takes_logits(self, value: Any) -> bool: ...

    def optimizer(self, value: Any, rate: float | None) -> Callable[..., Any]: ...


def framework_of(model: object) -> Framework | None:
    """Return the framework of a model, or None for any other object. A framework that is not imported has no models."""
    for framework, (module, name) in _MODELS.items():
        if module in sys.modules and isinstance(model, getattr(sys.modules[module], name)):
            return framework
    return None


def loaded_frameworks() -> list[Framework]:
    """Return the frameworks that this process has imported."""
    return [framework for framework, (module, _) in _MODELS.items() if module in sys.modules]


def objects(framework: Framework) -> FrameworkObjects:
    return cast(FrameworkObjects, import_module(_MODULES[framework]))
