"""Modules that SQL text may use models from, and the check of an imported object before it is called.

SQL text names models by their dotted names, and may come from people without the right to run code here. So a name is
accepted only in two kinds of places, both configured by the operator outside of SQL:

* the model path, folders of modules (`edl.program.user_model.search_path`), excluding packages installed in them;
* installed packages that SQLFLOW_MODEL_PACKAGES lists, `torchvision.models,my_company.models.Wide`. An entry allows a
  package, a module, a class or a function, and all below it. By default there is none.

docs/security.md describes the threat, and the checks in their order.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType

from edl.errors import JobError, SemanticError
from edl.program.importing import is_installed, is_standard

VARIABLE = "SQLFLOW_MODEL_PACKAGES"
OPTION = "--model-packages"

_OWN_PACKAGES = ("edl", "sqlflow_edl")  # this project's own packages hold no models
_MODEL_BASES = (("keras", "Layer"), ("torch.nn", "Module"))  # every keras.Model is a Layer


def parse(text: str) -> tuple[str, ...]:
    """Split a comma-separated list. Raises SemanticError if an entry is not a dotted name."""
    entries = tuple(entry.strip() for entry in text.split(",") if entry.strip())
    for entry in entries:
        if not all(part.isidentifier() for part in entry.split(".")):
            raise SemanticError(
                f"{VARIABLE} holds {entry!r}, which is not the name of a package",
                hint="write names of packages with commas, such as torchvision.models,my_company.models",
            )
    return entries


def is_below(name: str, package: str) -> bool:
    """Return True if the dotted name is the package, or something in it."""
    return f"{name}.".startswith(f"{package}.")


def read_configured_packages() -> tuple[str, ...]:
    """Return the entries in the environment. Raises SemanticError if an entry is not a dotted name."""
    return parse(os.environ.get(VARIABLE, ""))


@dataclass(frozen=True, slots=True)
class ModelSources:
    """Permitted sources of models: `folders` of the model path, absolute, and `packages` in SQLFLOW_MODEL_PACKAGES."""

    folders: tuple[str, ...]
    packages: tuple[str, ...] = ()

    def allows(self, name: str, file: Path) -> bool:
        """Return True if SQL text may name `name`, a dotted object of the module in `file`."""
        if name.partition(".")[0] in _OWN_PACKAGES:
            return False
        in_folder = any(file.is_relative_to(folder) for folder in self.folders) and not is_installed(file)
        return in_folder or self._entry(name) is not None

    def allows_origin(self, name: str, origin: str, file: Path) -> bool:
        """Return True if `name` may stand for an object that the module `origin` in `file` defines.

        An allowed package may re-export objects that its own modules elsewhere define (keras.applications does); a
        module of the model path may not re-export objects of installed packages.
        """
        if self.allows(f"{origin}.{name.rpartition('.')[2]}", file):
            return True
        entry = self._entry(name)
        return entry is not None and entry.partition(".")[0] == origin.partition(".")[0]

    def may_be_allowed(self, name: str, file: Path) -> bool:
        """Return True if the operator can allow the package of `name`, a module in `file`."""
        return name.partition(".")[0] not in _OWN_PACKAGES and not is_standard(file)

    def _entry(self, name: str) -> str | None:
        return next((package for package in self.packages if is_below(name, package)), None)


def check_imported(module: str, attribute: str, sources: ModelSources) -> None:
    """Check an object of an imported module before a program calls it.

    Raises JobError if it is neither a class of models nor a function, or its definition is not in `sources`.
    """
    value = getattr(sys.modules[module], attribute)
    name = f"{module}.{attribute}"
    if isinstance(value, type):
        if not issubclass(value, _model_bases()):
            raise JobError(
                f"{name} is not a model class", hint="derive it from keras.Model or torch.nn.Module"
            )
    elif not isinstance(getattr(value, "__wrapped__", value), FunctionType):
        raise JobError(
            f"{name} is a {type(value).__name__}, neither a class nor a function",
            hint="a model is a class, or a function that returns a model",
        )
    origin = str(value.__module__)
    file = getattr(sys.modules.get(origin), "__file__", None)
    if file is None or not sources.allows_origin(name, origin, Path(file)):
        raise JobError(
            f"{name} is {origin}.{value.__qualname__}, which SQL may not name",
            hint=f"define the model in {module} itself",
        )


def _model_bases() -> tuple[type, ...]:
    """Return the base classes of models, of the frameworks that this process has loaded."""
    return tuple(getattr(sys.modules[module], name) for module, name in _MODEL_BASES if module in sys.modules)
