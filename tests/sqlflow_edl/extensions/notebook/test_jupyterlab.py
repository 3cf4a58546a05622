"""Cells in JupyterLab and Notebook 7, as a browser shows them, beside an installed wheel."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.browser import MISSING, Chromium, chromium
from tests.distributions import Installation

PROGRAMS = Path(sys.prefix) / "jupyterlab" / "bin"
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(chromium() is None, reason=MISSING),
    pytest.mark.skipif(
        not (PROGRAMS.parent / "ready").exists(),
        reason="JupyterLab is not installed: `make jupyterlab` does that",
    ),
]

CELLS = (
    "import os\nselect = 'FROM'",
    "%%sqlflow --source duckdb:\nSELECT x, 'a\n#' FROM t\nTO TRAIN DNNClassifier WITH train.epochs = 3\nLABEL x INTO m",
    "%%bash\nfor x in SELECT; do echo; done",
)
CONTENTS = "[...document.querySelectorAll('.jp-CodeCell .cm-content')]"
LANGUAGES = f"{CONTENTS}.map((cell) => cell.dataset.language)"
SPANS = """[...document.querySelectorAll('.jp-CodeCell .cm-content')].map((cell) => [...cell.querySelectorAll(
    '.cm-line span')].map((span) => [span.textContent, getComputedStyle(span).color]))"""
KEYWORDS = {"SELECT", "FROM", "TO", "TRAIN", "WITH", "LABEL", "INTO"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a notebook."""
    folder = tmp_path_factory.mktemp("notebooks")
    cell: dict[str, Any] = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    notebook = {
        "cells": [{**cell, "id": f"c{number}", "source": text} for number, text in enumerate(CELLS)],
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (folder / "cells.ipynb").write_text(json.dumps(notebook))
    return folder


@contextmanager
def running(application: str, folder: Path, extensions: Path) -> Iterator[str]:
    """Run JupyterLab or Notebook with the extensions, and yield its URL."""
    home = folder.with_name(f"{folder.name}-{application}")
    homes = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    options = [
        "--allow-root",
        "--no-browser",
        "--ServerApp.ip=127.0.0.1",
        "--ServerApp.port=0",
        "--IdentityProvider.token=",
        f"--ServerApp.root_dir={folder}",
        f"--LabServerApp.extra_labextensions_path={extensions}",
    ]
    with subprocess.Popen(
        [PROGRAMS / f"jupyter-{application}", *options],
        env={**os.environ, **{name: str(home / name.lower()) for name in homes}},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            said = (re.search(r"http://127\.0\.0\.1:\d+/", line) for line in process.stderr)
            url = next(filter(None, said))[0]
            threading.Thread(target=process.stderr.read, daemon=True).start()  # else the pipe could fill
            yield url
        finally:
            process.terminate()


@pytest.mark.parametrize(("application", "path"), [("lab", "lab/tree/"), ("notebook", "notebooks/")])
def test_a_cell_has_the_colours_of_sql_as_long_as_it_begins_with_the_magic(
    application: str, path: str, folder: Path, installation: Installation, tmp_path: Path
) -> None:
    extensions = installation.folder / "share" / "jupyter" / "labextensions"
    program = chromium()
    assert program is not None
    with running(application, folder, extensions) as url, Chromium(program, tmp_path / "profile") as page:
        page.window(1200, 900)
        page.open(f"{url}{path}cells.ipynb")
        page.until(f"String({LANGUAGES}) === 'python,sqlflow,python'", seconds=90)
        page.until(f"{SPANS}[0].length > 2")  # Python's own colours come later
        keep(page, application)

        python, sql, bash = map(colours, page.run(SPANS))
        assert {word for word, colour in sql.items() if colour == python["import"]} == KEYWORDS
        assert sql["'a"] == python["'FROM'"]
        assert "select" not in python
        assert "SELECT" not in bash

        page.run(f"{CONTENTS}[0].focus()")
        page.run("document.execCommand('selectAll')")
        page.call("Input.insertText", text="%%sqlflow\nSHOW MODELS")
        page.until(f"String({LANGUAGES}) === 'sqlflow,sqlflow,python'")
        assert "MODELS" in colours(page.run(SPANS)[0])
        page.run("document.execCommand('selectAll')")
        page.call("Input.insertText", text="import os")
        page.until(f"String({LANGUAGES}) === 'python,sqlflow,python'")


def colours(spans: list[list[str]]) -> dict[str, str]:
    return {span[0]: span[1] for span in spans}


def keep(page: Chromium, name: str) -> None:
    """Keep a picture of the page, where somebody wants one."""
    if folder := os.environ.get("WEB_PICTURES"):
        Path(folder, f"jupyter-{name}.png").write_bytes(page.picture())
