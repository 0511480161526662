"""A session that falls behind sheds work, says so, and recovers by itself: on Prism, with a real broker."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from kafka import KafkaProducer

from model_runtime.decode import decode_file, encode_linear16
from service.tail import Follower
from service.wire import ChunkHeaders, encode_headers
from transforms.kafka_config import KafkaConfig

pytestmark = [pytest.mark.kafka, pytest.mark.prism]

ROOT = Path(__file__).resolve().parents[2]
RECORDING = sorted((ROOT / "samples").glob("*.wav"))[0]
CHUNK_SAMPLES = 1_600
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def speech() -> np.ndarray:
    """A recording, and the silence that ends its last utterance."""
    return np.concatenate([decode_file(RECORDING).samples, np.zeros(2 * 16_000, np.float32)])


class Run(NamedTuple):
    """What one session has said, and its clean audio."""

    results: list[dict[str, Any]]
    clean: np.ndarray


@pytest.fixture(scope="module")
def run(
    speech: np.ndarray, make_module_config: Callable[..., KafkaConfig], tmp_path_factory: pytest.TempPathFactory
) -> Run:
    """A session that says the same three times: an hour behind, and then twice ahead of the clock, so never behind.

    Each time is sent when the one before has been heard.
    """
    config = make_module_config(max_future_ms=HOUR_MS)
    log = (tmp_path_factory.mktemp("job") / "log").open("w+")
    job = start_job(config, log)
    try:
        results = Follower(config.bootstrap_servers, config.topics.results, from_beginning=True)
        enhanced = Follower(config.bootstrap_servers, config.topics.enhanced, from_beginning=True)
        pcm = b""
        for stage, ahead_ms in enumerate((-HOUR_MS, HOUR_MS // 2, HOUR_MS // 2)):
            send(config, speech, stage, int(time.time() * 1000) + ahead_ms)
            for value in enhanced.results(timeout_s=200):
                pcm += value or b""
                if len(pcm) >= 2 * ((stage + 1) * len(speech) - 4_000 * (stage < 2)) or job.poll() is not None:
                    break
        said: list[dict[str, Any]] = []
        for value in results.results(timeout_s=200):
            said += [] if value is None else [json.loads(value)]
            if (said and said[-1]["type"] == "session_end") or job.poll() is not None:
                break
        results.close()
        enhanced.close()
    finally:
        job.send_signal(signal.SIGINT)
        job.wait(60)
        log.seek(0)
        print(log.read())
    return Run(said, np.frombuffer(pcm, "<i2"))


def start_job(config: KafkaConfig, log: Any) -> subprocess.Popen[bytes]:
    topics = {f"kafka.topics.{name}": getattr(config.topics, name) for name in config.topics.__struct_fields__}
    settings = {"kafka.bootstrap_servers": config.bootstrap_servers, "kafka.start": "earliest", **topics}
    settings |= {"kafka.max_future_ms": str(config.max_future_ms), "session.idle_timeout_ms": "86400000"}
    settings |= {"overload.partials_off_ms": "1", "overload.denoise_off_ms": "1"}
    command = [sys.executable, "-m", "pipelines.streaming", "--runner=DirectRunner", "--streaming"]
    return subprocess.Popen([*command, *(f"--set={k}={v}" for k, v in settings.items())], stdout=log, stderr=log)


def send(config: KafkaConfig, speech: np.ndarray, stage: int, begin_ms: int) -> None:
    producer = KafkaProducer(bootstrap_servers=config.bootstrap_servers, acks="all")
    parts = np.split(speech, range(CHUNK_SAMPLES, len(speech), CHUNK_SAMPLES))
    for number, part in enumerate(parts):
        last = stage == 2 and number == len(parts) - 1
        headers = encode_headers(ChunkHeaders("LINEAR16", 16_000, 1, stage * len(parts) + number, last))
        payload = encode_linear16(part)
        producer.send(config.topics.audio, payload, key=b"s", headers=headers, timestamp_ms=begin_ms + number)
    producer.close()


def of_stage(run: Run, speech: np.ndarray, stage: int, kind: str) -> list[dict[str, Any]]:
    """The results of a type whose speech begins in this third of the session."""
    length_ms = len(speech) / 16
    return [r for r in run.results if r["type"] == kind and r["start_ms"] // length_ms == stage]


def test_while_it_is_behind_a_session_says_no_partials_and_its_finals_say_why(run: Run, speech: np.ndarray) -> None:
    assert of_stage(run, speech, 0, "partial") == []
    finals = of_stage(run, speech, 0, "final")
    assert [final["shed"] for final in finals] == [["partials", "denoise"]] * len(finals) != []


def test_while_it_is_behind_its_audio_is_not_denoised_but_keeps_its_place(run: Run, speech: np.ndarray) -> None:
    assert len(run.clean) == 3 * len(speech)
    sent = np.frombuffer(encode_linear16(speech), "<i2").astype(int)
    # The last blocks of the first third are heard with the second, and those around the switch are faded.
    assert np.abs(run.clean[: len(speech) - 4_000] - sent[:-4_000]).max() <= 1
    assert np.abs(run.clean[-len(speech) :] - sent).max() > 100


def test_when_it_is_no_longer_behind_it_recovers_by_itself(run: Run, speech: np.ndarray) -> None:
    assert of_stage(run, speech, 1, "partial") != []
    finals = of_stage(run, speech, 2, "final")
    assert [final["shed"] for final in finals] == [[]] * len(finals) != []
    assert of_stage(run, speech, 2, "partial") != []


def test_the_first_final_after_it_still_says_what_was_left_out_since_the_one_before(
    run: Run, speech: np.ndarray
) -> None:
    shed = [final["shed"] for final in of_stage(run, speech, 1, "final")]
    assert shed == [["partials", "denoise"], *[[]] * (len(shed) - 1)]
