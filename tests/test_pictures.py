"""The pictures of docs/: they show what the commands print today, and pages use each of them."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from edl.data import connect
from sqlflow_edl.cli.main import _parser, main
from sqlflow_edl.samples import tables
from tests.documentation import PAGES, REPOSITORY, links, subcommands
from tests.pictures import FOLDER, LARGEST, Picture, draw, pictures, shown_lines

WITHOUT_PICTURE = {
    "checkpoints": "lists what a killed job left",
    "completion": "prints a script",
    "help": "prints pages of the documentation",
    "copy": "prints a line",
    "import": "prints a line",
    "move": "needs a cluster",
    "image": "needs docker, podman or an image to add to",
    "language-server": "speaks to an editor",
}
TABLES = ("iris", "breast_cancer", "wine", "employee")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs of the pictures, the sample tables, and models that pictures use."""
    folder = tmp_path_factory.mktemp("pictures") / "demo"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("*.svg", "*.toml"))
    shutil.copy(REPOSITORY / "samples" / "runnables" / "binning.py", folder)
    url = f"duckdb:///{folder}/demo.duckdb"
    with connect(url, create=True) as source:
        for table in TABLES:
            source.stage(table, "samples", 0, 0, tables.TABLES[table](table).to_reader())
            source.commit(table, "samples", 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / ".state"))
        assert main(["run", str(folder / "prepare.sql"), "--source", url]) == 0
    return folder


@pytest.mark.soak
@pytest.mark.parametrize("picture", pictures(), ids=lambda each: each.name)
def test_a_picture_shows_what_its_commands_print(
    picture: Picture, prepared: Path, request: pytest.FixtureRequest
) -> None:
    drawn = draw(picture, prepared)
    if request.config.getoption("--update-golden"):
        picture.path.write_text(drawn, encoding="utf-8")
    shown = shown_lines(picture.path.read_text(encoding="utf-8"), picture.masks)
    assert shown_lines(drawn, picture.masks) == shown, f"make pictures records {picture.path.name} again"


def test_every_picture_is_small_and_loads_nothing() -> None:
    assert {path.name for path in FOLDER.glob("*.svg")} == {picture.path.name for picture in pictures()}
    for picture in pictures():
        svg = picture.path.read_text(encoding="utf-8")
        assert len(svg.encode()) < LARGEST, picture.name
        assert not re.findall(r"@font-face|@import|<script|<image|href=|url\((?!#)", svg), picture.name


def test_pages_use_every_picture() -> None:
    used = {
        (page.parent / path).resolve() for page in PAGES for path, _ in links(page) if path.endswith(".svg")
    }
    assert not {picture.path for picture in pictures()} - used


def test_every_command_has_a_picture() -> None:
    commands = [shlex.split(command) for picture in pictures() for command in picture.commands]
    shown = {words[1] for words in commands if words[0] == "sqlflow"}
    assert set(subcommands(_parser())) - shown == WITHOUT_PICTURE.keys()
