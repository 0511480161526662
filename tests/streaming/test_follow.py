"""Who follows a topic of results misses none, however he reads."""

from collections.abc import Callable

import pytest
from kafka import KafkaProducer

from service.tail import Follower
from transforms.kafka_config import KafkaConfig

pytestmark = pytest.mark.kafka


def test_who_leaves_off_in_the_middle_and_asks_again_gets_what_comes_next(
    make_config: Callable[..., KafkaConfig], servers: str
) -> None:
    topic = make_config().topics.results
    # One batch: they come together.
    producer = KafkaProducer(bootstrap_servers=servers, linger_ms=1_000)
    for number in range(5):
        producer.send(topic, b"%d" % number)
    producer.close()
    follower = Follower(servers, topic, from_beginning=True)
    read = [next(value for value in follower.results(60) if value is not None) for _ in range(5)]
    follower.close()
    assert read == [b"0", b"1", b"2", b"3", b"4"]
