"""An utterance that is heard whole, in the job on Prism: what is said of it is what the engine says of the clip."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer

from model_runtime import Audio, Event, Final, Partial, SpeechEngine
from model_runtime.decode import decode_file
from pipelines.local_jobs import running_streaming_job
from service.produce import Piece, Recording, cut
from service.tail import Follower
from transforms.kafka_config import KafkaConfig

pytestmark = [pytest.mark.kafka, pytest.mark.prism]

ROOT = Path(__file__).resolve().parents[2]
RECIPE = """
name: agreeing
vad: {model: unison-vad}
asr: {model: unison-asr-batch, agreement_interval_ms: 400}
"""


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipe") / "agreeing.yaml"
    path.write_text(RECIPE)
    return path


@pytest.fixture(scope="module")
def recording() -> Audio:
    return decode_file(ROOT / "samples" / "countdown.wav")


@pytest.fixture(scope="module")
def expected(recipe: Path, recording: Audio) -> list[Event]:
    (events,) = SpeechEngine.load(recipe).run([recording])
    return [event for event in events if isinstance(event, Partial | Final)]


def send(config: KafkaConfig, pieces: list[Piece]) -> None:
    producer = KafkaProducer(bootstrap_servers=config.bootstrap_servers, acks="all")
    for piece in pieces:
        key, time_ms = piece.session.encode(), int(time.time() * 1000)
        producer.send(config.topics.audio, piece.payload, key=key, headers=piece.headers, timestamp_ms=time_ms)
    producer.close()


@pytest.fixture(scope="module")
def results(
    recipe: Path,
    recording: Audio,
    expected: list[Event],
    make_module_config: Callable[..., KafkaConfig],
    tmp_path_factory: pytest.TempPathFactory,
) -> list[dict[str, Any]]:
    """What the job says: the sender pauses in mid-utterance until it is told what has been understood."""
    config = make_module_config()
    settings = {f"kafka.topics.{name}": getattr(config.topics, name) for name in config.topics.__struct_fields__}
    settings |= {"recipe": str(recipe), "results.enhanced": "false", "session.idle_timeout_ms": "3600000"}
    pieces = [*cut(Recording("s", recording), 100, "LINEAR16", 1.0)]
    third = [event for event in expected if isinstance(event, Partial)][2]
    # The vad hears what is given to the recogniser a little later.
    pause = third.end_samples // 1600 + 3
    found: list[dict[str, Any]] = []
    follower = Follower(config.bootstrap_servers, config.topics.results, from_beginning=True)
    with running_streaming_job(config.bootstrap_servers, tmp_path_factory.mktemp("job"), settings):
        send(config, pieces[:pause])
        for value in follower.results(timeout_s=300):
            found += [] if value is None else [json.loads(value)]
            if value is not None and found[-1]["type"] == "partial" and pieces[pause:]:
                send(config, pieces[pause:])
                del pieces[pause:]
            if value is not None and found[-1]["type"] == "session_end":
                break
    follower.close()
    return found


def test_finals_are_those_of_the_clip_and_the_session_ends_behind_them(
    results: list[dict[str, Any]], expected: list[Event]
) -> None:
    finals = [event for event in expected if isinstance(event, Final)]
    said = [result for result in results if result["type"] in ("final", "session_end")]
    assert [(result["utterance"], result["revision"], result["text"]) for result in said[:-1]] == [
        (final.utterance, final.revision, final.text) for final in finals
    ]
    assert said[-1]["type"] == "session_end"


def test_what_is_said_on_the_way_is_what_the_engine_says_of_the_same_audio(
    results: list[dict[str, Any]], expected: list[Event]
) -> None:
    partials = [result for result in results if result["type"] == "partial" and result["utterance"] == 0]
    texts = {event.revision: event.text for event in expected if event.utterance == 0}
    first = partials[0]
    # Where something is left out, a text may come later than it could.
    assert first["text"] == texts[max(revision for revision in texts if revision <= first["revision"])]
    assert first["revision"] < max(texts)
