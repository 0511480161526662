"""The sink against a real broker: everything is there when a bundle is done, or the bundle fails."""

from collections.abc import Callable, Iterator
from random import Random

import pytest
from apache_beam.utils.shared import Shared
from kafka.consumer.fetcher import ConsumerRecord

from transforms.kafka_config import KafkaConfig
from transforms.stream_records import KafkaOutput
from transforms.write_kafka import WriteToKafka, _WriteFn

pytestmark = pytest.mark.kafka


@pytest.fixture
def config(make_config: Callable[..., KafkaConfig]) -> KafkaConfig:
    return make_config(compression="lz4", delivery_timeout_ms=5_000)


@pytest.fixture
def fn(config: KafkaConfig) -> Iterator[_WriteFn]:
    fn = WriteToKafka(config, "", lambda output, topic: output, Shared())._write
    fn.setup()
    fn.start_bundle()
    yield fn


def test_records_are_there_when_the_bundle_is_done(
    config: KafkaConfig, fn: _WriteFn, read_topic: Callable[[str], list[ConsumerRecord]]
) -> None:
    topic = config.topics.results
    fn.process(KafkaOutput(topic, b"k", b"v", [("a", b"1"), ("b", None)], 1_234))
    fn.process(KafkaOutput(topic, None, b"no key", [], 2_000))
    fn.process(KafkaOutput(topic, b"k", None, [], 3_000))
    fn.finish_bundle()
    records = read_topic(topic)
    assert [(record.key, record.value, list(record.headers), record.timestamp) for record in records] == [
        (b"k", b"v", [("a", b"1"), ("b", b"")], 1_234),
        (None, b"no key", [], 2_000),
        (b"k", None, [], 3_000),
    ]


def test_a_record_that_the_broker_refuses_fails_the_bundle(config: KafkaConfig, fn: _WriteFn) -> None:
    topic = config.topics.results
    fn.process(KafkaOutput(topic, b"small", b"1", [], None))
    # Above the broker's limit of 1 MiB also when compressed.
    noise = Random(1).randbytes(2 << 20)
    fn.process(KafkaOutput(topic, b"large", noise, [], None))
    with pytest.raises(RuntimeError, match=r"a record of 2097152 bytes with key b'large' was not written to"):
        fn.finish_bundle()


def test_a_record_above_the_producers_limit_fails_the_bundle_at_once(config: KafkaConfig, fn: _WriteFn) -> None:
    with pytest.raises(RuntimeError, match="was not written to"):
        fn.process(KafkaOutput(config.topics.results, b"k", bytes(9 << 20), [], None))


def test_a_topic_that_is_not_there_fails_the_bundle(config: KafkaConfig, fn: _WriteFn) -> None:
    with pytest.raises(RuntimeError, match=r"was not written to no\.such\.topic"):
        fn.process(KafkaOutput("no.such.topic", b"k", b"v", [], None))
        fn.finish_bundle()
