"""Completeness of the distributions, and the commands of an environment that has the wheel alone."""

from __future__ import annotations

import ast
import itertools
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from edl.build import present_build
from edl.installation import VERSION
from tests.distributions import (
    LABEXTENSION,
    PACKAGES,
    Archive,
    Installation,
    archived,
    files_of,
    installed_from_index,
    interpreter,
)
from tests.imports import imports
from tests.mariadb import Server
from tests.sqlflow_edl.backends.kubernetes.place import TEMPLATE

PROGRAM = """\
CREATE TABLE points AS SELECT i AS a, 2.0 * i AS b FROM range(60) AS t(i);
SELECT a, b FROM points TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 3 LABEL b INTO line;
SELECT * FROM points TO PREDICT guesses.guess USING line;
SELECT count(guess) AS guesses FROM guesses;
SELECT * FROM points TO EVALUATE line LABEL b;
"""
FLOWERS = """\
sepal_length,sepal_width,petal_length,petal_width,species
5.1,3.5,1.4,0.2,setosa
6.0,2.9,4.5,1.5,versicolor
6.3,3.3,6.0,2.5,virginica
"""
WHERE_FROM = "import edl, sqlflow_edl, sys; print(edl.__file__, sqlflow_edl.__file__, *sys.meta_path)"
COMPILE = """\
import sqlflow_edl
with sqlflow_edl.connect('duckdb:') as session:
    query = 'SELECT i AS a, 2.5::DOUBLE * i AS b FROM range(9) AS t(i)'
    [compiled] = session.compile(f'{query} TO TRAIN DNNRegressor LABEL b INTO m')
    print(compiled.program.files['model.py'].decode())
"""
BEGIN = """\
SELECT * FROM 'points.csv' LABEL y WITH auto.time_limit = 10, auto.trials = 2 INTO guess;
SELECT * FROM 'points.csv' TO EVALUATE guess;
SELECT * FROM 'points.csv' WHERE a < 6 TO PREDICT USING guess;
SELECT * FROM 'points.csv' WHERE a = 6 TO EXPLAIN guess;
"""
NOTEBOOK = """\
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic('load_ext', 'sqlflow_edl.notebook')
print(shell.run_line_magic('sqlflow', '--source points.csv SELECT count(*) AS n FROM points'))
"""
SERVE = """\
import re, subprocess, sys, urllib.request
command = [sys.prefix + "/bin/sqlflow", "serve", "--source", "points.csv", "--port", "0"]
server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
[address] = next(found for line in server.stderr if (found := re.findall("http://[0-9.:]+", line)))
print(urllib.request.urlopen(address + "/v1/models").read().decode())
server.terminate()
print("ended with", server.wait())
"""
MOST_BYTES_OF_START = 650 << 20  # docs/install.md tells the size
LEFT_OUT_OF_ALL = {
    "adbc-driver-snowflake",
    "google-cloud-bigquery",
    "mlflow-skinny",
    "polars",
}  # large, or of many packages


@pytest.fixture(scope="module")
def requirements(installation: Installation) -> list[Requirement]:
    """All that the installed wheel requires, with and without an extra."""
    [metadata] = installation.packages.glob("sqlflow_edl-*.dist-info")
    return [Requirement(line) for line in Distribution.at(metadata).requires or []]


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_wheel_holds_every_file_of_every_package_and_nothing_else(repository: Path, wheel: Path) -> None:
    expected = {
        f"{name}/{path.relative_to(repository / folder).as_posix()}"
        for folder, name in PACKAGES.items()
        for path in (repository / folder).rglob("*")
        if path.is_file() and not {"__pycache__", "labextension"} & set(path.parts)
    }
    pages = [*(repository / "docs").glob("*.md"), *(repository / "docs" / "tutorials").glob("*.md")]
    expected |= {f"sqlflow_edl/{path.relative_to(repository)}" for path in pages}
    expected.add("sqlflow_edl/docs/__init__.py")
    data = f"sqlflow_edl-{VERSION}.data/data"
    expected |= {f"{data}/{path}" for path in LABEXTENSION.values()}
    assert {name for name in contents(wheel) if ".dist-info/" not in name} == expected


@pytest.fixture(scope="module")
def archive(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Archive:
    return archived(repository, tmp_path_factory.mktemp("archives") / "archive")


@pytest.mark.soak
def test_an_sdist_builds_the_wheel_that_the_checkout_builds(archive: Archive, wheel: Path) -> None:
    assert contents(archive.wheel) == contents(wheel)


@pytest.mark.soak
def test_an_sdist_holds_what_the_readme_points_to(repository: Path, archive: Archive) -> None:
    readme = (repository / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\b(?:docs|samples)/[\w/.-]*\w", readme)) | {"ARCHITECTURE.md", "CHANGELOG.md"}
    held = files_of(archive.sdist)
    assert not [path for path in named if not any(f"{each}/".startswith(f"{path}/") for each in held)]


@pytest.mark.soak
def test_an_installation_has_nothing_of_the_checkout(
    installation: Installation, repository: Path, tmp_path: Path
) -> None:
    found = installation.run("python", "-c", WHERE_FROM, cwd=tmp_path)
    assert found.count(str(installation.packages)) == 2
    assert str(repository) not in found
    assert "__editable__" not in found


def test_an_installed_wheel_is_the_build_of_its_checkout(installation: Installation, tmp_path: Path) -> None:
    assert installation.run("python", "-m", "edl.build", cwd=tmp_path).startswith(f"{present_build()}, ")


def test_an_installation_has_the_extension_where_jupyterlab_looks(
    installation: Installation, repository: Path
) -> None:
    files = {path.name for path in (repository / "sqlflow_edl" / "notebook" / "labextension").iterdir()}
    assert files == set(LABEXTENSION)
    for name, path in LABEXTENSION.items():
        assert (installation.folder / path).read_bytes() == (
            repository / "sqlflow_edl" / "notebook" / "labextension" / name
        ).read_bytes()


@pytest.mark.soak
def test_installed_commands_train_predict_evaluate_and_list_their_jobs(
    installation: Installation, tmp_path: Path
) -> None:
    (tmp_path / "program.sql").write_text(PROGRAM)
    source = ("--source", "duckdb:///points.duckdb")
    output = installation.run(
        "sqlflow", "run", *source, "--create", "--format", "csv", "program.sql", cwd=tmp_path
    )
    assert re.fullmatch(r"guesses\n60\nloss,rmse,mae,r2\n.*\n", output)
    jobs = installation.run("sqlflow", "jobs", "--format", "csv", cwd=tmp_path)
    assert re.findall(r",(train|predict|evaluate),done,", jobs) == ["train", "predict", "evaluate"]


@pytest.mark.soak
def test_an_installed_console_runs_the_statements_of_a_pipe(
    installation: Installation, tmp_path: Path
) -> None:
    output = installation.run(
        "sqlflow",
        "console",
        "--source",
        "duckdb:",
        cwd=tmp_path,
        stdin="SHOW MODELS; SELECT 40 + 2 AS answer;",
    )
    assert re.search(r"answer\n\s*42\n", output)


@pytest.mark.soak
def test_an_installed_edl_trains_a_module_of_a_model_zoo(
    installation: Installation, repository: Path, tmp_path: Path
) -> None:
    shutil.copytree(repository / "samples" / "zoo", tmp_path / "zoo")
    (tmp_path / "iris.csv").write_text(FLOWERS)
    model = ("--model_zoo", "zoo", "--model_def", "iris.torch_dnn.Net", "--num_epochs", "1")
    output = installation.run(
        "edl", "train", *model, "--training_data", "iris.csv", "--output", "iris.zip", cwd=tmp_path
    )
    assert "accuracy" in output
    assert zipfile.is_zipfile(tmp_path / "iris.zip")


@pytest.mark.soak
@pytest.mark.parametrize(("version", "kind"), [("3.11", "sdist"), ("3.12", "wheel"), ("3.13", "wheel")])
def test_the_extra_start_is_all_that_a_csv_file_needs(
    version: str, kind: str, repository: Path, archive: Archive, tmp_path: Path
) -> None:
    """In an environment of packages from the index; other extras are not there, and networks say so."""
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version}, and uv cannot download it")
    distribution = archive.wheel if kind == "wheel" else archive.sdist
    start = installed_from_index(
        python, distribution, "start", repository / "constraints.txt", tmp_path / "environment"
    )
    assert sum(path.lstat().st_blocks * 512 for path in start.folder.rglob("*")) < MOST_BYTES_OF_START
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    rows = (f"{i};{i % 7},5;{'yes' if i % 3 else 'no'};{2 * i}\n" for i in range(200))
    (folder / "points.csv").write_text("a;b;c;y\n" + "".join(rows))
    output = start.run("sqlflow", "run", "--format", "csv", "-e", BEGIN, cwd=folder)
    assert re.fullmatch(r"loss,rmse,mae,r2\n.*\na,b,c,y\n(.*\n){6}feature,value,.*\n(.*\n)+", output), output
    assert '"guess"' in (served := start.run("python", "-c", SERVE, cwd=folder))
    assert "ended with 0" in served
    assert "200" in start.run("python", "-c", NOTEBOOK, cwd=folder)
    start.run("sqlflow", "report", "guess", "--source", "points.csv", "-o", "guess.html", cwd=folder)
    start.run("sqlflow", "samples", "--source", "duckdb:///samples.duckdb", cwd=folder)
    doctor = start.run("sqlflow", "doctor", cwd=folder)
    assert re.search(r"networks +no +uv pip install --python \S+ torch>=2.6", doctor.replace("'", "")), doctor


@pytest.mark.soak
def test_an_installed_package_compiles_a_statement(installation: Installation, tmp_path: Path) -> None:
    assert 'fc.standardize("a"' in installation.run("python", "-c", COMPILE, cwd=tmp_path)


@pytest.mark.soak
def test_an_installed_command_prints_the_objects_of_a_job_on_kubernetes(
    installation: Installation, mariadb: Server, tmp_path: Path
) -> None:
    database = mariadb.database()
    mariadb.run(f"CREATE TABLE {database}.points AS SELECT 1 AS a, 2.5 AS b UNION SELECT 2, 5.5")
    place = ("--on", "kubernetes", "--image", "mine:1", f"--set=pod_template={TEMPLATE}")
    train = "SELECT a, b FROM points TO TRAIN LinearRegressor LABEL b INTO line"
    output = installation.run(
        "sqlflow", "run", "--source", mariadb.url(database), *place, "--dry-run", "-e", train, cwd=tmp_path
    )
    assert {"Job", "Secret", "ConfigMap"} <= {each["kind"] for each in yaml.safe_load_all(output)}


def test_extras_of_install_commands_exist_and_all_has_every_requirement(
    repository: Path, requirements: list[Requirement], installation: Installation
) -> None:
    [metadata] = installation.packages.glob("sqlflow_edl-*.dist-info")
    extras = set(Distribution.at(metadata).metadata.get_all("Provides-Extra") or [])
    documents = [repository / "README.md", *(repository / "docs").glob("*.md")]
    lines = [line for path in documents for line in path.read_text(encoding="utf-8").splitlines()]
    commands = " ".join(line for line in lines if "pip install" in line)
    named = {extra for found in re.findall(r"[.l]\[([\w,-]+)\]", commands) for extra in found.split(",")}
    assert {"all", "torch"} <= named <= extras
    everything = with_extras(requirements, "all")
    users = with_extras(requirements, *extras - {"bench", "docs", "test"})
    assert users - everything == LEFT_OUT_OF_ALL


def with_extras(requirements: list[Requirement], *extras: str) -> set[str]:
    """Names of the distributions that `sqlflow-edl[extras]` requires."""
    wanted = set(extras)
    names: set[str] = set()
    for extra in extras:
        for each in requirements:
            if each.marker is None or each.marker.evaluate({"extra": extra}):
                names.add(canonicalize_name(each.name))
                wanted |= each.extras if each.name == "sqlflow-edl" else set()
    return names if wanted == set(extras) else with_extras(requirements, *sorted(wanted))


def imported(folder: Path) -> Iterator[str]:
    """Top-level names that the modules below `folder` import, wherever in a module."""
    for statement in itertools.chain.from_iterable(map(imports, folder.rglob("*.py"))):
        if isinstance(statement, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in statement.names)
        elif statement.module and not statement.level:
            yield statement.module.partition(".")[0]


def test_every_package_that_is_imported_is_required(
    installation: Installation, requirements: list[Requirement]
) -> None:
    declared = {
        canonicalize_name(each.name) for each in requirements if 'extra == "test"' not in str(each.marker)
    }
    absent = {
        "adbc_driver_snowflake": ["adbc-driver-snowflake"],
        "mlflow": ["mlflow-skinny"],
        "polars": ["polars"],
    }
    distributions = {**absent, **packages_distributions()}
    ours = {"edl", "sqlflow_edl"}
    names = {name for package in ours for name in imported(installation.packages / package)}
    for_types = {"typing_extensions"}  # which mypy requires; imported in `if TYPE_CHECKING` alone
    undeclared = {
        name
        for name in names - ours - sys.stdlib_module_names - for_types
        if declared.isdisjoint(map(canonicalize_name, distributions.get(name, ())))
    }
    assert not undeclared
