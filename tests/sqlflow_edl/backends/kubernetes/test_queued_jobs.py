"""Whole jobs that share a queue of the double's Kueue, which has not room for both: see `place`."""

from __future__ import annotations

import pytest

from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main
from tests.sqlflow_edl.backends.kubernetes.place import Place, until
from tests.sqlflow_edl.backends.kubernetes.whole_jobs import (
    TRAIN,
    brief,
    last_job,
    nothing_left,
    place,
    points,
    report,
    sqlflow,
)

__all__ = ["place", "points"]


@pytest.mark.soak
def test_the_second_job_takes_what_the_first_leaves_and_all_of_it_later(
    points: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    if points.double is None:
        pytest.skip("the cluster may have no Kueue")
    points.double.queue(points.namespace, "q", cpu="0.8")  # two masters of 0.1, and three workers of 0.2
    options = [*brief(points), "--set", "queue=q"]
    first = TRAIN.format(epochs=1000, how="num_workers = 2")
    second = first.replace("INTO m", "INTO n")
    points.double.requests()
    with sqlflow("run", "-e", first, *options) as one:
        one.until("epoch 1:")
        with sqlflow("run", "-e", second, *options) as two:
            two.until("note: worker-")  # whichever pod came last
            assert " waits in queue q" in two.lines[-1]
            job = last_job().id
            until(lambda: any(row["rate"] for row in report(capsys, job)["instances"]))  # with one worker
            rows = [row for row in report(capsys, job)["instances"] if row["state"] == "pending"]
            assert [row["note"] for row in rows] == ["waits in queue q"]
            one.interrupt()
            until(lambda: len(report(capsys, job)["members"]) == 2)
            assert main(["cancel", job]) == exit_codes.OK
            assert two.end() != exit_codes.OK
    asked = points.double.requests()
    assert not [
        line for line in asked if line.startswith(("PATCH /api/v1", "PUT /api/v1")) and "/pods/" in line
    ]
    nothing_left(points)


@pytest.mark.soak
def test_a_job_with_a_least_number_of_workers_starts_whole_or_waits(
    points: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    if points.double is None:
        pytest.skip("the cluster may have no Kueue")
    points.double.queue(points.namespace, "q", cpu="0.6")  # two masters of 0.1, and two workers of 0.2
    options = [*brief(points), "--set", "queue=q"]
    first = TRAIN.format(epochs=1000, how="num_workers = 1")
    second = TRAIN.format(epochs=3, how="num_workers = 2").replace("INTO m", "INTO n")
    with sqlflow("run", "-e", first, *options) as one:
        one.until("epoch 1:")
        with sqlflow("run", "-e", second, *options, "--min-workers", "2") as two:
            two.until("note: worker-")
            assert " waits in queue q" in two.lines[-1]
            two.until("the job begins when 2 workers are ready, and 0 are")
            pods = report(capsys, last_job().id)["instances"]
            assert len([row for row in pods if row["state"] == "pending"]) == 2  # though one would fit
            one.interrupt()
            assert two.end() == exit_codes.OK
    nothing_left(points)


def test_a_job_cannot_wait_for_more_workers_than_it_has(
    points: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    statement = TRAIN.format(epochs=1, how="num_workers = 2")
    assert main(["run", "-e", statement, *brief(points), "--min-workers", "3", "--dry-run"]) != exit_codes.OK
    assert "kubernetes.min_workers is 3, and the job has 2 workers" in capsys.readouterr().err
