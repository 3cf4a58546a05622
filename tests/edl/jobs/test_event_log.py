"""The events of a distributed job, in a file that outlives who writes it."""

from __future__ import annotations

from pathlib import Path

from edl.jobs.event_log import EventLog, EventReader, EventStream, read_end
from edl.jobs.events import EpochEnd, Progress, Tally
from edl.jobs.failure import Failed
from edl.jobs.outcome import Outcome

EVENTS = [
    Progress("training", 5, 10, 100.0, 1, 2, 3, None),
    EpochEnd(1, 10, 0.5, {"auc": None}, 1.5),
    Tally(3, 2, 1, instances=2, relaunches=1),
    Failed("runtime", "no\nmore", None),
]


def test_what_is_written_is_read_from_the_start_and_then_on(tmp_path: Path) -> None:
    path = tmp_path / "cluster" / "events.jsonl"
    reader = EventReader(path)
    assert list(reader.read()) == []
    with EventLog(path) as log:
        log.write(EVENTS[0])
        assert list(reader.read()) == EVENTS[:1]
        for event in EVENTS[1:]:
            log.write(event)
        assert list(reader.read()) == EVENTS[1:]
    assert list(EventReader(path).read()) == EVENTS
    reader.close()


def test_half_a_line_of_a_killed_master_harms_no_event(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventLog(path) as log:
        log.write(EVENTS[0])
    with path.open("ab") as file:
        file.write(b'{"type":"epo')
    reader = EventReader(path)
    assert list(reader.read()) == EVENTS[:1]
    with EventLog(path) as log:
        log.write(EVENTS[1])
    assert list(reader.read()) == EVENTS[1:2]
    reader.close()


def test_a_reader_goes_on_when_the_file_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventLog(path) as log, EventReader(path) as reader:
        assert list(reader.read()) == []
        log.write(EVENTS[3])
        path.unlink()
        assert list(reader.read()) == EVENTS[3:]


def test_the_first_end_counts(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    assert read_end(path) is None
    with EventLog(path) as log:
        log.write(EVENTS[0])
        assert read_end(path) is None
        log.write(Outcome("predict", 10, 1.0))
        log.write(EVENTS[3])
    assert read_end(path) == Outcome("predict", 10, 1.0)


def test_events_in_a_stream_are_lines_among_others(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as stream:
        events = EventStream(stream)
        for event in EVENTS:
            events.write(event)
            stream.write(b"something else\n")
    with EventReader(path) as reader:
        assert list(reader.read()) == EVENTS
