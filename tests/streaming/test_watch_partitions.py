"""Partitions and topics that come later, against a real broker: looked for, claimed once, read from their beginning."""

import time
from collections.abc import Callable
from uuid import uuid4

import pytest
from apache_beam.io.watermark_estimators import ManualWatermarkEstimator
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import Duration
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewPartitions, NewTopic

from model_runtime.errors import ConfigError
from transforms import kafka_topics
from transforms.endless_range import NO_END
from transforms.kafka_config import KafkaConfig, TopicsConfig
from transforms.read_kafka import _ReadPartitionFn
from transforms.stream_records import KafkaPartition
from transforms.watch_partitions import _WatchFn

pytestmark = pytest.mark.kafka

Found = list[KafkaPartition | TimestampedValue]


class Looks:
    """Plays the runner: looks at a topic again and again, from where the last look has stopped."""

    def __init__(self, config: KafkaConfig) -> None:
        self.fn = _WatchFn(config)
        self.topic = config.topics.audio
        self.restriction = self.fn.initial_restriction(self.topic)
        self.watermark = ManualWatermarkEstimator(None)
        self.delays: list[Duration] = []

    def look(self) -> Found:
        tracker = self.fn.create_tracker(self.restriction)
        tracker.defer_remainder = self.delays.append
        found = list(self.fn.process(self.topic, tracker, self.watermark))
        rest = tracker.try_split(0)
        self.restriction = rest[1] if rest else None
        return found

    def look_until_found(self, timeout_s: float = 60) -> Found:
        end = time.monotonic() + timeout_s
        while not (found := self.look()):
            assert time.monotonic() < end, f"nothing new within {timeout_s} s"
        return found

    def watermark_ms(self) -> int:
        return int(self.watermark.current_watermark().micros // 1000)


def unmade(servers: str, **fields: object) -> KafkaConfig:
    """A configuration whose audio topic does not exist."""
    return KafkaConfig(bootstrap_servers=servers, topics=TopicsConfig(audio=uuid4().hex), **fields)


def test_partitions_are_found_once_and_those_that_come_later_are_marked(
    make_config: Callable[..., KafkaConfig], admin: KafkaAdminClient
) -> None:
    looks = Looks(make_config(partitions=2))
    assert looks.look() == [KafkaPartition(looks.topic, 0), KafkaPartition(looks.topic, 1)]
    assert looks.look() == []
    before_ms = looks.watermark_ms()
    admin.create_partitions({looks.topic: NewPartitions(4)})
    found = looks.look_until_found()
    if len(found) == 1:
        found += looks.look_until_found()
    assert [each.value for each in found] == [KafkaPartition(looks.topic, number, added=True) for number in (2, 3)]
    assert found[0].timestamp.micros // 1000 >= before_ms
    assert looks.look() == []


def test_the_watermark_is_the_time_of_the_last_look_less_the_disorder(make_config: Callable[..., KafkaConfig]) -> None:
    looks = Looks(make_config(allowed_disorder_ms=5_000, partition_check_ms=700))
    for _ in range(2):
        before_ms = int(time.time() * 1000)
        looks.look()
        assert before_ms - 5_000 <= looks.watermark_ms() <= int(time.time() * 1000) - 5_000
    assert looks.delays == [Duration(micros=700_000)] * 2


def test_an_added_partition_is_read_from_its_beginning_where_others_are_read_from_their_end(
    make_config: Callable[..., KafkaConfig],
) -> None:
    config = make_config(partitions=2, start="latest")
    producer = KafkaProducer(bootstrap_servers=config.bootstrap_servers, acks="all")
    for partition in (0, 1):
        producer.send(config.topics.audio, b"x", key=b"s", partition=partition)
    producer.close()
    read = _ReadPartitionFn(config)
    assert read.initial_restriction(KafkaPartition(config.topics.audio, 0)).start == 1
    assert read.initial_restriction(KafkaPartition(config.topics.audio, 1, added=True)).start == 0


def test_a_topic_that_is_not_there_ends_the_job(servers: str) -> None:
    with pytest.raises(ConfigError, match=r"kafka.topics: not on .*; create them first"):
        Looks(unmade(servers)).look()


def test_a_topic_that_is_waited_for_is_read_from_its_beginning(
    servers: str, admin: KafkaAdminClient, caplog: pytest.LogCaptureFixture
) -> None:
    looks = Looks(unmade(servers, on_missing_topic="wait"))
    assert looks.look() == looks.look() == []
    assert f"there is no topic {looks.topic} yet" in caplog.text
    admin.create_topics([NewTopic(looks.topic, 1, 1)])
    (found,) = looks.look_until_found()
    assert found.value == KafkaPartition(looks.topic, 0, added=True)


def test_without_an_interval_one_look_is_all(make_config: Callable[..., KafkaConfig]) -> None:
    looks = Looks(make_config(partition_check_ms=0))
    assert looks.look() == [KafkaPartition(looks.topic, 0)]
    assert (looks.restriction, looks.delays) == (None, [])


def test_while_no_broker_answers_the_watermark_stands(
    make_config: Callable[..., KafkaConfig], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looks = Looks(make_config())
    looks.look()
    before_ms = looks.watermark_ms()
    monkeypatch.setattr(kafka_topics, "_TIMEOUT_MS", 500)
    looks.fn = _WatchFn(KafkaConfig(bootstrap_servers="127.0.0.1:1"))
    assert looks.look() == []
    assert looks.watermark_ms() == before_ms
    assert "no broker answers at 127.0.0.1:1" in caplog.text
    assert looks.restriction is not None and looks.restriction.stop == NO_END
