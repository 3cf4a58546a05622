"""Layers of the code, and modules that load late."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.imports import imports
from tests.kinds import FEATURES, LABELS, kinds_in_source

FRAMEWORKS = {"keras", "tensorflow", "torch"}
FRONT_DOOR = (
    "sqlflow_edl",
    "sqlflow_edl.cli.main",
    "sqlflow_edl.console.shell",
    "sqlflow_edl.notebook",
    "edl",
    "edl.spec",
    "edl.errors",
)
CLIENT = ("sqlflow_edl.session.session", "edl.worker", "edl.run.training_client", "edl.models.registry.base")
MOST_MODULES = 20
# Kinds of features and labels are told apart by tables and by attributes of their structs. Lower these numbers when
# their figures fall; see "Add a function of the COLUMN language" in CONTRIBUTING.md.
MOST_TESTS_OF_KINDS = 8
MOST_MODULES_OF_A_FEATURE = 4  # that name it, beside its definition
# Categories have a row in the tables of each export: ONNX, SQL, PMML.
MORE_MODULES = {"PiecewiseLinear": 5, **dict.fromkeys(("Bucket", "CategoryId", "DatePart", "Vocabulary"), 5)}
MOST_MODULES_OF_A_LABEL = 10
DEFINED = re.compile(r"^ *(?:async +)?(?:def|class) +(\w+)", re.MULTILINE)
ASSIGNED = re.compile(r"^(\w+(?:, \w+)*)(?: = |: )", re.MULTILINE)


def packages_after(*modules: str) -> dict[str, set[str]]:
    """The top-level packages that a fresh process has loaded after each of the modules, imported in this order."""
    script = (
        "import json, sys\nfrom importlib import import_module\nloaded = {}\nfor module in sys.argv[1:]:\n"
        "    import_module(module)\n    loaded[module] = [*{name.partition('.')[0] for name in sys.modules}]\n"
        "print(json.dumps(loaded))"
    )
    run = subprocess.run([sys.executable, "-c", script, *modules], capture_output=True, text=True, check=True)
    return {module: set(packages) for module, packages in json.loads(run.stdout.splitlines()[-1]).items()}


def test_importing_the_front_door_loads_nothing_heavy() -> None:
    heavy = {"sqlglot", "lark", "duckdb", "pyarrow", "numpy", "jinja2", "rich"} | FRAMEWORKS
    for module, packages in packages_after(*FRONT_DOOR).items():
        assert not packages & heavy, module


def test_the_client_never_imports_a_framework() -> None:
    for module, packages in packages_after(*CLIENT).items():
        assert not packages & FRAMEWORKS, module


def test_no_folder_has_more_modules_than_a_reader_takes_in(repository: Path) -> None:
    modules = [*(repository / "sqlflow_edl").rglob("*.py"), *(repository / "runtime" / "edl").rglob("*.py")]
    counts = Counter(path.parent.relative_to(repository) for path in modules)
    assert {str(folder): count for folder, count in counts.items() if count > MOST_MODULES} == {}


def test_few_tests_tell_kinds_of_features_and_labels_apart(repository: Path) -> None:
    tests = kinds_in_source(repository).tests
    assert len(tests) <= MOST_TESTS_OF_KINDS, "\n".join(tests)


@pytest.mark.parametrize("kind", sorted(FEATURES))
def test_few_modules_name_a_kind_of_feature(repository: Path, kind: str) -> None:
    modules = kinds_in_source(repository).modules[kind]
    assert len(modules) <= MORE_MODULES.get(kind, MOST_MODULES_OF_A_FEATURE), "\n".join(sorted(modules))


@pytest.mark.parametrize("kind", sorted(LABELS))
def test_few_modules_name_a_kind_of_label(repository: Path, kind: str) -> None:
    modules = kinds_in_source(repository).modules[kind]
    assert len(modules) <= MOST_MODULES_OF_A_LABEL, "\n".join(sorted(modules))


@pytest.mark.parametrize("package", ["analysis", "backends", "codegen", "reports", "session", "syntax"])
def test_modules_of_the_compiler_are_no_circle_not_even_of_types(repository: Path, package: str) -> None:
    paths = {
        ".".join(path.relative_to(repository).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (repository / "sqlflow_edl" / package).rglob("*.py")
    }
    graph: dict[str, set[str]] = {}
    for module, path in paths.items():
        names = {
            name
            for statement in imports(path)
            if isinstance(statement, ast.ImportFrom)
            for each in statement.names
            for name in (f"{statement.module}.{each.name}", statement.module or "")
        }
        # a package does not depend on the modules that it exports, nor they on it
        graph[module] = {name for name in names & paths.keys() if paths[name].stem != "__init__"}
    assert [*TopologicalSorter(graph).static_order()]


@cache
def names_in(module: Path) -> set[str]:
    """Names that can be imported from the module, and a star if nobody knows them."""
    source = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
    found = {path.stem for path in module.glob("*")}
    if not source.exists():
        return found
    text = source.read_text(encoding="utf-8")
    found.update(DEFINED.findall(text))
    found.update(name for names in ASSIGNED.findall(text) for name in names.split(", "))
    found.update(alias.asname or alias.name for each in imports(source) for alias in each.names)
    return found | {"*"} if "__getattr__" in found or module.name.endswith("_pb2") else found


@pytest.mark.parametrize("folder", ["tests", "benchmarks"])
def test_what_is_imported_is_there(repository: Path, folder: str) -> None:
    """Also in modules that no run of the tests reads, of the soak and of benchmarks; mypy reads the packages only."""
    roots = {
        "edl": repository / "runtime",
        **dict.fromkeys(("sqlflow_edl", "tests", "benchmarks"), repository),
    }
    missing = []
    for path in (repository / folder).rglob("*.py"):
        for statement in imports(path):
            module = statement.module or "" if isinstance(statement, ast.ImportFrom) else ""
            if (root := roots.get(module.partition(".")[0])) is not None:
                names = names_in(root.joinpath(*module.split(".")))
                missing += [
                    f"{path}: {module}.{each.name}"
                    for each in statement.names
                    if not {each.name, "*"} & names
                ]
    assert missing == []
