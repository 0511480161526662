"""Partitions on Prism: idle ones, one that is behind (field case K04), and what comes after the job (K07)."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import numpy as np
import pytest
from kafka.admin import KafkaAdminClient, NewPartitions, NewTopic

from model_runtime import Final, SpeechEngine
from model_runtime.decode import decode_file
from pipelines.streaming import main
from transforms.kafka_config import KafkaConfig

pytestmark = [pytest.mark.kafka, pytest.mark.prism, pytest.mark.timeout(900)]

LIFT = Path(__file__).resolve().parents[2] / "samples" / "lift.wav"


@pytest.fixture
def parts() -> dict[int, np.ndarray]:
    return dict(enumerate(np.array_split(decode_file(LIFT).samples, 10)))


@pytest.fixture
def texts() -> list[str]:
    """The finals of all these parts."""
    (events,) = SpeechEngine.load("streaming").run([decode_file(LIFT)])
    return [event.text for event in events if isinstance(event, Final)]


@pytest.fixture
def config(make_config: Callable[..., KafkaConfig]) -> KafkaConfig:
    """Topics of which that of the audio does not exist."""
    config = make_config()
    return msgspec.structs.replace(config, topics=msgspec.structs.replace(config.topics, audio=uuid4().hex))


def test_field_case_k04_idle_partitions_hold_up_nobody_and_one_that_is_behind_is_not_outrun(
    make_config: Callable[..., KafkaConfig],
    speak: Callable[..., None],
    run_job: Callable[..., Any],
    parts: dict[int, np.ndarray],
    texts: list[str],
) -> None:
    config = make_config(partitions=4)
    now_ms = int(time.time() * 1000)
    speak(config, "live", parts, partition=0)
    speak(config, "one", {0: parts[0]}, partition=1, end=True)
    # Its chunks lie 15 s apart; a watermark that ran ahead would end it after any of them.
    speak(config, "old", parts, partition=2, end=True, at_ms=now_ms - 300_000, step_ms=15_000)
    settings = {"kafka.max_round_records": "1", "session.idle_timeout_ms": "20000"}
    with run_job(config, settings) as job:
        for session in ("one", "old", "live"):
            job.wait_for_end(session)
    assert [job.ends(session) for session in ("one", "old", "live")] == [["end_of_stream"]] * 2 + [["idle"]]
    for session in ("old", "live"):
        assert [result["text"] for result in job.of(session) if result["type"] == "final"] == texts


def test_field_case_k07_a_topic_and_partitions_that_come_later_are_read_from_their_beginning(
    config: KafkaConfig,
    admin: KafkaAdminClient,
    speak: Callable[..., None],
    run_job: Callable[..., Any],
    parts: dict[int, np.ndarray],
    texts: list[str],
) -> None:
    settings = {"kafka.start": "latest", "kafka.on_missing_topic": "wait", "kafka.partition_check_ms": "500"}
    with run_job(config, {**settings, "session.idle_timeout_ms": "3000"}) as job:
        job.wait_for_log(f"there is no topic {config.topics.audio} yet")
        admin.create_topics([NewTopic(config.topics.audio, 1, 1)], wait_for_metadata=True)
        speak(config, "first", parts, end=True)
        job.wait_for_end("first")
        admin.create_partitions({config.topics.audio: NewPartitions(3)})
        speak(config, "second", parts, partition=2)
        job.wait_for_end("second")
        speak(config, "third", parts, end=True)
        job.wait_for_end("third")
    for session, reason in (("first", "end_of_stream"), ("second", "idle"), ("third", "end_of_stream")):
        said = job.of(session)
        assert [result["text"] for result in said if result["type"] == "final"] == texts
        assert (said[-1]["reason"], said[-1]["gaps"]) == (reason, [])


def test_a_misspelt_topic_ends_the_job_with_exit_code_2(
    config: KafkaConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {f"kafka.topics.{name}": topic for name, topic in msgspec.structs.asdict(config.topics).items()}
    settings |= {"kafka.bootstrap_servers": config.bootstrap_servers}
    assert main([f"--set={name}={value}" for name, value in settings.items()]) == 2
    assert f"not on {config.bootstrap_servers}: {config.topics.audio}; create them first" in capsys.readouterr().err
