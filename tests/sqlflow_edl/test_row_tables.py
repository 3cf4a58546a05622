"""Categories of many ids, with rows in tables outside of the graph, from TRAIN to PREDICT in both frameworks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.databases import fill
from tests.workshops import Workshop

VISITS = pa.table(
    {
        "who": [f"user {i * 7919 % 211}" for i in range(1500)],
        "page": [f"page {i % 53}" for i in range(1500)],
        "seconds": [float(i % 10) for i in range(1500)],
        "bought": [i * 7919 % 211 % 2 for i in range(1500)],
    }
)
NEW = "SELECT REPLACE(who, 'u', 'U') AS who, REPLACE(page, 'p', 'P') AS page, seconds FROM visits WHERE seconds = 3"
COLUMNS = "COLUMN seconds, hash(who, 100000), hash(page, 100000)"


@pytest.fixture(scope="session")
def workshop(workshop: Workshop) -> Workshop:
    """With a DeepFM over two large categories, of which it keeps the best epoch."""
    fill(workshop.session, "visits", VISITS)
    workshop.run(train(workshop.framework, "INTO shop"))
    return workshop


def train(framework: str, into: str, epochs: int = 8) -> str:
    settings = f"embedding_dim = 4, hidden_units = [8], epochs = {epochs}, train.keep = best, batch_size = 64"
    return (
        f"SELECT * FROM visits TO TRAIN DeepFMClassifier WITH {settings}, lr = 0.01, model.framework = {framework} "
        f"{COLUMNS} LABEL bought {into}"
    )


@pytest.mark.soak
def test_only_rows_that_were_trained_are_in_the_archive(workshop: Workshop, tmp_path: Path) -> None:
    found = workshop.archive("shop", tmp_path)
    weights = found.weights()
    tables = {name for name in weights if ":" in name}
    names = ("f1_embedding", "f1_weights")
    assert tables == {f"{name}:{part}" for name in names for part in ("ids", "rows", "seed")}
    assert 200 < len(weights["f1_embedding:ids"]) <= 211 + 53
    numbers = sum(value.size for name, value in weights.items() if not name.endswith((":ids", ":seed")))
    assert found.parameters() == numbers


@pytest.mark.soak
def test_the_same_statement_gives_the_same_rows_bit_for_bit(workshop: Workshop, tmp_path: Path) -> None:
    workshop.run(train(workshop.framework, "INTO again"))
    one, other = (workshop.archive(name, tmp_path).weights() for name in ("shop", "again"))
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_what_was_learned_is_there_when_it_is_used(workshop: Workshop) -> None:
    [measured] = workshop.run("SELECT * FROM visits TO EVALUATE shop LABEL bought")
    assert measured.figures is not None
    accuracy = measured.figures["accuracy"]
    assert accuracy is not None and accuracy > 0.9
    [predicted] = workshop.run("SELECT * FROM visits TO PREDICT USING shop")
    table = predicted.to_arrow()
    assert len(table) == 1500
    assert accuracy == pytest.approx(
        np.mean([a == b for a, b in zip(table["bought"].to_pylist(), labels(workshop), strict=True)]),
        abs=1e-6,
    )


def labels(workshop: Workshop) -> list[int]:
    [rows] = workshop.run("SELECT bought FROM visits")
    found: list[int] = rows.to_arrow()["bought"].to_pylist()
    return found


def test_ids_that_were_never_trained_are_predicted_alike_every_time(workshop: Workshop) -> None:
    columns = []
    for _ in range(2):
        [result] = workshop.run(f"{NEW} TO PREDICT USING shop")
        columns.append(result.to_arrow()["bought_confidence"].to_pylist())
    assert columns[0] == columns[1]
    assert len(set(columns[0])) > 30


@pytest.mark.soak
def test_training_goes_on_from_the_rows_of_a_model(workshop: Workshop, tmp_path: Path) -> None:
    workshop.run(
        "SELECT * FROM visits WHERE seconds < 5 TO TRAIN DeepFMClassifier WITH epochs = 1, lr = 0 "
        "LABEL bought USING shop INTO same_rows",
    )
    parent, child = (workshop.archive(name, tmp_path).weights() for name in ("shop", "same_rows"))
    assert set(parent["f1_embedding:ids"]) == set(child["f1_embedding:ids"])
    assert np.array_equal(parent["f1_embedding:rows"], child["f1_embedding:rows"])
