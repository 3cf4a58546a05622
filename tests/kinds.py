"""Places in the source that tell kinds of features and labels apart, or name one."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import get_args

import msgspec

from edl.spec import categories, features, labels

FEATURES = frozenset(kind.__name__ for kind in get_args(features.Feature | features.Category))
LABELS = frozenset(kind.__name__ for kind in get_args(labels.Label))
# Names of several kinds together: unions, tuples of types and classes that kinds inherit from.
_GROUPS = frozenset({"Column", "CategoryColumn", "Feature", "Category", "Label", "Unlabelled"})
_MODULES = {
    "edl.spec",
    "edl.spec.categories",
    "edl.spec.column",
    "edl.spec.features",
    "edl.spec.labels",
    "edl.features",
}
_DEFINED_IN = {"runtime/edl/spec/categories.py", "runtime/edl/spec/features.py", "runtime/edl/spec/labels.py"}


@dataclass
class Kinds:
    """Tests of kinds by their place in the source, and the modules that name each kind beside its own."""

    tests: list[str] = field(default_factory=list)
    modules: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


@cache
def kinds_in_source(repository: Path) -> Kinds:
    kinds = Kinds()
    for folder in ("runtime/edl", "sqlflow_edl"):
        for path in sorted((repository / folder).rglob("*.py")):
            place = str(path.relative_to(repository))
            module = _Module(ast.parse(path.read_text(encoding="utf-8")), defines=place in _DEFINED_IN)
            kinds.tests += [f"{place}:{node.lineno} {ast.unparse(node)}" for node in module.tests()]
            for name in () if place in _DEFINED_IN else module.named():
                kinds.modules[name].add(place)
    return kinds


class _Module:
    """Syntax tree of a module, with the names by which it knows kinds."""

    def __init__(self, tree: ast.Module, *, defines: bool) -> None:
        self._tree = tree
        self._modules: set[str] = set()  # local names of the modules that have kinds
        self._names: dict[str, str] = {name: name for name in FEATURES | LABELS | _GROUPS} if defines else {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                self._read_import(node)
        for node in tree.body:  # unions and tuples of kinds under a name of this module
            value = node.value if isinstance(node, ast.Assign) else None
            if (
                isinstance(node, ast.Assign)
                and isinstance(value, ast.Tuple | ast.BinOp)
                and self.kinds(value)
            ):
                self._names |= {target.id: "" for target in node.targets if isinstance(target, ast.Name)}

    def _read_import(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            local = alias.asname or alias.name
            if f"{node.module}.{alias.name}" in _MODULES:
                self._modules.add(local)
            elif node.module in _MODULES and _is_kind(alias.name):
                self._names[local] = alias.name

    def kinds(self, node: ast.AST) -> set[str]:
        """Return the kinds and groups of kinds that the node names."""
        return {name for inner in ast.walk(node) if (name := self._kind(inner)) is not None}

    def _kind(self, node: ast.AST) -> str | None:
        if isinstance(node, ast.Name):
            return self._names.get(node.id)
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            return None
        return node.attr if node.value.id in self._modules and _is_kind(node.attr) else None

    def named(self) -> set[str]:
        return self.kinds(self._tree) & (FEATURES | LABELS)

    def tests(self) -> Iterator[ast.expr | ast.pattern]:
        """Yield the calls of isinstance, patterns of match and comparisons of types that tell kinds apart."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call) and _called(node) in ("isinstance", "issubclass"):
                tested: ast.expr = node.args[1]
            elif isinstance(node, ast.MatchClass):
                tested = node.cls
            elif isinstance(node, ast.Compare) and "type" in map(_called, (node.left, *node.comparators)):
                tested = node
            else:
                continue
            if self.kinds(tested):
                yield node


def _called(node: ast.expr) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _is_kind(name: str) -> bool:
    """Return True for a kind, and for a union or a tuple of kinds."""
    if name in FEATURES | LABELS | _GROUPS:
        return True
    value = vars(features).get(name, vars(categories).get(name, vars(labels).get(name)))
    members: object = value if isinstance(value, tuple) else getattr(value, "__args__", ())
    return (
        isinstance(members, tuple)
        and bool(members)
        and all(isinstance(member, type) and issubclass(member, msgspec.Struct) for member in members)
    )
