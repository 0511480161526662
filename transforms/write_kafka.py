"""WriteToKafka: records to topics; a bundle is done when every record of it has been acknowledged."""

import logging

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.utils.shared import Shared
from kafka import KafkaProducer
from kafka.errors import KafkaError
from kafka.producer.future import FutureRecordMetadata

from transforms.kafka_config import KafkaConfig
from transforms.stream_records import KafkaOutput

_logger = logging.getLogger(__name__)


class WriteToKafka(beam.PTransform):
    """Writes KafkaOutput records, at least once and in the order of their keys.

    The producer is idempotent and waits for all replicas. A record that is not acknowledged fails its bundle, which
    the runner then repeats: no offset is committed past results that were not written.
    """

    def __init__(self, config: KafkaConfig) -> None:
        super().__init__()
        self._write = _WriteFn(config)

    def expand(self, outputs: beam.PCollection) -> beam.PCollection:
        # One DoFn, however often the transform is applied: its copies share a producer.
        return outputs | "Send" >> beam.ParDo(self._write)


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
            request_timeout_ms=min(30_000, config.delivery_timeout_ms),
            max_block_ms=config.delivery_timeout_ms,
            linger_ms=0,
            allow_auto_create_topics=False,
            metrics_enabled=False,
        )

    def __del__(self) -> None:
        self.kafka.close(timeout=5)


class _WriteFn(beam.DoFn):
    def __init__(self, config: KafkaConfig) -> None:
        super().__init__()
        self._config = config
        self._shared = Shared()
        self._sent: list[tuple[KafkaOutput, FutureRecordMetadata]] = []
        self._records = Metrics.counter("speech.write_kafka", "records")

    def setup(self) -> None:
        self._producer: _Producer = self._shared.acquire(lambda: _Producer(self._config))

    def start_bundle(self) -> None:
        self._sent = []

    def process(self, output: KafkaOutput) -> None:
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
        timeout_s = self._config.delivery_timeout_ms / 1000 + 5
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
