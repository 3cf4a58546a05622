"""A model of the user's own, by dotted name: `my_package.my_module.MyModel`.

The name means a class or function of a module on Python's path or in the folders of SQLFLOW_MODEL_PATH, by default the
current one; a module alone means its `custom_model`. Installed packages come first, so a file `keras.py` in such a
folder hides nothing.

`find` reads the module's source and imports nothing, because a model's module loads a framework; `make_importable`
prepares the process that does import it.

A TRAIN statement may name whatever its user likes. A stored model was perhaps made by somebody else, who could name
`subprocess.Popen`: `with_digest` lets it use the user's own folders, model classes and zoos, and nothing else.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import keyword
import os
import pkgutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

import msgspec

from edl.errors import JobError, SemanticError, SpecError, did_you_mean
from edl.program.digest import digest
from edl.program.sources import always_compile, is_installed
from edl.spec import JobSpec

PATH_VARIABLE = "SQLFLOW_MODEL_PATH"
ZOO_FUNCTION = "custom_model"
FUNCTIONS = ("loss", "optimizer", "eval_metrics_fn", "callbacks")  # that a statement's program may take too
_ZOOS = ("keras.applications", "timm.models", "torchvision.models")  # functions that make models
_FRAMEWORKS = frozenset(("keras", "tensorflow", "tf_keras", "torch"))
_MODEL_CLASSES = ("Module", "Model", "Layer", "Sequential")
_MOST_HOPS = 8  # from a name to where it is defined, over `from … import …` and base classes

_added: list[str] = []  # folders that this process put on its path


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a class or function. anything: it takes others too, or they cannot be seen."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    anything: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.required, *self.optional)

    def __str__(self) -> str:
        return ", ".join([*self.required, *(f"{name}=…" for name in self.optional), *["…"] * self.anything])


@dataclass(frozen=True, slots=True)
class OwnModel:
    """What a dotted name means. module: to import from; digest: of the source that defines it."""

    module: str
    attribute: str
    file: Path
    digest: str
    signature: Signature
    framework: str | None  # that the source imports, None when that does not tell
    is_model: bool  # a class of modules, models or layers of a framework
    functions: Mapping[str, Signature] = field(
        default_factory=dict
    )  # of the contract, that the module has too


def find(dotted: str) -> OwnModel:
    """The model that the name means, by a look at its source. SemanticError: there is none, and what is near."""
    parts = dotted.split(".")
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
        raise SemanticError(
            f"{dotted} is no name of a Python module", hint="such as my_package.my_module.MyModel"
        )
    module = _module(dotted)
    if module is not None:
        return _look(dotted, ZOO_FUNCTION, module)
    name, _, attribute = dotted.rpartition(".")
    module = _module(name)
    if module is None:
        raise _no_module(name)
    return _look(name, attribute, module)


def with_digest(spec: JobSpec) -> JobSpec:
    """The JobSpec with the digest of its own model's source as it is now.

    JobError: the spec uses a trained model, and the source is not what it was in training, or nothing that a stored
    model may use. SpecError: its parts do not fit together.
    """
    if spec.own is None:
        return spec
    found = find(spec.model.name)
    if (found.module, found.attribute) != (spec.own.module, spec.own.attribute):
        raise SpecError(
            f"the JobSpec is damaged: {spec.model.name} is not {spec.own.module}.{spec.own.attribute}"
        )
    if lacking := [name for name in spec.own.functions if name not in found.functions]:
        raise JobError(
            f"{found.module} defines no {lacking[0]} any more, which {spec.model.name} was trained with",
            hint=f"restore {found.file}, or train the model again",
        )
    if spec.kind != "train" and not _may_be_used(found):
        raise JobError(
            f"{spec.model.name} is no model class, and not in a folder of yours: a stored model may not use it",
            hint=f"train with a function in a module of your own, in a folder of {PATH_VARIABLE}",
        )
    if spec.kind != "train" and found.digest != spec.own.digest:
        raise JobError(
            f"{spec.model.name} has changed since the model was trained",
            hint=f"restore {found.file}, or train the model again",
        )
    return msgspec.structs.replace(spec, own=msgspec.structs.replace(spec.own, digest=found.digest))


def _may_be_used(found: OwnModel) -> bool:
    """Whether a model that somebody may have put into a database can have this made, with arguments of its choice."""
    own = any(found.file.is_relative_to(folder) for folder in search_path()) and not is_installed(found.file)
    zoo = any(f"{found.module}.".startswith(f"{name}.") for name in _ZOOS)
    return own or zoo or found.is_model


def make_importable(dotted: str, folders: Sequence[str] | None = None) -> None:
    """Let this process import the module of the name as it is now on disk, not as it was imported before.

    folders: that it is looked for in, besides Python's path; None is `search_path()`.
    """
    for folder in search_path() if folders is None else folders:
        always_compile(folder)
        if folder not in sys.path:
            sys.path.append(folder)
            _added.append(folder)
    top = dotted.partition(".")[0]
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        ours = name.partition(".")[0] == top or any(Path(file).is_relative_to(folder) for folder in _added)
        if ours and file and not is_installed(Path(file)):
            del sys.modules[name]
    importlib.invalidate_caches()


def search_path() -> list[str]:
    """The folders of SQLFLOW_MODEL_PATH, else the current one."""
    written = os.environ.get(PATH_VARIABLE, "")
    return [str(Path(folder).absolute()) for folder in written.split(os.pathsep) if folder] or [
        str(Path.cwd())
    ]


# Modules, found without importing them ------------------------------------------------------------------------


def _path() -> list[str]:
    return [*(entry for entry in sys.path if entry), *search_path()]


def _module(dotted: str) -> ModuleSpec | None:
    path: Sequence[str] | None = _path()
    spec: ModuleSpec | None = None
    name = ""
    for part in dotted.split("."):
        if path is None:
            return None
        name = f"{name}.{part}" if name else part
        spec = _found(name, path)
        if spec is None:
            return None
        path = list(spec.submodule_search_locations) if spec.submodule_search_locations else None
    return spec


def _found(name: str, folders: Sequence[str]) -> ModuleSpec | None:
    """Where a module is, by its folders; a package that is installed to be edited has a finder of its own instead."""
    spec = PathFinder.find_spec(name, list(folders))
    if spec is None and "." not in name:
        with contextlib.suppress(ValueError):  # a module without a spec, such as __main__
            spec = importlib.util.find_spec(name)
        return spec if spec is not None and spec.has_location else None  # sys and its like have no source
    return spec


def _no_module(dotted: str) -> SemanticError:
    """Names the first part of the name that is not there."""
    known, folders = "", _path()
    nearby: list[str] = search_path()
    for part in dotted.split("."):
        spec = _found(f"{known}.{part}" if known else part, folders)
        if spec is None:
            break
        known = f"{known}.{part}" if known else part
        folders = nearby = list(spec.submodule_search_locations or [])
    missing = f"{known}.{part}" if known else part
    names = [f"{known}.{each.name}" if known else each.name for each in pkgutil.iter_modules(nearby)]
    where = f"; looked in {', '.join(search_path())} and in what is installed" if not known else ""
    hint = did_you_mean(missing, names, list_up_to=0) or f"set {PATH_VARIABLE} to the folder that holds it"
    return SemanticError(f"there is no module {missing}{where}", hint=hint)


# What a module defines ---------------------------------------------------------------------------------------

_Definition = ast.ClassDef | ast.FunctionDef


@dataclass(slots=True)
class _Source:
    """A parsed module. names: what its top level defines or imports."""

    name: str
    file: Path
    text: bytes
    tree: ast.Module
    package: str
    names: dict[str, ast.stmt] = field(default_factory=dict)

    @classmethod
    def of(cls, spec: ModuleSpec) -> _Source:
        if not spec.origin or not spec.origin.endswith(".py"):
            raise SemanticError(f"the module {spec.name} has no Python source to look at")
        file = Path(spec.origin)
        try:
            text = file.read_bytes()
            tree = ast.parse(text, str(file))
        except SyntaxError as error:
            raise SemanticError(f"{file}:{error.lineno}: {error.msg}") from None
        except (OSError, ValueError) as error:
            raise SemanticError(f"cannot read {file}: {error}") from None
        package = spec.name if spec.submodule_search_locations else spec.name.rpartition(".")[0]
        return cls(spec.name, file, text, tree, package, dict(_top_level(tree)))


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
    is_model = isinstance(definition, ast.ClassDef) and _derives(definition, at, _MOST_HOPS)
    return OwnModel(
        module,
        attribute,
        at.file,
        digest(at.text),
        signature,
        _framework(at.tree),
        is_model,
        _functions(source) if not is_installed(source.file) else {},
    )


def _functions(source: _Source) -> dict[str, Signature]:
    """Those of `FUNCTIONS` that the module's top level defines or imports."""
    found = {}
    for name in FUNCTIONS:
        if name in source.names:
            definition, _ = _definition(source, name, _MOST_HOPS)
            function = isinstance(definition, ast.FunctionDef)
            found[name] = _parameters(definition, skip=0) if function else Signature(anything=True)  # type: ignore[arg-type]
    return found


def _definition(source: _Source, name: str, hops: int) -> tuple[_Definition | None, _Source]:
    """The class or function of the name, followed over `from … import …`; None where it leads out of sight."""
    statement = source.names.get(name)
    if isinstance(statement, ast.ClassDef | ast.FunctionDef):
        return statement, source
    if isinstance(statement, ast.ImportFrom) and hops:
        original = next(alias.name for alias in statement.names if (alias.asname or alias.name) == name)
        base = source.package.split(".")[: len(source.package.split(".")) - max(statement.level - 1, 0)]
        module = ".".join([*base, statement.module or ""]).strip(".") if statement.level else statement.module
        spec = _module(module or "")
        if spec is not None and spec.origin and spec.origin.endswith(".py"):
            return _definition(_Source.of(spec), original, hops - 1)
    return None, source


def _signature(definition: _Definition, source: _Source, hops: int) -> Signature:
    if isinstance(definition, ast.FunctionDef):
        return _parameters(definition, skip=0)
    for statement in definition.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            return _parameters(statement, skip=1)
    for base in definition.bases:
        if isinstance(base, ast.Name) and hops:
            found, at = _definition(source, base.id, hops - 1)
            if isinstance(found, ast.ClassDef):
                return _signature(found, at, hops - 1)
    return Signature(anything=True)


def _parameters(function: ast.FunctionDef, skip: int) -> Signature:
    given = function.args
    positional = [argument.arg for argument in (*given.posonlyargs, *given.args)]
    with_default = positional[len(positional) - len(given.defaults) :] if given.defaults else []
    keywords = [argument.arg for argument in given.kwonlyargs]
    required = [name for name in positional[skip:] if name not in with_default]
    required += [name for name, default in zip(keywords, given.kw_defaults, strict=True) if default is None]
    optional = [name for name in (*positional[skip:], *keywords) if name not in required]
    return Signature(tuple(required), tuple(optional), given.kwarg is not None)


def _derives(definition: ast.ClassDef, source: _Source, hops: int) -> bool:
    """Whether the class derives from one of a framework, as far as sources show."""
    for base in definition.bases:
        if isinstance(base, ast.Name) and hops:
            found, at = _definition(source, base.id, hops - 1)
            if isinstance(found, ast.ClassDef) and found is not definition and _derives(found, at, hops - 1):
                return True
        if ast.unparse(base).rpartition(".")[2] in _MODEL_CLASSES and _imported(source.tree) & _FRAMEWORKS:
            return True
    return False


def _framework(tree: ast.Module) -> str | None:
    """The one framework that the module imports."""
    tops = _imported(tree)
    torch, keras = "torch" in tops, bool(tops & {"keras", "tensorflow", "tf_keras"})
    if torch == keras:
        return None
    return "torch" if torch else "keras"


def _imported(tree: ast.Module) -> set[str]:
    """The packages that the module imports."""
    return {
        alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    } | {(node.module or "").partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
