"""Utterances that are heard whole, in the job on Prism: what it says of them is what the engine says of the clip."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from model_runtime import Audio, Final, Partial, SpeechEngine
from model_runtime.decode import decode_file
from pipelines.local_jobs import running_streaming_job
from service.produce import Recording, play
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
def recordings() -> list[Recording]:
    audios = [audio for audio in map(decode_file, sorted((ROOT / "samples").glob("*.wav")))]
    return [Recording(f"s{number}", audio) for number, audio in enumerate(audios[:3])]


@pytest.fixture(scope="module")
def results(
    recipe: Path, recordings: list[Recording], make_module_config: Callable[..., KafkaConfig], tmp_path_factory: Any
) -> list[dict[str, Any]]:
    """All that the job says of the recordings, played at the same time and at their own speed."""
    config = make_module_config()
    settings = {f"kafka.topics.{name}": getattr(config.topics, name) for name in config.topics.__struct_fields__}
    settings |= {"recipe": str(recipe), "results.enhanced": "false", "transcriptions": "2"}
    found: list[dict[str, Any]] = []
    follower = Follower(config.bootstrap_servers, config.topics.results, from_beginning=True)
    with running_streaming_job(config.bootstrap_servers, tmp_path_factory.mktemp("job"), settings):
        play(recordings, config.bootstrap_servers, config.topics.audio)
        for value in follower.results(timeout_s=200):
            found += [] if value is None else [json.loads(value)]
            if sum(result["type"] == "session_end" for result in found) == len(recordings):
                break
    follower.close()
    return found


def said(audio: Audio, recipe: Path) -> dict[str, tuple[str, str]]:
    (events,) = SpeechEngine.load(recipe).run([audio])
    return {
        f"{event.utterance}/{event.revision}": (type(event).__name__.lower(), event.text)
        for event in events
        if isinstance(event, Partial | Final)
    }


def test_every_final_is_there_and_partials_say_what_the_engine_says(
    recipe: Path, recordings: list[Recording], results: list[dict[str, Any]]
) -> None:
    for session, audio in recordings:
        expected = said(audio, recipe)
        told = {
            f"{result['utterance']}/{result['revision']}": (result["type"], result["text"])
            for result in results
            if result["session"] == session and result["type"] in ("partial", "final")
        }
        assert {place: row for place, row in told.items() if row[0] == "final"} == {
            place: row for place, row in expected.items() if row[0] == "final"
        }
        # A text that the engine says once is said later where the first time was left out.
        texts = {text for _, text in expected.values()}
        assert all(row == expected.get(place, ("partial", row[1])) and row[1] in texts for place, row in told.items())
    assert any(result["type"] == "partial" for result in results)


def test_a_session_ends_behind_its_last_final(results: list[dict[str, Any]], recordings: list[Recording]) -> None:
    for session, _ in recordings:
        types = [result["type"] for result in results if result["session"] == session]
        assert types[-1] == "session_end"
        assert "final" in types
