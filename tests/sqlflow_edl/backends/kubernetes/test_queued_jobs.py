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
