"""User-defined models by dotted name: `my_package.my_module.MyModel`.

The name is a class or function of a module on Python's path or in the folders of SQLFLOW_MODEL_PATH, by default the
current one; a module alone means its `custom_model`. Installed packages come first, so a file `keras.py` in such a
folder shadows nothing.

`find` reads the module's source and imports nothing, because a model's module loads a framework; `make_importable`
prepares the process that does import it.

A statement and a stored model can name any installed function, such as `subprocess.getoutput`, with arbitrary
arguments. `check_permitted` rejects, by its source, whatever is not a model of the model path or of an allowed
package.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import importlib.util
import inspect
import keyword
import os
import pkgutil
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Literal

import msgspec

from edl.errors import JobError, SemanticError, SpecError, UserCodeError, did_you_mean
from edl.program.digest import digest
from edl.program.importing import always_compile, is_installed
from edl.program.model_packages import OPTION, ModelSources, read_configured_packages
from edl.spec import JobSpec, Own

PATH_VARIABLE = "SQLFLOW_MODEL_PATH"
ZOO_FUNCTION = "custom_model"
FUNCTIONS = ("loss", "optimizer", "eval_metrics_fn", "callbacks")  # which a statement's program may use too
_FRAMEWORKS = frozenset(("keras", "tensorflow", "tf_keras", "torch"))
_MODEL_CLASSES = ("Module", "Model", "Layer", "Sequential")
_MOST_HOPS = 8  # from a name to its definition, over `from … import …` and base classes

_added: list[str] = []  # folders that this process added to its path


@dataclass(frozen=True, slots=True)
class Signature:
    """Parameters of a class or function. `anything`: it takes others too, or its parameters are unknown."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    anything: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.required, *self.optional)

    def __str__(self) -> str:
        return ", ".join([*self.required, *(f"{name}=…" for name in self.optional), *["…"] * self.anything])


@dataclass(frozen=True, slots=True)
class Definition:
    """Definition of the class or function that a name resolves to, followed over `from … import …` in the sources.

    `origin` is the defining module. `kind` is unseen if that has no source. `is_model` is true if a class derives from
    a framework's models, modules or layers, or if a function's module imports a framework; None if the sources do not
    show it. `methods` are the methods of a class and its bases.
    """

    origin: str
    kind: Literal["class", "function", "unseen"]
    is_model: bool | None = None
    methods: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class OwnModel:
    """Resolved dotted name. `module` is the one to import from; `digest` is the digest of the defining source."""

    module: str
    attribute: str
    file: Path
    digest: str
    signature: Signature
    framework: str | None  # imported by the source, or None if unknown
    module_file: Path  # of `module`; `file` is the file of the definition, which `module` may import
    definition: Definition
    # Functions of the contract in the module.
    functions: Mapping[str, Signature] = field(default_factory=dict)
    image: str = ""  # which has the module

    @property
    def name(self) -> str:
        return f"{self.module}.{self.attribute}"


def find(dotted: str) -> OwnModel:
    """Resolve a model's name by reading its source. Raises SemanticError with similar names if there is none."""
    parts = dotted.split(".")
    if not all(map(_is_name, parts)):
        raise SemanticError(
            f"{dotted} is not the name of a Python module", hint="such as my_package.my_module.MyModel"
        )
    module = _module(dotted)
    if module is not None:
        return _look(dotted, ZOO_FUNCTION, module)
    name, _, attribute = dotted.rpartition(".")
    module = _module(name)
    if module is None:
        raise _no_module(name)
    return _look(name, attribute, module)


def _is_name(part: str) -> bool:
    dunder = part.startswith("__") and part.endswith("__")
    return part.isidentifier() and not keyword.iskeyword(part) and not dunder


def check_origin(model: OwnModel) -> None:
    """Check by the sources alone that SQL text may name the object. Raises SemanticError with the reason if not."""
    sources = model_sources()
    if not sources.allows(model.name, model.module_file):
        raise _not_allowed(model, sources)
    defined = model.definition
    if defined.kind == "unseen" or not sources.allows_origin(model.name, defined.origin, model.file):
        raise SemanticError(
            f"{model.module} does not define {model.attribute}, it imports it from {defined.origin}",
            hint=f"define the model in {model.module}: a class of yours, or a function that returns the model",
        )


def check_permitted(model: OwnModel) -> None:
    """Check by the sources alone that SQL text may use the model. Raises SemanticError with the reason if not."""
    check_origin(model)
    defined = model.definition
    if defined.kind == "class" and defined.is_model is False:
        raise SemanticError(
            f"{model.name} is not a model: it derives from no class of Keras or PyTorch",
            hint="derive it from keras.Model or torch.nn.Module",
        )
    if defined.kind == "function" and not defined.is_model:
        raise SemanticError(
            f"{model.name} cannot make a model: {model.file.name} imports neither Keras nor PyTorch",
            hint="a function that SQL names returns a keras.Model or a torch.nn.Module",
        )


def _not_allowed(model: OwnModel, sources: ModelSources) -> SemanticError:
    where = ", ".join(sources.folders)
    hint = f"a user-defined model is a module in a folder of {PATH_VARIABLE}: {where}"
    if sources.may_be_allowed(model.module, model.module_file):
        hint += f"\nif SQL may use this package, the operator allows it with {OPTION} {model.module}"
    return SemanticError(f"SQL may not name {model.name}", hint=hint)


def model_sources() -> ModelSources:
    """Return folders and packages that SQL may use models from. Raises SemanticError if the setting is invalid."""
    return ModelSources(tuple(search_path()), read_configured_packages())


def with_digest(spec: JobSpec) -> JobSpec:
    """Return the JobSpec with the current digest of the source of its user-defined model.

    Raises SemanticError if SQL may not name the model, JobError if the spec uses a trained model and its source has
    changed since training, SpecError if its parts are inconsistent.
    """
    if spec.own is None:
        return spec
    model = _find_again(spec)
    if (model.module, model.attribute) != (spec.own.module, spec.own.attribute):
        raise SpecError(
            f"the JobSpec is damaged: {spec.model.name} is not {spec.own.module}.{spec.own.attribute}"
        )
    check_permitted(model)
    if lacking := [name for name in spec.own.functions if name not in model.functions]:
        raise JobError(
            f"{model.module} no longer defines {lacking[0]}, with which {spec.model.name} was trained",
            hint=f"restore {model.file}, or train the model again",
        )
    if spec.kind != "train" and model.digest != spec.own.digest:
        raise JobError(
            f"{spec.model.name} has changed since the model was trained",
            hint=f"restore {model.file}, or train the model again",
        )
    return msgspec.structs.replace(spec, own=msgspec.structs.replace(spec.own, digest=model.digest))


def _find_again(spec: JobSpec) -> OwnModel:
    """Return the model of a JobSpec. Raises JobError for one of an image that this process is not in."""
    try:
        return find(spec.model.name)
    except SemanticError as error:
        if not spec.image:
            raise
        raise JobError(
            f"{spec.model.name} is a model of the image {spec.image}, in which TRAIN, PREDICT, EVALUATE and EXPLAIN "
            f"run it; here {error.message}",
            hint=f"put its module into a folder of {PATH_VARIABLE} to use the model without the image",
        ) from None


def place(model: Own) -> str:
    """Return file and line of the definition of an imported model, `/home/ann/nets.py:12`."""
    definition = inspect.unwrap(getattr(sys.modules[model.module], model.attribute))
    return f"{inspect.getsourcefile(definition)}:{inspect.getsourcelines(definition)[1]}"


def make_importable(dotted: str, folders: Sequence[str] | None = None) -> None:
    """Make this process import the current version of the module, not one imported before.

    `folders` are searched in addition to Python's path; None is `search_path()`.
    """
    folders = list(dict.fromkeys(search_path() if folders is None else folders))
    for folder in folders:
        always_compile(folder)
    _append_to_path(folders)
    top = dotted.partition(".")[0]
    added = tuple(folder.rstrip(os.sep) + os.sep for folder in _added)  # text: there are thousands of modules
    for name, module in sys.modules.copy().items():  # other threads import meanwhile
        file = str(getattr(module, "__file__", None) or "")
        ours = name.partition(".")[0] == top or file.startswith(added)
        if ours and file and not is_installed(Path(file)):
            del sys.modules[name]
    importlib.invalidate_caches()


def _append_to_path(folders: Sequence[str]) -> None:
    """Add the folders behind Python's own path, ahead of earlier ones: their modules may have the same names."""
    earlier = [folder for folder in _added if folder not in folders and folder in sys.path]
    earlier_folders = [folder for folder in sys.path if folder not in _added]
    _added[:] = [*(folder for folder in folders if folder not in earlier_folders), *earlier]
    sys.path[:] = [*earlier_folders, *_added]


_searched: ContextVar[str] = ContextVar("searched", default="")  # folder in place of the model path


@contextlib.contextmanager
def searching(folder: Path) -> Iterator[None]:
    """Look names up in a folder, before the installed packages and in place of the model path."""
    token = _searched.set(str(folder))
    try:
        yield
    finally:
        _searched.reset(token)


def search_path() -> list[str]:
    """Return the folders of SQLFLOW_MODEL_PATH, or else the current one."""
    if folder := _searched.get():
        return [folder]
    text = os.environ.get(PATH_VARIABLE, "")
    return [str(Path(folder).absolute()) for folder in text.split(os.pathsep) if folder] or [str(Path.cwd())]


# Modules, found without importing them ------------------------------------------------------------------------


def _path() -> list[str]:
    installed = [entry for entry in sys.path if entry]
    return [*search_path(), *installed] if _searched.get() else [*installed, *search_path()]


def _module(dotted: str) -> ModuleSpec | None:
    path: Sequence[str] | None = _path()
    spec: ModuleSpec | None = None
    name = ""
    for part in dotted.split("."):
        if path is None:
            return None
        name = f"{name}.{part}" if name else part
        spec = _find_module(name, path)
        if spec is None:
            return None
        path = list(spec.submodule_search_locations) if spec.submodule_search_locations else None
    return spec


def _find_module(name: str, folders: Sequence[str]) -> ModuleSpec | None:
    """Find a module in the folders. A package in an editable installation has a finder of its own instead."""
    spec = PathFinder.find_spec(name, list(folders))
    if spec is None and "." not in name:
        with contextlib.suppress(ValueError):  # a module without a spec, such as __main__
            spec = importlib.util.find_spec(name)
        return spec if spec is not None and spec.has_location else None  # sys and its like have no source
    return spec


def has_module(name: str) -> bool:
    """Return True if there is a module of that name on the path, or an installed one."""
    return _find_module(name, _path()) is not None


def _no_module(dotted: str) -> SemanticError:
    """Return the error that names the first missing part of the name."""
    imported, folders = "", _path()
    nearby: list[str] = search_path()
    for part in dotted.split("."):
        spec = _find_module(f"{imported}.{part}" if imported else part, folders)
        if spec is None:
            break
        imported = f"{imported}.{part}" if imported else part
        folders = nearby = list(spec.submodule_search_locations or [])
    missing = f"{imported}.{part}" if imported else part
    names = [
        f"{imported}.{module.name}" if imported else module.name for module in pkgutil.iter_modules(nearby)
    ]
    where = f"; looked in {', '.join(search_path())} and the installed packages" if not imported else ""
    hint = did_you_mean(missing, names, list_up_to=0) or f"set {PATH_VARIABLE} to the folder that holds it"
    return SemanticError(f"there is no module {missing}{where}", hint=hint)


# What a module defines ---------------------------------------------------------------------------------------

_Definition = ast.ClassDef | ast.FunctionDef


@dataclass(slots=True)
class _Source:
    """Parsed module. `names` are those that its top level defines or imports."""

    name: str
    file: Path
    text: bytes
    tree: ast.Module
    package: str
    names: dict[str, ast.stmt] = field(default_factory=dict)

    @classmethod
    def of(cls, spec: ModuleSpec) -> _Source:
        if not spec.origin or not spec.origin.endswith(".py"):
            raise SemanticError(f"the module {spec.name} has no Python source")
        file = Path(spec.origin)
        try:
            text = file.read_bytes()
            tree = ast.parse(text, str(file))
        except SyntaxError as error:
            shown = "".join(traceback.format_exception_only(error))
            hint = (error.text or "").strip() or None
            raise UserCodeError(f"{file}:{error.lineno}: {error.msg}", hint=hint, traceback=shown) from None
        except (OSError, ValueError) as error:
            raise SemanticError(f"cannot read {file}: {error}") from None
        package = spec.name if spec.submodule_search_locations else spec.name.rpartition(".")[0]
        return cls(spec.name, file, text, tree, package, dict(_top_level(tree)))


def defined_names(path: Path) -> list[str]:
    """Return the classes and functions that the file of a module defines; none of a file that is no Python."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return []
    return [name for name, statement in _top_level(tree) if not isinstance(statement, ast.ImportFrom)]


def _top_level(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef):
            yield statement.name, statement
        elif isinstance(statement, ast.ImportFrom):
            yield from ((alias.asname or alias.name, statement) for alias in statement.names)


def _look(module: str, attribute: str, spec: ModuleSpec) -> OwnModel:
    source = _Source.of(spec)
    if attribute not in source.names:
        hint = did_you_mean(attribute, source.names, list_up_to=8)
        raise SemanticError(f"{module} defines no class or function {attribute}", hint=hint)
    definition, at = _definition(source, attribute, _MOST_HOPS)
    signature = _signature(definition, at, _MOST_HOPS) if definition else Signature(anything=True)
    return OwnModel(
        module,
        attribute,
        at.file,
        digest(at.text),
        signature,
        _framework(at.tree),
        source.file,
        _describe_definition(definition, at, attribute),
        _functions(source) if not is_installed(source.file) else {},
    )


def _describe_definition(definition: _Definition | None, at: _Source, attribute: str) -> Definition:
    if isinstance(definition, ast.ClassDef):
        is_model = _derives(definition, at, _MOST_HOPS)
        return Definition(at.name, "class", is_model, frozenset(_methods(definition, at, _MOST_HOPS)))
    if definition is not None:
        return Definition(at.name, "function", _uses_framework(at))
    statement = at.names.get(attribute)
    unseen = _absolute(statement, at) if isinstance(statement, ast.ImportFrom) else at.name
    return Definition(unseen, "unseen")


def _functions(source: _Source) -> dict[str, Signature]:
    """Return the names of `FUNCTIONS` that the module's top level defines or imports."""
    signatures = {}
    for name in FUNCTIONS:
        if name in source.names:
            definition, _ = _definition(source, name, _MOST_HOPS)
            function = isinstance(definition, ast.FunctionDef)
            signatures[name] = _parameters(definition, skip=0) if function else Signature(anything=True)  # type: ignore[arg-type]
    return signatures


def _definition(source: _Source, name: str, hops: int) -> tuple[_Definition | None, _Source]:
    """Follow the name over `from … import …` to its class or function; None if that has no readable source."""
    statement = source.names.get(name)
    if isinstance(statement, ast.ClassDef | ast.FunctionDef):
        return statement, source
    if isinstance(statement, ast.ImportFrom) and hops:
        original = next(alias.name for alias in statement.names if (alias.asname or alias.name) == name)
        spec = _module(_absolute(statement, source))
        if spec is not None and spec.origin and spec.origin.endswith(".py"):
            return _definition(_Source.of(spec), original, hops - 1)
    return None, source


def _absolute(statement: ast.ImportFrom, source: _Source) -> str:
    """Return the module named by a `from … import …` of the source."""
    if not statement.level:
        return statement.module or ""
    package = source.package.split(".")
    base = package[: len(package) - (statement.level - 1)]
    return ".".join([*base, statement.module or ""]).strip(".")


def _signature(definition: _Definition, source: _Source, hops: int) -> Signature:
    if isinstance(definition, ast.FunctionDef):
        return _parameters(definition, skip=0)
    for statement in definition.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            return _parameters(statement, skip=1)
    for base in definition.bases:
        if isinstance(base, ast.Name) and hops:
            parent, at = _definition(source, base.id, hops - 1)
            if isinstance(parent, ast.ClassDef):
                return _signature(parent, at, hops - 1)
    return Signature(anything=True)


def _parameters(function: ast.FunctionDef, skip: int) -> Signature:
    arguments = function.args
    positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    with_default = positional[len(positional) - len(arguments.defaults) :] if arguments.defaults else []
    keywords = [argument.arg for argument in arguments.kwonlyargs]
    required = [name for name in positional[skip:] if name not in with_default]
    required += [
        name for name, default in zip(keywords, arguments.kw_defaults, strict=True) if default is None
    ]
    optional = [name for name in (*positional[skip:], *keywords) if name not in required]
    return Signature(tuple(required), tuple(optional), arguments.kwarg is not None)


def _derives(definition: ast.ClassDef, source: _Source, hops: int) -> bool | None:
    """Return True if the class derives from one of a framework, or None if a base has no readable source."""
    answers = [_base_derives(base, definition, source, hops) for base in definition.bases]
    return True if True in answers else None if None in answers else False


def _base_derives(base: ast.expr, definition: ast.ClassDef, source: _Source, hops: int) -> bool | None:
    here = source.names.get(base.id) if isinstance(base, ast.Name) else None
    named = ast.unparse(base).rpartition(".")[2] in _MODEL_CLASSES
    if named and not isinstance(here, ast.ClassDef) and _imported_packages(source.tree) & _FRAMEWORKS:
        return True
    if not isinstance(base, ast.Name) or not hops:
        return None
    if here is None:
        return False if hasattr(builtins, base.id) else None
    parent, at = _definition(source, base.id, hops - 1)
    if not isinstance(parent, ast.ClassDef) or parent is definition:
        return None
    return _derives(parent, at, hops - 1)


def _methods(definition: ast.ClassDef, source: _Source, hops: int) -> Iterator[str]:
    yield from (node.name for node in definition.body if isinstance(node, ast.FunctionDef))
    for base in definition.bases:
        if isinstance(base, ast.Name) and hops:
            parent, at = _definition(source, base.id, hops - 1)
            if isinstance(parent, ast.ClassDef) and parent is not definition:
                yield from _methods(parent, at, hops - 1)


def _uses_framework(source: _Source) -> bool:
    """Return True if the module imports a framework, directly or through modules that are not installed."""
    seen, waiting = {source.name}, [source]
    while waiting:
        module_source = waiting.pop()
        if _imported_packages(module_source.tree) & (_FRAMEWORKS | {"edl"}):
            return True
        for name in _imported_modules(module_source):
            spec = _module(name) if name not in seen else None
            seen.add(name)
            if spec and spec.origin and spec.origin.endswith(".py") and not is_installed(Path(spec.origin)):
                waiting.append(_Source.of(spec))
    return False


def _imported_modules(source: _Source) -> Iterable[str]:
    """Yield the absolute names that the module imports; some are names in a module."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(node, source)
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names if alias.name != "*")


def _framework(tree: ast.Module) -> str | None:
    """Return the framework that the module imports, or None if there is not exactly one."""
    tops = _imported_packages(tree)
    torch, keras = "torch" in tops, bool(tops & {"keras", "tensorflow", "tf_keras"})
    if torch == keras:
        return None
    return "torch" if torch else "keras"


def _imported_packages(tree: ast.Module) -> set[str]:
    """Return the packages that the module imports."""
    packages: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            packages.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            packages.add((node.module or "").partition(".")[0])
    return packages
