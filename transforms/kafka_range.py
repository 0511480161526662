"""A range of a topic as input of the batch job, kafka:TOPIC/PARTITION@FROM..TO, and where it lies in each partition."""

import re
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import NamedTuple

from kafka import KafkaConsumer, TopicPartition

from model_runtime.errors import ConfigError
from transforms.kafka_config import KafkaConfig
from transforms.kafka_topics import connect, list_partitions

_SCHEME = "kafka:"
_FORM = re.compile(r"kafka:(?P<topic>[A-Za-z0-9._-]+)(?:/(?P<partition>\d+))?@(?P<first>.*?)\.\.(?P<last>.*)")
_FIRST_RECORD_MS = 10_000


class Edge(NamedTuple):
    """A border of a range: an offset, or a time (Unix ms): the first record with that timestamp or a later one."""

    offset: int | None = None
    time_ms: int | None = None


class KafkaRange(NamedTuple):
    """What an input names. partition: None for all; first, last: None for the topic's beginning and present end."""

    topic: str
    partition: int | None
    first: Edge | None
    last: Edge | None


class Span(NamedTuple):
    """A range in one partition: the offsets first..last-1.

    begin: where reading begins, so that sessions that were under way at `first` are known as such; end: where it ends
    at the latest, the partition's end when the range was looked up: sessions that began in the range are heard to
    their ends.
    """

    partition: int
    begin: int
    first: int
    last: int
    end: int


def is_range(text: str) -> bool:
    """Whether an input names a range of a topic."""
    return text.startswith(_SCHEME)


def parse_range(text: str) -> KafkaRange:
    """Gives the range that an input names. Times are ISO 8601, in UTC where they name no zone.

    Raises:
        ConfigError: it is not written so, or a time is none.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        raise ConfigError(f"input: {text!r} must be kafka:TOPIC@FROM..TO or kafka:TOPIC/PARTITION@FROM..TO")
    partition = found["partition"]
    return KafkaRange(
        found["topic"],
        None if partition is None else int(partition),
        _parse_edge(text, found["first"]),
        _parse_edge(text, found["last"]),
    )


def find_spans(config: KafkaConfig, wanted: KafkaRange, look_back_ms: int) -> list[Span]:
    """Asks the broker where the range lies; partitions in which it is empty are left out.

    Args:
        look_back_ms: how long before its first record reading begins.

    Raises:
        ConfigError: no broker answers, there is no such topic or partition, or the range begins with records that have
            been deleted and the configuration does not allow that.
    """
    partitions = list_partitions(config, [wanted.topic])[wanted.topic]
    if wanted.partition is not None:
        if wanted.partition not in partitions:
            raise ConfigError(f"input: topic {wanted.topic} has the partitions {partitions}, not {wanted.partition}")
        partitions = [wanted.partition]
    with connect(config, "read_committed") as consumer:
        spans = [_find_span(config, consumer, wanted, partition, look_back_ms) for partition in partitions]
    return [span for span in spans if span.first < span.last]


def _parse_edge(text: str, edge: str) -> Edge | None:
    if not edge:
        return None
    if edge.isdecimal():
        return Edge(offset=int(edge))
    try:
        # Python 3.10 does not know the Z.
        time = datetime.fromisoformat(edge.replace("Z", "+00:00"))
    except ValueError as error:
        raise ConfigError(f"input: {text!r}: {edge!r} is neither an offset nor an ISO 8601 time") from error
    if time.tzinfo is None:
        time = time.replace(tzinfo=timezone.utc)
    return Edge(time_ms=int(time.timestamp() * 1000))


def _find_span(
    config: KafkaConfig, consumer: KafkaConsumer, wanted: KafkaRange, partition: int, look_back_ms: int
) -> Span:
    tp = TopicPartition(wanted.topic, partition)
    beginning, end = consumer.beginning_offsets([tp])[tp], consumer.end_offsets([tp])[tp]
    first = _offset(consumer, tp, wanted.first, beginning, end)
    last = min(end, _offset(consumer, tp, wanted.last, end, end))
    if first < beginning and config.on_lost_records == "fail":
        raise ConfigError(
            f"input: {wanted.topic}[{partition}] begins at offset {beginning}, records {first} to {beginning - 1} "
            "have been deleted, and kafka.on_lost_records is fail"
        )
    first = max(first, beginning)
    begin = _look_back(consumer, tp, first, look_back_ms) if first < last else first
    return Span(partition, max(beginning, begin), first, last, end)


def _offset(consumer: KafkaConsumer, tp: TopicPartition, edge: Edge | None, default: int, end: int) -> int:
    if edge is None:
        return default
    return edge.offset if edge.offset is not None else _offset_at(consumer, tp, edge.time_ms or 0, end)


def _offset_at(consumer: KafkaConsumer, tp: TopicPartition, time_ms: int, end: int) -> int:
    found = consumer.offsets_for_times({tp: time_ms})[tp]
    return end if found is None else int(found.offset)


def _look_back(consumer: KafkaConsumer, tp: TopicPartition, first: int, look_back_ms: int) -> int:
    """Gives the offset of what was said so long before the record at `first`."""
    consumer.assign([tp])
    consumer.seek(tp, first)
    records: Sequence[object] = consumer.poll(_FIRST_RECORD_MS, max_records=1).get(tp, [])
    if not records:
        return first
    timestamp_ms: int = records[0].timestamp  # type: ignore[attr-defined]  # kafka-python has no types
    return min(first, _offset_at(consumer, tp, max(0, timestamp_ms - look_back_ms), first))
