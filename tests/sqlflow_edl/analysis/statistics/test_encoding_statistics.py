"""Statistics of categories from the pinned training rows, against loops over these rows by hand."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from edl import data, spec
from edl.features import Features
from edl.features.folds import FoldReader, folds_of
from edl.jobs import job_folder
from sqlflow_edl.session.observer import Silent
from sqlflow_edl.session.pinning import pin_and_fit
from sqlflow_edl.session.session import Session

TABLE = """
CREATE TABLE sales AS
SELECT CASE WHEN range % 13 = 0 THEN NULL ELSE 'shop ' || range * range % 9 END AS shop, range * 0.5 AS x,
       (range % 10) * 1.5 AS amount, ['low', 'mid', 'high'][1 + range * range % 7 % 3] AS level,
       range % 3 = 0 AS sold, 1 + range % 4 AS often
FROM range(200)
"""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with Session(f"duckdb:///{tmp_path}/x.duckdb", create=True) as session:
        session.source.execute(TABLE)
        yield session


def fixed(session: Session, text: str) -> tuple[spec.JobSpec, list[dict[str, Any]], Any]:
    """The JobSpec of a statement, its pinned rows, and their reader."""
    [statement] = session.parse(text)
    job = job_folder.create("train", statement.text)
    found = pin_and_fit(session.source, session.compiler.training_plan(statement), job, Silent())
    reader = data.open_reader(found.pinned, job.rows)
    rows = pa.Table.from_batches(reader.read(0, reader.rows)).to_pylist()
    return found.spec, rows, reader


def encoded(job: spec.JobSpec, reader: Any) -> Any:
    """The features of all rows, as the training of the job sees them."""
    folds = folds_of(job.features, job.rows)
    given = FoldReader(reader, folds, job.rows) if folds else reader
    batch = pa.Table.from_batches(given.read(0, reader.rows)).combine_chunks().to_batches()[0]
    return Features(*job.features).transform(batch)["dense"]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("label", "values", "weight"),
    [
        ("amount", (lambda row: float(row["amount"]),), ""),
        ("sold", (lambda row: float(row["sold"]),), ""),
        ("level", (lambda row: float(row["level"] == "high"), lambda row: float(row["level"] == "low")), ""),
        ("amount", (lambda row: float(row["amount"]),), "often"),
    ],
)
def test_training_rows_have_the_mean_label_of_the_other_folds(
    session: Session, label: str, values: Any, weight: str
) -> None:
    with_weight = f"WITH train.weight_column = {weight}" if weight else ""
    job, rows, reader = fixed(
        session,
        f"SELECT shop, x, {label}{f', {weight}' if weight else ''} FROM sales TO TRAIN BoostedTrees {with_weight} "
        f"COLUMN TARGET_ENCODE(shop, smoothing=3) LABEL {label} INTO m",
    )
    found = encoded(job, reader)
    assert found.shape[1] == len(values) + 1  # with x
    training = job.rows.training
    assert np.ptp(found[:, 0]) > 0.1
    for place, row in enumerate(rows):
        used = [
            other
            for there, other in enumerate(rows[:training])
            if place >= training or there % 5 != place % 5
        ]
        for output, value in enumerate(values):
            wanted = _smoothed(row, used, value, job.weights)
            assert found[place, output] == pytest.approx(wanted, rel=1e-5), place


def _smoothed(
    row: dict[str, Any], used: list[dict[str, Any]], value: Any, weights: spec.Weights | None
) -> float:
    def mean(rows: list[dict[str, Any]], prior: float, smoothing: float) -> float:
        counts = [row[weights.column] / weights.mean if weights else 1.0 for row in rows]
        total = sum(count * value(row) for count, row in zip(counts, rows, strict=True))
        return (total + smoothing * prior) / (sum(counts) + smoothing)

    prior = mean(used, 0.0, 0.0)
    same = [other for other in used if other["shop"] == row["shop"]]
    return mean(same, prior, 3.0) if same else prior


@pytest.mark.soak
def test_a_count_is_the_logarithm_of_the_training_rows_of_the_category(session: Session) -> None:
    job, rows, reader = fixed(
        session,
        "SELECT shop, sold FROM sales TO TRAIN BoostedTrees COLUMN COUNT_ENCODE(shop) LABEL sold INTO m",
    )
    counts = Counter(row["shop"] for row in rows[: job.rows.training])
    wanted = [math.log1p(counts[row["shop"]]) for row in rows]
    np.testing.assert_allclose(encoded(job, reader)[:, 0], wanted, rtol=1e-6)


@pytest.mark.parametrize("model", ["BoostedTrees", "DNN"])
def test_means_of_groups_are_those_of_the_training_rows(session: Session, model: str) -> None:
    job, rows, reader = fixed(
        session,
        f"SELECT shop, x, amount FROM sales TO TRAIN {model} COLUMN GROUP_MEAN(x, shop), GROUP_DIFFERENCE(x, shop) "
        "LABEL amount INTO m",
    )
    known = [row for row in rows[: job.rows.training] if row["x"] is not None]
    groups: dict[object, list[float]] = {}
    for row in known:
        groups.setdefault(row["shop"], []).append(float(row["x"]))
    of_all = float(np.mean([float(row["x"]) for row in known]))
    means = np.array([np.mean(groups.get(row["shop"], [of_all])) for row in rows])
    numbers = np.array([np.nan if row["x"] is None else float(row["x"]) for row in rows])
    wanted = np.column_stack([means, numbers - means])
    if model == "DNN":
        training = [place for place, row in enumerate(rows[: job.rows.training]) if row["x"] is not None]
        centred = np.column_stack([means - of_all, numbers - means])
        wanted = np.nan_to_num(centred / np.sqrt(np.mean(np.square(centred[training]), axis=0)))
    np.testing.assert_allclose(encoded(job, reader)[:, :2], wanted, rtol=1e-5, atol=1e-6)


def test_the_candidates_of_a_search_have_folds_within_each_block_that_validates(session: Session) -> None:
    job, rows, _ = fixed(
        session,
        "SELECT shop, x, amount FROM sales TO TRAIN BoostedTrees WITH train.num_leaves = CANDIDATES(4, 8), "
        "validation.folds = 4 COLUMN TARGET_ENCODE(shop), COUNT_ENCODE(shop) LABEL amount INTO m",
    )
    assert job.search is not None
    for candidate in job.search.candidates:
        means, counts = candidate.spec.features[:2]
        assert isinstance(means, spec.TargetMean)
        assert isinstance(counts, spec.LogCount)
        assert (means.folds, means.rows, means.blocks) == (8, len(rows), 4)
        assert sum(means.counts) == sum(counts.counts) == len(rows)


def test_a_plan_has_no_statistics_as_its_rows_are_not_pinned(session: Session) -> None:
    text = (
        "SELECT shop, amount FROM sales TO TRAIN BoostedTrees COLUMN TARGET_ENCODE(shop) LABEL amount INTO m"
    )
    [planned] = session.compile(text)
    [means] = planned.spec.features
    assert isinstance(means, spec.TargetMean)
    assert (means.counts, means.sums, means.folds) == ((), (), 0)
