"""The records of a range of a topic, of all its partitions, in the order of their stream times. Knows no Beam."""

import heapq
import time
from collections.abc import Iterator, Sequence

from kafka.errors import KafkaTimeoutError

from transforms.kafka_clock import EventTime, event_time
from transforms.kafka_config import KafkaConfig
from transforms.kafka_range import Span
from transforms.kafka_reader import PartitionReader, to_kafka_record
from transforms.stream_records import KafkaPartition, KafkaRecord

_FETCH_MS = 500
_SILENCE_S = 60.0


class RangeReader:
    """Reads the spans of one topic side by side; for one thread, once."""

    def __init__(self, config: KafkaConfig, topic: str, spans: Sequence[Span], now_ms: int) -> None:
        """now_ms: the clock by which a timestamp is one of the future."""
        self._config = config
        self._topic = topic
        self._spans = spans
        self._now_ms = now_ms
        self._within = {span.partition for span in spans}

    @property
    def past(self) -> bool:
        """Whether all records of the range itself have been given; those that follow only end its sessions."""
        return not self._within

    def records(self) -> Iterator[KafkaRecord]:
        """Gives the records from `begin` to `end` of all spans; a partition's own keep their order.

        Raises:
            KafkaTimeoutError: the broker has stopped answering.
            ConfigError: records have been deleted, and the configuration does not allow that.
        """
        return heapq.merge(*map(self._span_records, self._spans), key=lambda record: record.stream_ms)

    def _span_records(self, span: Span) -> Iterator[KafkaRecord]:
        reader = PartitionReader(self._config, KafkaPartition(self._topic, span.partition))
        try:
            reader.seek(span.begin)
            for record in self._until(reader, span):
                if record.offset >= span.last:
                    self._within.discard(span.partition)
                yield record
            self._within.discard(span.partition)
        finally:
            reader.close()

    def _until(self, reader: PartitionReader, span: Span) -> Iterator[KafkaRecord]:
        heard_s, seen_ms = time.monotonic(), 0
        while reader.place() < span.end:
            for record in reader.poll(_FETCH_MS, self._config.max_round_records):
                if record.offset >= span.end:
                    return
                of = event_time(record.timestamp, self._now_ms, self._config.max_future_ms)
                # When it was read by the live job nobody knows any more; what came before it was there by then.
                of = EventTime(seen_ms, True) if of.substituted else of
                seen_ms = reader.clock.stamp(of.event_ms)
                reader.claimed(record.offset)
                yield to_kafka_record(record, of, seen_ms, self._now_ms, lost_before=reader.lost_before)
                heard_s = time.monotonic()
            if time.monotonic() - heard_s > _SILENCE_S:
                place = f"{self._topic}[{span.partition}]"
                raise KafkaTimeoutError(f"{place}: nothing came for {_SILENCE_S:.0f} s before offset {span.end}")
