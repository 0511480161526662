"""The configuration of a topic as input of the batch job."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from transforms.kafka_config import KafkaConfig


class KafkaInputConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Where Kafka is, how its time is kept, and how the work is shared; for an input kafka:TOPIC@FROM..TO."""

    bootstrap_servers: str = "127.0.0.1:19092"  # host:port of one or more brokers, separated by commas
    # ms that records may be behind the newest one before time has passed them; that of the live job.
    allowed_disorder_ms: Annotated[int, Meta(ge=0, le=3_600_000)] = 2_000
    # ms that a timestamp may be ahead of the present; one further ahead is unusable.
    max_future_ms: Annotated[int, Meta(ge=0, le=86_400_000)] = 60_000
    # When the range begins with deleted records: earliest (the oldest left), or fail (the job ends).
    on_lost_records: Literal["earliest", "fail"] = "earliest"
    # Sessions are dealt to so many parts by their key; each worker reads the range once for each part it does.
    parts: Annotated[int, Meta(ge=1, le=1_000)] = 4

    def source(self) -> KafkaConfig:
        """Gives the configuration of the live job's source."""
        return KafkaConfig(
            bootstrap_servers=self.bootstrap_servers,
            on_lost_records=self.on_lost_records,
            allowed_disorder_ms=self.allowed_disorder_ms,
            max_future_ms=self.max_future_ms,
        )
