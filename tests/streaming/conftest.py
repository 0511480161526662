"""A real broker for the tests of Kafka, one for the whole run, and topics of their own for each test."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import numpy as np
import pytest
from apache_beam.io.watermark_estimators import ManualWatermarkEstimator
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.consumer.fetcher import ConsumerRecord

from model_runtime.decode import encode_linear16
from pipelines.local_jobs import check_alive, free_port, running_broker, running_streaming_job
from service.tail import Follower
from service.wire import ChunkHeaders, encode_headers
from transforms.endless_range import EndlessRange
from transforms.kafka_config import KafkaConfig, TopicsConfig
from transforms.kafka_reader import close_readers
from transforms.read_kafka import _ReadPartitionFn
from transforms.stream_records import KafkaPartition, KafkaRecord

FIRST_MS = 1_600_000_000_000


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
    settings = {
        "start": "earliest",
        "idle_partition_ms": 200,
        "allowed_disorder_ms": 100,
        "max_round_ms": 100,
        **fields,
    }
    return KafkaConfig(bootstrap_servers=servers, topics=TopicsConfig(*names), **settings)


@pytest.fixture(scope="session")
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


@pytest.fixture
def speak(servers: str) -> Callable[..., None]:
    """Sends chunks of a session at 16 kHz, each with its number; the last one ends it, if `end`.

    Number n is captured at `at_ms` (now) plus n times `step_ms`.
    """

    def send(
        config: KafkaConfig,
        session: str,
        parts: Mapping[int, np.ndarray],
        partition: int = 0,
        end: bool = False,
        at_ms: int | None = None,
        step_ms: int = 1,
    ) -> None:
        producer = KafkaProducer(bootstrap_servers=servers, acks="all")
        first_ms = int(time.time() * 1000) if at_ms is None else at_ms
        for number, part in parts.items():
            headers = encode_headers(ChunkHeaders("LINEAR16", 16_000, 1, number, end and number == max(parts)))
            producer.send(
                config.topics.audio,
                encode_linear16(part),
                key=session.encode(),
                partition=partition,
                headers=headers,
                timestamp_ms=first_ms + number * step_ms,
            )
        producer.close()

    return send


class RunningJob:
    """The streaming job on Prism, and what it has written so far."""

    def __init__(self, log: Path, check: Callable[[], None], follower: Follower) -> None:
        self.results: list[dict[str, Any]] = []
        self._log = log
        self._check = check
        self._follower = follower

    def wait_until(self, condition: Callable[[], bool], timeout_s: float = 240) -> None:
        """Takes in what the job writes until a condition holds."""
        if condition():
            return
        for value in self._follower.results(timeout_s):
            self._check()
            if value is not None:
                self.results.append(json.loads(value))
                if condition():
                    return
        raise AssertionError(f"not within {timeout_s} s: {self.results}")

    def wait_for_end(self, session: str) -> None:
        """Waits until a session has ended."""
        self.wait_until(lambda: bool(self.ends(session)))

    def ends(self, session: str) -> list[str]:
        """Gives why the sessions of a key have ended."""
        return [result["reason"] for result in self.of(session) if result["type"] == "session_end"]

    def wait_for_log(self, text: str, timeout_s: float = 240) -> None:
        """Waits until the job has logged something."""
        end = time.monotonic() + timeout_s
        while text not in self._log.read_text(errors="replace"):
            self._check()
            assert time.monotonic() < end, f"the job has not said {text!r}"

    def of(self, session: str) -> list[dict[str, Any]]:
        """Gives the results of a session so far."""
        return [result for result in self.results if result["session"] == session]


@pytest.fixture
def run_job(servers: str, tmp_path: Path) -> Callable[..., AbstractContextManager[RunningJob]]:
    """Runs the job between the topics of a configuration, with further settings."""

    @contextmanager
    def run(config: KafkaConfig, settings: Mapping[str, str]) -> Iterator[RunningJob]:
        topics = {f"kafka.topics.{name}": topic for name, topic in msgspec.structs.asdict(config.topics).items()}
        follower = Follower(servers, config.topics.results, from_beginning=True)
        try:
            with running_streaming_job(servers, tmp_path, {**topics, **settings}) as job:
                yield RunningJob(tmp_path / "streaming.log", lambda: check_alive(job, tmp_path), follower)
        finally:
            follower.close()

    return run


class Rounds:
    """Plays the runner: reads a partition round after round, from where the last one has stopped."""

    def __init__(self, config: KafkaConfig, partition: int = 0) -> None:
        self.config = config
        self.fn = _ReadPartitionFn(config)
        self.partition = KafkaPartition(config.topics.audio, partition)
        self.restriction = self.fn.initial_restriction(self.partition)
        self.watermark = ManualWatermarkEstimator(None)

    def of(self, partition: int) -> "Rounds":
        """Gives rounds of another partition, by the same process."""
        return Rounds(self.config, partition)

    def read(self) -> list[KafkaRecord]:
        tracker = self.fn.create_tracker(self.restriction)
        tracker.defer_remainder = lambda: None
        self.fn.start_bundle()
        values = list(self.fn._round(self.partition, tracker, self.watermark))
        _, self.restriction = tracker.try_split(0)
        assert [value.timestamp.micros for value in values] == [value.value.stream_ms * 1000 for value in values]
        return [value.value for value in values]

    def watermark_ms(self) -> int:
        return int(self.watermark.current_watermark().micros // 1000)

    def read_until(self, enough: Callable[[list[KafkaRecord]], bool], timeout_s: float = 120) -> list[KafkaRecord]:
        records: list[KafkaRecord] = []
        end = time.monotonic() + timeout_s
        while not enough(records):
            assert time.monotonic() < end, f"only {len(records)} records within {timeout_s} s"
            records += self.read()
        return records

    def place(self) -> tuple[EndlessRange, ManualWatermarkEstimator]:
        """What a checkpoint holds, which the rounds that follow leave alone."""
        return copy(self.restriction), ManualWatermarkEstimator(self.watermark.current_watermark())

    def send(self, count: int, partition: int = 0, first_ms: int = FIRST_MS, **settings: object) -> None:
        """Writes so many records, 10 ms one after the other."""
        producer = KafkaProducer(bootstrap_servers=self.config.bootstrap_servers, acks="all", **settings)
        for i in range(count):
            producer.send(
                self.config.topics.audio, b"%d" % i, key=b"s", partition=partition, timestamp_ms=first_ms + 10 * i
            )
        producer.flush()
        producer.close()


@pytest.fixture
def rounds(make_config: Callable[..., KafkaConfig]) -> Iterator[Callable[..., Rounds]]:
    made: list[Rounds] = []

    def make(**fields: object) -> Rounds:
        made.append(Rounds(make_config(**fields)))
        return made[-1]

    yield make
    for each in made:
        close_readers(each.config)
