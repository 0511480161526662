"""The source against a real broker: places, times, order, codecs, retention. Its DoFn is driven round by round."""

import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from uuid import uuid4

import pytest
from apache_beam.io.watermark_estimators import ManualWatermarkEstimator
from kafka import KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.consumer.fetcher import ConsumerRecord
from kafka.errors import KafkaError

from model_runtime.errors import ConfigError
from transforms import kafka_topics
from transforms.endless_range import NO_END, NOTHING_LOST, EndlessRange
from transforms.kafka_config import KafkaConfig
from transforms.kafka_reader import close_readers, note_durable
from transforms.kafka_topics import list_partitions
from transforms.read_kafka import _CommittingReadPartitionFn, _ReadPartitionFn
from transforms.stream_records import KafkaPartition, KafkaRecord

pytestmark = pytest.mark.kafka

FIRST_MS = 1_600_000_000_000


class Rounds:
    """Plays the runner: reads a partition round after round, from where the last one has stopped."""

    def __init__(self, config: KafkaConfig, partition: int = 0) -> None:
        self.config = config
        self.fn = _ReadPartitionFn(config)
        self.partition = KafkaPartition(config.topics.audio, partition)
        self.restriction = self.fn.initial_restriction(self.partition)
        self.watermark = ManualWatermarkEstimator(None)

    def read(self) -> list[KafkaRecord]:
        tracker = self.fn.create_tracker(self.restriction)
        tracker.defer_remainder = lambda: None
        self.fn.start_bundle()
        values = list(self.fn._round(self.partition, tracker, self.watermark))
        _, self.restriction = tracker.try_split(0)
        assert [value.timestamp.micros for value in values] == [value.value.stream_ms * 1000 for value in values]
        return [value.value for value in values]

    def watermark_ms(self) -> int:
        return int(self.watermark.current_watermark().micros // 1000)

    def read_until(self, enough: Callable[[list[KafkaRecord]], bool], timeout_s: float = 120) -> list[KafkaRecord]:
        records: list[KafkaRecord] = []
        end = time.monotonic() + timeout_s
        while not enough(records):
            assert time.monotonic() < end, f"only {len(records)} records within {timeout_s} s"
            records += self.read()
        return records

    def place(self) -> tuple[EndlessRange, ManualWatermarkEstimator]:
        """What a checkpoint holds, which the rounds that follow leave alone."""
        return copy(self.restriction), ManualWatermarkEstimator(self.watermark.current_watermark())


@pytest.fixture
def rounds(make_config: Callable[..., KafkaConfig]) -> Iterator[Callable[..., Rounds]]:
    made: list[Rounds] = []

    def make(**fields: object) -> Rounds:
        made.append(Rounds(make_config(**fields)))
        return made[-1]

    yield make
    for each in made:
        close_readers(each.config)


def send(config: KafkaConfig, count: int, partition: int = 0, first_ms: int = FIRST_MS, **settings: object) -> None:
    with_settings = KafkaProducer(bootstrap_servers=config.bootstrap_servers, acks="all", **settings)
    for i in range(count):
        with_settings.send(
            config.topics.audio, b"%d" % i, key=b"s", partition=partition, timestamp_ms=first_ms + 10 * i
        )
    with_settings.flush()
    with_settings.close()


def test_what_is_read_again_after_a_failure_has_the_times_that_it_had_before(rounds: Callable[..., Rounds]) -> None:
    reading = rounds(max_round_records=10)
    send(reading.config, 40)
    reading.read_until(lambda records: len(records) >= 10)
    checkpoint = reading.place()
    first = reading.read_until(lambda records: len(records) >= 15)
    watermark_ms = reading.watermark_ms()
    reading.restriction, reading.watermark = checkpoint
    again = reading.read_until(lambda records: len(records) >= 1)
    times = [(record.offset, record.event_ms, record.stream_ms) for record in first]
    assert [(record.offset, record.event_ms, record.stream_ms) for record in again] == times[: len(again)]
    assert reading.watermark_ms() == again[-1].stream_ms - reading.config.allowed_disorder_ms < watermark_ms


def test_records_come_once_and_in_order_over_rounds_of_bounded_size(rounds: Callable[..., Rounds]) -> None:
    source = rounds(max_round_records=7)
    send(source.config, 40)
    sizes = []
    records: list[KafkaRecord] = []
    end = time.monotonic() + 30
    while len(records) < 40 and time.monotonic() < end:
        part = source.read()
        sizes.append(len(part))
        records += part
    assert [record.offset for record in records] == list(range(40))
    assert [record.value for record in records] == [b"%d" % i for i in range(40)]
    assert max(sizes) <= 7


def test_stream_time_rises_between_rounds_also_where_timestamps_do_not(rounds: Callable[..., Rounds]) -> None:
    source = rounds(max_round_records=1)
    producer = KafkaProducer(bootstrap_servers=source.config.bootstrap_servers)
    for _ in range(5):
        producer.send(source.config.topics.audio, b"x", key=b"s", timestamp_ms=FIRST_MS)
    producer.close()
    records = source.read_until(lambda got: len(got) == 5)
    times = [record.stream_ms for record in records]
    assert {record.event_ms for record in records} == {FIRST_MS}
    assert times == sorted(set(times))


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_read(rounds: Callable[..., Rounds], codec: str) -> None:
    source = rounds()
    send(source.config, 10, compression_type=codec)
    assert len(source.read_until(lambda got: len(got) >= 10)) == 10


def test_reading_starts_at_the_end_where_the_configuration_says_latest(rounds: Callable[..., Rounds]) -> None:
    config = rounds().config
    send(config, 5)
    latest = KafkaConfig(bootstrap_servers=config.bootstrap_servers, topics=config.topics, start="latest")
    assert _ReadPartitionFn(latest).initial_restriction(KafkaPartition(config.topics.audio, 0)).start == 5


def test_an_idle_partition_follows_the_clock_and_one_that_is_behind_holds(rounds: Callable[..., Rounds]) -> None:
    source = rounds(max_round_records=1)
    send(source.config, 3)
    assert source.read_until(lambda got: len(got) == 1)
    assert source.watermark_ms() < FIRST_MS + 100
    source.read_until(lambda got: len(got) == 2)
    before = int(time.time() * 1000)
    source.read_until(lambda got: source.watermark_ms() > before - 100)
    assert source.watermark_ms() <= int(time.time() * 1000) - 100


def test_a_partition_that_is_behind_holds_the_watermark_of_all_that_its_process_reads(
    make_config: Callable[..., KafkaConfig],
) -> None:
    config = make_config(partitions=2, max_round_records=1)
    send(config, 3, partition=1)
    idle, behind = Rounds(config, 0), Rounds(config, 1)
    behind.read_until(lambda got: len(got) == 1)
    # Alone, the idle one would go from nothing to the clock.
    idle.read()
    idle.read_until(lambda got: idle.watermark_ms() > FIRST_MS - 10_000)
    assert idle.watermark_ms() == behind.watermark_ms() < FIRST_MS
    before_ms = int(time.time() * 1000)
    behind.read_until(lambda got: idle.read() == [] and behind.watermark_ms() > before_ms)
    idle.read_until(lambda got: idle.watermark_ms() > before_ms)
    close_readers(config)


def test_an_unusable_timestamp_is_marked_and_replaced(rounds: Callable[..., Rounds]) -> None:
    source = rounds(max_future_ms=1_000)
    ahead = int(time.time() * 1000) + 1_800_000
    send(source.config, 1, first_ms=ahead)
    (record,) = source.read_until(lambda got: len(got) == 1)
    assert record.substituted
    assert abs(record.event_ms - time.time() * 1000) < 60_000


def test_records_that_retention_has_deleted_are_jumped_over(
    rounds: Callable[..., Rounds], admin: KafkaAdminClient, caplog: pytest.LogCaptureFixture
) -> None:
    source = rounds()
    send(source.config, 20)
    admin.delete_records({TopicPartition(source.config.topics.audio, 0): 15})
    records = source.read_until(lambda got: len(got) == 5)
    assert [record.offset for record in records] == list(range(15, 20))
    assert "records 0 to 14 have been deleted before they were read" in caplog.text


def test_where_records_were_lost_is_known_to_all_that_are_read_later_in_another_process_too(
    rounds: Callable[..., Rounds], admin: KafkaAdminClient
) -> None:
    source = rounds()
    send(source.config, 20)
    admin.delete_records({TopicPartition(source.config.topics.audio, 0): 15})
    source.read_until(lambda got: len(got) == 5)
    close_readers(source.config)
    source.restriction = pickle.loads(pickle.dumps(source.restriction))
    send(source.config, 2)
    records = source.read_until(lambda got: len(got) == 2)
    assert [(record.offset, record.lost_before) for record in records] == [(20, 15), (21, 15)]


def test_records_after_lost_ones_are_left_out_where_the_configuration_says_latest(
    rounds: Callable[..., Rounds], admin: KafkaAdminClient, caplog: pytest.LogCaptureFixture
) -> None:
    source = rounds(on_lost_records="latest")
    send(source.config, 20)
    admin.delete_records({TopicPartition(source.config.topics.audio, 0): 15})
    source.read_until(lambda got: "reading goes on at 20" in caplog.text)
    send(source.config, 2)
    assert [record.offset for record in source.read_until(lambda got: len(got) == 2)] == [20, 21]


def test_lost_records_end_the_job_where_the_configuration_says_so(
    rounds: Callable[..., Rounds], admin: KafkaAdminClient
) -> None:
    source = rounds(on_lost_records="fail")
    send(source.config, 20)
    admin.delete_records({TopicPartition(source.config.topics.audio, 0): 15})
    with pytest.raises(ConfigError, match=r"records 0 to 14 have been deleted before they were read, and"):
        source.read_until(lambda got: False)


def test_a_topic_that_has_been_made_anew_is_said_so(rounds: Callable[..., Rounds]) -> None:
    source = rounds()
    send(source.config, 10)
    source.restriction = EndlessRange(100)
    with pytest.raises(ConfigError, match=r"begins at offset 0 and does not reach 100.*made anew"):
        source.read_until(lambda got: False)


def test_a_missing_topic_is_named(make_config: Callable[..., KafkaConfig]) -> None:
    config = make_config()
    with pytest.raises(ConfigError, match=f"not on {config.bootstrap_servers}: speech.adio; create them first"):
        list_partitions(config, [config.topics.audio, "speech.adio"])


def test_a_broker_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_topics, "_TIMEOUT_MS", 500)
    with pytest.raises(ConfigError, match=r"kafka.bootstrap_servers: no broker answers at 127.0.0.1:1"):
        list_partitions(KafkaConfig(bootstrap_servers="127.0.0.1:1"), ["speech.audio"])


def test_a_running_restriction_is_never_split_ahead() -> None:
    tracker = _ReadPartitionFn(KafkaConfig()).create_tracker(EndlessRange(5, lost_before=3))
    assert tracker.try_claim(7)
    assert tracker.try_split(0.5) is None
    done, rest = tracker.try_split(0)
    assert (done.start, done.stop) == (5, 8)
    assert (rest.start, rest.stop, rest.lost_before) == (8, NO_END, 3)


def test_what_is_durable_is_committed_for_lag_monitors(rounds: Callable[..., Rounds], admin: KafkaAdminClient) -> None:
    source = rounds(group_id="monitor")
    send(source.config, 6)
    source.fn = _CommittingReadPartitionFn(source.config)
    source.read_until(lambda got: len(got) == 6)
    note_durable(source.config, source.partition, 6)
    partition = TopicPartition(source.config.topics.audio, 0)

    def committed(_: object) -> bool:
        try:
            offset = admin.list_group_offsets("monitor")["monitor"].get(partition)
        except KafkaError as error:
            # A new broker's first group has no coordinator yet.
            assert error.retriable
            return False
        return offset is not None and offset.offset == 6

    source.read_until(committed)


def transact(config: KafkaConfig, transactions: Sequence[tuple[int, bool]]) -> None:
    """Writes transactions of so many records each, committed or aborted."""
    producer = KafkaProducer(bootstrap_servers=config.bootstrap_servers, transactional_id=config.topics.audio)
    producer.init_transactions()
    for count, commit in transactions:
        producer.begin_transaction()
        for _ in range(count):
            producer.send(config.topics.audio, b"x", key=b"s", timestamp_ms=FIRST_MS)
        # What has not been sent when a transaction is aborted never is.
        producer.flush()
        producer.commit_transaction() if commit else producer.abort_transaction()
    producer.close()


def test_committed_transactions_are_read_aborted_ones_and_markers_are_passed_over(
    rounds: Callable[..., Rounds],
) -> None:
    source = rounds(max_round_records=2)
    transact(source.config, [(3, True), (3, False), (1, True)])
    send(source.config, 2)
    # A transaction's marker takes an offset as well: 3, 7 and 9.
    records = source.read_until(lambda got: len(got) >= 6)
    assert [record.offset for record in records] == [0, 1, 2, 8, 10, 11]
    assert {record.lost_before for record in records} == {NOTHING_LOST}


@pytest.mark.parametrize("commit", [True, False])
def test_a_partition_that_ends_with_a_marker_has_been_read_to_its_end(
    rounds: Callable[..., Rounds], commit: bool
) -> None:
    source = rounds()
    transact(source.config, [(2, commit)])
    before_ms = int(time.time() * 1000)
    records = source.read()
    source.read_until(lambda got: len(records + got) == 2 * commit and source.watermark_ms() > before_ms)


def test_what_is_written_behind_an_open_transaction_waits_for_its_end(rounds: Callable[..., Rounds]) -> None:
    source = rounds()
    producer = KafkaProducer(bootstrap_servers=source.config.bootstrap_servers, transactional_id=uuid4().hex)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(source.config.topics.audio, b"x", key=b"s", timestamp_ms=FIRST_MS).get(60)
    send(source.config, 1)
    before_ms = int(time.time() * 1000)
    # So long that an idle partition would have followed the clock.
    held = source.read_until(lambda got: time.time() * 1000 > before_ms + 1_000)
    producer.commit_transaction()
    producer.close()
    assert [record.offset for record in held + source.read_until(lambda got: len(held + got) == 2)] == [0, 1]
    assert held == []


def test_holes_of_compaction_are_passed_over_and_are_no_loss(
    rounds: Callable[..., Rounds], admin: KafkaAdminClient, read_topic: Callable[[str], list[ConsumerRecord]]
) -> None:
    source = rounds()
    topic = source.config.topics.audio
    compact = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "100"}
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {**compact, "max.compaction.lag.ms": "100"})])
    producer = KafkaProducer(bootstrap_servers=source.config.bootstrap_servers, acks="all")
    newest: dict[bytes, int] = {}
    end, written = time.monotonic() + 150, 0
    # Only what has been followed by a new segment is compacted, so something is written until that has happened.
    while not newest or read_topic(topic)[0].offset == 0:
        assert time.monotonic() < end, "the broker does not compact"
        key = b"%d" % (written % 3)
        newest[key] = producer.send(topic, b"x", key=key).get(60).offset
        written += 1
    producer.close()
    records = source.read_until(lambda got: {r.key: r.offset for r in got} == newest)
    offsets = [record.offset for record in records]
    assert offsets == sorted(set(offsets))
    assert len(offsets) < written
    assert {record.lost_before for record in records} == {NOTHING_LOST}
