"""ReadFromKafka: a topic as an unbounded stream of records, one splittable DoFn over its partitions."""

import time
from collections.abc import Iterator
from functools import partial

import apache_beam as beam
from apache_beam.io.iobase import RestrictionTracker
from apache_beam.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker
from apache_beam.io.watermark_estimators import ManualWatermarkEstimator
from apache_beam.metrics import Metrics
from apache_beam.transforms.core import RestrictionProvider
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import Timestamp
from kafka.consumer.fetcher import ConsumerRecord

from transforms.bundle_load import INFERENCE
from transforms.kafka_clock import event_time
from transforms.kafka_config import KafkaConfig
from transforms.kafka_reader import (
    PartitionReader,
    borrow_reader,
    close_readers,
    durable_offset,
    note_durable,
    reading_stopped,
    to_kafka_record,
)
from transforms.kafka_topics import list_partitions, start_offset
from transforms.stream_records import KafkaPartition, KafkaRecord

# Offsets are 63 bits; the end of a restriction must leave room for arithmetic.
_NO_END = 2**62

# How long a fetch may take of what lies at the broker.
_FETCH_MS = 10

_WATERMARK = ManualWatermarkEstimator.default_provider()


class ReadFromKafka(beam.PTransform):
    """Gives the records of a topic as KafkaRecord, each with its stream time as Beam timestamp.

    Reading goes on where the runner's checkpoint says; a new job begins after KafkaConfig.start. Partitions that are
    added while the job runs are not read until it starts again.
    """

    def __init__(self, config: KafkaConfig, topic: str) -> None:
        super().__init__()
        self._config = config
        self._topic = topic

    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.PCollection:
        read = (_CommittingReadPartitionFn if self._config.group_id else _ReadPartitionFn)(self._config)
        return (
            pbegin
            | "Topic" >> beam.Create([self._topic])
            | "ListPartitions" >> beam.ParDo(_ListPartitionsFn(self._config))
            | "ReadPartition" >> beam.ParDo(read).with_output_types(KafkaRecord)
        )


class _ListPartitionsFn(beam.DoFn):
    def __init__(self, config: KafkaConfig) -> None:
        super().__init__()
        self._config = config

    def process(self, topic: str) -> Iterator[KafkaPartition]:
        for partition in list_partitions(self._config, [topic])[topic]:
            yield KafkaPartition(topic, partition)


class _Tracker(OffsetRestrictionTracker):
    """Never splits ahead of what has been read: half of an endless range begins at an offset that never comes."""

    def try_split(self, fraction_of_remainder: float) -> tuple[OffsetRange, OffsetRange] | None:
        return None if fraction_of_remainder > 0 else super().try_split(fraction_of_remainder)

    def is_bounded(self) -> bool:
        return False


class _ReadPartitionFn(beam.DoFn, RestrictionProvider):
    """Reads a partition in short rounds; between two of them the runner hands the records on.

    It provides its own restrictions: offsets from the configured start on, without an end.
    """

    def __init__(self, config: KafkaConfig) -> None:
        super().__init__()
        self._config = config
        self._round_end_s = 0.0
        self._records = Metrics.counter("speech.read_kafka", "records")
        self._substituted = Metrics.counter("speech.read_kafka", "timestamps_substituted")

    def initial_restriction(self, element: KafkaPartition) -> OffsetRange:
        return OffsetRange(start_offset(self._config, element.topic, element.partition), _NO_END)

    def create_tracker(self, restriction: OffsetRange) -> _Tracker:
        return _Tracker(restriction)

    def restriction_size(self, element: KafkaPartition, restriction: OffsetRange) -> float:
        return 1.0

    def truncate(self, element: KafkaPartition, restriction: OffsetRange) -> None:
        """Leaves nothing to read where a job is drained; its sessions then end by their timers."""
        return None

    def start_bundle(self) -> None:
        # Partitions that share a bundle are read one after the other, so they share the time of one round as well.
        self._round_end_s = time.monotonic() + self._config.poll_round_ms / 1000

    @beam.DoFn.unbounded_per_element()
    def process(
        self,
        partition: KafkaPartition,
        tracker: RestrictionTracker = beam.DoFn.RestrictionParam(),  # noqa: B008
        watermark: ManualWatermarkEstimator = beam.DoFn.WatermarkEstimatorParam(_WATERMARK),  # noqa: B008
    ) -> Iterator[TimestampedValue]:
        return self._round(partition, tracker, watermark)

    def _round(
        self, partition: KafkaPartition, tracker: RestrictionTracker, watermark: ManualWatermarkEstimator
    ) -> Iterator[TimestampedValue]:
        """Reads for the time of a round, then asks to be called again."""
        if reading_stopped():
            # Claiming the end says that nothing is left, which sends the watermark to its end.
            tracker.try_claim(_NO_END)
            return
        with borrow_reader(self._config, partition) as reader:
            if self._config.group_id:
                reader.commit(durable_offset(self._config, partition))
            reader.seek(tracker.current_restriction().start)
            last: Timestamp | None = watermark.current_watermark()
            reader.clock.begin_round(None if last is None else last.micros // 1000)
            count = 0
            for record in self._records_of_round(reader):
                if not tracker.try_claim(record.offset):
                    reader.forget_place()
                    return
                reader.claimed(record.offset)
                yield self._stamped(record, reader)
                count += 1
            now_ms = int(time.time() * 1000)
            watermark_ms = reader.clock.end_round(now_ms, count > 0, reader.caught_up())
            watermark.set_watermark(Timestamp(micros=watermark_ms * 1000))
            tracker.defer_remainder()

    def _records_of_round(self, reader: PartitionReader) -> Iterator[ConsumerRecord]:
        """Gives what there is at the end of the round; where more waits than a round may have, it ends at once.

        Records are handed on when the round ends, so until then they may as well lie at the broker: a fetch for each
        of them would cost more than they do.
        """
        left = self._config.max_round_records
        if reader.caught_up():
            time.sleep(max(0.0, self._round_end_s - time.monotonic()))
            # While the last rounds are being worked on, what comes would only wait behind them, in pieces.
            INFERENCE.wait_until_idle((self._config.max_round_ms - self._config.poll_round_ms) / 1000)
        # What a fetch of the last round has brought meanwhile is there at once, the rest after a fetch of its own.
        wait_ms = 0
        while left > 0:
            records = reader.poll(wait_ms, left)
            yield from records
            left -= len(records)
            if not records and time.monotonic() >= self._round_end_s:
                break
            if wait_ms and reader.caught_up():
                break
            wait_ms = _FETCH_MS

    def teardown(self) -> None:
        close_readers(self._config)

    def _stamped(self, record: ConsumerRecord, reader: PartitionReader) -> TimestampedValue:
        now_ms = int(time.time() * 1000)
        time_of = event_time(record.timestamp, now_ms, self._config.max_future_ms)
        if time_of.substituted:
            self._substituted.inc()
        self._records.inc()
        stream_ms = reader.clock.stamp(time_of.event_ms)
        stamped = to_kafka_record(record, time_of, stream_ms, now_ms, reader.behind(record.offset))
        return TimestampedValue(stamped, Timestamp(micros=stream_ms * 1000))


class _CommittingReadPartitionFn(_ReadPartitionFn):
    """Commits, besides, what the runner has taken over; asking for that costs a call per bundle."""

    @beam.DoFn.unbounded_per_element()
    def process(
        self,
        partition: KafkaPartition,
        # Before the tracker: Beam fills a parameter of this kind by its place, the tracker by its name.
        finalizer: beam.DoFn.BundleFinalizerParam = beam.DoFn.BundleFinalizerParam,
        tracker: RestrictionTracker = beam.DoFn.RestrictionParam(),  # noqa: B008
        watermark: ManualWatermarkEstimator = beam.DoFn.WatermarkEstimatorParam(_WATERMARK),  # noqa: B008
    ) -> Iterator[TimestampedValue]:
        yield from self._round(partition, tracker, watermark)
        # Also after a round without records: a bundle that does not ask, once it may, is an error to the SDK.
        finalizer.register(partial(note_durable, self._config, partition, tracker.current_restriction().stop))
