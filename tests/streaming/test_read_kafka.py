"""The source against a real broker: places, times, order, codecs, retention. Its DoFn is driven round by round."""

import pickle
import time
from collections.abc import Callable
from typing import Any

import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from model_runtime.errors import ConfigError
from transforms import kafka_topics
from transforms.endless_range import NO_END, EndlessRange
from transforms.kafka_config import KafkaConfig
from transforms.kafka_reader import close_readers, note_durable
from transforms.kafka_topics import list_partitions
from transforms.read_kafka import _CommittingReadPartitionFn, _ReadPartitionFn
from transforms.stream_records import KafkaPartition, KafkaRecord
from transforms.waiting_records import WAITING

pytestmark = pytest.mark.kafka

FIRST_MS = 1_600_000_000_000


def test_what_is_read_again_after_a_failure_has_the_times_that_it_had_before(rounds: Callable[..., Any]) -> None:
    reading = rounds(max_round_records=10)
    reading.send(40)
    reading.read_until(lambda records: len(records) >= 10)
    checkpoint = reading.place()
    first = reading.read_until(lambda records: len(records) >= 15)
    watermark_ms = reading.watermark_ms()
    reading.restriction, reading.watermark = checkpoint
    again = reading.read_until(lambda records: len(records) >= 1)
    times = [(record.offset, record.event_ms, record.stream_ms) for record in first]
    assert [(record.offset, record.event_ms, record.stream_ms) for record in again] == times[: len(again)]
    assert reading.watermark_ms() == again[-1].stream_ms - reading.config.allowed_disorder_ms < watermark_ms


def test_reading_waits_while_too_much_of_what_was_read_is_not_yet_heard(rounds: Callable[..., Any]) -> None:
    reading = rounds(max_round_records=10, max_waiting_records=10, max_round_ms=100)
    reading.send(40)
    first = reading.read_until(lambda records: len(records) >= 10)
    WAITING.heard(reading.config.topics.audio, 0, -1)
    assert reading.read() == []
    WAITING.heard(reading.config.topics.audio, 0, first[-1].offset)
    then = reading.read_until(lambda records: len(records) >= 1)
    assert [record.offset for record in first + then] == list(range(len(first) + len(then)))


def test_records_come_once_and_in_order_over_rounds_of_bounded_size(rounds: Callable[..., Any]) -> None:
    source = rounds(max_round_records=7)
    source.send(40)
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


def test_stream_time_rises_between_rounds_also_where_timestamps_do_not(rounds: Callable[..., Any]) -> None:
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
def test_every_codec_is_read(rounds: Callable[..., Any], codec: str) -> None:
    source = rounds()
    source.send(10, compression_type=codec)
    assert len(source.read_until(lambda got: len(got) >= 10)) == 10


def test_reading_starts_at_the_end_where_the_configuration_says_latest(rounds: Callable[..., Any]) -> None:
    earliest = rounds()
    earliest.send(5)
    config = earliest.config
    latest = KafkaConfig(bootstrap_servers=config.bootstrap_servers, topics=config.topics, start="latest")
    assert _ReadPartitionFn(latest).initial_restriction(KafkaPartition(config.topics.audio, 0)).start == 5


def test_an_idle_partition_follows_the_clock_and_one_that_is_behind_holds(rounds: Callable[..., Any]) -> None:
    source = rounds(max_round_records=1)
    source.send(3)
    assert source.read_until(lambda got: len(got) == 1)
    assert source.watermark_ms() < FIRST_MS + 100
    source.read_until(lambda got: len(got) == 2)
    before = int(time.time() * 1000)
    source.read_until(lambda got: source.watermark_ms() > before - 100)
    assert source.watermark_ms() <= int(time.time() * 1000) - 100


def test_a_partition_that_is_behind_holds_the_watermark_of_all_that_its_process_reads(
    rounds: Callable[..., Any],
) -> None:
    idle = rounds(partitions=2, max_round_records=1)
    idle.send(3, partition=1)
    behind = idle.of(1)
    behind.read_until(lambda got: len(got) == 1)
    # Alone, the idle one would go from nothing to the clock.
    idle.read()
    idle.read_until(lambda got: idle.watermark_ms() > FIRST_MS - 10_000)
    assert idle.watermark_ms() == behind.watermark_ms() < FIRST_MS
    before_ms = int(time.time() * 1000)
    behind.read_until(lambda got: idle.read() == [] and behind.watermark_ms() > before_ms)
    idle.read_until(lambda got: idle.watermark_ms() > before_ms)


def test_an_unusable_timestamp_is_marked_and_replaced(rounds: Callable[..., Any]) -> None:
    source = rounds(max_future_ms=1_000)
    ahead = int(time.time() * 1000) + 1_800_000
    source.send(1, first_ms=ahead)
    (record,) = source.read_until(lambda got: len(got) == 1)
    assert record.substituted
    assert abs(record.event_ms - time.time() * 1000) < 60_000


def test_records_that_retention_has_deleted_are_jumped_over(
    rounds: Callable[..., Any], admin: KafkaAdminClient, caplog: pytest.LogCaptureFixture
) -> None:
    source = rounds()
    source.send(20)
    admin.delete_records({TopicPartition(source.config.topics.audio, 0): 15})
    records = source.read_until(lambda got: len(got) == 5)
    assert [record.offset for record in records] == list(range(15, 20))
    assert "records 0 to 14 have been deleted before they were read" in caplog.text


def test_where_records_were_lost_is_known_to_all_that_are_read_later_in_another_process_too(
    rounds: Callable[..., Any], admin: KafkaAdminClient
) -> None:
    source = rounds()
    source.send(20)
    admin.delete_records({TopicPartition(source.config.topics.audio, 0): 15})
    source.read_until(lambda got: len(got) == 5)
    close_readers(source.config)
    source.restriction = pickle.loads(pickle.dumps(source.restriction))
    source.send(2)
    records = source.read_until(lambda got: len(got) == 2)
    assert [(record.offset, record.lost_before) for record in records] == [(20, 15), (21, 15)]


def test_records_after_lost_ones_are_left_out_where_the_configuration_says_latest(
    rounds: Callable[..., Any], admin: KafkaAdminClient, caplog: pytest.LogCaptureFixture
) -> None:
    source = rounds(on_lost_records="latest")
    source.send(20)
    admin.delete_records({TopicPartition(source.config.topics.audio, 0): 15})
    source.read_until(lambda got: "reading goes on at 20" in caplog.text)
    source.send(2)
    assert [record.offset for record in source.read_until(lambda got: len(got) == 2)] == [20, 21]


def test_lost_records_end_the_job_where_the_configuration_says_so(
    rounds: Callable[..., Any], admin: KafkaAdminClient
) -> None:
    source = rounds(on_lost_records="fail")
    source.send(20)
    admin.delete_records({TopicPartition(source.config.topics.audio, 0): 15})
    with pytest.raises(ConfigError, match=r"records 0 to 14 have been deleted before they were read, and"):
        source.read_until(lambda got: False)


def test_a_topic_that_has_been_made_anew_is_said_so(rounds: Callable[..., Any]) -> None:
    source = rounds()
    source.send(10)
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


def test_what_is_durable_is_committed_for_lag_monitors(rounds: Callable[..., Any], admin: KafkaAdminClient) -> None:
    source = rounds(group_id="monitor")
    source.send(6)
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
