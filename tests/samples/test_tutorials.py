"""The tutorials: their programs run, and print what the pages show."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edl.data import connect
from sqlflow_edl.cli.main import main
from sqlflow_edl.samples import tables
from tests.documentation import REPOSITORY, Block, blocks
from tests.sqlflow_edl.backends.kubernetes.conftest import kubeconfig, namespace
from tests.sqlflow_edl.backends.kubernetes.place import Place, place

__all__ = ["kubeconfig", "namespace", "place"]  # fixtures

FOLDER = REPOSITORY / "docs" / "tutorials"
CUSTOMERS = REPOSITORY / "samples" / "customers" / "customers.sql"
PROGRAMS = [*sorted(FOLDER.glob("*.sql")), CUSTOMERS]


def page(program: Path) -> Path:
    return FOLDER.parent / "tutorial.md" if program.stem == "iris" else FOLDER / f"{program.stem}.md"


def shown_results(page: Path) -> Iterator[tuple[Block, str]]:
    """Each line that a page shows as the output of its statements."""
    for block in blocks(page):
        if (
            not block.language
            and not block.commands
            and not re.search(r"^(\$|export) ", block.text, re.MULTILINE)
        ):
            yield from ((block, line) for line in block.text.splitlines() if line.strip() not in ("", "…"))


def write_tables(url: str, *names: str, create: bool = False) -> None:
    with connect(url, create=create) as source:
        for name in names or ("iris", "click_log"):
            source.stage(name, "samples", 0, 0, tables.TABLES[name](name).to_reader())
            source.commit(name, "samples", 1)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.stem)
def test_a_tutorial_shows_the_statements_of_its_program(program: Path) -> None:
    comment, statements = program.read_text(encoding="utf-8").split("\n\n", 1)
    assert re.fullmatch("-- .+", comment)
    shown = "\n\n".join(block.text.strip() for block in blocks(page(program)) if block.language == "sql")
    assert shown == statements.strip()


@pytest.mark.soak
def test_the_first_tutorial_shows_the_plan_the_mistakes_and_the_program_of_its_statement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SQLFLOW_SOURCE", "duckdb:///tutorial.duckdb")
    write_tables("duckdb:///tutorial.duckdb", "iris", create=True)
    found = blocks(FOLDER.parent / "tutorial.md")
    [statement] = (each.text for each in found if each.text.startswith("SELECT sepal_length"))
    Path("flowers.sql").write_text(statement, encoding="utf-8")
    asked = ("--dry-run", "hiden_units", "compile")
    for block in (each for each in found if each.text.startswith("$") and any(a in each.text for a in asked)):
        command, *lines = block.text.splitlines()
        main(shlex.split(command)[2:])
        printed = {comparable(line) for line in "".join(capsys.readouterr()).splitlines()}
        assert {comparable(line) for line in lines} - {"", "…"} <= printed
    [heart] = (each.text for each in found if "FEATURES = " in each.text)
    assert heart.strip() in Path("programs/flowers/model.py").read_text(encoding="utf-8")


@pytest.mark.soak
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.stem)
def test_a_tutorial_prints_what_its_page_shows(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if program == CUSTOMERS:
        script = CUSTOMERS.with_name("make_customers.py")
        subprocess.run([sys.executable, str(script)], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
        url = f"{tmp_path}/customers.csv"
    else:
        url = f"duckdb:///{tmp_path}/tutorial.duckdb"
        write_tables(url, create=True)
    assert main(["run", str(program), "--source", url]) == 0, capsys.readouterr().err
    check_lines(page(program), "".join(capsys.readouterr()))


@pytest.mark.soak
def test_the_tutorial_of_the_click_log_runs_on_a_double_of_kubernetes(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tables(place.url)
    assert main(["run", str(FOLDER / "clicks.sql"), *place.options]) == 0, capsys.readouterr().err
    check_lines(FOLDER / "kubernetes.md", "".join(capsys.readouterr()))


def check_lines(page: Path, printed: str) -> None:
    """Find each line that the page shows among those printed; numbers with a point may differ."""
    found = {comparable(line) for line in printed.splitlines()}
    missing = [
        f"{block.place}: {line}" for block, line in shown_results(page) if comparable(line) not in found
    ]
    assert not missing, "\n".join([*missing, "", printed])


def comparable(line: str) -> str:
    line = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME", line)
    return re.sub(r"\s+", " ", re.sub(r"-?\d[\d,]*\.\d+", "0.0", line)).strip()
