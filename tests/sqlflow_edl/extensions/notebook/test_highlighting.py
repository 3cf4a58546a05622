"""Colours of SQL in cells: the words and tokens of the extension of JupyterLab, by Node.js where it is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from edl.installation import VERSION
from sqlflow_edl.console.completion_rules import SQL_WORDS
from sqlflow_edl.console.prompt import EXTENDED

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")

TRAINING = """\
%%sqlflow --debug --source duckdb:///a.duckdb -o r
-- SELECT
SELECT 'it''s
open', "from", t.label, 1.5e3::DOUBLE FROM iris /* SELECT
*/ WHERE x <> :fold AND s IN {{ names }}
to train DNNClassifier WITH train.epochs = 3"""
TOKENS = [
    ("meta", "%%sqlflow"),
    ("attributeName", "--debug"),
    ("attributeName", "--source"),
    ("string", "duckdb:///a.duckdb"),
    ("attributeName", "-o"),
    ("string", "r"),
    ("comment", "-- SELECT"),
    ("keyword", "SELECT"),
    ("string", "'"),
    ("string", "it'"),
    ("string", "'"),
    ("string", "s"),
    ("string", "open'"),
    ("variableName", '"'),
    ("variableName", 'from"'),
    ("propertyName", "t.label"),
    ("number", "1.5e3"),
    ("operator", "::"),
    ("variableName", "DOUBLE"),
    ("keyword", "FROM"),
    ("variableName", "iris"),
    ("comment", "/*"),
    ("comment", " SELECT"),
    ("comment", "*/"),
    ("keyword", "WHERE"),
    ("variableName", "x"),
    ("operator", "<>"),
    ("variableName.special", ":fold"),
    ("keyword", "AND"),
    ("variableName", "s"),
    ("keyword", "IN"),
    ("variableName.special", "{{ names }}"),
    ("keyword", "to"),
    ("keyword", "train"),
    ("variableName", "DNNClassifier"),
    ("keyword", "WITH"),
    ("propertyName", "train.epochs"),
    ("operator", "="),
    ("number", "3"),
]


@pytest.fixture(scope="module")
def extension(repository: Path) -> Path:
    return repository / "sqlflow_edl" / "notebook" / "labextension"


def loaded(extension: Path, *cells: str) -> Any:
    """Return what the extension does without the modules of JupyterLab, and the tokens of cells with them."""
    run = subprocess.run(
        ["node", Path(__file__).with_name("highlighting.js"), extension / "highlighting.js"],
        capture_output=True,
        check=True,
        encoding="utf-8",
        input=json.dumps(cells),
    )
    return json.loads(run.stdout)


def test_the_words_equal_the_consoles(extension: Path) -> None:
    script = (extension / "highlighting.js").read_text(encoding="utf-8")
    words = re.search(r"KEYWORDS = new Set\(`([^`]*)`", script)
    assert words is not None
    assert words[1].split() == sorted({*EXTENDED, *SQL_WORDS})


def test_the_version_equals_the_packages(extension: Path) -> None:
    assert json.loads((extension / "package.json").read_text())["version"] == VERSION


@needs_node
def test_a_cell_has_the_tokens_of_its_options_and_of_sql(extension: Path) -> None:
    [tokens] = loaded(extension, TRAINING)["cells"]
    assert [(kind, text) for kind, text in tokens] == TOKENS


@needs_node
def test_other_magics_may_stand_above_and_sql_in_the_line_of_the_magic(extension: Path) -> None:
    timed, kept = loaded(extension, "\n%%time\n%%sqlflow\nSHOW MODELS", "%%sqlflow r << SELECT $$FROM$$")[
        "cells"
    ]
    words = [["keyword", "SHOW"], ["keyword", "MODELS"]]
    assert timed == [["meta", "%%time"], ["meta", "%%sqlflow"], *words]
    assert kept[1:4] == [["variableName", "r"], ["operator", "<<"], ["keyword", "SELECT"]]
    assert kept[4:] == [["string", "$$"], ["string", "FROM$$"]]


@needs_node
def test_an_application_without_the_modules_has_no_plugin_and_is_told_so(extension: Path) -> None:
    found = loaded(extension)
    assert (found["without"], len(found["said"])) == (0, 1)
    assert "@jupyterlab/codemirror is not shared" in found["said"][0]
