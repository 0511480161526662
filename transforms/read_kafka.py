"""ReadFromKafka: a topic as an unbounded stream of records, one splittable DoFn over its partitions."""

import time
from collections.abc import Iterator
from functools import partial

import apache_beam as beam
from apache_beam.io.iobase import RestrictionTracker
from apache_beam.io.watermark_estimators import ManualWatermarkEstimator
from apache_beam.metrics import Metrics
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import WindowedValue
from kafka.consumer.fetcher import ConsumerRecord

from transforms.bundle_load import INFERENCE
from transforms.endless_range import NO_END, EndlessRange, EndlessRanges
from transforms.kafka_clock import event_time
from transforms.kafka_config import KafkaConfig
from transforms.kafka_reader import (
    PartitionReader,
    borrow_reader,
    close_readers,
    durable_offset,
    joint_watermark,
    note_durable,
    reading_stopped,
    to_kafka_record,
    wait_for_records,
)
from transforms.kafka_topics import start_offset
from transforms.stream_records import KafkaPartition, KafkaRecord
from transforms.waiting_records import WAITING
from transforms.watch_partitions import WatchPartitions

# How long a fetch may take of what lies at the broker.
_FETCH_MS = 5

# All records are in this one; made once and not for each.
_WINDOWS = (GlobalWindow(),)
_WATERMARK = ManualWatermarkEstimator.default_provider()


class ReadFromKafka(beam.PTransform):
    """Gives the records of a topic as KafkaRecord, each with its stream time as Beam timestamp.

    Reading goes on where the runner's checkpoint says; a new job begins after KafkaConfig.start. Partitions that are
    added while the job runs are read from their beginning.
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
            | "WatchPartitions" >> WatchPartitions(self._config)
            | "ReadPartition" >> beam.ParDo(read).with_output_types(KafkaRecord)
        )


class _ReadPartitionFn(beam.DoFn, EndlessRanges):
    """Reads a partition in short rounds; between two of them the runner hands the records on.

    It provides its own restrictions: offsets from the configured start on, without an end.
    """

    def __init__(self, config: KafkaConfig) -> None:
        super().__init__()
        self._config = config
        self._round_end_s = 0.0
        # The partitions of this bundle so far, and those of the last one.
        self._partitions: list[KafkaPartition] = []
        self._partitions_before: list[KafkaPartition] = []
        self._records = Metrics.counter("speech.read_kafka", "records")
        self._lost = Metrics.counter("speech.read_kafka", "records_lost")
        self._substituted = Metrics.counter("speech.read_kafka", "timestamps_substituted")

    def initial_restriction(self, element: KafkaPartition) -> EndlessRange:
        return EndlessRange(start_offset(self._config, element))

    def start_bundle(self) -> None:
        # Partitions that share a bundle are read one after the other, so they share the time of one round as well.
        self._round_end_s = time.monotonic() + self._config.poll_round_ms / 1000
        self._partitions, self._partitions_before = [], self._partitions

    @beam.DoFn.unbounded_per_element()
    def process(
        self,
        partition: KafkaPartition,
        tracker: RestrictionTracker = beam.DoFn.RestrictionParam(),  # noqa: B008
        watermark: ManualWatermarkEstimator = beam.DoFn.WatermarkEstimatorParam(_WATERMARK),  # noqa: B008
    ) -> Iterator[WindowedValue]:
        return self._round(partition, tracker, watermark)

    def _round(
        self, partition: KafkaPartition, tracker: RestrictionTracker, watermark: ManualWatermarkEstimator
    ) -> Iterator[WindowedValue]:
        """Reads for the time of a round, then asks to be called again."""
        if reading_stopped():
            joint_watermark(self._config).leave(partition)
            tracker.try_claim(NO_END)
            return
        with borrow_reader(self._config, partition) as reader:
            if self._config.group_id:
                reader.commit(durable_offset(self._config, partition))
            restriction = tracker.current_restriction()
            reader.seek(restriction.start)
            reader.lost_before = restriction.lost_before
            last: Timestamp | None = watermark.current_watermark()
            reader.clock.begin_round(restriction.time_ms)
            newest: KafkaRecord | None = None
            for record in self._records_of_round(partition, reader):
                if not tracker.try_claim(record.offset):
                    reader.forget_place()
                    return
                reader.claimed(record.offset)
                newest = self._stamped(record, reader)
                yield WindowedValue(newest, Timestamp(micros=newest.stream_ms * 1000), _WINDOWS)
            self._lost.inc(reader.take_lost())
            now_ms = int(time.time() * 1000)
            if newest is not None:
                _measure(newest, now_ms)
            at_end = newest is None and reader.is_at_end()
            watermark_ms = reader.clock.end_round(now_ms, newest is not None, at_end)
            restriction.lost_before, restriction.time_ms = reader.lost_before, reader.clock.time_ms
            joint_ms = joint_watermark(self._config).report(partition, watermark_ms, time.monotonic())
            joint = Timestamp(micros=joint_ms * 1000)
            watermark.set_watermark(joint if last is None else max(last, joint))
            tracker.defer_remainder()

    def _records_of_round(self, partition: KafkaPartition, reader: PartitionReader) -> Iterator[ConsumerRecord]:
        """Waits until there is something, and gives all there is at the end of the round; or nothing, after a while.

        Where more waits than a round may have, it ends at once. Records are handed on when the round ends, so until
        then they may as well lie at the broker: a fetch for each of them would cost more than they do.
        """
        left = self._config.max_round_records
        most, longest_s = self._config.max_waiting_records, self._config.max_round_ms / 1000
        if not WAITING.wait_below(partition.topic, partition.partition, reader.next_offset or 0, most, longest_s):
            return
        behind = not reader.caught_up()
        gathers = not behind and self._gather(partition, reader)
        # What lies here is there at once, the rest after a fetch of its own.
        wait_ms = 0
        while left > 0:
            records = reader.poll(wait_ms, left)
            yield from records
            left -= len(records)
            if reader.caught_up() and (wait_ms or not (behind or gathers)):
                break
            if not records and time.monotonic() >= self._round_end_s:
                break
            wait_ms = _FETCH_MS

    def _gather(self, partition: KafkaPartition, reader: PartitionReader) -> bool:
        """Waits until a partition of this bundle has something, and then for what may join it.

        Gives whether there is more to be expected than what has been fetched by then.
        """
        self._partitions.append(partition)
        if len(self._partitions) > 1:
            # The first one has waited for all.
            return True
        others = [other for other in self._partitions_before if other != partition]
        known = len(others) < len(self._partitions_before)
        wait_for_records(self._config, reader, others if known else [], self._config.max_round_ms / 1000)
        arrived_s = time.monotonic()
        time.sleep(max(0.0, self._round_end_s - arrived_s))
        # While the last rounds are being worked on, what comes would only wait behind them, in pieces.
        INFERENCE.wait_until_idle((self._config.max_round_ms - self._config.poll_round_ms) / 1000)
        return time.monotonic() - arrived_s > _FETCH_MS / 1000

    def teardown(self) -> None:
        close_readers(self._config)

    def _stamped(self, record: ConsumerRecord, reader: PartitionReader) -> KafkaRecord:
        now_ms = int(time.time() * 1000)
        time_of = event_time(record.timestamp, now_ms, self._config.max_future_ms)
        if time_of.substituted:
            self._substituted.inc()
        self._records.inc()
        stream_ms = reader.clock.stamp(time_of.event_ms)
        behind = reader.behind(record.offset)
        return to_kafka_record(record, time_of, stream_ms, now_ms, behind, reader.lost_before)


def _measure(newest: KafkaRecord, now_ms: int) -> None:
    """Counts how far behind a partition is after a round; which one it is, is only known here."""
    Metrics.distribution("speech.read_kafka", f"records_behind/{newest.partition}").update(newest.behind)
    if not newest.substituted:
        Metrics.distribution("speech.read_kafka", f"lag_ms/{newest.partition}").update(max(0, now_ms - newest.event_ms))


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
    ) -> Iterator[WindowedValue]:
        yield from self._round(partition, tracker, watermark)
        # Also after a round without records: a bundle that does not ask, once it may, is an error to the SDK.
        finalizer.register(partial(note_durable, self._config, partition, tracker.current_restriction().stop))
