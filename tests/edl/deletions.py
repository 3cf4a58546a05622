"""Places in the runtime that delete files, objects or tables, or replace them, found in its source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import edl

ROOT = Path(edl.__file__).parent
FILE = Path(__file__).with_name("deletions.txt")
SQL = re.compile(r"\b(DROP (TABLE|VIEW|TEMPORARY|IF)|DELETE FROM|TRUNCATE TABLE)\b")
CALLS = {
    *("unlink", "rmtree", "rmdir", "removedirs", "rename", "renames", "replace", "truncate", "ftruncate"),
    *("rm", "rm_file"),  # of fsspec
}
OF_MODULES = {"os": {"remove"}, "shutil": {"move"}}  # names that other objects have too
# Most modules have none of these words, and are not parsed.
WORDS = re.compile(rf"\b(?:{'|'.join((*CALLS, *chain.from_iterable(OF_MODULES.values())))})\(|{SQL.pattern}")
NO_FILES = ("structs", "dataclasses")  # their `replace` makes another object
# Why a place may delete.
REASONS = {
    "rule": "a rule of `edl.jobs.retention` says so",
    "partial": "an unfinished file, of which nobody was told, or one that only its own process uses",
    "replaced": "the complete file takes the place of the older version",
    "name": "the same file under another name; nothing is lost",
    "stored": "a complete copy is where it is to stay, read back or flushed",
    "scratch": "a temporary table, view, cache or copy, made again from what it was made from",
    "notice": "nothing that was computed: a request, a record for others, a row of bookkeeping",
    "asked": "the user asks for it",
}


class Deletion(NamedTuple):
    """Place that deletes: module, function, and the expression, or the words of SQL."""

    module: str
    function: str
    what: str


def deletions() -> Iterator[Deletion]:
    for path in sorted(ROOT.rglob("*.py")):
        module = ".".join(("edl", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        text = path.read_text(encoding="utf-8")
        for function, what in _deletions_in(ast.parse(text), ()) if WORDS.search(text) else ():
            yield Deletion(module, function, what)


def _deletions_in(node: ast.AST, scope: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call) and _deletes(child):
            yield ".".join(scope), ast.unparse(child)
        elif isinstance(child, ast.Constant) and (words := SQL.search(str(child.value))):
            yield ".".join(scope), f"SQL {words[0]}"
        is_scope = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        yield from _deletions_in(child, (*scope, child.name) if is_scope else scope)


def _deletes(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute):
        return False
    name = call.func.attr
    if name not in CALLS and not any(name in names for names in OF_MODULES.values()):
        return False
    owner = ast.unparse(call.func.value)
    if name == "replace" and owner != "os":  # the method of a text has two arguments
        return len(call.args) == 1 and not call.keywords and not owner.endswith(NO_FILES)
    return name in CALLS or name in OF_MODULES.get(owner, ())


def read_register() -> dict[Deletion, str]:
    """Return the reasons in the register."""
    found: dict[Deletion, str] = {}
    module = ""
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            module = line.strip("[]")
        elif line:
            reason, function, what = line.split(" | ", 2)
            found[Deletion(module, function, what)] = reason.strip()
    return found


def write(reasons: dict[Deletion, str]) -> None:
    """Write the register, with `?` where a reason is missing."""
    lines, module = [], ""
    for each in dict.fromkeys(deletions()):
        if each.module != module:
            module = each.module
            lines += ["", f"[{module}]"]
        lines.append(f"{reasons.get(each, '?'):8} | {each.function} | {each.what}")
    FILE.write_text("\n".join([*lines[1:], ""]), encoding="utf-8")


if __name__ == "__main__":
    write(read_register() if FILE.exists() else {})
