"""`sqlflow help`, and the pages that other texts name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sqlflow_edl.cli.main import main

NAMED = re.compile(r"sqlflow help ([a-z][a-z/-]*)")


def test_a_page_is_shown_as_it_is_to_a_pipe(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for topic in ("serving", "tutorials/fraud"):
        assert main(["help", topic]) == 0
        assert capsys.readouterr().out == (repository / f"docs/{topic}.md").read_text(encoding="utf-8")


def test_without_a_topic_the_pages_are_listed_with_their_titles(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help"]) == 0
    listed = capsys.readouterr().out
    assert re.search(r"^install +Installing *$", listed, re.MULTILINE)
    assert re.search(r"^tutorials/housing +\S", listed, re.MULTILINE)


def test_an_unknown_page_is_told_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "servin"]) == 1
    assert "did you mean serving?" in capsys.readouterr().err


def test_words_list_the_sections_that_have_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "delete", "old", "jobs"]) == 0
    said = capsys.readouterr()
    heading, *rows = said.out.splitlines()
    assert heading.split() == ["topic", "section", "line"]
    assert re.match(r"jobs +Old jobs +Folders of ended jobs stay on this machine", rows[0])
    assert said.err == "sqlflow help jobs shows the first page\n"


def test_words_that_resemble_the_name_of_a_page_are_searched_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "explain one row"]) == 0
    assert "tutorials/customers" in capsys.readouterr().out


def test_words_of_no_page_are_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "quaternion"]) == 1
    assert "sqlflow help lists the pages" in capsys.readouterr().err


def test_texts_name_pages_that_exist(repository: Path) -> None:
    sources = [*(repository / "sqlflow_edl").rglob("*.py"), *(repository / "runtime" / "edl").rglob("*.py")]
    named = {topic for path in sources for topic in NAMED.findall(path.read_text(encoding="utf-8"))}
    assert {"serving", "kubernetes"} <= named
    assert [topic for topic in named - {"lists"} if not (repository / f"docs/{topic}.md").exists()] == []


@pytest.mark.parametrize("command", ["run", "console", "export", "serve", "ui", "language-server"])
def test_the_help_of_a_command_names_no_file_of_the_checkout(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert "docs/" not in capsys.readouterr().out
