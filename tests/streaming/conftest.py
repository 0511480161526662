"""A real broker for the tests of Kafka, one for the whole run, and topics of their own for each test."""

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.consumer.fetcher import ConsumerRecord

from pipelines.local_jobs import free_port, running_broker
from transforms.kafka_config import KafkaConfig, TopicsConfig


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """host:port of a broker that runs for these tests alone."""
    port = free_port()
    with running_broker(port, tmp_path_factory.mktemp("broker")):
        yield f"127.0.0.1:{port}"


@pytest.fixture(scope="session")
def admin(servers: str) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=servers)
    yield client
    client.close()


@pytest.fixture(scope="module")
def make_module_config(servers: str, admin: KafkaAdminClient) -> Callable[..., KafkaConfig]:
    """As make_config, for fixtures that a whole module shares."""
    return lambda partitions=1, **fields: new_config(servers, admin, partitions, **fields)


@pytest.fixture
def make_config(servers: str, admin: KafkaAdminClient) -> Callable[..., KafkaConfig]:
    """Gives a configuration with new topics, audio in so many partitions; any field can be set."""
    return lambda partitions=1, **fields: new_config(servers, admin, partitions, **fields)


def new_config(servers: str, admin: KafkaAdminClient, partitions: int, **fields: object) -> KafkaConfig:
    names = [f"{uuid4().hex}.{name}" for name in TopicsConfig.__struct_fields__]
    admin.create_topics([NewTopic(name, partitions if name.endswith("audio") else 1, 1) for name in names])
    settings = {"start": "earliest", "idle_partition_ms": 200, "allowed_disorder_ms": 100, **fields}
    return KafkaConfig(bootstrap_servers=servers, topics=TopicsConfig(*names), **settings)


@pytest.fixture
def read_topic(servers: str) -> Callable[[str], list[ConsumerRecord]]:
    """Gives all records that a topic's only partition has now."""

    def read(topic: str) -> list[ConsumerRecord]:
        partition = TopicPartition(topic, 0)
        with KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([partition])
            end = consumer.end_offsets([partition])[partition]
            records: list[ConsumerRecord] = []
            while consumer.position(partition) < end:
                records += consumer.poll(timeout_ms=100).get(partition, [])
        return records

    return read
