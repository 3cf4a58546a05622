"""Extensions: tables name them, nothing imports them, and all else works without them."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from edl.data.url import SOURCES
from edl.extension_loader import EXTRAS, load
from edl.installation import requirements
from sqlflow_edl import REGISTER_MODEL
from sqlflow_edl.analysis.catalog import OF_EXTENSIONS
from sqlflow_edl.cli.main import COMMANDS
from sqlflow_edl.cli.models.export import AS_SQL
from sqlflow_edl.extensions import lineage
from sqlflow_edl.reports.models import OF_BIGQUERY
from sqlflow_edl.session import extended_statements
from sqlflow_edl.session.predictions import ANSWERS
from sqlflow_edl.session.session import TRACKED_BY
from sqlflow_edl.syntax.foreign_statements import FOREIGN_STATEMENTS

ROOTS = ("runtime/edl", "sqlflow_edl")
PUBLIC_NAMES = ("elastic",)  # package that has the names under which users import an extension


@pytest.fixture(scope="session")
def core(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy of both packages without the folders of extensions."""
    folder = tmp_path_factory.mktemp("core")
    for root in ROOTS:
        shutil.copytree(
            repository / root,
            folder / Path(root).name,
            ignore=shutil.ignore_patterns("extensions", "__pycache__"),
        )
    for data in ("grammar", "codegen_templates", "docs"):
        (folder / "sqlflow_edl" / data).symlink_to(repository / data)
    return folder


# an editable installation finds submodules that the copy lacks
_PRELUDE = (
    "import sys\nsys.meta_path[:] = [finder for finder in sys.meta_path if 'editable' not in repr(finder)]\n"
)


@pytest.fixture(scope="session")
def tests_of_core(core: Path, repository: Path) -> Path:
    """The copy with the tests of what is there."""
    shutil.copytree(
        repository / "tests", core / "tests", ignore=shutil.ignore_patterns("extensions", "__pycache__")
    )
    shutil.copy(repository / "pyproject.toml", core)
    (core / "docs").symlink_to(repository / "docs")
    return core


def run(core: Path, program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-c", _PRELUDE + program],
        env={**os.environ, "PYTHONPATH": str(core), "XDG_STATE_HOME": str(core / "state"), **variables},
        cwd=core,
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_extension_names_its_extras(repository: Path) -> None:
    folders = {
        path.name
        for root in ROOTS
        for path in (repository / root / "extensions").iterdir()
        if (path / "__init__.py").exists()
    }
    assert folders == EXTRAS.keys()
    for extras in EXTRAS.values():
        assert all(requirements(extra) for extra in filter(None, extras.split(",")))


def test_nothing_else_imports_an_extension(repository: Path) -> None:
    for root in ROOTS:
        for path in (repository / root).rglob("*.py"):
            parts = path.relative_to(repository / root).parts
            if "extensions" not in parts and parts[:1] != PUBLIC_NAMES:
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                    if isinstance(node, ast.ImportFrom):
                        assert ".extensions" not in (node.module or ""), path


def test_what_tables_name_is_there() -> None:
    named = [SOURCES[scheme] for scheme in SOURCES]
    named += [
        (f"sqlflow_edl.{module}", name) for module, _, name in (c.rpartition(".") for c in COMMANDS.values())
    ]
    named += [(module, "run") for module in extended_statements.MODULES.values()]
    named += [(OF_BIGQUERY, "show_weights"), ANSWERS, AS_SQL, REGISTER_MODEL]
    named += [(foreign.module, foreign.function) for foreign in FOREIGN_STATEMENTS]
    extensions = [(module, name) for module, name in named if ".extensions." in module]
    assert len(extensions) > 8
    for module, name in extensions:
        assert load(module, name)


@pytest.mark.parametrize(("module", "names"), OF_EXTENSIONS.items())
def test_the_models_of_an_extension_are_those_that_the_catalog_names(
    module: str, names: tuple[str, ...]
) -> None:
    assert tuple(model.name for model in load(module, "MODELS")) == names


def test_a_session_asks_for_trackers_by_the_variables_of_their_systems() -> None:
    assert {system.variables for system in lineage._SYSTEMS} == set(TRACKED_BY)


def test_a_model_is_trained_and_predicts_without_extensions(core: Path) -> None:
    found = run(
        core,
        "import sqlflow_edl\n"
        f"assert sqlflow_edl.__file__.startswith({str(core)!r})\n"
        "with sqlflow_edl.connect('duckdb:') as session:\n"
        "    session.run('CREATE TABLE t AS SELECT i AS x, 2 * i AS y FROM range(200) AS rows (i)')\n"
        "    session.run('SELECT * FROM t TO TRAIN BoostedTreesRegressor LABEL y INTO m')\n"
        "    [guess] = session.run('SELECT * FROM t TO PREDICT guesses.y USING m')\n"
        "print(guess.rows)\n",
        MLFLOW_TRACKING_URI="sqlite:///none.db",
    )
    assert found.stdout.split()[-1] == "200", found.stderr


@pytest.mark.parametrize(
    ("url", "extension"), [("delta:///tables/t", "lakes"), ("trino://u:p@h/c/s", "warehouses")]
)
def test_a_source_of_an_absent_extension_names_it_with_its_extras(
    core: Path, url: str, extension: str
) -> None:
    program = f"import sqlflow_edl\ntry:\n    sqlflow_edl.connect({url!r})\nexcept Exception as e:\n    print(e.report)"
    shown = run(core, program).stdout
    assert f"the extension {extension} is not part of this installation" in shown
    assert f"'sqlflow-edl[{EXTRAS[extension]}]'" in shown


@pytest.mark.parametrize(
    ("statement", "extension"),
    [
        ("SELECT 1 AS a TO MAXIMIZE SUM(a * x) CONSTRAINT x <= 1 WITH variables = x", "optimization"),
        ("SELECT 1 AS a TO TRAIN KMeans INTO m", "unsupervised"),
    ],
)
def test_a_statement_of_an_absent_extension_names_it_with_its_extras(
    core: Path, statement: str, extension: str
) -> None:
    shown = run(
        core,
        "import sqlflow_edl\n"
        "with sqlflow_edl.connect('duckdb:') as session:\n"
        "    try:\n"
        f"        session.run({statement!r})\n"
        "    except Exception as e:\n"
        "        print(e.report)\n",
    ).stdout
    assert f"the extension {extension} is not part of this installation" in shown
    assert f"'sqlflow-edl[{EXTRAS[extension]}]'" in shown


def test_a_statement_of_another_system_names_the_absent_extension_that_reads_it(core: Path) -> None:
    shown = run(
        core,
        "import sqlflow_edl\n"
        "try:\n"
        "    sqlflow_edl.parse('CREATE MODEL m OPTIONS(model_type = \"kmeans\") AS SELECT 1 AS a')\n"
        "except Exception as e:\n"
        "    print(e.report)\n",
    ).stdout
    assert "the extension bigquery_ml is not part of this installation" in shown
    assert "pip install 'sqlflow-edl'" in shown


@pytest.mark.parametrize(
    ("command", "extension"), [("language-server", "editor"), ("serve", "serving"), ("ui", "web")]
)
def test_a_command_of_an_absent_extension_names_it_with_its_extra(
    core: Path, command: str, extension: str
) -> None:
    found = run(core, f"from sqlflow_edl.cli.main import main\nsys.exit(main([{command!r}]))")
    assert found.returncode == 2
    assert f"the extension {extension} is not part of this installation" in found.stderr
    assert f"'sqlflow-edl[{EXTRAS[extension]}]'" in found.stderr


@pytest.mark.parametrize(
    ("module", "call", "extension"),
    [
        ("edl", "edl.elastic.rank()", "elastic"),
        ("sqlflow_edl.notebook", "sqlflow_edl.notebook.load_ipython_extension(None)", "notebook"),
    ],
)
def test_the_public_name_of_an_absent_extension_names_it_with_its_extra(
    core: Path, module: str, call: str, extension: str
) -> None:
    program = f"import {module}\ntry:\n    {call}\nexcept Exception as e:\n    print(e.report)"
    shown = run(core, program).stdout
    assert f"the extension {extension} is not part of this installation" in shown
    assert f"'sqlflow-edl[{EXTRAS[extension]}]'" in shown


def test_the_import_of_a_file_names_the_absent_extension_with_its_extras(core: Path) -> None:
    found = run(
        core, "from sqlflow_edl.cli.main import main\nsys.exit(main(['import', 'm.onnx', '--as', 'm']))"
    )
    assert found.returncode == 2
    assert "the extension imported is not part of this installation" in found.stderr
    assert f"'sqlflow-edl[{EXTRAS['imported']}]'" in found.stderr


def test_a_module_that_an_extension_lacks_is_no_absent_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "edl.extensions.lakes.delta", None)
    with pytest.raises(ModuleNotFoundError, match=r"lakes\.delta"):
        load("edl.extensions.lakes.delta", "DeltaSource")


@pytest.mark.soak
@pytest.mark.parametrize("folder", ["analysis", "codegen", "console", "reports", "session", "syntax"])
def test_the_tests_of_the_core_pass_without_extensions(tests_of_core: Path, folder: str) -> None:
    arguments = [
        "-q", "-p", "no:cacheprovider", "-p", "tests.without_extensions", f"tests/sqlflow_edl/{folder}",
    ]  # fmt: skip
    found = run(tests_of_core, f"import pytest\nsys.exit(pytest.main({arguments!r}))")
    assert found.returncode == 0, found.stdout
    assert " passed" in found.stdout
