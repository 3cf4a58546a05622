"""Examples and links of the documentation: SQL runs on the sample tables, commands parse, links have targets."""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edl.cli import main as edl_command
from edl.data import connect
from sqlflow_edl.analysis.models.base import Length
from sqlflow_edl.cli import main as sqlflow_command
from sqlflow_edl.samples import tables
from sqlflow_edl.session.session import Session
from sqlflow_edl.syntax.forms import STATEMENTS
from tests.documentation import PAGES, REPOSITORY, Block, anchors, blocks, is_elliptic, links, subcommands
from tests.searches import short
from tests.sqlflow_edl.extensions.notebook.conftest import Notebook, notebook, shell

__all__ = ["notebook", "shell"]  # fixtures

MODEL = "SELECT * FROM iris TO TRAIN DNNClassifier LABEL species INTO sqlflow_models.my_dnn_model"
TABLES = ("iris", "breast_cancer", "wine", "diabetes", "planes", "employee", "click_log")
LONG = (
    "bigquery-ml",
    "clustering",
    "columns",
    "console",
    "decomposition",
    "evaluate",
    "explain",
    "forecasts",
    "gpu",
    "notebook",
    "predict",
    "run",
    "search",
    "train",
    "trees",
)
TUTORIALS = [REPOSITORY / "docs" / "tutorial.md", *(REPOSITORY / "docs" / "tutorials").glob("*.md")]
MOST_LEFT_OUT = 3


def name(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def with_(attribute: str) -> list[Path]:
    """The pages that have a block with this attribute."""
    return [page for page in PAGES if any(getattr(block, attribute) for block in blocks(page))]


def run_with(attribute: str) -> list[Any]:
    """The same, for tests that train what the pages train; `make test` has the short ones.

    Those of tutorials are in tests/samples/test_tutorials.py.
    """
    return [
        pytest.param(page, id=name(page), marks=[pytest.mark.soak] if page.stem in LONG else [])
        for page in with_(attribute)
        if page not in TUTORIALS
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database of the sample tables, `demo.duckdb`."""
    folder = tmp_path_factory.mktemp("documentation")
    with connect(f"duckdb:///{folder}/demo.duckdb", create=True) as source:
        for table in TABLES:
            source.stage(table, "samples", 0, 0, tables.TABLES[table](table).to_reader())
            source.commit(table, "samples", 1)
    return folder


@pytest.fixture(scope="module", autouse=True)
def one_epoch() -> Iterator[None]:
    """Trainings that do not say how long they take end after one epoch, and searches after one small model."""
    with short(trials=1), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Length, "number_of_epochs", lambda self, rows, batch_size: 1)
        yield


@pytest.fixture(scope="module")
def session(folder: Path) -> Iterator[Session]:
    """A session whose training process the pages share, with the model that /help and several pages use."""
    shutil.copy(folder / "demo.duckdb", folder / "pages.duckdb")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        with Session(f"duckdb:///{folder}/pages.duckdb") as opened:
            list(opened.run(MODEL))
            yield opened


def run(session: Session, block: Block) -> None:
    """Run the statements of a block as its mode says."""
    for statement in session.program(block.statements):
        result = session.plan(statement) if block.mode == "plan" else session.execute(statement)
        assert result.message or result.reader is not None or result.report is not None


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Path) -> None:
    """Change to a folder with the samples: EXPORT MODEL writes there."""
    (tmp_path / "samples").symlink_to(repository / "samples")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", run_with("statements"))
@pytest.mark.usefixtures("own_folder")
def test_the_sql_of_a_page_runs_on_the_sample_tables(page: Path, session: Session) -> None:
    for block in blocks(page):
        if block.statements and not block.mode.startswith("no, "):
            try:
                run(session, block)
            except Exception as error:
                error.add_note(block.place)
                raise


@pytest.mark.soak
@pytest.mark.usefixtures("own_folder")
def test_the_examples_of_help_run_in_their_order(session: Session) -> None:
    for form in STATEMENTS.values():
        assert form.example, form.form
        if "model_path" in form.example:  # of a file that is not here
            session.parse(form.example)
        else:
            list(session.run(form.example))


@pytest.mark.parametrize("page", run_with("cells"))
def test_the_cells_of_a_page_run_in_a_notebook(
    page: Path, folder: Path, notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for block in blocks(page):
        for cell in block.cells:
            done = notebook(cell)
            assert done.error is None, f"{block.place}: {done.error}\n{done.printed}"


def test_few_examples_are_left_out_and_all_say_why() -> None:
    marked = [block for page in PAGES for block in blocks(page) if block.mode]
    assert not [block.place for block in marked if not re.fullmatch(r"plan|no, .+", block.mode)]
    assert not [block.place for block in marked if not block.statements]
    left_out = [f"{block.place}: {block.mode}" for block in marked if block.mode != "plan"]
    assert len(left_out) <= MOST_LEFT_OUT, left_out


@pytest.mark.parametrize("page", with_("commands"), ids=name)
def test_the_commands_of_a_page_have_their_options(page: Path) -> None:
    parsers = {"sqlflow": subcommands(sqlflow_command._parser()), "edl": edl_command._parser()[1]}
    for block in blocks(page):
        for program, *arguments in block.commands:
            if program == "make":
                assert arguments[0] in targets(), f"{block.place}: make {arguments[0]}"
                continue
            for command in arguments[0].split("|"):
                assert command in parsers[program] or command.startswith("-"), (
                    f"{block.place}: {program} {command}"
                )
                check(parsers[program].get(command), arguments[1:], block)


def check(parser: argparse.ArgumentParser | None, arguments: list[str], block: Block) -> None:
    """Parse the arguments; of a command that leaves some out, look its options up."""
    if parser is None:
        return
    if not is_elliptic(arguments):
        try:
            parser.parse_args(arguments)
        except SystemExit:
            pytest.fail(f"{block.place}: {parser.prog} refuses {arguments}")
        return
    known = parser._option_string_actions
    unknown = [each for each in arguments if each.startswith("--") and each.partition("=")[0] not in known]
    assert not unknown, f"{block.place}: {parser.prog} has no {unknown}"


def targets() -> set[str]:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))


@pytest.mark.parametrize("page", with_("text"), ids=name)
def test_the_python_of_a_page_compiles(page: Path) -> None:
    for block in blocks(page):
        if block.language == "python":
            ast.parse(block.text, filename=block.place)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_links_of_a_page_have_targets(page: Path) -> None:
    for path, anchor in links(page):
        target = Path(os.path.normpath(page.parent / path)) if path else page
        assert target.is_file(), f"{name(page)} links to {path}, which is no file"
        if anchor:
            assert anchor in anchors(target), (
                f"{name(page)} links to {path}#{anchor}; known: {anchors(target)}"
            )


def test_the_index_lists_every_page() -> None:
    index = REPOSITORY / "docs" / "index.md"
    listed = {(index.parent / path).resolve() for path, _ in links(index)}
    assert listed >= {page for page in (REPOSITORY / "docs").rglob("*.md") if page != index}


def test_every_form_of_a_statement_is_in_the_reference() -> None:
    reference = (REPOSITORY / "docs" / "language.md").read_text(encoding="utf-8")
    assert not [form.form for form in STATEMENTS.values() if form.form not in reference]
