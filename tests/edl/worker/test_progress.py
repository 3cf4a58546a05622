"""Progress events."""

from __future__ import annotations

import pytest

from edl.jobs.events import Progress
from edl.worker.progress import INTERVAL, Meter
from tests.edl.worker.test_steps_per_call import Clock


def meter(clock: Clock) -> tuple[Meter, list[Progress]]:
    events: list[Progress] = []
    return Meter(events.append, "training", 1000, epochs=2, clock=clock), events  # type: ignore[arg-type]


def test_at_most_five_events_come_a_second() -> None:
    clock = Clock()
    subject, events = meter(clock)
    for _ in range(1000):
        clock.now += 0.01
        subject.add(1)
    assert 45 <= len(events) <= 10 / INTERVAL


def test_losses_are_of_the_time_since_the_last_event_and_the_first_steps_do_not_count_for_the_rate() -> None:
    clock = Clock()
    subject, events = meter(clock)
    for loss, rows in ((1.0, 10), (3.0, 30)):
        clock.now += 0.1
        subject.add(rows, steps=1, epoch=1, loss=loss)
    [event] = events
    assert event == Progress("training", 40, 1000, pytest.approx(300.0), 1, 2, 2, 2.5)
    clock.now += 1
    subject.add(100, steps=1, epoch=1, loss=7.0)
    assert events[1].loss == 7.0
    assert events[1].rows_per_second == pytest.approx(130 / 1.1)


def test_time_that_goes_to_measuring_slows_the_rate() -> None:
    clock = Clock()
    subject, events = meter(clock)
    subject.add(100)
    clock.now += 9  # held-out rows
    clock.now += 1
    subject.add(100)
    assert events[-1].rows_per_second == pytest.approx(10)


def test_an_event_says_that_early_stopping_may_end_the_training() -> None:
    events: list[Progress] = []
    Meter(events.append, "training", 10, may_end_early=True, clock=Clock()).show()  # type: ignore[arg-type]
    assert events[0].may_end_early


def test_an_event_without_steps_has_no_loss() -> None:
    subject, events = meter(Clock())
    subject.show()
    assert events[0].loss is None
    assert events[0].rows_per_second == 0
