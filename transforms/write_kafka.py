"""WriteToKafka: records to a topic; a bundle is done when every record of it has been acknowledged."""

from collections.abc import Callable
from typing import Any

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.utils.shared import Shared
from kafka import KafkaProducer
from kafka.errors import KafkaError
from kafka.producer.future import FutureRecordMetadata

from transforms.kafka_config import KafkaConfig
from transforms.stream_records import KafkaOutput

# What a bundle writes goes out when it ends, or after so many ms, or when a batch is full: each request has its cost.
_LINGER_MS = 40
# Below the 1 MiB that brokers accept in one batch, also with a last record of half of that.
_BATCH_BYTES = 262_144


class WriteToKafka(beam.PTransform):
    """Writes records as `encode(record, topic)` has them, at least once and in the order of their keys.

    The producer is idempotent and waits for all replicas. A record that is not acknowledged fails its bundle, which
    the runner then repeats: no offset is committed past results that were not written. Transforms with the same
    `shared` share a producer in each process.
    """

    def __init__(
        self, config: KafkaConfig, topic: str, encode: Callable[[Any, str], KafkaOutput], shared: Shared
    ) -> None:
        # Any: each kind of record has its own encoder.
        super().__init__()
        self._write = _WriteFn(config, topic, encode, shared)

    def expand(self, records: beam.PCollection) -> beam.PCollection:
        return records | "Send" >> beam.ParDo(self._write)


class _Producer:
    """The producer of a process; it is thread-safe, and the last DoFn that lets go of it closes it."""

    def __init__(self, config: KafkaConfig) -> None:
        self.kafka = KafkaProducer(
            bootstrap_servers=config.bootstrap_servers,
            enable_idempotence=True,
            acks="all",
            compression_type=None if config.compression == "none" else config.compression,
            max_request_size=config.max_request_bytes,
            delivery_timeout_ms=config.delivery_timeout_ms,
            request_timeout_ms=min(30_000, config.delivery_timeout_ms - _LINGER_MS),
            max_block_ms=config.delivery_timeout_ms,
            linger_ms=_LINGER_MS,
            batch_size=_BATCH_BYTES,
            allow_auto_create_topics=False,
            metrics_enabled=False,
        )

    def __del__(self) -> None:
        self.kafka.close(timeout=5)


class _WriteFn(beam.DoFn):
    def __init__(
        self, config: KafkaConfig, topic: str, encode: Callable[[Any, str], KafkaOutput], shared: Shared
    ) -> None:
        super().__init__()
        self._config = config
        self._topic = topic
        self._encode = encode
        self._shared = shared
        self._sent: list[tuple[KafkaOutput, FutureRecordMetadata]] = []
        self._records = Metrics.counter("speech.write_kafka", "records")

    def setup(self) -> None:
        self._producer: _Producer = self._shared.acquire(lambda: _Producer(self._config))

    def start_bundle(self) -> None:
        self._sent = []

    def process(self, record: Any) -> None:
        output = self._encode(record, self._topic)
        headers = [(name, b"" if value is None else value) for name, value in output.headers]
        try:
            future = self._producer.kafka.send(
                output.topic, output.value, key=output.key, headers=headers, timestamp_ms=output.timestamp_ms
            )
        except KafkaError as error:
            raise _not_written(output, error) from error
        self._sent.append((output, future))

    def finish_bundle(self) -> None:
        """Waits for every record; one that failed fails the bundle."""
        if not self._sent:
            return
        timeout_s = self._config.delivery_timeout_ms / 1000 + 5
        self._producer.kafka.flush(timeout_s)
        for output, future in self._sent:
            try:
                future.get(timeout_s)
            except KafkaError as error:
                raise _not_written(output, error) from error
        self._records.inc(len(self._sent))
        self._sent = []


def _not_written(output: KafkaOutput, error: KafkaError) -> RuntimeError:
    size = len(output.value or b"")
    return RuntimeError(f"a record of {size} bytes with key {output.key!r} was not written to {output.topic}: {error}")
