"""A partition whose broker is away, with a broker that is killed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.local_jobs import create_topics, free_port, running_broker, wait_until
from transforms.kafka_config import KafkaConfig
from transforms.kafka_reader import PartitionReader
from transforms.stream_records import KafkaPartition

pytestmark = pytest.mark.kafka


def test_a_partition_is_not_at_its_end_while_nobody_can_say_so(tmp_path: Path) -> None:
    with running_broker(free_port(), tmp_path) as broker:
        config = KafkaConfig(bootstrap_servers=broker.servers)
        create_topics(broker.servers, config.topics)
        reader = PartitionReader(config, KafkaPartition(config.topics.audio, 0))
        reader.seek(0)

        def after_a_poll(condition: Callable[[], bool]) -> bool:
            assert reader.poll(100, 10) == []
            return condition()

        wait_until(lambda: after_a_poll(reader.is_at_end), "the end is reached", 120)
        broker.kill()
        wait_until(lambda: after_a_poll(lambda: not reader.is_at_end()), "the broker is missed", 120)
        # By what was fetched last, there is nothing left.
        assert reader.caught_up()
        broker.start()
        wait_until(lambda: after_a_poll(reader.is_at_end), "the end is known again", 120)
        reader.close()
