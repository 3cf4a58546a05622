"""Sources without an end: ranges of their partitions become steps, and a model has each record once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from edl.errors import JobError, SemanticError, SourceError
from edl.extensions import elastic
from edl.extensions.elastic.kafka import Topic
from edl.extensions.elastic.stream import Key, cut, divide_records

SCRIPT = Path(__file__).parents[4] / "samples" / "python" / "stream_elastic.py"


class Lists:
    """Partitions in memory."""

    def __init__(self, **partitions: list[int]) -> None:
        self.of = partitions

    def partitions(self) -> list[str]:
        return [*self.of]

    def latest(self, partition: Key) -> int:
        return len(self.of[str(partition)])

    def read(self, partition: Key, offset: int, rows: int) -> Any:
        return self.of[str(partition)][offset : offset + rows]


def test_a_step_has_records_of_all_partitions_as_far_as_they_have_some() -> None:
    assert divide_records({"a": (5, 100), "b": (0, 3), "c": (7, 7)}, 16) == [("b", 0, 3), ("a", 5, 18)]
    assert divide_records({"a": (0, 9), "b": (0, 9)}, 5) == [("a", 0, 3), ("b", 0, 2)]
    assert divide_records({}, 5) == []


def test_workers_cut_a_step_in_parts_that_meet() -> None:
    ranges = [("b", 0, 3), ("a", 5, 18)]
    parts = [part for low, high in [(0, 2), (2, 9), (9, 16)] for part in cut(ranges, low, high)]
    assert parts == [("b", 0, 2), ("b", 2, 3), ("a", 5, 11), ("a", 11, 18)]


def test_a_stream_goes_on_when_records_come() -> None:
    source = Lists(a=[1, 2, 3], b=[10])
    stream = elastic.stream(source, batch_size=3, wait_secs=0.0)
    records = iter(stream)
    assert next(records) == [10, 1, 2]
    source.of |= {"a": [1, 2, 3, 4], "c": [100]}
    assert next(records) == [100, 3, 4]
    assert stream.offsets == {"a": 2, "b": 1}  # the last ones count when the loop comes back
    source.of["b"] += [11]
    assert next(records) == [11]
    assert stream.offsets == {"a": 4, "b": 1, "c": 1}


def test_a_stream_begins_at_given_offsets_and_has_tables() -> None:
    class Tables(Lists):
        def read(self, partition: Key, offset: int, rows: int) -> Any:
            return pa.table({"x": super().read(partition, offset, rows)})

    stream = elastic.stream(Tables(a=[1, 2, 3], b=[7]), batch_size=4, start={"a": 2}, wait_secs=0.0)
    assert next(iter(stream))["x"].to_pylist() == [3, 7]


@pytest.mark.parametrize("seconds", [-1, 31, float("nan"), "1", True])
def test_workers_do_not_wait_for_records_longer_than_for_each_other(seconds: Any) -> None:
    with pytest.raises(SemanticError, match=r"wait_secs is .*; expected seconds, from 0 to 30"):
        elastic.stream(Lists(a=[1]), batch_size=1, wait_secs=seconds)


def test_a_stream_that_lacks_records_is_an_error() -> None:
    class Forgetful(Lists):
        def read(self, partition: Key, offset: int, rows: int) -> Any:
            return super().read(partition, offset, rows)[1:]

    with pytest.raises(JobError, match=r"'a' of the stream 'train' has 1 records at the offsets \[0, 2\)"):
        next(iter(elastic.stream(Forgetful(a=[1, 2]), batch_size=2)))


@pytest.fixture
def broker() -> Iterator[str]:
    """The address of a broker of librdkafka, with a topic of two partitions, of 5 messages each."""
    from confluent_kafka import Producer

    producer = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    found = next(iter(producer.list_topics(timeout=10).brokers.values()))
    for number in range(10):
        producer.produce("events", value=str(number).encode(), partition=number % 2)
    assert producer.flush(10) == 0
    yield f"{found.host}:{found.port}"
    del producer


def test_a_topic_of_kafka_is_a_stream(broker: str) -> None:
    topic = Topic("events", broker)
    empty = [each for each in topic.partitions() if not topic.latest(each)]
    assert topic.earliest() == dict.fromkeys([0, 1, *empty], 0)
    stream = elastic.stream(topic, batch_size=4, start={0: 1}, wait_secs=0.0)
    found = iter(stream)
    assert [*next(found), *next(found), *next(found)] == [
        b"2",
        b"4",
        b"1",
        b"3",
        b"6",
        b"8",
        b"5",
        b"7",
        b"9",
    ]
    assert stream.offsets == {0: 5, 1: 4}
    assert topic.read(1, 4, 1) == [b"9"]


def test_errors_of_kafka_are_named(broker: str) -> None:
    with pytest.raises(SourceError, match="partition 0 of the topic 'events' at offset 70"):
        Topic("events", broker).read(0, 70, 1)
    with pytest.raises(SourceError, match="'events' of Kafka"):
        Topic("events", broker, {"no.such.setting": "1"}).partitions()


@pytest.mark.soak
def test_workers_learn_from_files_that_grow(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    for name, count in {"a": 250, "b": 90}.items():
        lines = (f"{x},{y},{2 * x - y}\n" for x, y in generator.normal(size=(count, 2)))
        (tmp_path / f"{name}.csv").write_text("".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "edl.cli.main", "run", "--workers", "2", str(SCRIPT), str(tmp_path)]
    alone, together = (
        subprocess.run(each, capture_output=True, text=True, check=True, timeout=120).stdout.splitlines()[-1]
        for each in ([sys.executable, str(SCRIPT), str(tmp_path)], command)
    )
    assert alone.endswith("after 20 steps, offsets {'b': 90, 'a': 230}")
    assert together.endswith(alone.partition("after")[2])
    weights = [
        json.loads(text[text.index("[", 12) : text.index("]", 12) + 1])
        for text in (together, " " * 12 + alone)
    ]
    assert weights[0] == pytest.approx(weights[1], abs=1e-5)
