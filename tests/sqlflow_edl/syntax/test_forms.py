"""The forms of statements that people read."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlflow_edl.syntax import parse
from sqlflow_edl.syntax.forms import STATEMENTS, line
from sqlflow_edl.syntax.kinds import TRAITS

KINDS = {
    "TRAIN": "train",
    "PREDICT": "predict",
    "EVALUATE": "evaluate",
    "EVALUATE WITH": "measure",
    "TO EXPLAIN": "explain",
    "TO MAXIMIZE": "optimize",
    "LABEL": "auto",
    "CREATE MODEL": "import_model",
    "EXPORT MODEL": "export_model",
    "EXPLAIN": "train",
    "SHOW MODELS": "show_models",
    "TO RUN": "run",
    "SHOW TRAIN": "show_train",
    "SHOW CURVE": "show_curve",
    "SHOW TRIALS": "show_trials",
    "SHOW FEATURES": "predict",
    "DESCRIBE MODEL": "describe_model",
    "SET MODEL": "set_model",
    "SET MODEL TAG": "set_tag",
    "ALTER MODEL": "rename_model",
    "ALTER MODEL SET OPTIONS": "set_facts",
    "DROP MODEL TAG": "drop_tag",
    "DROP MODEL": "drop_model",
}


FUNCTIONS = {
    "show_metrics",
    "show_importances",
    "show_columns",
    "show_weights",
    "show_confusion",
    "show_roc_curve",
    "show_centroids",
}  # of BigQuery ML


def test_every_kind_has_a_form_but_those_that_are_written_as_functions() -> None:
    assert {*KINDS.values()} == {*TRAITS} - {"sql"} - FUNCTIONS


def test_the_documentation_of_the_language_begins_with_them(repository: Path) -> None:
    written = (repository / "docs" / "language.md").read_text(encoding="utf-8").split("```")[1]
    assert [each for each in written.splitlines() if each] == [line(form) for form in STATEMENTS.values()]


@pytest.mark.parametrize("name", STATEMENTS)
def test_an_example_is_a_statement_of_its_form(name: str) -> None:
    [statement] = parse(STATEMENTS[name].example)
    assert statement.kind == KINDS[name]
    assert statement.plan == (name == "EXPLAIN")
