"""Import of a program folder."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from edl.errors import JobError, SpecError
from edl.program.contract import check
from edl.program.digest import is_edited
from edl.program.importing import CompilingLoader, always_compile
from edl.program.model_packages import check_imported
from edl.program.user_code import user_code
from edl.program.user_model import make_importable, model_sources, with_digest
from edl.program.zoo import import_zoo, zoo_functions
from edl.spec import JobSpec, from_json

MODEL_FILE = "model.py"
SPEC_FILE = "job.json"
READER_FILE = "reader.py"

_names = itertools.count(1)


@dataclass(frozen=True)
class Program:
    """Loaded program. `functions` holds the contract's functions that model.py defines.

    `checks_shapes`: labels and outputs are compared before they meet in the loss. The losses of ElasticDL's modules
    reshape both, so labels of these have any shape.
    """

    folder: Path
    spec: JobSpec
    module: ModuleType
    functions: Mapping[str, Callable[..., Any]]
    edited: bool
    checks_shapes: bool = True

    @property
    def file(self) -> Path:
        """Source file named in errors: model.py, or the module of a model zoo."""
        return Path(self.module.__file__ or self.folder / MODEL_FILE)

    def has(self, function: str) -> bool:
        return function in self.functions

    def call(self, function: str, *arguments: object) -> Any:
        """Call a function of the contract. Its exceptions become a `UserCodeError` with the program's line."""
        with user_code(self.file, f"{function}()"):
            return self.functions[function](*arguments)


def read_spec(folder: Path) -> JobSpec:
    """Return the JobSpec in a program folder.

    Raises JobError if it is missing, SpecError if it is damaged or unknown.
    """
    path = folder / SPEC_FILE
    try:
        return from_json(_read(path))
    except SpecError as error:
        raise SpecError(f"{path}: {error.message}", hint=error.hint) from None


def load(folder: Path | str, spec: JobSpec | None = None) -> Program:
    """Import the program in `folder` and check its contract; `spec` replaces the JobSpec of job.json.

    Every call imports anew under a new module name, so two programs, or two versions of one, can coexist; files beside
    model.py are found by `__file__`, and modules beside it by `from . import name`. If the JobSpec names a module of a
    model zoo, that replaces model.py, see `edl.program.zoo`. A user-defined model is imported from its current source;
    when a trained model is used, the source must be the training's, and SQL must be permitted to name it.

    Raises JobError for a missing file, an error in model.py (with its line), or a function that is missing or takes
    other arguments; SpecError if job.json is not a JobSpec.
    """
    import edl.program.column_functions  # noqa: F401 - a program may name them; NumPy and Arrow come with them

    folder = Path(folder).absolute()
    spec = spec or read_spec(folder)
    if spec.zoo is not None:
        zoo = msgspec.structs.replace(spec.zoo, path=str(folder.parent / spec.zoo.path))
        module = import_zoo(zoo)
        functions, is_elasticdl = zoo_functions(spec, zoo, module)
        return Program(folder, spec, module, functions, edited=True, checks_shapes=not is_elasticdl)
    if spec.own is not None:
        spec = with_digest(spec)
        make_importable(spec.model.name)
    source = _read(folder / MODEL_FILE)
    module = _import(folder / MODEL_FILE, source)
    if spec.own is not None:
        check_imported(spec.own.module, spec.own.attribute, model_sources())
    functions = check(module, spec.framework, str(folder / MODEL_FILE))
    return Program(folder, spec, module, functions, is_edited(folder, source))


def load_reader(folder: Path | str) -> ModuleType:
    """Import the reader.py of a program: `pin(folder, *, seed, shuffle)` and `custom_data_reader(pinned, folder)`."""
    file = Path(folder).absolute() / READER_FILE
    return _import(file, _read(file))


def unload(module: ModuleType) -> None:
    """Remove a module that `load` imported, and the modules beside it, from sys.modules."""
    for name in sys.modules.copy():
        if name == module.__name__ or name.startswith(f"{module.__name__}."):
            del sys.modules[name]


def _import(file: Path, source: bytes) -> ModuleType:
    name = f"edl_program_{next(_names)}"
    always_compile(file.parent)
    loader = CompilingLoader(name, str(file), source)  # the checked bytes
    spec = ModuleSpec(name, loader, origin=str(file), is_package=True)
    spec.has_location = True
    spec.submodule_search_locations = [str(file.parent)]
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with user_code(file, "import"):
            loader.exec_module(module)
    except BaseException:
        unload(module)
        raise
    return module


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        hint = "a program folder holds model.py, job.json and reader.py"
        raise JobError(f"cannot read {file}: {error.strerror}", hint=hint) from None
