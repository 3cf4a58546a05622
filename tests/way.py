"""The way of a statement through the compiler: the calls that it takes, and the modules that a reader visits."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import FrameType

COMPILER = "sqlflow_edl"


def count_calls(action: Callable[[], object], *packages: str) -> Counter[str]:
    """Count the calls of functions of the packages in this thread, by the name of the function with its module."""
    calls = Counter[str]()

    def count(frame: FrameType, event: str, _: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.partition(".")[0] in packages:
            calls[f"{module}.{frame.f_code.co_qualname}"] += 1

    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(None)
    return calls


@dataclass(frozen=True)
class Function:
    """Function of a module, or method of a class of it. An empty name stands for the constructor of a dataclass."""

    module: str
    owner: str
    name: str


@dataclass
class Way:
    """Way of a reader who follows a function by name into all functions that it calls, once each.

    stays: the modules that are read, one after another; a return from a call is a new stay in the module of the caller.
    """

    stays: list[str] = field(default_factory=list)
    functions: dict[Function, None] = field(default_factory=dict)

    @property
    def modules(self) -> int:
        return len(set(self.stays))

    @property
    def returns(self) -> int:
        return len(self.stays) - self.modules

    @property
    def names(self) -> int:
        return len({function.name or function.owner for function in self.functions})


def follow_calls(root: Path, module: str, owner: str, name: str) -> Way:
    """Follow the calls of a method by name: of functions, of classes, of functions of a module and of own methods.

    root: of the packages. The way is that of a right statement, past handlers of errors and what is raised. Methods of
    other objects have no name that a reader could follow.
    """
    reader = _Reader(root)
    start = reader.module(module)
    if start is None:
        raise LookupError(f"there is no module {module}")
    reader.visit(Function(module, owner, name), start.classes[owner][name])
    return reader.way


class _Module:
    """Definitions and imports of a module."""

    def __init__(self, source: str) -> None:
        tree = ast.parse(source)
        self.functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.classes = {
            node.name: {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
            for node in tree.body
            if isinstance(node, ast.ClassDef)
        }
        self._tree = tree

    @cached_property
    def imported(self) -> dict[str, tuple[str, str]]:
        """The module and the name there of each imported name; the name of an imported module is empty."""
        names: dict[str, tuple[str, str]] = {}
        for node in ast.walk(self._tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                names |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
            elif isinstance(node, ast.Import):
                names |= {alias.asname or alias.name: (alias.name, "") for alias in node.names}
        return names


class _Reader:
    def __init__(self, root: Path) -> None:
        self.way = Way()
        self._root = root
        self._modules: dict[str, _Module | None] = {}

    def module(self, name: str) -> _Module | None:
        """Return a module of the compiler, or None."""
        if name not in self._modules:
            path = self._root.joinpath(*name.split("."))
            path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            ours = name.partition(".")[0] == COMPILER and path.exists()
            self._modules[name] = _Module(path.read_text(encoding="utf-8")) if ours else None
        return self._modules[name]

    def visit(self, function: Function, definition: ast.FunctionDef) -> None:
        """Read a function, and the functions that it calls where it calls them."""
        if function in self.way.functions:
            return
        self.way.functions[function] = None
        self._enter(function.module)
        for called in _called(definition):
            self._visit_called(function, called)
            self._enter(function.module)

    def _visit_called(self, caller: Function, called: ast.expr) -> None:
        target = None
        if isinstance(called, ast.Name):
            target = self._resolve(caller.module, called.id)
        elif isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
            if called.value.id == "self":
                self._visit_method(caller.module, caller.owner, called.attr)
                return
            target = self._resolve(caller.module, called.value.id)
            if target is not None and target[1]:  # a class
                self._visit_method(*target, called.attr)
                return
            target = self._resolve(target[0], called.attr) if target is not None else None
        if target is not None and target[1]:
            self._visit_definition(*target)

    def _visit_definition(self, module: str, name: str) -> None:
        found = self.module(module)
        if found is None:
            return
        if name in found.functions:
            self.visit(Function(module, "", name), found.functions[name])
            return
        constructor = Function(module, name, "")
        if constructor not in self.way.functions:
            self.way.functions[constructor] = None
            self._enter(module)
            for special in ("__init__", "__post_init__"):
                self._visit_method(module, name, special)

    def _visit_method(self, module: str, owner: str, name: str) -> None:
        found = self.module(module)
        if found is not None and name in found.classes.get(owner, {}):
            self.visit(Function(module, owner, name), found.classes[owner][name])

    def _resolve(self, module: str, name: str) -> tuple[str, str] | None:
        """Return the module that defines the name, and the name; of a module its own name and an empty one."""
        found = self.module(module)
        if found is None:
            return None
        if name in found.functions or name in found.classes:
            return module, name
        if name not in found.imported:
            return None
        there, original = found.imported[name]
        if not original or self.module(f"{there}.{original}") is not None:
            return (f"{there}.{original}" if original else there), ""
        return self._resolve(there, original)

    def _enter(self, module: str) -> None:
        if not self.way.stays or self.way.stays[-1] != module:
            self.way.stays.append(module)


def _called(definition: ast.FunctionDef) -> list[ast.expr]:
    """Return what a function calls, in the order of the calls: arguments before the function that takes them."""
    called: list[ast.expr] = []

    class _Calls(ast.NodeVisitor):
        def visit_Call(self, node: ast.Call) -> None:
            self.generic_visit(node)
            called.append(node.func)

        def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
            return

        def visit_Raise(self, node: ast.Raise) -> None:
            return

    for statement in definition.body:
        _Calls().visit(statement)
    return called
