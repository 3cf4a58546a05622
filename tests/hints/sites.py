"""Places of the product's source that say how to mend an error: the texts of its hints, found in the syntax tree.

A hint is what is given to a parameter `hint` by name, or by position to a function of the module that has one, and
what is assigned to an attribute `hint`. A name is followed to its assignments in the function, to a constant or table
of its module or of one that is imported, and a call to what the function returns. One text is one *site*: the module,
the function and the *pattern* of the text, in which `{}` stands for what is filled in. What cannot be followed is a
site with the pattern `<expression>`. Line numbers are no part of a site.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOTS = {
    "sqlflow_edl": Path("sqlflow_edl"),
    "edl": Path("runtime/edl"),
}  # package -> folder in the repository
REPOSITORY = Path(__file__).parents[2]
DEEPEST = 4  # names and calls that are followed one after another
FILLED = "{}"
METHODS = {
    "add_hint": "edl.errors",
    "fail": "sqlflow_edl.analysis.columns.drafts",
    "refuse": "sqlflow_edl.analysis.warm_start",
}  # of others
WORDS = ("hint", *(f".{name}(" for name in METHODS))  # one of which a module with a site has


class Site(NamedTuple):
    """One text of a hint. module: its dotted name. function: with its class, or empty for a table of the module."""

    module: str
    function: str
    pattern: str

    def matches(self, hint: str) -> bool:
        """Return True if a hint may be this text, filled in."""
        parts = (re.escape(part) for part in self.pattern.split(FILLED))
        text = ".*".join(parts)
        return any(re.fullmatch(text, each, flags=re.S) for each in (hint, *_first_parts(hint)))

    @property
    def is_joined(self) -> bool:
        """True if the text only joins those of others."""
        return not re.sub(r"\bor\b|[{}\W]", "", self.pattern)


def _first_parts(hint: str) -> Iterator[str]:
    """Yield what stands before `, or` and `;`, which may be the text of another site."""
    for mark in (", or ", "; "):
        for found in re.finditer(mark, hint):
            yield hint[: found.start()]


Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Module:
    """Syntax tree of a module, with its functions, constants and imports by name."""

    name: str
    lines: list[str]
    tree: ast.Module
    functions: dict[str, list[Function]] = field(default_factory=dict)
    constants: dict[str, ast.expr] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)  # name -> module, name there

    @classmethod
    def parse(cls, name: str, path: Path) -> Module:
        text = path.read_text(encoding="utf-8")
        found = cls(name, text.splitlines(), ast.parse(text))
        found._collect(found.tree)
        for node in found.tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            for target in targets:
                if isinstance(target, ast.Name) and getattr(node, "value", None) is not None:
                    found.constants[target.id] = node.value  # type: ignore[union-attr]
        return found

    def _collect(self, within: ast.AST) -> None:
        """Collect the functions and imports in the bodies of statements."""
        for node in ast.iter_child_nodes(within):
            if isinstance(node, Function):
                self.functions.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    self.imports[alias.asname or alias.name] = (node.module, alias.name)
            if isinstance(node, ast.stmt):
                self._collect(node)

    @property
    def takers(self) -> set[str]:
        """Names of functions that have a parameter `hint`."""
        return {
            name
            for name, known in self.functions.items()
            if any("hint" in parameters(each) for each in known)
        }


def parameters(function: Function) -> list[str]:
    return [each.arg for each in function.args.args if each.arg != "self"]


@cache
def paths() -> dict[str, Path]:
    """Files of the product's modules by their names."""
    found = {}
    for package, folder in ROOTS.items():
        root = REPOSITORY / folder
        for path in sorted(root.rglob("*.py")):
            if path.name.endswith(("_pb2.py", "_pb2_grpc.py")):
                continue
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join((package, *parts)).removesuffix(".__init__")
            found[name] = path
    return found


@cache
def module(name: str) -> Module | None:
    """Module of the product, or None for another."""
    return Module.parse(name, paths()[name]) if name in paths() else None


@cache
def sites() -> tuple[Site, ...]:
    """All sites of the product, each once, in order."""
    found: dict[Site, None] = {}
    for name, path in paths().items():
        text = path.read_text(encoding="utf-8")
        if any(word in text for word in WORDS) and (searched := module(name)) is not None:
            found |= dict.fromkeys(Search(searched).sites())
    return tuple(found)


class Search:
    """Sites of one module."""

    def __init__(self, searched: Module) -> None:
        self._module = searched
        self._takers = searched.takers

    def sites(self) -> list[Site]:
        found: list[Site] = []
        self._visit(self._module.tree, (), found)
        return found

    def _visit(self, node: ast.AST, within: tuple[ast.AST, ...], found: list[Site]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt) and not self._may_have_hints(child):
                continue
            if isinstance(child, ast.Call | ast.Assign):
                for value in self._hints(child):
                    found += self._texts(value, within, DEEPEST)
            inside = (*within, child) if isinstance(child, Function | ast.ClassDef) else within
            self._visit(child, inside, found)

    def _may_have_hints(self, node: ast.stmt) -> bool:
        """Return False for statements whose text shows that there is nothing to find."""
        text = "\n".join(self._module.lines[node.lineno - 1 : node.end_lineno])
        return any(word in text for word in (*WORDS, *self._takers))

    def _hints(self, node: ast.Call | ast.Assign) -> Iterator[ast.expr]:
        """Expressions that the node gives to a parameter, or assigns to an attribute, of the name."""
        if isinstance(node, ast.Call):
            yield from (keyword.value for keyword in node.keywords if keyword.arg == "hint")
            place = self._position(node)
            if place is not None and place < len(node.args):
                yield node.args[place]
        elif any(isinstance(target, ast.Attribute) and target.attr == "hint" for target in node.targets):
            yield node.value

    def _position(self, call: ast.Call) -> int | None:
        """Position of the parameter `hint` in the function that is called, if it is one of the module or a method."""
        defined: Module | None = self._module
        if isinstance(call.func, ast.Attribute):
            name = call.func.attr
            if not is_self(call.func.value):
                if name not in METHODS:
                    return None
                defined = module(METHODS[name])
        elif isinstance(call.func, ast.Name):
            name = call.func.id
        else:
            return None
        for function in defined.functions.get(name, ()) if defined is not None else ():
            if "hint" in (names := parameters(function)):
                return names.index("hint")
        return None

    # Texts -------------------------------------------------------------------------------------------------

    def _texts(self, value: ast.expr, within: tuple[ast.AST, ...], depth: int) -> Iterator[Site]:
        """Sites of the texts that an expression may be."""
        value = hint_of_advice(value)
        if isinstance(value, ast.IfExp):
            yield from self._texts(value.body, within, depth)
            yield from self._texts(value.orelse, within, depth)
        elif isinstance(value, ast.BoolOp):
            for each in value.values:
                if not isinstance(each, ast.Compare):
                    yield from self._texts(each, within, depth)
        elif isinstance(value, ast.Constant) and (value.value is None or value.value == ""):
            return
        elif (text := pattern(value)) is not None:
            yield self._site(within, text)
        elif depth and (followed := [*self._follow(value, within)]):
            for place_of, expression, place in followed:
                yield from Search(place_of)._texts(expression, place, depth - 1)
        elif not is_passed_on(value):
            yield self._site(within, f"<{names_only(value)}>")

    def _site(self, within: tuple[ast.AST, ...], text: str) -> Site:
        names = [each.name for each in within if isinstance(each, Function | ast.ClassDef)]
        return Site(self._module.name, ".".join(names), text)

    def _follow(
        self, value: ast.expr, within: tuple[ast.AST, ...]
    ) -> Iterator[tuple[Module, ast.expr, tuple[ast.AST, ...]]]:
        """Expressions behind a name, an entry of a table, or a call, with the module and functions around them."""
        if isinstance(value, ast.Name):
            yield from self._assigned(value.id, within, None)
            for defined, constant in self._constant(value.id):
                yield defined, constant, ()
        elif isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name):
            index = value.slice.value if isinstance(value.slice, ast.Constant) else None
            yield from self._assigned(value.value.id, within, index if isinstance(index, int) else None)
            yield from self._entries(value.value.id)
        elif isinstance(value, ast.Call):
            function = value.func
            if (
                isinstance(function, ast.Attribute)
                and function.attr == "get"
                and isinstance(function.value, ast.Name)
            ):
                yield from self._entries(function.value.id)
            elif isinstance(function, ast.Name) and function.id == "next":
                yield from self._chosen(value.args[0])
            elif isinstance(function, ast.Name):
                yield from self._returned(function.id, None)

    def _chosen(self, choice: ast.expr) -> Iterator[tuple[Module, ast.expr, tuple[ast.AST, ...]]]:
        """Values of which `next(hint for pattern, hint in TABLE if …)` takes one."""
        if not isinstance(choice, ast.GeneratorExp) or not isinstance(choice.elt, ast.Name):
            return
        table = choice.generators[0].iter
        if isinstance(table, ast.Call) and isinstance(table.func, ast.Attribute):  # TABLE.items()
            table = table.func.value
        for defined, rows in self._constant(table.id) if isinstance(table, ast.Name) else ():
            if isinstance(rows, ast.Dict):
                yield from ((defined, value, ()) for value in rows.values)
            for row in rows.elts if isinstance(rows, ast.Tuple | ast.List) else ():
                for place in places(choice.generators[0].target, choice.elt.id, None):
                    if place is not None and isinstance(row, ast.Tuple):
                        yield defined, row.elts[place], ()

    def _assigned(
        self, name: str, within: tuple[ast.AST, ...], index: int | None
    ) -> Iterator[tuple[Module, ast.expr, tuple[ast.AST, ...]]]:
        """Value that a function assigns to the name; index: the element that is used."""
        functions = [each for each in within if isinstance(each, Function)]
        for node in ast.walk(functions[-1]) if functions else ():
            for target, value in assignments(node):
                for place in places(target, name, index):
                    for defined, element, around in self._elements(value, place):
                        yield defined, element, within if around is None else around

    def _elements(
        self, value: ast.expr, index: int | None
    ) -> Iterator[tuple[Module, ast.expr, tuple[ast.AST, ...] | None]]:
        """Element of a tuple, or of those that a function returns; the value itself without an index."""
        if index is None:
            yield self._module, value, None
        elif isinstance(value, ast.IfExp):
            yield from self._elements(value.body, index)
            yield from self._elements(value.orelse, index)
        elif isinstance(value, ast.Tuple) and index < len(value.elts):
            yield self._module, value.elts[index], None
        elif isinstance(value, ast.Name):
            for defined, constant in self._constant(value.id):
                if isinstance(constant, ast.Tuple) and index < len(constant.elts):
                    yield defined, constant.elts[index], ()
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            yield from self._returned(value.func.id, index)
        elif (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and is_self(value.func.value)
        ):
            yield from self._returned(value.func.attr, index)

    def _returned(
        self, name: str, index: int | None
    ) -> Iterator[tuple[Module, ast.expr, tuple[ast.AST, ...]]]:
        for defined, function in self._functions(name):
            for node in ast.walk(function):
                if isinstance(node, ast.Return | ast.Yield) and node.value is not None:
                    value = node.value
                    if index is None:
                        yield defined, value, (function,)
                    elif isinstance(value, ast.Tuple) and index < len(value.elts):
                        yield defined, value.elts[index], (function,)

    def _functions(self, name: str) -> Iterator[tuple[Module, Function]]:
        for function in self._module.functions.get(name, ()):
            yield self._module, function
        imported = module(self._module.imports.get(name, ("", ""))[0])
        if imported is not None and name != "did_you_mean":
            for function in imported.functions.get(self._module.imports[name][1], ()):
                yield imported, function

    def _constant(self, name: str) -> Iterator[tuple[Module, ast.expr]]:
        if name in self._module.constants:
            yield self._module, self._module.constants[name]
        elif name in self._module.imports:
            place, there = self._module.imports[name]
            imported = module(place)
            if imported is not None and there in imported.constants:
                yield imported, imported.constants[there]

    def _entries(self, name: str) -> Iterator[tuple[Module, ast.expr, tuple[ast.AST, ...]]]:
        """Values of a table of the module."""
        for defined, table in self._constant(name):
            if isinstance(table, ast.Dict):
                for value in table.values:
                    if pattern(value) is not None:
                        yield defined, value, ()


def assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the targets of an assignment with its value."""
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, ast.NamedExpr | ast.AnnAssign) and node.value is not None:
        yield node.target, node.value


def places(target: ast.expr, name: str, index: int | None) -> Iterator[int | None]:
    """Yield which element of an assigned value a name is; None for the whole value, of which `index` may be used."""
    if isinstance(target, ast.Name) and target.id == name:
        yield index
    elif isinstance(target, ast.Tuple):
        for place, element in enumerate(target.elts):
            if isinstance(element, ast.Name) and element.id == name:
                yield place


def is_self(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id == "self"


def pattern(value: ast.expr) -> str | None:
    """Text of a string or formatted string, with `{}` for what is filled in; None of other expressions."""
    if isinstance(value, ast.Call) and names_only(value.func) == "meant":
        return f"did you mean {FILLED}?"
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    if isinstance(value, ast.JoinedStr):
        return "".join(
            part.value if isinstance(part, ast.Constant) else FILLED
            for part in value.values  # type: ignore[misc]
        )
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        sides = [pattern(side) for side in (value.left, value.right)]
        return "".join(side or FILLED for side in sides) if any(sides) else None
    return None


def hint_of_advice(value: ast.expr) -> ast.expr:
    """Return the hint of `Advice(hint, …)`, and any other expression as it is."""
    is_advice = isinstance(value, ast.Call) and names_only(value.func) == "Advice"
    return value.args[0] if is_advice else value  # type: ignore[attr-defined]


def is_passed_on(value: ast.expr) -> bool:
    """Return True for the hint of another error, or a parameter: their own texts are sites."""
    return isinstance(value, ast.Name) or (isinstance(value, ast.Attribute) and value.attr == "hint")


def names_only(value: ast.expr) -> str:
    """Name of the function or attribute of an expression that is not followed."""
    if isinstance(value, ast.Call):
        return f"{names_only(value.func)}()"
    return value.attr if isinstance(value, ast.Attribute) else ast.unparse(value)
