"""Hand-written modules of a model zoo, used instead of a program's model.py.

A zoo is a folder of packages and modules. `--model_def digits.keras_net.custom_model` is the function or class
`custom_model` of `<zoo>/digits/keras_net.py`; the other functions of the contract are in the same module, under their
own names or those that the job specifies. The module is imported under its name in the zoo, with the zoo on Python's
path: it may import its siblings with `from . import layers` and with `from digits import layers`. Installed packages
come first on that path, so a zoo's package must not have the name of an installed one. `requirements.txt` is not
read.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from edl.errors import JobError, SemanticError, did_you_mean
from edl.extension_loader import load, load_or
from edl.program.contract import check
from edl.program.importing import redirect_imports
from edl.program.user_code import user_code
from edl.program.user_model import OwnModel, find, make_importable
from edl.spec import JobSpec, Zoo

REQUIREMENTS = "requirements.txt"
_ELASTICDL = "edl.extensions.elasticdl"


def find_in_zoo(zoo: Path, model_def: str) -> OwnModel:
    """Resolve a model_def by reading its source, and add the zoo to Python's path.

    Raises SemanticError if there is no such folder, module or name, or an installed package shadows the zoo's.
    """
    if not zoo.is_dir():
        raise SemanticError(
            f"there is no folder {zoo}", hint="--model_zoo is the folder that holds the packages"
        )
    make_importable(model_def, [str(zoo)])
    top = model_def.partition(".")[0]
    if PathFinder.find_spec(top, [str(zoo)]) is None:
        names = [module.name for module in pkgutil.iter_modules([str(zoo)])]
        hint = did_you_mean(top, names) or "write --model_def like package.module.custom_model"
        raise SemanticError(f"the model zoo {zoo} has no module {top}", hint=hint)
    model_found = find(model_def)
    used = PathFinder.find_spec(top)
    if used is None or not _lies_in(used.origin or next(iter(used.submodule_search_locations or [""])), zoo):
        raise SemanticError(
            f"{top} of the model zoo is shadowed by the installed package of that name",
            hint=f"give the zoo's {top} another name",
        )
    return model_found


def import_zoo(zoo: Zoo) -> ModuleType:
    """Import the current version of the module. Raises UserCodeError if the import fails."""
    make_importable(zoo.module, [zoo.path])
    redirect_imports(zoo.path, functools.partial(_redirect_imports, Path(zoo.path)))
    return _import(zoo.module, Path(zoo.path))


def _redirect_imports(zoo: Path, tree: ast.Module, path: str) -> ast.Module:
    """Return the tree of a module with the names that only ElasticDL's own repository knows replaced."""
    redirected: ast.Module = load_or(f"{_ELASTICDL}.imports", "redirect_imports", lambda tree, *_: tree)(
        tree, path, zoo
    )
    return redirected


def zoo_functions(
    spec: JobSpec, zoo: Zoo, module: ModuleType
) -> tuple[Mapping[str, Callable[..., Any]], bool]:
    """Return the contract's functions of the module, with the job's parameters bound, and True if the module was
    written for ElasticDL.

    Raises JobError if one is missing or unsuitable.
    """
    file = str(module.__file__)
    overrides: dict[str, object] = {
        name: _get_named(name_of_function, module, Path(zoo.path))
        for name, name_of_function in zoo.functions.items()
    }
    model = _attribute(module, zoo.attribute)
    overrides["custom_model"] = functools.partial(model, **spec.model.params) if callable(model) else model
    reader = overrides.get("custom_data_reader") or getattr(module, "custom_data_reader", None)
    if callable(reader):
        _check_reader(reader, zoo.reader_params, file)
        reader = functools.partial(reader, **zoo.reader_params)
        overrides["custom_data_reader"] = _on_origin(reader)
    adapted = _adapt_module(spec, module, overrides, reader)
    return check(module, spec.framework, file, overrides | adapted), "loss" in adapted


def _adapt_module(
    spec: JobSpec, module: ModuleType, functions: Mapping[str, object], reader: object
) -> dict[str, object]:
    """Return functions in place of the functions of a module that was written for ElasticDL; none for others."""
    feed = functions.get("feed") or getattr(module, "feed", None) or getattr(module, "dataset_fn", None)
    if spec.framework not in ("keras", "torch") or not _takes_dataset(feed):
        return {}
    if spec.framework == "torch":
        # Only feed differs: it makes a dataset of TensorFlow for a model of PyTorch.
        return {"feed": load(f"{_ELASTICDL}.feeding", "TorchFeed")(feed, str(module.__file__))}
    names = ("custom_model", "loss", "eval_metrics_fn", "callbacks")
    of_module = {name: functions.get(name) or getattr(module, name, None) for name in names}
    of_module |= {"feed": feed, "custom_data_reader": reader}
    of_module = {name: function for name, function in of_module.items() if function is not None}
    adapt = load(f"{_ELASTICDL}.contract", "adapt_functions")
    with user_code(Path(str(module.__file__)), "callbacks()"):  # the other functions are called later
        adapted: dict[str, object] = adapt(module, of_module, spec.kind, str(module.__file__))
    return adapted


def _takes_dataset(feed: object) -> bool:
    """Return True if a function is called with a dataset, a mode and metadata, as ElasticDL calls `feed`."""
    if not callable(feed):
        return False
    parameters = inspect.signature(feed).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [one for one in parameters if one.kind in positional and one.default is one.empty]
    return len(required) == 3


def _import(name: str, zoo: Path) -> ModuleType:
    file = zoo.joinpath(*name.split("."))
    file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    with user_code(file, "import"):
        return importlib.import_module(name)


def _get_named(dotted: str, module: ModuleType, zoo: Path) -> object:
    """Return the object that the job names, in the module itself or in another module of the zoo."""
    other, _, name = dotted.rpartition(".")
    return _attribute(_import(other, zoo) if other else module, name)


def _attribute(module: ModuleType, name: str) -> object:
    if not hasattr(module, name):
        callables = [
            candidate for candidate, value in vars(module).items() if callable(value) and candidate[0] != "_"
        ]
        raise JobError(f"{module.__file__} defines no {name}", hint=did_you_mean(name, callables))
    return getattr(module, name)


def _check_reader(reader: Callable[..., Any], params: Mapping[str, object], file: str) -> None:
    try:
        inspect.signature(reader).bind("origin", **params)
    except TypeError as error:
        raise JobError(
            f"custom_data_reader in {file} cannot be called with the data and --data_reader_params: {error}",
            hint="write: def custom_data_reader(origin, *, my_param=…):",
        ) from None


def _on_origin(reader: Callable[..., Any]) -> Callable[[Any, Path], Any]:
    """Adapt the module's custom_data_reader(origin) to the contract."""

    def open_rows(pinned: Any, folder: Path) -> Any:
        return reader(pinned.source)

    return open_rows


def _lies_in(file: str, folder: Path) -> bool:
    return Path(file).resolve().is_relative_to(folder.resolve())
