"""What whole jobs on a cluster leave in the data source: models with embeddings, explanations, reports. See `place`."""

from __future__ import annotations

import pytest

from tests.sqlflow_edl.backends.kubernetes.place import Place, until
from tests.sqlflow_edl.backends.kubernetes.whole_jobs import (
    ROWS,
    brief,
    last_job,
    nothing_left,
    place,
    points,
    report,
    run,
)

__all__ = ["place", "points"]

EMBEDDED = (
    "SELECT a, c, k FROM points TO TRAIN DNNClassifier WITH model.framework = torch, hidden_units = [8], "
    "batch_size = 50, epochs = 4, {how} COLUMN a, EMBEDDING(HASH(c, 4096), 4) LABEL k INTO m"
)
EXPLAIN = "SELECT n, a, c FROM points WHERE n <= 200 TO EXPLAIN m WITH explain.num_workers = 2 INTO reasons"
REPORT = (
    "SELECT a, c, k FROM points TO EVALUATE m WITH evaluate.report = confusion_matrix, "
    "evaluate.num_workers = 2 INTO matrix"
)


@pytest.fixture
def classes(points: Place) -> Place:
    """k: of two classes, by the parity of c, which has 50 values."""
    points.query("ALTER TABLE points ADD c INT AS (n % 50) STORED, ADD k INT AS (n % 2) STORED")
    return points


def check_reasons(place: Place) -> None:
    [found] = place.query(
        "SELECT COUNT(*) AS n, COUNT(DISTINCT n) AS known, "
        "SUM(a_shap IS NULL) + SUM(c_shap IS NULL) AS lacking FROM reasons"
    )
    assert (int(found["n"]), int(found["known"]), int(found["lacking"])) == (200, 200, 0)


def check_matrix(place: Place) -> None:
    found = place.query("SELECT k, predicted, row_count FROM matrix")
    assert sum(int(row["row_count"]) for row in found) == ROWS
    right = sum(int(row["row_count"]) for row in found if str(row["k"]) == str(row["predicted"]))
    assert right > 0.8 * ROWS


@pytest.mark.soak
def test_servers_train_embeddings_that_are_explained_and_measured_into_tables(
    classes: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    options = brief(classes)[len(classes.options) :]
    run(classes, capsys, EMBEDDED.format(how="num_workers = 2, num_ps = 2"), *options)
    run(classes, capsys, f"{EXPLAIN}; {REPORT}", *options)
    check_reasons(classes)
    check_matrix(classes)
    nothing_left(classes, "reasons", "matrix")


def end(capsys: pytest.CaptureFixture[str], job: str) -> None:
    """Wait until a job that nobody follows is done."""
    found = {"state": "running"}

    def over() -> bool:
        found.update(report(capsys, job))
        return found["state"] != "running"

    until(over, pause=0.5)
    assert found["state"] == "done", found


@pytest.mark.soak
def test_explanations_and_reports_need_no_client(classes: Place, capsys: pytest.CaptureFixture[str]) -> None:
    options = brief(classes)[len(classes.options) :]
    run(classes, capsys, EMBEDDED.format(how="num_workers = 1"), *options)
    for statement in (EXPLAIN, REPORT):
        run(classes, capsys, statement, *options, "--detach")
        end(capsys, last_job().id)
    check_reasons(classes)
    check_matrix(classes)
    nothing_left(classes, "reasons", "matrix")
