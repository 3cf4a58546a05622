"""Topics of Kafka as sources of `edl.elastic.stream`, read by `confluent-kafka`.

The offsets are the offsets in the topic's partitions. They are kept with the model, not by Kafka: no group of consumers
is used, and nothing is committed to the broker.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from edl.errors import SemanticError, SourceError
from edl.installation import install_extras

TIMEOUT = 30.0  # seconds for an answer of the brokers
WAIT_MS = 20  # of a broker for more messages: a worker reads another place with each step


class Topic:
    """Topic of Kafka. Its records are the values of the messages, bytes.

    `servers` are addresses of brokers, host:port, with commas between several. `settings` are librdkafka's, such as
    {"security.protocol": "SSL"}. Connects at the first use. Raises SemanticError if the package is missing, and
    SourceError if the brokers do not answer.
    """

    def __init__(self, topic: str, servers: str, settings: Mapping[str, Any] | None = None) -> None:
        try:
            import confluent_kafka
        except ImportError:
            raise SemanticError("confluent-kafka is not installed", hint=install_extras("kafka")) from None
        self._kafka = confluent_kafka
        self._topic = topic
        self._settings = {
            "group.id": "sqlflow-edl",  # required, and not used
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": WAIT_MS,
            **(settings or {}),
            "bootstrap.servers": servers,
        }
        self._at: tuple[int, int] | None = None  # partition and offset that the consumer reads next

    def partitions(self) -> Sequence[int]:
        topic = self._asked(lambda: self._consumer.list_topics(self._topic, timeout=TIMEOUT)).topics[
            self._topic
        ]
        if topic.error is not None:
            raise SourceError(f"the topic {self._topic!r} of Kafka: {topic.error}")
        return sorted(topic.partitions)

    def earliest(self) -> dict[int, int]:
        """Return the offset of the first record of each partition, for `start` of a stream."""
        return {partition: self._offsets(partition)[0] for partition in self.partitions()}

    def latest(self, partition: int) -> int:
        return self._offsets(partition)[1]

    def read(self, partition: int, offset: int, rows: int) -> list[bytes]:
        """Return the values of the messages at [offset, offset + rows); fewer if the topic lacks some of them."""
        if self._at != (partition, offset):
            self._asked(
                lambda: self._consumer.assign([self._kafka.TopicPartition(self._topic, partition, offset)])
            )
        self._at = None
        end = time.monotonic() + TIMEOUT
        values: list[bytes] = []
        while len(values) < rows and time.monotonic() < end:
            messages = self._asked(
                lambda: self._consumer.consume(rows - len(values), max(0.0, end - time.monotonic()))
            )
            for message in messages:
                if message.error() is not None:
                    where = f"partition {partition} of the topic {self._topic!r} at offset {offset:,}"
                    raise SourceError(f"{where}: {message.error().str()}")
                if message.offset() >= offset + rows:  # compacted, or a marker of a transaction
                    return values
                values.append(message.value() or b"")
        self._at = partition, offset + rows
        return values

    def _offsets(self, partition: int) -> tuple[int, int]:
        place = self._kafka.TopicPartition(self._topic, partition)
        offsets: tuple[int, int] = self._asked(
            lambda: self._consumer.get_watermark_offsets(place, timeout=TIMEOUT)
        )
        return offsets

    @cached_property
    def _consumer(self) -> Any:
        return self._asked(lambda: self._kafka.Consumer(self._settings))

    def _asked(self, call: Any) -> Any:
        try:
            return call()
        except self._kafka.KafkaException as error:
            said = error.args[0].str() if hasattr(error.args[0], "str") else error
            raise SourceError(f"the topic {self._topic!r} of Kafka: {said}") from None
