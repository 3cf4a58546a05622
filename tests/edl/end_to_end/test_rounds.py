"""Rounds in the middle of epochs, measured by a worker that trains."""

from __future__ import annotations

import threading

import pytest

from edl.jobs.events import EpochEnd
from edl.spec import Evaluation
from tests.edl.end_to_end.distributed import Job, table

DEADLINE = 60.0  # seconds; a job that waits for itself is cancelled then, and fails the test


@pytest.mark.soak
def test_rounds_by_steps_and_at_epoch_ends_are_all_measured_by_a_remote_trainer() -> None:
    """A round of an epoch's middle and one of its end come together: the worker is handed tasks of both at once."""
    epochs, batch, rows, held_out = 8, 15, 135, 15
    job = Job(
        table(rows + held_out),
        epochs=epochs,
        batch_size=batch,
        minibatches_per_task=1,
        validation=held_out,
        spec={"evaluation": Evaluation(steps=5)},
    )
    with job.start() as running:
        alarm = threading.Timer(DEADLINE, running.cancel)
        alarm.start()
        try:
            outcome = running.follow(job.events.append)
        finally:
            alarm.cancel()
    told = [event for event in job.events if isinstance(event, EpochEnd)]
    assert [row.epoch for row in outcome.curve if row.final] == list(range(1, epochs + 1))
    assert any(not row.final for row in outcome.curve)
    assert [(row.epoch, row.step, row.final) for row in told] == [
        (row.epoch, row.step, row.final) for row in outcome.curve
    ]
