"""Scores of single columns on the sample tables: columns that a person would use are no leaks."""

from __future__ import annotations

import pytest

from sqlflow_edl.analysis.checks.predictors import LabelledRows
from sqlflow_edl.analysis.checks.warning import UNUSUAL
from sqlflow_edl.samples.tables import TABLES

LABELS = {
    "iris": "species",
    "breast_cancer": "diagnosis",
    "wine": "cultivar",
    "diabetes": "progression",
    "employee": "income",
    "click_log": "label",
    "flights": "arr_delay",
    "weather": "temp",
    "planes": "manufacturer",
    "airports": "alt",
}
NUMBERS = {"progression", "income", "arr_delay", "temp", "alt"}


@pytest.mark.variants(3)
@pytest.mark.parametrize("name", LABELS)
def test_no_column_of_the_sample_tables_but_ids_is_an_unusual_predictor(name: str) -> None:
    table, label = TABLES[name](name), LABELS[name]
    sample = LabelledRows(label, [each for each in table.column_names if each != "id"], seed=0)
    for batch in table.to_batches(max_chunksize=65_536):
        sample.add(batch)
    scores = {each.column: each.score for each in sample.scores(classes=label not in NUMBERS)}
    assert scores
    assert max(scores.values()) < UNUSUAL, scores
