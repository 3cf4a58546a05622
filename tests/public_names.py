"""Public Python names: what generated programs, samples, templates and the documentation import from the packages.

`python -m tests.public_names` adds new ones to tests/fixtures/public_names.txt and removes none, because programs of
users import them as well.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from textwrap import dedent

from tests.documentation import PAGES, blocks

REPOSITORY = Path(__file__).parents[1]
LIST = REPOSITORY / "tests" / "fixtures" / "public_names.txt"
PACKAGES = ("edl", "sqlflow_edl")
# Code that shows how this project works inside: what it imports may move.
INTERNAL = ("design", "CONTRIBUTING.md", "ARCHITECTURE.md")

_DOTTED = re.compile(rf"\b(?:{'|'.join(PACKAGES)})(?:\.[A-Za-z]\w*)+")


def read_list() -> set[str]:
    """Read the recorded names, each with its module: `edl.features.bucket`."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return {
        f"{module}.{name}"
        for module, _, names in (line.partition(":") for line in lines)
        for name in names.split()
    }


def collect_names() -> set[str]:
    """Collect the names that programs, samples and pages use today."""
    programs = [
        *(REPOSITORY / "samples").rglob("*.py"),
        *(REPOSITORY / "tests" / "golden" / "programs").rglob("*.py"),
    ]
    names = {name for path in programs for name in imported_names(path.read_text(encoding="utf-8"))}
    for page in PAGES:
        if not any(part in INTERNAL for part in page.parts):
            names.update(_names_of_page(page))
    return names


def imported_names(program: str) -> Iterator[str]:
    """Yield the names that a program imports from the packages, and those it takes from imported modules."""
    tree = ast.parse(program)
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in PACKAGES:
                    modules[alias.asname or alias.name.split(".")[0]] = (
                        alias.name if alias.asname else alias.name.split(".")[0]
                    )
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in PACKAGES:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name
                modules[alias.asname or alias.name] = name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (dotted := _dotted_name(node)):
            first, _, rest = dotted.partition(".")
            if first in modules and (name := find_name(f"{modules[first]}.{rest}")):
                yield name


def find_name(dotted: str) -> str | None:
    """Return the module's name in a dotted name that goes on to attributes of it; None if there is no such name."""
    parts = dotted.split(".")
    found = None
    for count in range(1, len(parts)):
        try:
            module = import_module(".".join(parts[:count]))
        except ImportError:
            break
        if hasattr(module, parts[count]) or _is_module(".".join(parts[: count + 1])):
            found = ".".join(parts[: count + 1])
    return found


def _is_module(dotted: str) -> bool:
    try:
        import_module(dotted)
    except ImportError:
        return False
    return True


def _names_of_page(page: Path) -> Iterator[str]:
    for block in blocks(page):
        if block.language == "python":
            try:
                yield from imported_names(dedent(block.text))
            except SyntaxError:
                continue  # a part of a program, or a difference between two
    for dotted in set(_DOTTED.findall(page.read_text(encoding="utf-8"))):
        if name := find_name(dotted):
            yield name


def _dotted_name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (value := _dotted_name(node.value)):
        return f"{value}.{node.attr}"
    return None


def write_list(names: set[str]) -> None:
    """Write names as one line per module."""
    modules: dict[str, list[str]] = {}
    for name in sorted(names):
        module, _, attribute = name.rpartition(".")
        modules.setdefault(module, []).append(attribute)
    LIST.write_text("".join(f"{module}: {' '.join(names)}\n" for module, names in sorted(modules.items())))


if __name__ == "__main__":
    write_list(read_list() | collect_names())
