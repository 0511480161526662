"""What a broker knows about topics: which partitions there are, and where they begin and end."""

from collections.abc import Sequence

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from model_runtime.errors import ConfigError
from transforms.kafka_config import KafkaConfig
from transforms.stream_records import KafkaPartition

_TIMEOUT_MS = 10_000


def list_partitions(config: KafkaConfig, topics: Sequence[str]) -> dict[str, list[int]]:
    """Gives the partitions of each topic.

    Raises:
        ConfigError: no broker answers, or a topic does not exist.
    """
    known = find_partitions(config, topics)
    missing = [topic for topic, partitions in known.items() if not partitions]
    if missing:
        raise ConfigError(f"kafka.topics: not on {config.bootstrap_servers}: {', '.join(missing)}; create them first")
    return known


def find_partitions(config: KafkaConfig, topics: Sequence[str]) -> dict[str, list[int]]:
    """Gives the partitions of each topic, none of one that does not exist.

    Raises:
        ConfigError: no broker answers.
    """
    try:
        with connect(config) as consumer:
            return {topic: sorted(consumer.partitions_for_topic(topic)) for topic in topics}
    except KafkaError as error:
        raise ConfigError(
            f"kafka.bootstrap_servers: no broker answers at {config.bootstrap_servers}: {error}"
        ) from error


def start_offset(config: KafkaConfig, partition: KafkaPartition) -> int:
    """Gives the offset at which a new job begins in a partition: after KafkaConfig.start, unless it was added."""
    tp = TopicPartition(partition.topic, partition.partition)
    with connect(config) as consumer:
        from_beginning = partition.added or config.start == "earliest"
        edges = consumer.beginning_offsets if from_beginning else consumer.end_offsets
        offset: int = edges([tp])[tp]
    return offset


def connect(config: KafkaConfig, isolation_level: str = "read_uncommitted") -> KafkaConsumer:
    """Gives a client that asks about topics; close it after use.

    Args:
        isolation_level: read_committed ends a partition before the first open transaction.
    """
    return KafkaConsumer(
        bootstrap_servers=config.bootstrap_servers,
        bootstrap_timeout_ms=_TIMEOUT_MS,
        enable_auto_commit=False,
        allow_auto_create_topics=False,
        isolation_level=isolation_level,
        metrics_enabled=False,
    )
