"""The consumers of a process: one per partition, kept between two rounds of reading."""

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import cycle

from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord
from kafka.errors import KafkaError, OffsetOutOfRangeError

from model_runtime.errors import ConfigError
from transforms.endless_range import NOTHING_LOST
from transforms.kafka_clock import EventTime, JointWatermark, PartitionClock
from transforms.kafka_config import KafkaConfig
from transforms.stream_records import KafkaPartition, KafkaRecord

_logger = logging.getLogger(__name__)

# How often a quiet partition's broker is asked whether it is still there, and how long its answer may take.
_ASK_S = 1.0
_ANSWER_MS = 1_000
# How long one of several partitions is waited for before the next one is looked at.
_GLANCE_MS = 5


class PartitionReader:
    """One consumer of one partition: assigned, never in a group's rebalance, and with its own place in time."""

    def __init__(self, config: KafkaConfig, partition: KafkaPartition) -> None:
        self.clock = PartitionClock(config.allowed_disorder_ms, config.idle_partition_ms)
        # Where reading has gone on after the newest records that were lost.
        self.lost_before = NOTHING_LOST
        self._lost = 0
        self._tp = TopicPartition(partition.topic, partition.partition)
        self._on_lost_records = config.on_lost_records
        self.next_offset: int | None = None
        # Records that have been polled, from next_offset on, but not asked for yet.
        self._ahead: list[ConsumerRecord] = []
        # Behind the newest record that the broker had.
        self._end = 0
        self._out_of_range = False
        self._handed_on_offset = 0
        self._committed_offset: int | None = None
        self._end_known_s = -_ASK_S
        self._consumer = KafkaConsumer(
            bootstrap_servers=config.bootstrap_servers,
            group_id=config.group_id or None,
            enable_auto_commit=False,
            # A jump is ours to make and to report.
            auto_offset_reset="none",
            isolation_level="read_committed",
            allow_auto_create_topics=False,
            # Records of a round are decoded by the thread that has asked for them; metrics cost more than they tell.
            metrics_enabled=False,
        )
        self._consumer.assign([self._tp])
        _logger.info("reading %s[%d] of %s", partition.topic, partition.partition, config.bootstrap_servers)

    def seek(self, offset: int) -> None:
        """Goes to an offset; where the last round has stopped there, what has been fetched ahead is kept.

        An offset before that is read again after a failure. Its time begins again as well: with the time reached
        before, sessions would seem idle whose next chunk is among what is read again.
        """
        if offset < self._handed_on_offset:
            self.clock.restart()
        self._handed_on_offset = offset
        if offset != self.next_offset:
            self._ahead = []
            self._consumer.seek(self._tp, offset)
            self.next_offset = offset

    def look_ahead(self, timeout_ms: int, max_records: int) -> bool:
        """Waits at most `timeout_ms` until `poll` has something to give, or to do; says whether it has."""
        if self._out_of_range or self._ahead:
            return True
        try:
            self._ahead = self._poll(timeout_ms, max_records)
        except OffsetOutOfRangeError:
            self._out_of_range = True
        return self._out_of_range or bool(self._ahead)

    def poll(self, timeout_ms: int, max_records: int) -> list[ConsumerRecord]:
        """Gives the next records, or none after `timeout_ms`.

        Raises:
            ConfigError: the partition is shorter than it was: the topic has been made anew; or records have been lost
                and the configuration does not allow that.
        """
        try:
            if self._out_of_range:
                raise OffsetOutOfRangeError
            records = self._ahead or self._poll(timeout_ms, max_records)
        except OffsetOutOfRangeError:
            self._out_of_range = False
            self._jump()
            return []
        self._ahead = records[max_records:]
        return records[:max_records]

    def _poll(self, timeout_ms: int, max_records: int) -> list[ConsumerRecord]:
        records: list[ConsumerRecord] = self._consumer.poll(timeout_ms, max_records).get(self._tp, [])
        self._end = self._consumer.highwater(self._tp) or 0
        return records

    def claimed(self, offset: int) -> None:
        """Takes note that the record at `offset` has been handed on."""
        self.next_offset = self._handed_on_offset = offset + 1

    def forget_place(self) -> None:
        """Takes note that records have been polled but not handed on."""
        self.next_offset = None

    def caught_up(self) -> bool:
        """Says whether all that the broker had at the last fetch has been read (open transactions hold it up)."""
        end: int | None = self._consumer.highwater(self._tp)
        return end is not None and self.place() >= end

    def place(self) -> int:
        """Gives the offset that is read next."""
        position: int = self._ahead[0].offset if self._ahead else self._consumer.position(self._tp)
        return position

    def behind(self, offset: int) -> int:
        """Gives how many records the broker had behind this one at the last fetch."""
        return max(0, self._end - offset - 1)

    def is_at_end(self) -> bool:
        """Says whether there is nothing more to read, and the broker was there to say so: now or a moment ago.

        What has been read of a partition whose broker is away may well lag behind what its senders have to say.
        """
        if not self.caught_up():
            return False
        now_s = time.monotonic()
        if now_s - self._end_known_s >= _ASK_S:
            try:
                end: int = self._consumer.end_offsets([self._tp], timeout_ms=_ANSWER_MS)[self._tp]
            except KafkaError:
                return False
            self._end_known_s = now_s
            return self.place() >= end
        return True

    def commit(self, offset: int | None) -> None:
        """Commits `offset` as the next to read, for lag monitors. Not waited for; one that fails is tried again."""
        if offset is not None and offset != self._committed_offset:
            self._committed_offset = offset
            self._consumer.commit_async({self._tp: OffsetAndMetadata(offset, "", -1)}, self._on_commit)

    def _on_commit(self, offsets: object, response: object) -> None:
        if isinstance(response, Exception):
            self._committed_offset = None

    def take_lost(self) -> int:
        """Gives how many offsets have been jumped over since this was last asked."""
        lost, self._lost = self._lost, 0
        return lost

    def close(self) -> None:
        """Closes the consumer."""
        self._consumer.close(autocommit=False, timeout_ms=2_000)

    def _jump(self) -> None:
        """Goes on, after the configured policy, where records that were to be read next have been deleted."""
        wanted, place = self.next_offset, f"{self._tp.topic}[{self._tp.partition}]"
        beginning: int = self._consumer.beginning_offsets([self._tp])[self._tp]
        if wanted is None or wanted > beginning:
            raise ConfigError(
                f"{place} begins at offset {beginning} and does not reach {wanted}, where reading was to go on: the "
                "topic has been made anew; start the job anew as well"
            )
        lost = f"{place}: records {wanted} to {beginning - 1} have been deleted before they were read"
        if self._on_lost_records == "fail":
            raise ConfigError(f"{lost}, and kafka.on_lost_records is fail")
        latest = self._on_lost_records == "latest"
        target = self._consumer.end_offsets([self._tp])[self._tp] if latest else beginning
        _logger.warning("%s; reading goes on at %d", lost, target)
        self._consumer.seek(self._tp, target)
        self.lost_before = target
        self._lost += target - wanted


def to_kafka_record(
    record: ConsumerRecord,
    time: EventTime,
    stream_ms: int,
    read_ms: int,
    behind: int = 0,
    lost_before: int = NOTHING_LOST,
) -> KafkaRecord:
    """Gives a consumer's record as the job knows it; for the other arguments see KafkaRecord."""
    return KafkaRecord(
        record.topic,
        record.partition,
        record.offset,
        record.key,
        record.value,
        record.headers,
        time.event_ms,
        time.substituted,
        stream_ms,
        read_ms,
        behind,
        lost_before,
    )


_stopped = threading.Event()
_lock = threading.Lock()
_idle_readers: dict[tuple[KafkaConfig, KafkaPartition], PartitionReader] = {}
_durable_offsets: dict[tuple[KafkaConfig, KafkaPartition], int] = {}


@cache
def joint_watermark(config: KafkaConfig) -> JointWatermark:
    """Gives the watermark of the partitions that this process reads with a configuration."""
    return JointWatermark(forget_after_s=20)


@contextmanager
def borrow_reader(config: KafkaConfig, partition: KafkaPartition) -> Iterator[PartitionReader]:
    """Lends this process's reader of a partition to one round; makes one if there is none."""
    key = (config, partition)
    with _lock:
        reader = _idle_readers.pop(key, None)
    if reader is None:
        reader = PartitionReader(config, partition)
    try:
        yield reader
    except BaseException:
        reader.close()
        raise
    with _lock:
        surplus = _idle_readers.pop(key, None)
        _idle_readers[key] = reader
    if surplus is not None:
        surplus.close()


def wait_for_records(
    config: KafkaConfig, reader: PartitionReader, others: Sequence[KafkaPartition], timeout_s: float
) -> None:
    """Waits, at most so long, until a reader or one of those of other partitions that are not in use has records."""
    with _lock:
        keys = [(config, partition) for partition in others if (config, partition) in _idle_readers]
        readers = [reader, *(_idle_readers.pop(key) for key in keys)]
    end_s = time.monotonic() + timeout_s
    longest_ms = int(timeout_s * 1000) if len(readers) == 1 else _GLANCE_MS
    try:
        for each in cycle(readers):
            left_ms = int((end_s - time.monotonic()) * 1000)
            if left_ms <= 0 or each.look_ahead(min(longest_ms, left_ms), config.max_round_records):
                return
    finally:
        with _lock:
            _idle_readers.update(zip(keys, readers[1:], strict=True))


def note_durable(config: KafkaConfig, partition: KafkaPartition, offset: int) -> None:
    """Takes note that the runner has taken over everything before `offset`; called when a bundle is durable."""
    _durable_offsets[config, partition] = offset


def durable_offset(config: KafkaConfig, partition: KafkaPartition) -> int | None:
    """Gives the offset from which a job would go on, as far as is known here; None before the first bundle."""
    return _durable_offsets.get((config, partition))


def close_readers(config: KafkaConfig) -> None:
    """Closes the readers of this configuration that no round is using."""
    with _lock:
        keys = [key for key in _idle_readers if key[0] == config]
        readers = [_idle_readers.pop(key) for key in keys]
    for reader in readers:
        reader.close()


def stop_reading() -> None:
    """Ends every partition of this process at what has been read: the job then finishes as a bounded one does."""
    _stopped.set()


def reading_stopped() -> bool:
    """Says whether stop_reading was called."""
    return _stopped.is_set()
