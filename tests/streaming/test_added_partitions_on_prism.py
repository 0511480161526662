"""Field case K07 on Prism: a topic that comes after the job, and partitions that are added to it while the job runs."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import numpy as np
import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewPartitions, NewTopic

from model_runtime import Final, SpeechEngine
from model_runtime.decode import decode_file, encode_linear16
from pipelines.local_jobs import check_alive, running_streaming_job
from pipelines.streaming import main
from service.tail import Follower
from service.wire import ChunkHeaders, encode_headers
from transforms.kafka_config import KafkaConfig

pytestmark = [pytest.mark.kafka, pytest.mark.prism]

LIFT = Path(__file__).resolve().parents[2] / "samples" / "lift.wav"


def send_session(config: KafkaConfig, session: str, partition: int, end: bool) -> None:
    producer = KafkaProducer(bootstrap_servers=config.bootstrap_servers, acks="all")
    now_ms = int(time.time() * 1000)
    for i, part in enumerate(np.array_split(decode_file(LIFT).samples, 10)):
        headers = encode_headers(ChunkHeaders("LINEAR16", 16_000, 1, i, end and i == 9))
        producer.send(
            config.topics.audio,
            encode_linear16(part),
            key=session.encode(),
            partition=partition,
            headers=headers,
            timestamp_ms=now_ms + i,
        )
    producer.close()


def results_of(follower: Follower, session: str, alive: Callable[[], None]) -> list[dict[str, Any]]:
    """Waits until a session has ended; gives what was said in it."""
    results: list[dict[str, Any]] = []
    for value in follower.results(timeout_s=240):
        alive()
        if value is not None and (result := json.loads(value))["session"] == session:
            results.append(result)
            if result["type"] == "session_end":
                return results
    raise AssertionError(f"{session} has not ended: {results}")


@pytest.fixture
def texts() -> list[str]:
    (events,) = SpeechEngine.load("streaming").run([decode_file(LIFT)])
    return [event.text for event in events if isinstance(event, Final)]


@pytest.fixture
def follower(config: KafkaConfig) -> Iterator[Follower]:
    follower = Follower(config.bootstrap_servers, config.topics.results, from_beginning=True)
    yield follower
    follower.close()


@pytest.fixture
def config(make_config: Callable[..., KafkaConfig]) -> KafkaConfig:
    """Topics of which that of the audio does not exist."""
    config = make_config()
    return msgspec.structs.replace(config, topics=msgspec.structs.replace(config.topics, audio=uuid4().hex))


def test_field_case_k07_a_topic_and_partitions_that_come_later_are_read_from_their_beginning(
    config: KafkaConfig, follower: Follower, admin: KafkaAdminClient, texts: list[str], tmp_path: Path
) -> None:
    settings = {f"kafka.topics.{name}": topic for name, topic in msgspec.structs.asdict(config.topics).items()}
    settings |= {"kafka.start": "latest", "kafka.on_missing_topic": "wait", "kafka.partition_check_ms": "500"}
    settings |= {"session.idle_timeout_ms": "3000"}
    with running_streaming_job(config.bootstrap_servers, tmp_path, settings) as job:

        def alive() -> None:
            check_alive(job, tmp_path)

        end = time.monotonic() + 240
        while "there is no topic" not in (tmp_path / "streaming.log").read_text():
            alive()
            assert time.monotonic() < end, "the job does not wait for its topic"
        admin.create_topics([NewTopic(config.topics.audio, 1, 1)], wait_for_metadata=True)
        send_session(config, "first", partition=0, end=True)
        first = results_of(follower, "first", alive)
        admin.create_partitions({config.topics.audio: NewPartitions(3)})
        send_session(config, "second", partition=2, end=False)
        second = results_of(follower, "second", alive)
        send_session(config, "third", partition=0, end=True)
        third = results_of(follower, "third", alive)
    for said, reason in ((first, "end_of_stream"), (second, "idle"), (third, "end_of_stream")):
        assert [result["text"] for result in said if result["type"] == "final"] == texts
        assert (said[-1]["reason"], said[-1]["gaps"]) == (reason, [])


def test_a_misspelt_topic_ends_the_job_with_exit_code_2(
    config: KafkaConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {f"kafka.topics.{name}": topic for name, topic in msgspec.structs.asdict(config.topics).items()}
    settings |= {"kafka.bootstrap_servers": config.bootstrap_servers}
    assert main([f"--set={name}={value}" for name, value in settings.items()]) == 2
    assert f"not on {config.bootstrap_servers}: {config.topics.audio}; create them first" in capsys.readouterr().err
