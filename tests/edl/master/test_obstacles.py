"""What workers cannot reach, as the master notes it."""

from __future__ import annotations

from edl.master.reporting.status import Obstacles

AWAY = "does not reach ps-1 at 10.0.0.1:4000: it is away"


def test_a_report_is_noted_when_it_is_new_and_when_it_is_over() -> None:
    notes: list[str] = []
    obstacles = Obstacles(notes.append, "look there")
    for text in ("", AWAY, AWAY, "", ""):
        obstacles.on_heard("worker-1", 0, text)
    assert notes == [f"worker-1 {AWAY}; look there", "worker-1 reaches its peers again"]


def test_a_data_source_that_is_back_is_named() -> None:
    notes: list[str] = []
    obstacles = Obstacles(notes.append)
    for text in ("does not reach the data source: it is away", ""):
        obstacles.on_heard("worker-1", 0, text)
    assert notes[-1] == "worker-1 reaches the data source again"


def test_a_report_belongs_to_one_incarnation() -> None:
    obstacles = Obstacles(lambda text: None)
    obstacles.on_heard("worker-1", 0, AWAY)
    assert [obstacles.of("worker-1", incarnation) for incarnation in (0, 1)] == [AWAY, ""]
